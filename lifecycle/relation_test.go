package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// The roles of the Blazar document. A lease has any number of reservations, and
// two events.
var (
	reservations = lifecycle.NewRole("reservation", blazar.Reservation)
	startLease   = lifecycle.NewRole("start_lease", blazar.Event)
	endLease     = lifecycle.NewRole("end_lease", blazar.Event)
)

// leaseCombinations is the table "Relationships between statuses" of the Blazar
// document, and the line for ERROR, which it lacks. An event that is to have a
// status has to be there; "any status other than" holds for a missing one too.
func leaseCombinations() lifecycle.RelationSpec[blazar.LeaseState] {
	type (
		row  = lifecycle.RelationRow[blazar.LeaseState]
		of   = []blazar.LeaseState
		need = []lifecycle.Condition
	)
	return lifecycle.RelationSpec[blazar.LeaseState]{
		Name: "lease-combinations", Parent: blazar.Lease,
		Rows: []row{
			{States: of{blazar.LeaseCreating, blazar.LeasePending}, Need: need{
				reservations.All(blazar.ReservationPending),
				startLease.One(blazar.EventUndone), endLease.One(blazar.EventUndone),
			}},
			{States: of{blazar.LeaseStarting}, Need: need{
				reservations.All(blazar.ReservationPending, blazar.ReservationActive, blazar.ReservationError),
				startLease.One(blazar.EventInProgress), endLease.One(blazar.EventUndone),
			}},
			{States: of{blazar.LeaseActive}, Need: need{
				reservations.All(blazar.ReservationActive),
				startLease.One(blazar.EventDone), endLease.One(blazar.EventUndone),
			}},
			{States: of{blazar.LeaseTerminating}, Need: need{
				reservations.All(blazar.ReservationActive, blazar.ReservationDeleted, blazar.ReservationError),
				startLease.One(blazar.EventDone), endLease.One(blazar.EventInProgress),
			}},
			{States: of{blazar.LeaseTerminated}, Need: need{
				reservations.All(blazar.ReservationDeleted),
				startLease.One(blazar.EventDone), endLease.One(blazar.EventDone),
			}},
			{States: of{blazar.LeaseDeleting}, Doc: "whatever became of the rest"},
			{States: of{blazar.LeaseUpdating}, Need: need{
				startLease.None(blazar.EventInProgress), endLease.None(blazar.EventInProgress),
			}},
			{States: of{blazar.LeaseError}, Doc: "not in the document", Need: need{
				reservations.All(blazar.ReservationError),
				startLease.One(blazar.EventDone, blazar.EventError), endLease.One(blazar.EventUndone, blazar.EventError),
			}},
		},
	}
}

// leaseDocument is the table as the document prints it.
const leaseDocument = `
| CREATING    | pending           | start_lease: UNDONE      |
|             |                   | , end_lease: UNDONE      |
| PENDING     | pending           | start_lease: UNDONE      |
|             |                   | , end_lease: UNDONE      |
| STARTING    | pending or active | start_lease: IN_PROGRESS |
|             | or error          | , end_lease: UNDONE      |
| ACTIVE      | active            | start_lease: DONE        |
|             |                   | , end_lease: UNDONE      |
| TERMINATING | active or deleted | start_lease: DONE        |
|             | or error          | , end_lease: IN_PROGRESS |
| TERMINATED  | deleted           | start_lease: DONE        |
|             |                   | , end_lease: DONE        |
| DELETING    | Any status        | Any status               |
| UPDATING    | Any status        | Any status other than    |
|             |                   | IN_PROGRESS              |
| ERROR       | error             | start_lease: DONE or ERROR |
|             |                   | , end_lease: UNDONE or ERROR |
`

// documented reads it: what each lease status says of reservations, of
// start_lease and of end_lease.
func documented() map[string][3]string {
	lines := make(map[string][3]string)
	var cells [3]string // lease, reservations, events
	file := func() {
		start, end, both := strings.Cut(cells[2], ",")
		if !both {
			end = start
		}
		if cells[0] != "" {
			lines[cells[0]] = [3]string{cells[1], start, end}
		}
	}
	for line := range strings.Lines(strings.TrimSpace(leaseDocument)) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.TrimSpace(columns[0]) != "" {
			file()
			cells = [3]string{}
		}
		for i, c := range columns {
			cells[i] = strings.TrimSpace(cells[i] + " " + strings.TrimSpace(c))
		}
	}
	file()
	return lines
}

