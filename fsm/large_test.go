package fsm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// largeSpec has n states in a ring and n events, several rows in some cells, and rows
// of every kind.
func largeSpec(n, actors int) fsm.Spec[int, int] {
	spec := fsm.Spec[int, int]{Name: "drawn", Initial: 0}
	for i := range actors {
		spec.Actors = append(spec.Actors, fsm.Actor(fmt.Sprintf("actor%d", i)))
	}
	for i := range n {
		st := fsm.State[int]{Name: i}
		if i%5 == 4 {
			st.Kind, st.Manual = fsm.Transitional, "worker"
		}
		spec.States = append(spec.States, st)
	}
	at := func(i int) int { return (i + n) % n }
	for i := range n {
		a := spec.Actors[i%actors]
		if i%3 == 0 {
			spec.Rows = append(spec.Rows, fsm.Move(i, i, at(i-1)).If(barrier[i%gateCount]))
		}
		spec.Rows = append(spec.Rows, fsm.Move(i, i, at(i+1)))
		if i%2 == 0 {
			spec.Rows = append(spec.Rows, fsm.Move(i, at(i+7), at(i+2)).By(a))
		}
		if i%7 == 0 {
			spec.Rows = append(spec.Rows, fsm.Move(i, at(i+3), at(i-2)).OnlyForced().By(a))
		}
		if i%11 == 0 {
			spec.Rows = append(spec.Rows, fsm.Ignore(i, at(i+5)))
		}
		if i%5 == 4 {
			spec.Rows = append(spec.Rows,
				fsm.Move(i, at(i+9), i).Of(at(i-1)).By(a),
				fsm.Return(i, at(i+9)))
		}
	}
	return spec
}

// A machine has the answers of the reference, whether its cells are in an array or in
// a map.
func TestLargeMachinesMeanTheirSpecs(t *testing.T) {
	for _, c := range []struct {
		name           string
		states, actors int
		sparse         bool
	}{
		{"small", 40, 2, false},
		{"several actors", 600, 4, false},
		{"more cells than an array holds", 1100, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cells := c.states * c.states
			require.Equal(t, c.sparse, cells > fsm.MaxDenseCells)
			spec := largeSpec(c.states, c.actors)
			m, err := fsm.New[gates](spec)
			require.NoError(t, err)
			ref := reference[int, int]{spec: spec}
			seen := tally{}
			random := rand.New(rand.NewPCG(1, 2))
			in := m.Instance()
			for range 800 {
				s := random.IntN(c.states)
				at := fsm.Status[int]{State: s, Origin: s}
				if s%5 == 4 {
					at.Origin = (s + c.states - random.IntN(4)) % c.states
				}
				e := (s + random.IntN(12)) % c.states
				a := spec.Actors[s%c.actors]
				if random.IntN(3) == 0 {
					a = spec.Actors[random.IntN(c.actors)]
				}
				if random.IntN(20) == 0 {
					a = undeclared
				}
				p := &gates{open: uint8(random.IntN(1 << gateCount))}
				ref.guard = p.check

				step, err := m.Next(t.Context(), at, e, a, p)
				agree(t, seen, ref.next(at, e, a, false), step, err)
				step, err = m.NextForced(t.Context(), at, e, a, p)
				agree(t, seen, ref.next(at, e, a, true), step, err)
				to := (s + random.IntN(6) + c.states - 2) % c.states
				step, err = m.NextTo(t.Context(), at, to, a, p)
				agree(t, seen, ref.nextTo(at, to, a), step, err)

				before := in.Status()
				e = (before.State + random.IntN(10)) % c.states
				want := ref.next(before, e, a, false)
				step, err = in.Fire(t.Context(), e, a, p)
				agree(t, seen, want, step, err)
				if want.Err == nil {
					before = want.Status
				}
				require.Equal(t, before, in.Status())
			}
			for _, s := range sentinels[:4] {
				if s != fsm.ErrWrongActor || c.actors > 1 {
					require.Positive(t, seen[s.Error()], "no request returned %v", s)
				}
			}
			require.Greater(t, seen["ok"], 300)
		})
	}
}

func agree(t *testing.T, seen tally, want answer[int], step fsm.Step[int], err error) {
	if want.Err == nil {
		seen["ok"]++
		require.NoError(t, err)
		require.Equal(t, want.Step, step)
		return
	}
	seen[want.Err.Error()]++
	require.Equal(t, want.Err, sentinel(t, err))
	require.Equal(t, "drawn", detail(t, err).Machine)
}

