package relation_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// tableMachine is a machine of a table that fsm.New would refuse.
type tableMachine struct{ table *fsm.Table }

func (m tableMachine) Table() *fsm.Table   { return m.table }
func (m tableMachine) StateAt(i int) state { return state(m.table.States[i].Name) }
func (m tableMachine) StateIndex(s state) int {
	i, ok := m.table.StateIndex(string(s))
	if !ok {
		return -1
	}
	return i
}

// sealed has a state that no row leads to.
var sealed = tableMachine{&fsm.Table{
	Name: "sealed", Initial: 0,
	States: []fsm.TableState{{Name: "Open", Target: -1}, {Name: "Shut", Target: -1}, {Name: "Lost", Target: -1}},
	Events: []string{"shut", "find"},
	Rows:   []fsm.TableRow{{From: []int{0}, Event: 0, To: 1}, {From: []int{2}, Event: 1, To: 0}},
}}

// New reports every fault at once, each with its row.
func TestFaults(t *testing.T) {
	type (
		row  = relation.Row[state]
		need = []relation.Condition
	)
	box := relation.NewRole("box", sealed)
	ready := []state{"Ready"}
	_, err := relation.New(relation.Spec[state]{
		Parent: vm,
		Rows: []row{
			{Need: need{box.All("Open")}},
			{States: ready, Need: need{box.All("Ajar", "Open")}},
			{States: []state{"Ready", "Asleep"}, Need: need{box.All("Lost")}},
			{States: []state{"Busy"}, Need: need{vmRole.All("None"), vmRole.One()}},
			{States: []state{"None"}, Need: need{relation.NewRole("box", vm).All("Ready")}},
			{States: ready, Need: need{relation.NewRole[state]("", sealed).All("Open"), relation.Role[state]{}.None()}},
			{States: ready, Need: need{box.All("Open"), vmRole.All("Ready"), box.One("Shut")}},
			{States: ready, Need: need{box.None("Open", "Shut")}},
		},
	})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, `relation: compile "": lifecycle: invalid request:
	the relation has no name
	row 0: the row has no states
	row 1: all box: "Ajar" or Open: machine sealed has no state "Ajar"
	row 2: state Ready already has a row
	row 2: machine vm has no state "Asleep"
	row 2: the conditions leave no state to role box
	row 3: all vm: None: state None is absent, and an absent object is not checked
	row 3: one vm:  has no states
	row 4: role box is of machine vm here and of another machine elsewhere
	row 5: state Ready already has a row
	row 5: role "" has no name or no machine
	row 5: role "" has no name or no machine
	row 6: state Ready already has a row
	row 6: the conditions leave no state to role box
	row 7: state Ready already has a row
	row 7: the conditions leave no state to role box
	state Failed of machine vm has no row`)

	orphan := relation.Spec[state]{Name: "orphan"}
	_, err = relation.New(orphan)
	require.EqualError(t, err, "relation: compile \"orphan\": lifecycle: invalid request:\n\tthe relation has no machine of the parent")
	require.PanicsWithValue(t, err.Error(), func() { relation.Must(orphan) })

	orphan.Rows = []relation.Row[state]{{States: []state{"Ready"}, Need: []relation.Condition{vmRole.All()}}, {}}
	_, err = relation.New(orphan)
	require.EqualError(t, err, "relation: compile \"orphan\": lifecycle: invalid request:\n\tthe relation has no machine of the parent\n"+
		"\trow 0: all vm:  has no states\n\trow 1: the row has no states", "the other faults are listed too")
}

// New refuses exactly the rows that no object can satisfy, and Check allows exactly
// the states that New finds: a trial of every state finds the same.
func TestAnalysisIsExact(t *testing.T) {
	states := []state{"Ready", "Busy", "Failed"}
	roles := []relation.Role[state]{relation.NewRole("x", vm), relation.NewRole("y", vm)}
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		var need []relation.Condition
		var uses [2]bool                       // by role
		accepted := [2][]state{states, states} // by role
		for range rapid.IntRange(0, 4).Draw(t, "conditions") {
			role := rapid.IntRange(0, 1).Draw(t, "role")
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(states), 1, 3, rapid.ID[state]).Draw(t, "states")
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			uses[role] = true
			need = append(need, []relation.Condition{roles[role].All(some...), roles[role].One(some...), roles[role].None(some...)}[kind])
			accepted[role] = slices.DeleteFunc(slices.Clone(accepted[role]), func(s state) bool {
				return slices.Contains(some, s) == (kind == 2)
			})
		}
		satisfiable := len(accepted[0]) > 0 && len(accepted[1]) > 0
		seen[satisfiable]++
		table, err := relation.New(noteWith(need...))
		require.Equal(t, satisfiable, err == nil, "%v: %v", need, err)
		for i, role := range roles {
			if err != nil || !uses[i] || uses[1-i] {
				continue
			}
			for _, st := range states { // one object satisfies every kind of condition
				require.Equal(t, slices.Contains(accepted[i], st), table.Check("Draft", role.Saw("o", st)) == nil, "%v: %v", need, st)
			}
		}
	})
	require.Positive(t, seen[true])
	require.Positive(t, seen[false])
}
