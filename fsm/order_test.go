package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
)

// probe is a payload. Its guard records the state that it reads, and calls do.
type probe struct {
	in  *fsm.Instance[string, string, probe]
	log []string
	do  func() error
}

var look = fsm.When("look", func(_ context.Context, _, p *probe) error {
	p.log = append(p.log, "guard reads "+p.in.State())
	if p.do != nil {
		return p.do()
	}
	return nil
})

func probes(t *testing.T) *fsm.Machine[string, string, probe] {
	m, err := fsm.New[probe](spec{
		Name: "probe", Initial: "idle", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional, Manual: "worker"}},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("idle", "begin", "busy").By(user).If(look),
			/* 1 */ fsm.Return("busy", "end").By(worker),
			/* 2 */ fsm.Move("idle", "touch", "idle").By(user),
			/* 3 */ fsm.Move("idle", "open", "busy").By(worker),
			/* 4 */ fsm.Ignore("busy", "begin").By(user).If(look),
		),
	})
	require.NoError(t, err)
	return m
}

func TestOrderIsRowThenActorThenOriginThenGuard(t *testing.T) {
	calls := 0
	s := diskSpec()
	s.Rows = append(s.Rows, fsm.Move("DELETING", "verify", "CREATED").By(worker).Of("CREATED").
		If(fsm.When("count", func(context.Context, *disk, *disk) error { calls++; return errFull })))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		at    fsm.Status[string]
		actor fsm.Actor
		want  error
		calls int
	}{
		{"row before actor", m.At("CREATED"), undeclared, fsm.ErrNotAllowed, 0},
		{"actor before origin", status("DELETING", "TOBEDELETED"), undeclared, fsm.ErrWrongActor, 0},
		{"actor before guard", status("DELETING", "CREATED"), user, fsm.ErrWrongActor, 0},
		{"origin before guard", status("DELETING", "TOBEDELETED"), worker, fsm.ErrNotAllowed, 0},
		{"guard last", status("DELETING", "CREATED"), worker, fsm.ErrGuard, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls = 0
			_, err := m.Next(t.Context(), c.at, "verify", c.actor, nil)
			require.Equal(t, c.want, sentinel(t, err))
			require.Equal(t, c.calls, calls)
		})
	}
}

func TestOrderIsGuardThenMoveThenObserver(t *testing.T) {
	var p *probe
	m := probes(t).Observe(fsm.Observer{Moved: func(_ context.Context, mv fsm.Moved) {
		p.log = append(p.log, fmt.Sprintf("observer reads %s, receives %s to %s", p.in.State(), mv.From, mv.To))
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
		require.Equal(t, []string{"guard reads idle", "observer reads busy, receives idle to busy"}, p.log)
	}
}

// No lock is held while a guard runs. A guard may move the object that it guards. The
// outer request then has a conflict and is not tried again.
func TestMoveDuringTheGuardIsAConflict(t *testing.T) {
	m := probes(t)
	busy := status("busy", "idle")
	for _, c := range []struct {
		name     string
		at       fsm.Status[string]
		during   []string // events that worker and user fire during the guard
		conflict bool
		want     fsm.Status[string]
	}{
		{"no move", m.At("idle"), nil, false, busy},
		{"another state", m.At("idle"), []string{"open"}, true, busy},
		{"self transition", m.At("idle"), []string{"touch"}, true, m.At("idle")},
		{"away and back", m.At("idle"), []string{"open", "end"}, true, m.At("idle")},
		{"ignored event, no move", busy, nil, false, busy},
		{"ignored event, another state", busy, []string{"end"}, true, m.At("idle")},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := instanceAt(t, m, c.at)
			p := &probe{in: &in, do: func() error {
				for _, event := range c.during {
					actor := worker
					if event == "touch" {
						actor = user
					}
					var other errgroup.Group // another goroutine may fire too
					other.Go(func() error {
						_, err := in.Fire(t.Context(), event, actor, nil)
						return err
					})
					require.NoError(t, other.Wait())
				}
				return nil
			}}
			_, err := in.Fire(t.Context(), "begin", user, p)
			if c.conflict {
				require.ErrorIs(t, err, fsm.ErrConflict)
			} else {
				require.NoError(t, err)
			}
			require.Len(t, p.log, 1, "the guard ran once")
			require.Equal(t, c.want, in.Status())
		})
	}
}