// The largest table: its indexes use all their bits.
func TestLargestMachine(t *testing.T) {
	n := fsm.MaxStates
	spec := fsm.Spec[int, int]{Name: "largest", Actors: []fsm.Actor{user}}
	for i := range n {
		spec.States = append(spec.States, fsm.State[int]{Name: i})
		spec.Rows = append(spec.Rows, fsm.Move(i, (i+1)%fsm.MaxEvents, (i+1)%n))
	}
	spec.States[n-1] = fsm.State[int]{Name: n - 1, Kind: fsm.Transitional, Manual: "worker"}
	spec.Rows = append(spec.Rows, fsm.Return(n-1, 7), fsm.Move(0, 5, n-1))
	m := mustNew(t, spec)
	in := instanceAt(t, m, m.At(n-2))
	_, err := in.Fire(t.Context(), fsm.MaxEvents-1, user, nil)
	require.NoError(t, err)
	require.Equal(t, fsm.Status[int]{State: n - 1, Origin: n - 2}, in.Status())
	_, err = in.Fire(t.Context(), 7, user, nil)
	require.NoError(t, err)
	require.Equal(t, m.At(n-2), in.Status())
	_, err = in.Fire(t.Context(), 6, user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	require.Equal(t, "4094", detail(t, err).From)

	at, err := m.ParseStatus("4095", "4094")
	require.NoError(t, err)
	require.Equal(t, fsm.Status[int]{State: n - 1, Origin: n - 2}, at)
}

func TestNewRefusesATableOverALimit(t *testing.T) {
	states := fsm.Spec[int, int]{Name: "states", Actors: []fsm.Actor{user}}
	for i := range fsm.MaxStates + 1 {
		states.States = append(states.States, fsm.State[int]{Name: i})
		states.Rows = append(states.Rows, fsm.Move(i, 0, (i+1)%(fsm.MaxStates+1)))
	}
	rows := fsm.Spec[int, int]{Name: "rows", Actors: []fsm.Actor{user}}
	for i := range 32 {
		rows.States = append(rows.States, fsm.State[int]{Name: i})
		for e := range fsm.MaxRows / 32 {
			rows.Rows = append(rows.Rows, fsm.Move(i, e, (i+1)%32))
		}
	}
	_, err := fsm.New[none](rows)
	require.NoError(t, err)
	rows.Rows = append(rows.Rows, fsm.Ignore(0, fsm.MaxEvents-1))
	for text, spec := range map[string]fsm.Spec[int, int]{
		"4097 states, more than 4096": states, "65537 rows, more than 65536": rows,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := fsm.New[none](spec)
			var invalid *fsm.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, []fsm.Problem{{Code: fsm.TooLarge, Row: -1, Text: text}}, invalid.Problems)
		})
	}
}

// A row of a file may name an actor many times, and Problems compares the rows of a cell in
// pairs. It must not compare every name with every name, which takes minutes.
func TestProblemsOfRowsWithLongActorLists(t *testing.T) {
	table := &fsm.Table{
		Name: "crowd", Actors: []fsm.Actor{user, worker}, Events: []string{"go", "back"},
		States: []fsm.TableState{{Name: "here", Target: -1}, {Name: "there", Target: -1}},
		Rows:   []fsm.TableRow{{From: []int{1}, Event: 1, To: 0}},
	}
	for i := range 127 {
		table.Rows = append(table.Rows, fsm.TableRow{
			From: []int{0}, Event: 0, To: 1, Guard: fmt.Sprint("guard", i), Actors: slices.Repeat([]int{i % 2}, 8192),
		})
	}
	require.Empty(t, table.Problems())
}

// Each of 64 actors has a row of its own. The mask of actors has a bit for every one.
func TestSixtyFourActorsDiffer(t *testing.T) {
	s := spec{Name: "crowd", Initial: "on", States: []fsm.State[string]{{Name: "on"}, {Name: "off"}}}
	for i := range fsm.MaxActors {
		a := fsm.Actor(fmt.Sprintf("actor%d", i))
		s.Actors = append(s.Actors, a)
		s.Rows = append(s.Rows, fsm.Move("on", fmt.Sprintf("only%d", i), "off").By(a))
	}
	s.Rows = append(s.Rows, fsm.Move("off", "any", "on"))
	m := mustNew(t, s)
	for i, a := range s.Actors {
		for k := range s.Actors {
			err := m.Can(t.Context(), m.At("on"), fmt.Sprintf("only%d", k), a, nil)
			if i == k {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, fsm.ErrWrongActor)
				require.Equal(t, a, detail(t, err).Actor)
			}
		}
		require.NoError(t, m.Can(t.Context(), m.At("off"), "any", a, nil))
	}
}
