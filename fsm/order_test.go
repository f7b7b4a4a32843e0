package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// probe is a payload whose guard writes down what it sees of the object itself,
// and does what the test asks.
type probe struct {
	in  *fsm.Instance[string, string, probe]
	log []string
	do  func() error
}

var look = fsm.When("look", func(_ context.Context, _, p *probe) error {
	p.log = append(p.log, "guard sees "+p.in.State())
	if p.do != nil {
		return p.do()
	}
	return nil
})

func probes(t *testing.T) *fsm.Machine[string, string, probe] {
	m, err := fsm.New[probe](spec{
		Name: "probe", Initial: "idle", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional, Manual: "us"}},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("idle", "begin", "busy").By(user).If(look),
			/* 1 */ fsm.Return("busy", "end").By(worker),
			/* 2 */ fsm.Move("idle", "touch", "idle").By(user),
			/* 3 */ fsm.Move("idle", "open", "busy").By(worker),
		),
	})
	require.NoError(t, err)
	return m
}

func TestOrderIsRowThenActorThenOriginThenGuard(t *testing.T) {
	asked := 0
	s := diskSpec()
	s.Rows = append(s.Rows, fsm.Move("DELETING", "verify", "CREATED").By(worker).Of("CREATED").
		If(fsm.When("count", func(context.Context, *disk, *disk) error { asked++; return errFull })))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	for _, c := range []struct {
		at    fsm.Status[string]
		actor fsm.Actor
		want  error
		asked int
	}{
		{m.At("CREATED"), "nobody", fsm.ErrNotAllowed, 0},                   // row before actor
		{status("DELETING", "TOBEDELETED"), "nobody", fsm.ErrWrongActor, 0}, // actor before origin
		{status("DELETING", "CREATED"), user, fsm.ErrWrongActor, 0},         // actor before guard
		{status("DELETING", "TOBEDELETED"), worker, fsm.ErrNotAllowed, 0},   // origin before guard
		{status("DELETING", "CREATED"), worker, fsm.ErrGuard, 1},            // and the guard last
	} {
		asked = 0
		_, err := m.Next(t.Context(), c.at, "verify", c.actor, nil)
		require.Equal(t, c.want, sentinel(t, err))
		require.Equal(t, c.asked, asked)
	}
}

func TestOrderIsGuardThenMoveThenObserver(t *testing.T) {
	var p *probe
	m := probes(t).Observe(fsm.Observer{Moved: func(mv fsm.Moved) {
		p.log = append(p.log, fmt.Sprintf("observer sees %s, told %s to %s", p.in.State(), mv.From, mv.To))
	}})
	for _, force := range []bool{false, true} {
		in := m.Instance()
		p = &probe{in: &in}
		fire := in.Fire
		if force {
			fire = in.FireForced
		}
		_, err := fire(t.Context(), "begin", user, p)
		require.NoError(t, err)
		require.Equal(t, []string{"guard sees idle", "observer sees busy, told idle to busy"}, p.log)
	}
}

func TestOrderIsGuardThenEffectThenMoveThenObserver(t *testing.T) {
	var p *probe
	m := probes(t).Observe(fsm.Observer{Moved: func(fsm.Moved) { p.log = append(p.log, "observer sees "+p.in.State()) }})
	in := m.Instance()
	p = &probe{in: &in}

	move, err := in.Next(t.Context(), "begin", user, p)
	require.NoError(t, err)
	p.log = append(p.log, "effect sees "+in.State())
	require.NoError(t, second(in.CompareAndSwap(move)))
	require.Equal(t, []string{"guard sees idle", "effect sees idle", "observer sees busy"}, p.log)
	require.Equal(t, move.Status, in.Status())
}

