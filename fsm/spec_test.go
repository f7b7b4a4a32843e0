package fsm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

type row = fsm.Row[string, string]

var compareGuards = cmp.Comparer(func(a, b fsm.AnyGuard) bool { return guardName(a) == guardName(b) })

func TestConstructorsFillWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct{ got, want row }{
		"Move":    {fsm.Move("a", "e", "b"), row{From: []string{"a"}, Event: "e", To: "b"}},
		"Return":  {fsm.Return("a", "e"), row{From: []string{"a"}, Event: "e", Then: fsm.ThenReturn}},
		"Ignore":  {fsm.Ignore("a", "e"), row{From: []string{"a"}, Event: "e", Then: fsm.ThenIgnore}},
		"FromAny": {fsm.FromAny("e", "b"), row{Any: true, Event: "e", To: "b"}},
	} {
		require.Equal(t, c.want, c.got, name)
	}
}

// refinements are the methods of Row, each with arguments that differ by tag.
var refinements = map[string]struct {
	apply func(r row, tag string) row
	field func(r *row) any
	want  func(tag string) any
}{
	"By": {
		func(r row, tag string) row { return r.By(fsm.Actor(tag)) },
		func(r *row) any { return r.Actors }, func(tag string) any { return []fsm.Actor{fsm.Actor(tag)} },
	},
	"AlsoFrom": {
		func(r row, tag string) row { return r.AlsoFrom(tag) },
		func(r *row) any { return r.From }, func(tag string) any { return []string{"from", tag} },
	},
	"Excluding": {
		func(r row, tag string) row { return r.Excluding(tag) },
		func(r *row) any { return r.Except }, func(tag string) any { return []string{"except", tag} },
	},
	"Of": {
		func(r row, tag string) row { return r.Of(tag) },
		func(r *row) any { return r.Origin }, func(tag string) any { return []string{"origin", tag} },
	},
	"If": {
		func(r row, tag string) row { return r.If(fsm.When[disk](tag, nil)) },
		func(r *row) any { return guardName(r.Guard) }, func(tag string) any { return tag },
	},
	"After": {
		func(r row, tag string) row { return r.After(time.Duration(len(tag))) },
		func(r *row) any { return r.Timeout }, func(tag string) any { return time.Duration(len(tag)) },
	},
	"OnlyForced": {
		func(r row, _ string) row { return r.OnlyForced() },
		func(r *row) any { return r.Forced }, func(string) any { return true },
	},
	"Superseding": {
		func(r row, _ string) row { return r.Superseding() },
		func(r *row) any { return r.Supersede }, func(string) any { return true },
	},
	"Note": {
		func(r row, tag string) row { return r.Note(tag) },
		func(r *row) any { return r.Doc }, func(tag string) any { return tag },
	},
}

func guardName(g fsm.AnyGuard) string {
	if g == nil {
		return ""
	}
	return g.Name()
}

// roomy is a row whose slices have room behind them, so that a careless append
// would write into what another row shows.
func roomy() row {
	list := func(s string) []string { return append(make([]string, 0, 8), s) }
	return row{
		From: list("from"), Except: list("except"), Origin: list("origin"),
		Actors: append(make([]fsm.Actor, 0, 8), "actor"), Event: "e", To: "to",
	}
}

func TestEveryRefinementReturnsACopy(t *testing.T) {
	for name, r := range refinements {
		t.Run(name, func(t *testing.T) {
			base := roomy()
			one := r.apply(base, "x")
			two := r.apply(base, "yy")

			require.Empty(t, cmp.Diff(roomy(), base, compareGuards), "the receiver changed")
			require.Equal(t, r.want("x"), r.field(&one), "the first copy sees the second")
			require.Equal(t, r.want("yy"), r.field(&two))

			// Nothing else of the row changed.
			for other, o := range refinements {
				if other != name {
					require.Equal(t, o.field(&base), o.field(&one), "%s changed what %s sets", name, other)
				}
			}
			require.Equal(t, base.Event, one.Event)
			require.Equal(t, base.To, one.To)
		})
	}
}

func TestRefinementsKeepNoArgument(t *testing.T) {
	actors, states := []fsm.Actor{"x", "y"}, []string{"x", "y"}
	rows := fsm.Rows(
		row{}.By(actors...), row{}.AlsoFrom(states...), row{}.Excluding(states...), row{}.Of(states...),
	)
	actors[0], states[0] = "changed", "changed"
	require.Equal(t, []fsm.Actor{"x", "y"}, rows[0].Actors)
	require.Equal(t, []string{"x", "y"}, rows[1].From)
	require.Equal(t, []string{"x", "y"}, rows[2].Except)
	require.Equal(t, []string{"x", "y"}, rows[3].Origin)
}

