package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// loose is a machine of a table that no fsm.Machine would have.
type loose struct{ table *fsm.Table }

func (l loose) Table() *fsm.Table   { return l.table }
func (l loose) StateAt(i int) state { return state(l.table.States[i].Name) }
func (l loose) StateIndex(s state) int {
	i, ok := l.table.StateIndex(string(s))
	if !ok {
		return -1
	}
	return i
}

// sealed has a state that nothing leads to.
var sealed = loose{&fsm.Table{
	Name: "sealed", Initial: 0,
	States: []fsm.TableState{{Name: "Open", Target: -1}, {Name: "Shut", Target: -1}, {Name: "Lost", Target: -1}},
	Events: []string{"shut", "find"},
	Rows:   []fsm.TableRow{{From: []int{0}, Event: 0, To: 1}, {From: []int{2}, Event: 1, To: 0}},
}}

// Every kind of fault, all at once and each at its place.
func TestRelationFaults(t *testing.T) {
	type (
		row  = lifecycle.RelationRow[state]
		need = []lifecycle.Condition
	)
	box := lifecycle.NewRole("box", sealed)
	_, err := lifecycle.NewRelation(lifecycle.RelationSpec[state]{
		Parent: sizedVM,
		Rows: []row{
			{Need: need{box.All("Open")}},
			{States: []state{"Ready"}, Need: need{box.All("Ajar", "Open")}},
			{States: []state{"Ready", "Asleep"}, Need: need{box.All("Lost")}},
			{States: []state{"Ready"}, Need: need{vmRole.Any("None"), vmRole.One()}},
			{States: []state{"Ready"}, Need: need{lifecycle.NewRole("box", sizedVM).All("Ready")}},
			{States: []state{"Ready"}, Need: need{lifecycle.NewRole[state]("", sealed).All("Open"), {Role: "bare"}, lifecycle.Role[state]{}.None()}},
			{States: []state{"Ready"}, Need: need{box.All("Open"), box.Any("Shut")}},
			{States: []state{"Ready"}, Need: need{box.One("Open", "Shut"), box.One("Open"), box.None("Open")}},
			{States: []state{"Ready"}, Need: need{box.None(), box.Any("Open")}},
			{States: []state{"Ready"}, Need: need{box.All("Open"), box.All("Shut")}},
			{States: []state{"Ready"}, Need: need{box.None("Open", "Shut")}},
			{States: []state{"Ready", "Failed"}, Need: need{box.All("Open")}},
			{States: []state{"Ready"}, Need: need{box.One("Open"), vmRole.None("Ready")}},
			{States: []state{"Ready"}, Need: need{box.None()}},
			{States: []state{"Ready", "Updating"}},
			{States: []state{"Ready"}, Need: need{box.Any("Shut")}},
		},
	})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, `lifecycle: invalid rule:
	the relation has no name
	row 0 is about no state
	row 1 (Ready: all box: Ajar or Open): box: machine sealed has no state Ajar
	row 2 (Ready|Asleep: all box: Lost): vm has no state Asleep
	row 2 (Ready|Asleep: all box: Lost): box: no sealed gets into Lost
	row 3 (Ready: any vm: None, one vm: ): vm: in the absent state None there is no object
	row 3 (Ready: any vm: None, one vm: ): one of role vm names no state
	row 4 (Ready: all box: Ready): role box is of machine vm here, and of sealed elsewhere
	row 5 (Ready: all : Open, all bare: , no ): the role "" of a condition has no name or no machine
	row 5 (Ready: all : Open, all bare: , no ): the role "bare" of a condition has no name or no machine
	row 5 (Ready: all : Open, all bare: , no ): the role "" of a condition has no name or no machine
	row 6 (Ready: all box: Open, any box: Shut): no box can satisfy all conditions on it
	row 7 (Ready: one box: Open or Shut, one box: Open, none box: Open): no box can satisfy all conditions on it
	row 8 (Ready: no box, any box: Open): no box can satisfy all conditions on it
	row 9 (Ready: all box: Open, all box: Shut): its conditions leave no state to any box; None without states says that there is none
	row 10 (Ready: none box: Open or Shut): its conditions leave no state to any box; None without states says that there is none
	state Creating of vm has no row
	row 12 (Ready: one box: Open, none vm: Ready): never needed in Ready: row 11 (Ready|Failed: all box: Open) allows as much
	row 13 (Ready: no box): never needed in Ready: row 11 (Ready|Failed: all box: Open) allows as much
	row 15 (Ready: any box: Shut): never needed in Ready: row 14 (Ready|Updating: anything) allows as much
	state Moving of vm has no row
	state Deleting of vm has no row`)

	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{Name: "orphan"})
	require.EqualError(t, err, "lifecycle: invalid rule orphan:\n\tthe relation has no machine of the parent")
	require.PanicsWithValue(t, err.Error(), func() {
		lifecycle.MustRelation(lifecycle.RelationSpec[state]{Name: "orphan"})
	})
	// A parent that never gets where a row speaks of.
	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{
		Name: "lost", Parent: sealed, Rows: []row{{States: []state{"Open", "Shut", "Lost"}}},
	})
	require.EqualError(t, err, "lifecycle: invalid rule lost:\n\trow 0 (Open|Shut|Lost: anything): no sealed gets into Lost")
	// All states that an object can be in are as good as no condition.
	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{
		Name: "wide", Parent: note, Rows: []row{
			{States: []state{"Draft"}, Need: need{
				box.All("Open", "Shut"), vmRole.All("Creating", "Ready", "Updating", "Moving", "Deleting", "Failed"),
			}},
			{States: []state{"Draft", "Gone", "Draft"}},
		},
	})
	require.ErrorContains(t, err, "row 1 (Draft|Gone|Draft: anything): never needed in Draft: row 0")
	require.Len(t, err.(*lifecycle.RuleError).Problems, 1)
	spun := box.All("Open")
	spun.Quantifier = 9
	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{
		Name: "spun", Parent: note, Rows: []row{{States: []state{"Draft"}, Need: need{spun}}},
	})
	require.EqualError(t, err, "lifecycle: invalid rule spun:\n\trow 0 (Draft: quantifier? box: Open): unknown quantifier 9 of role box")
	// Two machines of one name are two.
	other := lifecycle.NewRole("box", loose{&fsm.Table{
		Name: "sealed", States: []fsm.TableState{{Name: "Open", Target: -1}}, Events: []string{},
	}})
	_, err = lifecycle.NewRelation(lifecycle.RelationSpec[state]{
		Name: "twins", Parent: note, Rows: []row{{States: []state{"Draft"}, Need: need{box.All("Open"), other.All("Open")}}},
	})
	require.ErrorContains(t, err, "role box is of machine sealed here, and of another machine of that name elsewhere")
	// The table of the Blazar document has none of this; one with a row for a
	// combination that cannot be would.
	spec := leaseCombinations()
	spec.Rows[2].Need = append(spec.Rows[2].Need, reservations.Any("deleted"))
	_, err = lifecycle.NewRelation(spec)
	require.EqualError(t, err, "lifecycle: invalid rule lease-combinations:\n"+
		"\trow 2 (ACTIVE: all reservation: active, one start_lease: DONE, one end_lease: UNDONE, any reservation: deleted): "+
		"no reservation can satisfy all conditions on it")
}

