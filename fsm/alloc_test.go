package fsm_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// gauge is a table of two states in which every request of requireNoAllocations can
// be repeated.
func gauge[S, E comparable](t *testing.T, s [2]S, e [6]E) *fsm.Machine[S, E, disk] {
	m, err := fsm.New[disk](fsm.Spec[S, E]{
		Name: "gauge", Initial: s[0], Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[S]{{Name: s[0]}, {Name: s[1], Kind: fsm.Transitional, Manual: "worker"}},
		Rows: fsm.Rows(
			fsm.Move(s[0], e[0], s[0]).By(user),
			fsm.Move(s[0], e[1], s[0]).By(user).If(room),
			fsm.Ignore(s[0], e[2]).By(user),
			fsm.Move(s[0], e[3], s[1]).By(user), fsm.Return(s[1], e[3]),
			fsm.Move(s[0], e[4], s[0]).By(user).OnlyForced(),
			fsm.Move(s[0], e[5], s[0]).Of(s[0]).By(user),
			fsm.Move(s[0], e[1], s[0]).By(guest).If(room), // second of a cell
		),
	})
	require.NoError(t, err)
	return m
}

// The closures hold the arguments, so that their conversion is not counted.
func requireNoAllocations[S, E comparable](t *testing.T, s [2]S, e [6]E) {
	m := gauge(t, s, e)
	ctx, at, d := t.Context(), m.Start(), &disk{free: 1}
	in := m.Instance()
	var err error
	var step fsm.Step[S]
	requests := map[string]func(){
		"Fire": func() { step, err = in.Fire(ctx, e[0], user, nil) },
		"Fire there and back": func() {
			if _, err = in.Fire(ctx, e[3], user, nil); err == nil {
				step, err = in.Fire(ctx, e[3], guest, nil)
			}
		},
		"Fire with a guard":                   func() { step, err = in.Fire(ctx, e[1], user, d) },
		"Fire with a guard in the second row": func() { step, err = in.Fire(ctx, e[1], guest, d) },
		"Fire ignored":                        func() { step, err = in.Fire(ctx, e[2], user, nil) },
		"Fire of an origin":                   func() { step, err = in.Fire(ctx, e[5], user, nil) },
		"FireForced":                          func() { step, err = in.FireForced(ctx, e[4], user, nil) },
		"Next":                                func() { step, err = m.Next(ctx, at, e[0], user, nil) },
		"Next with a guard":                   func() { step, err = m.Next(ctx, at, e[1], user, d) },
		"NextForced":                          func() { step, err = m.NextForced(ctx, at, e[4], user, nil) },
		"Can":                                 func() { err = m.Can(ctx, at, e[0], user, nil) },
		"Permitted": func() {
			for range m.Permitted(at, user) {
				step.Status = at
			}
		},
		"Status": func() { step.Status = in.Status() },
	}
	if unsafe.Sizeof(uintptr(0)) == 8 { // where the compiler keeps the instance on the stack
		requests["Instance"] = func() {
			fresh := m.Instance()
			step.State = fresh.State()
		}
		requests["InstanceAt"] = func() {
			var fresh fsm.Instance[S, E, disk]
			fresh, err = m.InstanceAt(at)
			step.State = fresh.State()
		}
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			request()
			require.NoError(t, err)
			require.Zero(t, testing.AllocsPerRun(100, request))
		})
	}
	_ = step
}

// Accepted requests do not allocate, with and without the race detector.
func TestAcceptedRequestsDoNotAllocate(t *testing.T) {
	t.Run("strings", func(t *testing.T) {
		requireNoAllocations(t, [2]string{"resting", "moving"}, [6]string{"self", "guarded", "ignored", "there", "forced", "origin"})
	})
	t.Run("ints", func(t *testing.T) { requireNoAllocations(t, [2]int{-1, 1}, [6]int{1, 2, 3, 4, 5, 6}) })
	t.Run("structs", func(t *testing.T) {
		var e [6]point
		for i := range e {
			e[i].X = i
		}
		requireNoAllocations(t, [2][2]int{{1, 2}, {2, 1}}, e)
	})
}

// A row is described for each of its sources, so the description reads no more of them than
// it shows.
func TestDescribeAllocations(t *testing.T) {
	table := &fsm.Table{
		Events: []string{"e"}, States: []fsm.TableState{{Name: "s"}},
		Rows: []fsm.TableRow{{From: make([]int, 4)}, {From: make([]int, 10_000)}},
	}
	require.Equal(t, "s|s|... -e-> s", table.Describe(1))
	few := testing.AllocsPerRun(100, func() { _ = table.Describe(0) })
	require.Equal(t, few, testing.AllocsPerRun(100, func() { _ = table.Describe(1) }))
}
