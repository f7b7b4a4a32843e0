package relation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// The roles of the Blazar document. A lease has any number of reservations, and
// two events.
var (
	reservations = relation.NewRole("reservation", blazar.Reservation)
	startLease   = relation.NewRole("start_lease", blazar.Event)
	endLease     = relation.NewRole("end_lease", blazar.Event)
)

type (
	state string
	event string
)

const user fsm.Actor = "user"

// vm and note are machines of a related object and of a parent.
var (
	vm = fsm.Must[struct{}](fsm.Spec[state, event]{
		Name: "vm", Initial: "None", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{
			{Name: "None", Kind: fsm.Absent}, {Name: "Ready"}, {Name: "Busy"}, {Name: "Failed", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move[state, event]("None", "create", "Ready"),
			fsm.Move[state, event]("Ready", "work", "Busy"),
			fsm.Move[state, event]("Busy", "fail", "Failed"),
			fsm.Move[state, event]("Failed", "delete", "None"),
		),
	})
	note = fsm.Must[struct{}](fsm.Spec[state, event]{
		Name: "note", Initial: "Draft", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{{Name: "Draft"}, {Name: "Gone", Kind: fsm.Absent}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Draft", "throw", "Gone"),
			fsm.Move[state, event]("Gone", "write", "Draft"),
		),
	})
	vmRole = relation.NewRole("vm", vm)
)

// noteWith is a relation of notes that have these conditions as drafts.
func noteWith(need ...relation.Condition) relation.Spec[state] {
	return relation.Spec[state]{
		Name: "notes", Parent: note, Rows: []relation.Row[state]{{States: []state{"Draft"}, Need: need}},
	}
}

// Each kind of condition, with none, one and two objects.
func TestConditions(t *testing.T) {
	type s = state
	gone := vmRole.Saw("g", "None") // does not exist
	for _, c := range []struct {
		need relation.Condition
		text string
		yes  [][]s
		no   [][]s
	}{
		{
			vmRole.All("Ready", "Failed"), "all vm: Ready or Failed",
			[][]s{{}, {"Ready"}, {"Failed", "Ready"}},
			[][]s{{"Busy"}, {"Ready", "Busy"}},
		},
		{
			vmRole.One("Ready", "Failed"), "one vm: Ready or Failed",
			[][]s{{"Ready"}, {"Failed"}},
			[][]s{{}, {"Busy"}, {"Ready", "Ready"}, {"Ready", "Busy"}},
		},
		{
			vmRole.None("Ready", "Failed"), "none vm: Ready or Failed",
			[][]s{{}, {"Busy"}, {"Busy", "Busy"}},
			[][]s{{"Ready"}, {"Busy", "Failed"}},
		},
	} {
		t.Run(c.text, func(t *testing.T) {
			require.Equal(t, c.text, c.need.String())
			table := relation.Must(noteWith(c.need))
			check := func(states []s) error {
				related := []relation.Related{gone}
				for i, s := range states {
					related = append(related, vmRole.Saw(fmt.Sprint(i), s))
				}
				return table.Check("Draft", related...)
			}
			for _, states := range c.yes {
				require.NoError(t, check(states), "%v: %v", c.need, states)
			}
			for _, states := range c.no {
				require.ErrorIs(t, check(states), lifecycle.ErrPrecondition, "%v: %v", c.need, states)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	table := blazar.Relationships
	type related = []relation.Related
	for _, c := range []struct {
		name    string
		related related
		want    string
		is      error
	}{
		{
			"state of one object",
			related{reservations.Saw("r1", "active"), reservations.Saw("r2", "error"), reservations.Saw("r3", "pending")},
			`lifecycle: precondition failed: ACTIVE needs all reservation: active, but "r2" is error`, lifecycle.ErrPrecondition,
		},
		{
			"no object",
			related{reservations.Saw("r1", "active")},
			`lifecycle: precondition failed: ACTIVE needs one start_lease: DONE, but there are 0 objects`, lifecycle.ErrPrecondition,
		},
		{
			"two objects",
			related{startLease.Saw("a", "DONE"), startLease.Saw("b", "DONE")},
			`lifecycle: precondition failed: ACTIVE needs one start_lease: DONE, but there are 2 objects`, lifecycle.ErrPrecondition,
		},
		{
			"state of the only object",
			related{startLease.Saw("a", "ERROR")},
			`lifecycle: precondition failed: ACTIVE needs one start_lease: DONE, but "a" is ERROR`, lifecycle.ErrPrecondition,
		},
		{"unknown state", related{startLease.Saw("a", "LOST")}, `fsm: unknown state: machine "event" has no state "LOST"`, fsm.ErrUnknownState},
		{
			"seen twice",
			related{startLease.Saw("a", "DONE"), startLease.Saw("a", "DONE")},
			`lifecycle: invalid request: event "a" is named twice`, lifecycle.ErrInvalid,
		},
		{
			"seen and moved",
			related{startLease.Saw("a", "DONE"), endLease.Moves("a", "DONE")},
			`lifecycle: invalid request: event "a" is named twice`, lifecycle.ErrInvalid,
		},
		{
			"unknown role",
			related{vmRole.Saw("a", "Ready")},
			`lifecycle: invalid request: "a" is in role "vm", which the relation lacks or has for another machine`, lifecycle.ErrInvalid,
		},
		{
			"role of another machine",
			related{relation.NewRole("start_lease", vm).Saw("a", "Ready")},
			`lifecycle: invalid request: "a" is in role "start_lease", which the relation lacks or has for another machine`, lifecycle.ErrInvalid,
		},
		{"empty role", related{{}}, `lifecycle: invalid request: "" is in role "", which the relation lacks or has for another machine`, lifecycle.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := table.Check(blazar.LeaseActive, c.related...)
			require.EqualError(t, err, `relation: check "relationships between statuses": `+c.want)
			require.ErrorIs(t, err, c.is)
			preconditions, also := table.Require(blazar.LeaseActive, c.related...)
			require.Equal(t, err.Error(), also.Error())
			require.Empty(t, preconditions)
		})
	}
	require.ErrorIs(t, table.Check("HUNG"), fsm.ErrUnknownState)
}

// grade has undeclared values with the name of a declared value.
type grade int

func (g grade) String() string {
	if g == 1 {
		return "good"
	}
	return "bad"
}

// An undeclared state is neither an object that does not exist nor the declared
// state of the same name.
func TestUndeclaredStates(t *testing.T) {
	vms := relation.Must(noteWith(vmRole.None("Failed")))
	require.ErrorIs(t, vms.Check("Draft", vmRole.Saw("a", "")), fsm.ErrUnknownState)
	require.EqualError(t, vms.Check(""), `relation: check "notes": fsm: unknown state: machine "note" has no state ""`)

	grades := fsm.Must[struct{}](fsm.Spec[grade, event]{
		Name: "grade", Initial: 1, Actors: []fsm.Actor{user}, States: []fsm.State[grade]{{Name: 1}, {Name: 2}},
		Rows: fsm.Rows(fsm.Move(grade(1), event("fall"), grade(2)), fsm.Move(grade(2), event("rise"), grade(1))),
	})
	role := relation.NewRole("grade", grades)
	graded := relation.Must(noteWith(role.All(2)))
	require.NoError(t, graded.Check("Draft", role.Saw("a", 2)))
	require.EqualError(t, graded.Check("Draft", role.Saw("a", 7)),
		`relation: check "notes": fsm: unknown state: machine "grade" has no state 7`)
	_, err := relation.New(noteWith(role.All(7)))
	require.ErrorContains(t, err, "machine grade has no state 7")
}

// A later change of the specification does not change the relation.
func TestRelationKeepsNothing(t *testing.T) {
	spec := noteWith(vmRole.All("Ready"))
	table := relation.Must(spec)
	for i := range spec.Rows {
		clear(spec.Rows[i].States)
		clear(spec.Rows[i].Need)
	}
	require.ErrorIs(t, table.Check("Draft", vmRole.Saw("v", "Busy")), lifecycle.ErrPrecondition)
}
