package fsm_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// gauge is a ring of two states for which every request below can be repeated.
func gauge[S, E comparable](t *testing.T, s [2]S, e [8]E) *fsm.Machine[S, E, disk] {
	m, err := fsm.New[disk](fsm.Spec[S, E]{
		Name: "gauge", Initial: s[0], Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[S]{{Name: s[0]}, {Name: s[1], Kind: fsm.Transitional, Manual: "somebody"}},
		Rows: fsm.Rows(
			fsm.Move(s[0], e[0], s[0]).By(user),                         // self
			fsm.Move(s[0], e[1], s[0]).By(user).If(room),                // guarded
			fsm.Ignore(s[0], e[2]).By(user),                             // ignored
			fsm.Move(s[0], e[3], s[1]).By(user), fsm.Return(s[1], e[3]), // there and back
			fsm.Move(s[0], e[4], s[0]).By(user).OnlyForced(),            // forced
			fsm.Move(s[0], e[5], s[0]).Of(s[0]).By(user),                // of an origin
			fsm.Move(s[0], e[6], s[0]).By(worker),                       // of another actor
			fsm.Move(s[1], e[7], s[0]).By(worker),                       // of another state
			fsm.Move(s[0], e[1], s[0]).By(guest).If(room),               // second of a cell
			fsm.Move(s[0], e[1], s[1]).By(worker).If(room).OnlyForced(), // third of a cell
		),
	})
	require.NoError(t, err)
	return m
}

// allocates measures every request that is not to allocate. What is asked is
// put in before, so that the closures hold it.
func allocates[S, E comparable](t *testing.T, m *fsm.Machine[S, E, disk], e [8]E) map[string]float64 {
	ctx, at, d := t.Context(), m.Start(), &disk{free: 1}
	in := m.Instance()
	var err error
	var step fsm.Step[S]
	var state S
	got := map[string]float64{}
	measure := func(name string, want error, f func()) {
		f()
		require.Equal(t, want, sentinel(t, err), name)
		got[name] = testing.AllocsPerRun(100, f)
	}
	measure("Fire", nil, func() { step, err = in.Fire(ctx, e[0], user, nil) })
	measure("Fire there and back", nil, func() {
		if _, err = in.Fire(ctx, e[3], user, nil); err == nil {
			step, err = in.Fire(ctx, e[3], guest, nil)
		}
	})
	measure("Fire with a guard", nil, func() { step, err = in.Fire(ctx, e[1], user, d) })
	measure("Fire with a guard in the second row", nil, func() { step, err = in.Fire(ctx, e[1], guest, d) })
	measure("Fire ignored", nil, func() { step, err = in.Fire(ctx, e[2], user, nil) })
	measure("Fire of an origin", nil, func() { step, err = in.Fire(ctx, e[5], user, nil) })
	measure("FireForced", nil, func() { step, err = in.FireForced(ctx, e[4], user, nil) })
	measure("Next", nil, func() { step, err = m.Next(ctx, at, e[0], user, nil) })
	measure("Next with a guard", nil, func() { step, err = m.Next(ctx, at, e[1], user, d) })
	measure("NextForced", nil, func() { step, err = m.NextForced(ctx, at, e[4], user, nil) })
	measure("NextTo", nil, func() { step, err = m.NextTo(ctx, at, at.State, user, nil) })
	measure("Can", nil, func() { err = m.Can(ctx, at, e[0], user, nil) })
	measure("Can with a guard", nil, func() { err = m.Can(ctx, at, e[1], user, d) })
	measure("Next and CompareAndSwap", nil, func() {
		var move fsm.Pending[S]
		if move, err = in.Next(ctx, e[0], user, nil); err == nil {
			step, err = in.CompareAndSwap(move)
		}
	})
	if unsafe.Sizeof(uintptr(0)) == 8 { // where it is known to stay on the stack
		measure("Instance", nil, func() {
			fresh := m.Instance()
			state = fresh.State()
		})
		measure("InstanceAt", nil, func() {
			var fresh fsm.Instance[S, E, disk]
			fresh, err = m.InstanceAt(at)
			state = fresh.State()
		})
	}
	measure("Status", nil, func() { step.Status = in.Status() })
	_, _ = step, state
	return got
}

func nothing(t *testing.T, allocated map[string]float64) {
	for name, n := range allocated {
		require.Zero(t, n, name)
	}
}

// Deciding and moving cost no allocation; a refusal does. The race detector does
// not change that.
func TestNothingIsAllocated(t *testing.T) {
	t.Run("strings", func(t *testing.T) {
		e := [8]string{"self", "guarded", "ignored", "there", "forced", "origin", "others", "elsewhere"}
		nothing(t, allocates(t, gauge(t, [2]string{"resting", "underway"}, e), e))
	})
	t.Run("ints", func(t *testing.T) {
		e := [8]int{1, 2, 3, 4, 5, 6, 7, 8}
		nothing(t, allocates(t, gauge(t, [2]int{-1, 1}, e), e))
	})
	t.Run("structs", func(t *testing.T) {
		var e [8]point
		for i := range e {
			e[i].X = i
		}
		nothing(t, allocates(t, gauge(t, [2][2]int{{1, 2}, {2, 1}}, e), e))
	})
}