// says reports whether a cell allows a status.
func says(cell, status string) bool {
	if _, after, found := strings.Cut(cell, ": "); found {
		cell = after
	}
	cell = strings.TrimSpace(cell)
	if unwanted, ok := strings.CutPrefix(cell, "Any status other than "); ok {
		return status != unwanted
	}
	return cell == "Any status" || slices.Contains(strings.Split(cell, " or "), status)
}

// A lease with up to three reservations, in every combination there is, is
// allowed where the document says so, and where package blazar does.
func TestRelationIsTheDocument(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	document := documented()
	require.Len(t, document, 9)
	lists := [][]blazar.ReservationState{nil}
	for from, n := 0, 0; n < 3; n++ {
		until := len(lists)
		for _, list := range lists[from:until] {
			for s := range blazar.Reservation.States() {
				lists = append(lists, append(slices.Clone(list), s))
			}
		}
		from = until
	}
	allowed, tried := 0, 0
	for _, line := range blazar.Combinations() {
		cells, ok := document[string(line.Lease)]
		require.True(t, ok, line.Lease)
		for _, list := range lists {
			for start := range blazar.Event.States() {
				for end := range blazar.Event.States() {
					related := []lifecycle.Related{startLease.Saw("start", start), endLease.Saw("end", end)}
					want := says(cells[1], string(start)) && says(cells[2], string(end))
					for i, r := range list {
						related = append(related, reservations.Saw(fmt.Sprint(i), r))
						want = want && says(cells[0], string(r))
					}
					err := relation.Check(line.Lease, related...)
					require.Equal(t, want, err == nil, "%s: %v", line.Lease, related)
					require.Equal(t, line.Allows(list, start, end), err == nil)
					goes := must(relation.Allows(related...))(t)
					require.Equal(t, want, slices.Contains(goes, line.Lease))
					require.True(t, slices.IsSortedFunc(goes, func(a, b blazar.LeaseState) int {
						return blazar.Lease.StateIndex(a) - blazar.Lease.StateIndex(b)
					}))
					tried++
					if err == nil {
						allowed++
						continue
					}
					require.ErrorIs(t, err, lifecycle.ErrPrecondition)
				}
			}
		}
	}
	require.Equal(t, 9*len(lists)*16, tried)
	require.Equal(t, 2237, allowed)

	// Delete must work for a lease that hangs, whatever there is of it.
	require.NoError(t, relation.Check(blazar.LeaseDeleting))
	require.NoError(t, relation.Check(blazar.LeaseDeleting, startLease.Saw("s", blazar.EventInProgress)))
	// No row is about leases that do not exist.
	require.NoError(t, relation.Check(blazar.LeaseAbsent, reservations.Saw("r", blazar.ReservationActive)))
}