func TestRefinementsTakeSeveral(t *testing.T) {
	r := fsm.Move("a", "e", "b").By(user, worker).AlsoFrom("c", "d").AlsoFrom("f").Of("g", "h").Excluding("i", "j")
	require.Equal(t, []fsm.Actor{user, worker}, r.Actors)
	require.Equal(t, []string{"a", "c", "d", "f"}, r.From)
	require.Equal(t, []string{"g", "h"}, r.Origin)
	require.Equal(t, []string{"i", "j"}, r.Except)
	require.Equal(t, []fsm.Actor{guest}, r.By(guest).Actors, "By replaces")
	require.Empty(t, r.By().Actors)
}

// A machine is made of what the spec said then. Whatever the caller does to the
// spec afterwards, no view of the machine changes.
func TestNewKeepsNothingOfTheSpec(t *testing.T) {
	spec := diskSpec()
	for i := range spec.Rows {
		spec.Rows[i].From = slices.Grow(spec.Rows[i].From, 4)
		spec.Rows[i].Actors = slices.Grow(spec.Rows[i].Actors, 4)
	}
	m, err := fsm.New[disk](spec)
	require.NoError(t, err)

	spec.Name, spec.Initial = "changed", "changed"
	for i := range spec.Actors {
		spec.Actors[i] = "changed"
	}
	for i := range spec.States {
		spec.States[i] = fsm.State[string]{Name: "changed", Kind: fsm.Final}
	}
	for i := range spec.Rows {
		r := &spec.Rows[i]
		for _, list := range [][]string{r.From, r.Except, r.Origin} {
			for k := range list {
				list[k] = "changed"
			}
		}
		for k := range r.Actors {
			r.Actors[k] = "changed"
		}
		*r = fsm.Ignore("changed", "changed")
	}

	fresh := newDisks(t)
	require.Equal(t, slices.Collect(fresh.States()), slices.Collect(m.States()))
	require.Equal(t, slices.Collect(fresh.Events()), slices.Collect(m.Events()))
	require.Equal(t, fresh.Table().Rows, m.Table().Rows)
	require.Equal(t, fresh.Table().States, m.Table().States)
	require.Equal(t, fresh.Table().Actors, m.Table().Actors)
	require.Equal(t, fresh.Start(), m.Start())
	got, want := slices.Collect(m.Rows()), slices.Collect(fresh.Rows())
	require.Empty(t, cmp.Diff(want, got, compareGuards, cmpopts.EquateEmpty()))
}

func TestRowsAreExpandedInOrderOfDeclaration(t *testing.T) {
	m := newDisks(t)
	rows := slices.Collect(m.Rows())
	require.Len(t, rows, len(diskSpec().Rows))
	for i, r := range rows {
		require.Equal(t, diskSpec().Rows[i].Event, r.Event)
	}
	require.Equal(t, []fsm.Actor{worker, fsm.Sweeper}, rows[2].Actors, "a deadline row is the sweeper's too")
	require.Equal(t, []string{"CREATING", "CREATED", "TOBEDELETED", "DELETING"}, rows[10].From,
		"every state but Final, Absent and the target")
	require.Equal(t, []string{"create", "done", "failed", "resize", "delete", "restore", "lost", "repair"},
		slices.Collect(m.Events()))
}

func TestFromAnyLeavesOutWhatItExcludes(t *testing.T) {
	spec := diskSpec()
	spec.Rows[10] = spec.Rows[10].Excluding("TOBEDELETED", "CREATED")
	m, err := fsm.New[disk](spec)
	require.NoError(t, err)
	require.Equal(t, []string{"CREATING", "DELETING"}, slices.Collect(m.Rows())[10].From)

	table := m.Table()
	require.True(t, table.Rows[10].Any)
	require.Equal(t, []int{3, 2}, table.Rows[10].Except)
	require.Equal(t, []int{1, 4}, table.Rows[10].From)
}

func TestIterationCanEndEarly(t *testing.T) {
	m := newDisks(t)
	for s := range m.States() {
		require.Equal(t, "ABSENT", s)
		break
	}
	for e := range m.Events() {
		require.Equal(t, "create", e)
		break
	}
	for r := range m.Rows() {
		require.Equal(t, "create", r.Event)
		break
	}
	n := 0
	for range m.Permitted(m.At("CREATED"), user) {
		n++
		break
	}
	for range m.Table().Edges() {
		n++
		break
	}
	for e := range m.Table().Edges() { // out of the middle of a return row
		if e.Row == 7 {
			n++
			break
		}
	}
	require.Equal(t, 3, n)
}