// Which of two rows allows as much as the other, where it is not plain.
func TestRelationShadows(t *testing.T) {
	box := lifecycle.NewRole("box", sealed)
	type need = []lifecycle.Condition
	for _, c := range []struct {
		first, second need
		shadowed      bool
	}{
		{need{box.One("Open")}, need{box.All("Open"), box.Any("Open")}, false}, // two that are open
		{need{box.All("Open"), box.Any("Open")}, need{box.One("Open")}, true},
		{need{box.Any("Open")}, need{box.None("Shut"), box.Any("Open", "Shut")}, true},
		{need{box.Any("Open")}, need{box.Any("Open", "Shut")}, false},
		{need{box.Any("Open")}, need{box.One("Open", "Shut"), box.None("Shut")}, true},
		{need{box.All("Open")}, need{box.None()}, true},
		{need{box.None()}, need{box.All("Open")}, false},
	} {
		_, err := lifecycle.NewRelation(lifecycle.RelationSpec[state]{
			Name: "r", Parent: note, Rows: []lifecycle.RelationRow[state]{
				{States: []state{"Draft"}, Need: c.first}, {States: []state{"Draft"}, Need: c.second},
			},
		})
		if !c.shadowed {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "row 1 ")
		require.Equal(t, lifecycle.ShadowedRow, err.(*lifecycle.RuleError).Problems[0].Code)
	}
}