// Each kind of condition, with none, one and two objects.
func TestRelationConditions(t *testing.T) {
	type s = state
	gone := vmRole.Saw("g", "None") // does not exist
	for _, c := range []struct {
		need lifecycle.Condition
		says string
		yes  [][]s
		no   [][]s
	}{
		{
			vmRole.All("Ready", "Failed"), "all vm: Ready or Failed",
			[][]s{{}, {"Ready"}, {"Failed", "Ready"}},
			[][]s{{"Moving"}, {"Ready", "Moving"}},
		},
		{
			vmRole.Any("Ready", "Failed"), "any vm: Ready or Failed",
			[][]s{{"Ready"}, {"Moving", "Failed"}},
			[][]s{{}, {"Moving"}, {"Moving", "Updating"}},
		},
		{
			vmRole.One("Ready", "Failed"), "one vm: Ready or Failed",
			[][]s{{"Ready"}, {"Failed"}},
			[][]s{{}, {"Moving"}, {"Ready", "Ready"}, {"Ready", "Moving"}},
		},
		{
			vmRole.None("Ready", "Failed"), "none vm: Ready or Failed",
			[][]s{{}, {"Moving"}, {"Moving", "Updating"}},
			[][]s{{"Ready"}, {"Moving", "Failed"}},
		},
		{vmRole.None(), "no vm", [][]s{{}}, [][]s{{"Ready"}, {"Ready", "Failed"}}},
	} {
		require.Equal(t, c.says, c.need.String())
		relation := lifecycle.MustRelation(lifecycle.RelationSpec[state]{
			Name: "r", Parent: note, Rows: []lifecycle.RelationRow[state]{{States: []state{"Draft"}, Need: []lifecycle.Condition{c.need}}},
		})
		check := func(states []s) error {
			related := []lifecycle.Related{gone}
			for i, s := range states {
				related = append(related, vmRole.Saw(fmt.Sprint(i), s))
			}
			return relation.Check("Draft", related...)
		}
		for _, states := range c.yes {
			require.NoError(t, check(states), "%v: %v", c.need, states)
		}
		for _, states := range c.no {
			require.ErrorIs(t, check(states), lifecycle.ErrPrecondition, "%v: %v", c.need, states)
		}
	}
}

var vmRole = lifecycle.NewRole("vm", sizedVM)

func TestRelationErrors(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	for _, c := range []struct {
		related []lifecycle.Related
		want    string
		is      error
	}{
		{
			[]lifecycle.Related{reservations.Saw("r1", "active"), reservations.Saw("r2", "error"), reservations.Saw("r3", "pending")},
			`lifecycle: precondition failed: lease-combinations: ACTIVE needs all reservation: active, but "r2" is error`,
			lifecycle.ErrPrecondition,
		},
		{
			[]lifecycle.Related{reservations.Saw("r1", "active")},
			`lifecycle: precondition failed: lease-combinations: ACTIVE needs one start_lease: DONE, but there is none`,
			lifecycle.ErrPrecondition,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "DONE"), startLease.Saw("b", "DONE")},
			`lifecycle: precondition failed: lease-combinations: ACTIVE needs one start_lease: DONE, but there are 2`,
			lifecycle.ErrPrecondition,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "ERROR")},
			`lifecycle: precondition failed: lease-combinations: ACTIVE needs one start_lease: DONE, but "a" is ERROR`,
			lifecycle.ErrPrecondition,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "LOST")},
			`fsm: unknown state: event: in LOST`, fsm.ErrUnknownState,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "DONE"), startLease.Saw("a", "DONE")},
			`lifecycle: invalid request: relation lease-combinations: event "a" is named twice in role start_lease`, lifecycle.ErrInvalid,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "DONE"), endLease.Saw("a", "UNDONE")},
			`lifecycle: invalid request: relation lease-combinations: event "a" is DONE and UNDONE`, lifecycle.ErrInvalid,
		},
		{
			[]lifecycle.Related{startLease.Saw("a", "DONE"), endLease.Moves("a", "DONE")},
			`lifecycle: invalid request: relation lease-combinations: event "a" is DONE and DONE`, lifecycle.ErrInvalid,
		},
		{
			[]lifecycle.Related{vmRole.Saw("a", "Ready")},
			`lifecycle: invalid request: relation lease-combinations has no role "vm"`, lifecycle.ErrInvalid,
		},
		{
			[]lifecycle.Related{lifecycle.NewRole("start_lease", sizedVM).Saw("a", "Ready")},
			`lifecycle: invalid request: relation lease-combinations: vm "a" in the role start_lease of event`, lifecycle.ErrInvalid,
		},
		{[]lifecycle.Related{{}}, `lifecycle: invalid request: relation lease-combinations has no role ""`, lifecycle.ErrInvalid},
	} {
		err := relation.Check(blazar.LeaseActive, c.related...)
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, c.is)
		pins, also := relation.Require(blazar.LeaseActive, c.related...)
		require.Equal(t, err.Error(), also.Error())
		require.Empty(t, pins)
	}
	require.ErrorIs(t, relation.Check("HUNG"), fsm.ErrUnknownState)
	_, unknown := relation.Allows(startLease.Saw("a", "LOST"))
	require.ErrorIs(t, unknown, fsm.ErrUnknownState)
	_, err := relation.RequireParent("l", "HUNG")
	require.ErrorIs(t, err, fsm.ErrUnknownState)

	failed, ok := errors.AsType[*lifecycle.RelationError](relation.Check(blazar.LeaseError, reservations.Saw("r", "active")))
	require.True(t, ok)
	require.Equal(t, "ERROR", failed.State)
	require.Len(t, failed.Unmet, 1)
	require.Equal(t, "r", failed.Unmet[0].Object.ID)
	require.Equal(t, 7, failed.Unmet[0].Row)
}