// An ignored event writes nothing: a request that was decided before it still moves.
func TestIgnoredEventDuringTheGuardIsNoConflict(t *testing.T) {
	s := diskSpec()
	var in fsm.Instance[string, string, disk]
	s.Rows[7] = s.Rows[7].If(fsm.When("retry", func(ctx context.Context, _, _ *disk) error {
		step, err := in.Fire(ctx, "delete", user, nil)
		require.True(t, step.Ignored)
		return err
	}))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	in, err = m.InstanceAt(status("DELETING", "CREATED"))
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "failed", worker, nil)
	require.NoError(t, err)
	require.Equal(t, m.At("CREATED"), in.Status())
}

func TestObserverMayFireTheSameInstance(t *testing.T) {
	var in *fsm.Instance[string, string, probe]
	var events []string
	m := probes(t).Observe(fsm.Observer{Moved: func(ctx context.Context, mv fsm.Moved) {
		events = append(events, mv.Event)
		if mv.Event == "open" {
			_, err := in.Fire(ctx, "end", worker, nil)
			require.NoError(t, err)
		}
	}})
	object := m.Instance()
	in = &object
	_, err := in.Fire(t.Context(), "open", worker, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"open", "end"}, events)
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

func TestPanicOfAnObserverLeavesTheMove(t *testing.T) {
	m := probes(t).Observe(fsm.Observer{Moved: func(context.Context, fsm.Moved) { panic("observer") }})
	in := m.Instance()
	require.PanicsWithValue(t, "observer", func() { _, _ = in.Fire(t.Context(), "open", worker, nil) })
	require.Equal(t, status("busy", "idle"), in.Status())
}

// A machine does not wait and does not read the context. A guard does.
func TestGuardRefusesACanceledContext(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	m := probes(t)
	in := m.Instance()
	p := &probe{in: &in, do: func() error { return context.Cause(ctx) }}
	_, err := in.Fire(ctx, "begin", user, p)
	require.Equal(t, fsm.ErrGuard, sentinel(t, err))
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, m.Check(ctx, 0, p, p), cause)
	require.ErrorIs(t, m.Can(ctx, m.Start(), "begin", user, p), cause)

	_, err = in.Fire(ctx, "open", worker, p)
	require.NoError(t, err)
	require.NoError(t, m.Check(ctx, 3, p, p), "no guard")
}

func TestGuardReceivesContextAndPayloadOfTheCaller(t *testing.T) {
	want := &disk{free: 7}
	type call struct {
		value         any
		before, after *disk
	}
	var got []call
	s := diskSpec()
	s.Rows[3] = s.Rows[3].If(fsm.When("record", func(ctx context.Context, before, after *disk) error {
		got = append(got, call{ctx.Value(contextKey{}), before, after})
		return nil
	}))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), contextKey{}, "value")
	at := m.At("CREATED")
	in := instanceAt(t, m, at)
	for name, request := range map[string]func(*disk) error{
		"Fire":       func(d *disk) error { _, err := in.Fire(ctx, "resize", user, d); return err },
		"FireForced": func(d *disk) error { _, err := in.FireForced(ctx, "resize", user, d); return err },
		"Next":       func(d *disk) error { _, err := m.Next(ctx, at, "resize", user, d); return err },
		"NextForced": func(d *disk) error { _, err := m.NextForced(ctx, at, "resize", user, d); return err },
		"NextTo":     func(d *disk) error { _, err := m.NextTo(ctx, at, "CREATED", user, d); return err },
		"Can":        func(d *disk) error { return m.Can(ctx, at, "resize", user, d) },
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			require.NoError(t, request(want))
			require.NoError(t, request(nil))
			require.Equal(t, []call{{"value", want, want}, {"value", nil, nil}}, got)
		})
	}

	changed := &disk{free: 8}
	got = nil
	require.NoError(t, m.Check(ctx, 3, want, changed))
	require.Equal(t, []call{{"value", want, changed}}, got)
}
