package fsm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

type row = fsm.Row[string, string]

var compareGuards = cmp.Comparer(func(a, b fsm.AnyGuard) bool { return guardName(a) == guardName(b) })

func TestConstructors(t *testing.T) {
	for name, c := range map[string]struct{ got, want row }{
		"Move":    {fsm.Move("a", "e", "b"), row{From: []string{"a"}, Event: "e", To: "b"}},
		"Return":  {fsm.Return("a", "e"), row{From: []string{"a"}, Event: "e", Then: fsm.ThenReturn}},
		"Ignore":  {fsm.Ignore("a", "e"), row{From: []string{"a"}, Event: "e", Then: fsm.ThenIgnore}},
		"FromAny": {fsm.FromAny("e", "b"), row{Any: true, Event: "e", To: "b"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.got) })
	}
}

func guardName(g fsm.AnyGuard) string {
	if g == nil {
		return ""
	}
	return g.Name()
}

// roomy is a row whose slices have capacity for more. An append without a copy would
// write into another row.
func roomy() row {
	list := func(s string) []string { return append(make([]string, 0, 8), s) }
	return row{
		From: list("from"), Except: list("except"), Origin: list("origin"),
		Actors: append(make([]fsm.Actor, 0, 8), "actor"), Event: "e", To: "to",
	}
}

// Each method is called twice on one row, with the arguments x and y.
func TestMethodsOfRowReturnACopy(t *testing.T) {
	methods := map[string]struct {
		call func(r row, arg string) row
		want func(r *row, arg string)
	}{
		"By": {
			func(r row, arg string) row { return r.By(fsm.Actor(arg), worker) },
			func(r *row, arg string) { r.Actors = []fsm.Actor{fsm.Actor(arg), worker} },
		},
		"AlsoFrom": {
			func(r row, arg string) row { return r.AlsoFrom(arg, "z") },
			func(r *row, arg string) { r.From = []string{"from", arg, "z"} },
		},
		"Excluding": {
			func(r row, arg string) row { return r.Excluding(arg, "z") },
			func(r *row, arg string) { r.Except = []string{"except", arg, "z"} },
		},
		"Of": {
			func(r row, arg string) row { return r.Of(arg, "z") },
			func(r *row, arg string) { r.Origin = []string{"origin", arg, "z"} },
		},
		"If": {
			func(r row, arg string) row { return r.If(fsm.When[disk](arg, nil)) },
			func(r *row, arg string) { r.Guard = fsm.When[disk](arg, nil) },
		},
		"After": {
			func(r row, arg string) row { return r.After(time.Duration(arg[0])) },
			func(r *row, arg string) { r.Timeout = time.Duration(arg[0]) },
		},
		"OnlyForced":  {func(r row, _ string) row { return r.OnlyForced() }, func(r *row, _ string) { r.Forced = true }},
		"Superseding": {func(r row, _ string) row { return r.Superseding() }, func(r *row, _ string) { r.Supersede = true }},
		"Note":        {func(r row, arg string) row { return r.Note(arg) }, func(r *row, arg string) { r.Doc = arg }},
	}
	for name, m := range methods {
		t.Run(name, func(t *testing.T) {
			base := roomy()
			x, y := m.call(base, "x"), m.call(base, "y")
			wantX, wantY := roomy(), roomy()
			m.want(&wantX, "x")
			m.want(&wantY, "y")
			require.Empty(t, cmp.Diff(roomy(), base, compareGuards), "the receiver changed")
			require.Empty(t, cmp.Diff(wantX, x, compareGuards), "the first copy changed")
			require.Empty(t, cmp.Diff(wantY, y, compareGuards))
		})
	}
}

// The caller may change its spec afterwards. The machine does not change.
func TestNewKeepsNoSliceOfTheSpec(t *testing.T) {
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