// grade has values that are not declared and are called like one that is.
type grade int

func (g grade) String() string {
	if g == 1 {
		return "good"
	}
	return "bad"
}

// A state that is not declared is neither an object that does not exist nor the
// declared state of its name.
func TestUndeclaredStatesAreNone(t *testing.T) {
	ctx := t.Context()
	vms := lifecycle.MustRelation(lifecycle.RelationSpec[state]{
		Name: "r", Parent: note,
		Rows: []lifecycle.RelationRow[state]{{States: []state{"Draft"}, Need: []lifecycle.Condition{vmRole.None("Failed")}}},
	})
	require.ErrorIs(t, vms.Check("Draft", vmRole.Saw("a", "")), fsm.ErrUnknownState)
	require.EqualError(t, vms.Check(""), `fsm: unknown state: note: in lifecycle_test.state("")`)
	_, err := vms.Allows(vmRole.Moves("a", ""))
	require.ErrorIs(t, err, fsm.ErrUnknownState)

	store := lifecycle.NewMemoryStore()
	notes, machines := lifecycle.New(note, store, nil), lifecycle.New(sizedVM, store, nil)
	for _, s := range []state{"", "Asleep"} {
		_, err = notes.Create(ctx, "n", "write", user, size{})
		require.NoError(t, err)
		_, err = notes.Fire(ctx, "n", "throw", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{machines.Require("a", s)}})
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		must(notes.Fire(ctx, "n", "throw", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{machines.Require("a", "None")}}))(t)
	}

	grades := fsm.Must[size](fsm.Spec[grade, event]{
		Name: "grade", Initial: 1, Actors: []fsm.Actor{user}, States: []fsm.State[grade]{{Name: 1}, {Name: 2}},
		Rows: fsm.Rows(fsm.Move(grade(1), event("fall"), grade(2)).By(user), fsm.Move(grade(2), event("rise"), grade(1)).By(user)),
	})
	role := lifecycle.NewRole("grade", grades)
	row := lifecycle.RelationRow[state]{States: []state{"Draft"}, Need: []lifecycle.Condition{role.All(2)}}
	graded := lifecycle.MustRelation(lifecycle.RelationSpec[state]{Name: "r", Parent: note, Rows: []lifecycle.RelationRow[state]{row}})
	require.NoError(t, graded.Check("Draft", role.Saw("a", 2)))
	require.EqualError(t, graded.Check("Draft", role.Saw("a", 7)), "fsm: unknown state: grade: in lifecycle_test.grade(7)")
	row.Need[0] = role.All(7)
	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{Name: "r", Parent: note, Rows: []lifecycle.RelationRow[state]{row}})
	require.ErrorContains(t, err, "machine grade has no state lifecycle_test.grade(7)")
}

// world of the document: a lease with n reservations and its events.
type leaseWorld struct {
	store        lifecycle.Store
	leases       *lifecycle.Manager[blazar.LeaseState, blazar.Call, blazar.LeaseSpec]
	reservations *lifecycle.Manager[blazar.ReservationState, blazar.Call, blazar.ReservationSpec]
	events       *lifecycle.Manager[blazar.EventState, blazar.Call, blazar.EventSpec]
}