// What the analysis says of rows is what trying all combinations says: of two
// roles with up to two objects in each of three states. More objects tell
// nothing more, because no condition counts beyond one.
func TestRelationAnalysisIsExact(t *testing.T) {
	states := []state{"a", "b", "c"}
	m := loose{&fsm.Table{
		Name: "abc", States: []fsm.TableState{{Name: "a", Target: -1}, {Name: "b", Target: -1}, {Name: "c", Target: -1}},
		Events: []string{"go"},
		Rows:   []fsm.TableRow{{From: []int{0}, Event: 0, To: 1}, {From: []int{1}, Event: 0, To: 2}},
	}}
	roles := []lifecycle.Role[state]{lifecycle.NewRole("x", m), lifecycle.NewRole("y", m)}
	var populations [][]state
	for n := range 27 {
		var p []state
		for i, s := range states {
			p = append(p, slices.Repeat([]state{s}, n/[]int{1, 3, 9}[i]%3)...)
		}
		populations = append(populations, p)
	}
	meets := func(c lifecycle.Condition, p []state) bool {
		in := 0
		for _, s := range p {
			if slices.Contains(c.States, string(s)) {
				in++
			}
		}
		switch c.Quantifier {
		case lifecycle.AllOf:
			return in == len(p)
		case lifecycle.AnyOf:
			return in >= 1
		case lifecycle.OneOf:
			return in == 1 && len(p) == 1
		}
		return in == 0 && (len(c.States) > 0 || len(p) == 0)
	}
	allows := func(need []lifecycle.Condition, x, y []state) bool {
		for _, c := range need {
			if p := map[string][]state{"x": x, "y": y}[c.Role]; !meets(c, p) {
				return false
			}
		}
		return true
	}
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		spec := lifecycle.RelationSpec[state]{Name: "r", Parent: note}
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := lifecycle.RelationRow[state]{States: []state{"Draft"}}
			for range rapid.IntRange(0, 4).Draw(t, "conditions") {
				role := rapid.SampledFrom(roles).Draw(t, "role")
				some := rapid.SliceOfNDistinct(rapid.SampledFrom(states), 1, 3, rapid.ID[state]).Draw(t, "states")
				row.Need = append(row.Need, rapid.SampledFrom([]lifecycle.Condition{
					role.All(some...), role.Any(some...), role.One(some...), role.None(some...), role.None(),
				}).Draw(t, "condition"))
			}
			spec.Rows = append(spec.Rows, row)
		}
		relation, err := lifecycle.NewRelation(spec)
		got := map[string][]int{}
		if err != nil {
			invalid, ok := errors.AsType[*lifecycle.RuleError](err)
			require.True(t, ok)
			for _, p := range invalid.Problems {
				if !slices.Contains(got[p.Code], p.Row) { // one for each role that is at fault
					got[p.Code] = append(got[p.Code], p.Row)
				}
			}
		}

		want := map[string][]int{}
		bad := map[int]bool{}
		for i, row := range spec.Rows {
			satisfiable, lonely := false, false
			for _, x := range populations {
				for _, y := range populations {
					satisfiable = satisfiable || allows(row.Need, x, y)
				}
			}
			for _, role := range []string{"x", "y"} {
				own := slices.DeleteFunc(slices.Clone(row.Need), func(c lifecycle.Condition) bool { return c.Role != role })
				some, none := false, false
				for _, p := range populations {
					if allows(own, p, p) {
						some, none = some || len(p) > 0, none || len(p) == 0
					}
				}
				said := slices.ContainsFunc(own, func(c lifecycle.Condition) bool { return len(c.States) == 0 })
				lonely = lonely || none && !some && !said
			}
			if !satisfiable {
				want[lifecycle.NeverSatisfied] = append(want[lifecycle.NeverSatisfied], i)
			}
			if lonely {
				want[lifecycle.NoObject] = append(want[lifecycle.NoObject], i)
			}
			bad[i] = !satisfiable || lonely
			if bad[i] {
				continue
			}
			for j := range i {
				shadowed := !bad[j]
				for _, x := range populations {
					for _, y := range populations {
						shadowed = shadowed && (!allows(row.Need, x, y) || allows(spec.Rows[j].Need, x, y))
					}
				}
				if shadowed {
					want[lifecycle.ShadowedRow] = append(want[lifecycle.ShadowedRow], i)
					break
				}
			}
		}
		require.Equal(t, want, got, "%v", err)
		for code := range got {
			seen[code]++
		}
		if err != nil {
			return
		}
		seen["sound"]++
		for _, x := range populations {
			for _, y := range populations {
				var related []lifecycle.Related
				for i, s := range x {
					related = append(related, roles[0].Saw(fmt.Sprint("x", i), s))
				}
				for i, s := range y {
					related = append(related, roles[1].Saw(fmt.Sprint("y", i), s))
				}
				related = slices.DeleteFunc(related, func(o lifecycle.Related) bool { return !mentions(spec, o.Role) })
				allowed := slices.ContainsFunc(spec.Rows, func(r lifecycle.RelationRow[state]) bool { return allows(r.Need, x, y) })
				require.Equal(t, allowed, relation.Check("Draft", related...) == nil, "%v: %v", relation, related)
			}
		}
	})
	t.Log(seen)
	for _, code := range []string{lifecycle.NeverSatisfied, lifecycle.NoObject, lifecycle.ShadowedRow, "sound"} {
		require.Positive(t, seen[code], code)
	}
}

func mentions(spec lifecycle.RelationSpec[state], role string) bool {
	return slices.ContainsFunc(spec.Rows, func(r lifecycle.RelationRow[state]) bool {
		return slices.ContainsFunc(r.Need, func(c lifecycle.Condition) bool { return c.Role == role })
	})
}