func TestFailedEffectMovesNothing(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	_, err := in.Next(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	// The effect fails here, and nobody calls CompareAndSwap.
	require.Equal(t, "CREATED", in.State())
	_, err = in.Fire(t.Context(), "delete", user, nil)
	require.NoError(t, err)
}

func TestLostRaceAfterTheEffectIsAConflict(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	move, err := in.Next(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	// The effect is done here, and somebody else is faster.
	_, err = in.Fire(t.Context(), "lost", guest, nil)
	require.NoError(t, err)

	_, err = in.CompareAndSwap(move)
	require.ErrorIs(t, err, fsm.ErrConflict)
	require.Equal(t, "BROKEN", in.State(), "the winner's move stands")
	te := detail(t, err)
	require.Equal(t, "disk", te.Machine)
	require.Equal(t, "CREATED", te.From)
	require.Equal(t, "delete", te.Event)
	require.Equal(t, user, te.Actor)
}

// An object that went away and came back is in the same state, but it is not
// the object that the step was decided for.
func TestStepOfAnEarlierVisitIsAConflict(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	move, err := in.Next(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "failed", worker, nil)
	require.NoError(t, err)
	require.Equal(t, m.At("CREATED"), in.Status())
	require.ErrorIs(t, second(in.CompareAndSwap(move)), fsm.ErrConflict)
	require.Equal(t, m.At("CREATED"), in.Status())
}

func TestSelfTransitionMakesADecidedStepAConflict(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	move, err := in.Next(t.Context(), "resize", user, &disk{free: 1})
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "resize", user, &disk{free: 1})
	require.NoError(t, err)
	require.ErrorIs(t, second(in.CompareAndSwap(move)), fsm.ErrConflict)
	require.ErrorIs(t, second(in.CompareAndSwap(move)), fsm.ErrConflict)
}

func TestStepIsSwappedInOnce(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	move, err := in.Next(t.Context(), "resize", user, &disk{free: 1})
	require.NoError(t, err)
	require.NoError(t, second(in.CompareAndSwap(move)))
	require.ErrorIs(t, second(in.CompareAndSwap(move)), fsm.ErrConflict)
}

// An ignored event is accepted at the moment of the comparison, too, and leaves
// the object as it was: a step decided before it still holds.
func TestIgnoredStepIsComparedAndWritesNothing(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(status("DELETING", "CREATED")))
	ignored, err := in.Next(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	require.True(t, ignored.Ignored)
	done, err := in.Next(t.Context(), "done", worker, nil)
	require.NoError(t, err)

	require.NoError(t, second(in.CompareAndSwap(ignored)))
	require.NoError(t, second(in.CompareAndSwap(ignored)))
	_, err = in.Fire(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	require.NoError(t, second(in.CompareAndSwap(done)))
	require.Equal(t, m.At("TOBEDELETED"), in.Status())
	require.ErrorIs(t, second(in.CompareAndSwap(ignored)), fsm.ErrConflict)
}

// No lock is held while a guard runs: it may move the very object that it
// guards. The outer request then lost the race, and is not tried again.
func TestGuardMayFireTheSameInstance(t *testing.T) {
	m := probes(t)
	in := m.Instance()
	p := &probe{in: &in}
	p.do = func() error {
		_, err := in.Fire(t.Context(), "touch", user, nil)
		return err
	}
	_, err := in.Fire(t.Context(), "begin", user, p)
	require.ErrorIs(t, err, fsm.ErrConflict)
	require.Equal(t, []string{"guard sees idle"}, p.log, "the guard ran once")
	require.Equal(t, m.At("idle"), in.Status())

	p.do = nil
	_, err = in.Fire(t.Context(), "begin", user, p)
	require.NoError(t, err)
}

func TestGoroutinesOfAGuardMayFireTheSameInstance(t *testing.T) {
	m := probes(t)
	in := m.Instance()
	p := &probe{in: &in}
	var won error
	p.do = func() error {
		var wg sync.WaitGroup
		wg.Go(func() { _, won = in.Fire(t.Context(), "open", worker, nil) })
		wg.Wait()
		return nil
	}
	_, err := in.Fire(t.Context(), "begin", user, p)
	require.NoError(t, won)
	require.ErrorIs(t, err, fsm.ErrConflict)
	require.Equal(t, status("busy", "idle"), in.Status())
}

func TestObserverMayFireTheSameInstance(t *testing.T) {
	var in *fsm.Instance[string, string, probe]
	var told []string
	m := probes(t).Observe(fsm.Observer{Moved: func(mv fsm.Moved) {
		told = append(told, mv.Event)
		if mv.Event == "open" {
			_, err := in.Fire(t.Context(), "end", worker, nil)
			require.NoError(t, err)
		}
	}})
	object := m.Instance()
	in = &object
	_, err := in.Fire(t.Context(), "open", worker, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"open", "end"}, told)
	require.Equal(t, m.At("idle"), in.Status())
}

func TestPanicOfAGuardMovesNothing(t *testing.T) {
	m := probes(t)
	in := m.Instance()
	p := &probe{in: &in, do: func() error { panic("guard") }}
	require.PanicsWithValue(t, "guard", func() { _, _ = in.Fire(t.Context(), "begin", user, p) })
	require.PanicsWithValue(t, "guard", func() { _, _ = m.Next(t.Context(), m.Start(), "begin", user, p) })
	require.Equal(t, m.At("idle"), in.Status())
	p.do = nil
	_, err := in.Fire(t.Context(), "begin", user, p)
	require.NoError(t, err)
}

// Observers cannot fail, so not even a panic takes the move back.
func TestPanicOfAnObserverLeavesTheMove(t *testing.T) {
	m := probes(t).Observe(fsm.Observer{Moved: func(fsm.Moved) { panic("observer") }})
	in := m.Instance()
	require.PanicsWithValue(t, "observer", func() { _, _ = in.Fire(t.Context(), "open", worker, nil) })
	require.Equal(t, status("busy", "idle"), in.Status())
}

// A machine waits for nothing, so it does not look at the context: a guard gets
// it, and says what its end means.
func TestEndedContextIsTheGuardsToRefuse(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	m := probes(t)
	in := m.Instance()
	p := &probe{in: &in, do: func() error { return context.Cause(ctx) }}
	_, err := in.Fire(ctx, "begin", user, p)
	require.Equal(t, fsm.ErrGuard, sentinel(t, err))
	require.ErrorIs(t, err, cause)
	require.Equal(t, "idle", in.State())
	require.ErrorIs(t, m.Check(ctx, 0, p, p), cause)
	require.ErrorIs(t, m.Can(ctx, m.Start(), "begin", user, p), cause)

	_, err = in.Fire(ctx, "open", worker, p)
	require.NoError(t, err)
	require.NoError(t, m.Check(ctx, 3, p, p))
}

type key struct{}

func TestGuardGetsContextAndPayloadOfTheCaller(t *testing.T) {
	want := &disk{free: 7}
	type seen struct {
		value         any
		before, after *disk
	}
	var got []seen
	s := diskSpec()
	s.Rows[3] = s.Rows[3].If(fsm.When("see", func(ctx context.Context, before, after *disk) error {
		got = append(got, seen{ctx.Value(key{}), before, after})
		return nil
	}))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), key{}, "here")
	in := sure(m.InstanceAt(m.At("CREATED")))
	at := m.At("CREATED")

	for _, call := range []func(*disk) error{
		func(d *disk) error { _, err := in.Fire(ctx, "resize", user, d); return err },
		func(d *disk) error { _, err := in.FireForced(ctx, "resize", user, d); return err },
		func(d *disk) error { _, err := in.Next(ctx, "resize", user, d); return err },
		func(d *disk) error { _, err := m.Next(ctx, at, "resize", user, d); return err },
		func(d *disk) error { _, err := m.NextForced(ctx, at, "resize", user, d); return err },
		func(d *disk) error { _, err := m.NextTo(ctx, at, "CREATED", user, d); return err },
		func(d *disk) error { return m.Can(ctx, at, "resize", user, d) },
		func(d *disk) error { return m.Check(ctx, 3, d, d) },
	} {
		got = nil
		require.NoError(t, call(want))
		require.NoError(t, call(nil))
		require.Equal(t, []seen{{"here", want, want}, {"here", nil, nil}}, got)
	}

	// Check takes both payloads of a caller that has changed one.
	changed := &disk{free: 8}
	got = nil
	require.NoError(t, m.Check(ctx, 3, want, changed))
	require.Same(t, want, got[0].before)
	require.Same(t, changed, got[0].after)
}