func newLease(t *testing.T, n int, store lifecycle.Store) leaseWorld {
	t.Helper()
	ctx := t.Context()
	w := leaseWorld{
		store: store, leases: lifecycle.New(blazar.Lease, store, nil),
		reservations: lifecycle.New(blazar.Reservation, store, nil), events: lifecycle.New(blazar.Event, store, nil),
	}
	must(w.leases.Create(ctx, "l", blazar.Create, blazar.User, blazar.LeaseSpec{}))(t)
	must(w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, nil))(t)
	for i := range n {
		must(w.reservations.Add(ctx, fmt.Sprint("r", i), blazar.Manager, blazar.ReservationSpec{Lease: "l"}))(t)
	}
	must(w.events.Add(ctx, "start", blazar.Manager, blazar.EventSpec{Lease: "l"}))(t)
	must(w.events.Add(ctx, "end", blazar.Manager, blazar.EventSpec{Lease: "l"}))(t)
	return w
}

// observed reads what the lease is related to.
func (w leaseWorld) observed(ctx context.Context, t *testing.T) []lifecycle.Related {
	t.Helper()
	related := []lifecycle.Related{
		startLease.Saw("start", must(w.events.Get(ctx, "start"))(t).State),
		endLease.Saw("end", must(w.events.Get(ctx, "end"))(t).State),
	}
	for r, err := range w.reservations.All(ctx, lifecycle.Select[blazar.ReservationState]{}) {
		require.NoError(t, err)
		related = append(related, reservations.Saw(r.ID, r.State))
	}
	return related
}

// A relation is what it was made of, whatever becomes of that.
func TestRelationKeepsNothing(t *testing.T) {
	spec := leaseCombinations()
	relation := lifecycle.MustRelation(spec)
	before := relation.String()
	for i := range spec.Rows {
		for j := range spec.Rows[i].Need {
			spec.Rows[i].Need[j].States[0] = "changed"
			spec.Rows[i].Need[j] = lifecycle.Condition{}
		}
		spec.Rows[i].States[0] = "changed"
	}
	require.Equal(t, before, relation.String())
}

// Whichever of the objects moves between the look and the commit, the lease does
// not move; with none it does.
func TestRelationRequire(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	ctx := t.Context()
	const n = 3
	for moved := range n + 3 {
		w := newLease(t, n, lifecycle.NewMemoryStore())
		must(w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil))(t)
		pins, err := relation.Require(blazar.LeaseStarting, w.observed(ctx, t)...)
		require.NoError(t, err)
		require.Len(t, pins, n+2)
		switch moved {
		case n:
			must(w.events.Fire(ctx, "start", blazar.Done, blazar.Manager, nil))(t)
		case n + 1:
			must(w.events.Fire(ctx, "end", blazar.Start, blazar.Manager, nil))(t)
		case n + 2:
		default:
			must(w.reservations.Fire(ctx, fmt.Sprint("r", moved), blazar.Start, blazar.Manager, nil))(t)
		}
		_, err = w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{Require: pins})
		want := blazar.LeaseStarting
		if moved < n+2 {
			require.ErrorIs(t, err, lifecycle.ErrPrecondition, moved)
			want = blazar.LeasePending
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, want, must(w.leases.Get(ctx, "l"))(t).State)
	}
}

// A lease that somebody else moves between the look and the commit is not held by
// the conditions on the others. With the revision that was seen, it is not moved on
// to where it was not checked for.
func TestRelationRequireOfAParentThatMoves(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	ctx := t.Context()
	for _, expects := range []bool{false, true} {
		w := newLease(t, 0, lifecycle.NewMemoryStore())
		seen := must(w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, nil))(t)
		must(w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil))(t)
		must(w.events.Fire(ctx, "start", blazar.Done, blazar.Manager, nil))(t)
		pins, err := relation.Require(blazar.LeaseActive, w.observed(ctx, t)...)
		require.NoError(t, err)
		change := &lifecycle.Change[blazar.LeaseSpec]{Require: pins}
		if expects {
			change.Expect = seen.Revision
		}
		must(w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, nil))(t)
		must(w.leases.Fire(ctx, "l", blazar.Terminate, blazar.Manager, nil))(t)
		_, err = w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, change)
		now := must(w.leases.Get(ctx, "l"))(t).State
		if expects {
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.Equal(t, blazar.LeaseTerminating, now)
			continue
		}
		require.NoError(t, err)
		require.Error(t, relation.Check(now, w.observed(ctx, t)...), "which is why it should")
	}
}

// A move of a related object pins the parent and the others, and not itself.
func TestRelationRequireParent(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	pins, err := relation.RequireParent("l", blazar.LeaseStarting,
		reservations.Moves("r0", blazar.ReservationActive), reservations.Saw("r1", blazar.ReservationPending),
		startLease.Saw("e", blazar.EventInProgress), endLease.Saw("f", blazar.EventUndone))
	require.NoError(t, err)
	pin := func(machine, id, state string) lifecycle.Precondition {
		return lifecycle.Precondition{Key: lifecycle.Key{Machine: machine, ID: id}, States: []string{state}}
	}
	require.Equal(t, []lifecycle.Precondition{
		pin("lease", "l", "STARTING"), pin("reservation", "r1", "pending"), pin("event", "e", "IN_PROGRESS"), pin("event", "f", "UNDONE"),
	}, pins)

	_, err = relation.RequireParent("l", blazar.LeaseActive, reservations.Moves("r0", blazar.ReservationError))
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	pins, err = relation.RequireParent("l", blazar.LeaseAbsent)
	require.NoError(t, err)
	require.Equal(t, []lifecycle.Precondition{pin("lease", "l", "")}, pins)

	// The parent may be among the related, as what it is.
	peer := lifecycle.NewRole("peer", note)
	peers := lifecycle.MustRelation(lifecycle.RelationSpec[state]{
		Name: "r", Parent: note,
		Rows: []lifecycle.RelationRow[state]{{States: []state{"Draft"}, Need: []lifecycle.Condition{peer.All("Draft")}}},
	})
	pins, err = peers.RequireParent("n", "Draft", peer.Saw("n", "Draft"), peer.Saw("o", "Draft"))
	require.NoError(t, err)
	require.Equal(t, []lifecycle.Precondition{pin("note", "n", "Draft"), pin("note", "o", "Draft")}, pins)
	for _, other := range []lifecycle.Related{peer.Moves("n", "Draft"), peer.Saw("n", "Gone")} {
		_, err = peers.RequireParent("n", "Draft", other)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}

	// What does not exist is pinned as that, and what has two roles once.
	vms := lifecycle.MustRelation(lifecycle.RelationSpec[state]{
		Name: "r", Parent: note,
		Rows: []lifecycle.RelationRow[state]{{States: []state{"Draft"}, Need: []lifecycle.Condition{
			vmRole.All("Ready"), lifecycle.NewRole("host", sizedVM).All("Ready", "Failed"),
		}}},
	})
	_, err = vms.Require("Draft", lifecycle.Related{Role: "vm", Key: lifecycle.Key{Machine: "vm", ID: "a"}, State: "None"})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	pins, err = vms.Require("Draft", vmRole.Saw("a", "None"), vmRole.Saw("b", "Ready"), lifecycle.NewRole("host", sizedVM).Saw("b", "Ready"))
	require.NoError(t, err)
	require.Equal(t, []lifecycle.Precondition{pin("vm", "a", ""), pin("vm", "b", "Ready")}, pins)
}

// lone is a store that takes one change and nothing beside it.
type lone struct{ *lifecycle.MemoryStore }

func (lone) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

func (s lone) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if len(c.Changes)+len(c.Require) > 1 {
		return errors.ErrUnsupported
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store that cannot check that many in one commit refuses; nothing is checked
// beside it.
func TestRelationBeyondTheStore(t *testing.T) {
	relation := lifecycle.MustRelation(leaseCombinations())
	ctx := t.Context()
	for _, w := range []leaseWorld{
		newLease(t, 1, lone{lifecycle.NewMemoryStore()}),
		newLease(t, lifecycle.NewMemoryStore().Capabilities().Changes-2, lifecycle.NewMemoryStore()),
	} {
		must(w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil))(t)
		pins, err := relation.Require(blazar.LeaseStarting, w.observed(ctx, t)...)
		require.NoError(t, err)
		require.Less(t, w.store.Capabilities().Changes, 1+len(pins))
		_, err = w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{Require: pins})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.Equal(t, blazar.LeasePending, must(w.leases.Get(ctx, "l"))(t).State)
	}
}
