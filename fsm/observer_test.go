package fsm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// recorder records the calls of an observer.
type recorder struct {
	moved   []fsm.Moved
	refused []error
	values  []any // of the contexts
}

type contextKey struct{}

func (r *recorder) observer() fsm.Observer {
	return fsm.Observer{
		Moved: func(ctx context.Context, m fsm.Moved) {
			r.moved, r.values = append(r.moved, m), append(r.values, ctx.Value(contextKey{}))
		},
		Refused: func(ctx context.Context, err error) {
			r.refused, r.values = append(r.refused, err), append(r.values, ctx.Value(contextKey{}))
		},
	}
}

func TestObserverReceivesEveryAcceptedEvent(t *testing.T) {
	var r recorder
	m := newDisks(t).Observe(r.observer())
	in := m.Instance()
	for i, c := range []struct {
		fire func(context.Context, string, fsm.Actor, *disk) (fsm.Step[string], error)
		want fsm.Moved
	}{
		{in.Fire, fsm.Moved{From: "ABSENT", Origin: "ABSENT", To: "CREATING", Event: "create", Actor: user, Row: 0}},
		{in.Fire, fsm.Moved{From: "CREATING", Origin: "ABSENT", To: "CREATED", Event: "done", Actor: worker, Row: 1}},
		{in.Fire, fsm.Moved{From: "CREATED", Origin: "CREATED", To: "CREATED", Event: "resize", Actor: user, Row: 3}},
		{in.Fire, fsm.Moved{From: "CREATED", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{in.Fire, fsm.Moved{From: "DELETING", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 8, Ignored: true}},
		{in.Fire, fsm.Moved{From: "DELETING", Origin: "CREATED", To: "CREATED", Event: "failed", Actor: worker, Row: 7}},
		{in.Fire, fsm.Moved{From: "CREATED", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{in.Fire, fsm.Moved{From: "DELETING", Origin: "CREATED", To: "TOBEDELETED", Event: "done", Actor: worker, Row: 5}},
		{in.FireForced, fsm.Moved{From: "TOBEDELETED", Origin: "TOBEDELETED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{in.Fire, fsm.Moved{From: "DELETING", Origin: "TOBEDELETED", To: "DELETED", Event: "done", Actor: worker, Row: 6}},
		{in.FireForced, fsm.Moved{From: "DELETED", Origin: "DELETED", To: "CREATED", Event: "restore", Actor: user, Row: 9}},
		{in.Fire, fsm.Moved{From: "CREATED", Origin: "CREATED", To: "BROKEN", Event: "lost", Actor: guest, Row: 10}},
	} {
		r = recorder{}
		c.want.Machine = m.Table()
		step, err := c.fire(context.WithValue(t.Context(), contextKey{}, i), c.want.Event, c.want.Actor, &disk{free: 1})
		require.NoError(t, err)
		require.Equal(t, recorder{moved: []fsm.Moved{c.want}, values: []any{i}}, r)
		require.Equal(t, c.want.To, in.State())
		require.Equal(t, c.want.Row, step.Row)
		require.Equal(t, c.want.Ignored, step.Ignored)
	}
}

func TestObserverReceivesEveryRefusal(t *testing.T) {
	var r recorder
	m := newDisks(t).Observe(r.observer())
	for i, c := range refusals {
		if c.want.Event == "" || c.is == fsm.ErrUnknownState {
			continue // no instance fires
		}
		r = recorder{}
		err := c.call(context.WithValue(t.Context(), contextKey{}, i), m)
		require.Equal(t, []error{err}, r.refused, c.name)
		require.Contains(t, r.values, i, c.name)
		if c.is != fsm.ErrConflict {
			require.Empty(t, r.moved, c.name)
		}
	}
}

func TestMethodsOfTheMachineCallNoObserver(t *testing.T) {
	var r recorder
	m := newDisks(t).Observe(r.observer())
	for _, event := range []string{"delete", "create", "explode"} {
		_, _ = m.Next(t.Context(), m.At("CREATED"), event, user, nil)
		_, _ = m.NextForced(t.Context(), m.At("CREATED"), event, user, nil)
		_ = m.Can(t.Context(), m.At("CREATED"), event, user, nil)
	}
	_, _ = m.NextTo(t.Context(), m.At("CREATED"), "DELETED", user, nil)
	require.Empty(t, r)
}

func TestObserveLeavesTheReceiverUnchanged(t *testing.T) {
	var first, second recorder
	plain := newDisks(t)
	one := plain.Observe(first.observer())
	two := one.Observe(second.observer())
	for _, c := range []struct {
		name          string
		m             *fsm.Machine[string, string, disk]
		first, second int
	}{
		{"plain", plain, 0, 0}, {"observed", one, 1, 0}, {"observed twice", two, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second = recorder{}, recorder{}
			in := c.m.Instance()
			_, err := in.Fire(t.Context(), "create", user, nil)
			require.NoError(t, err)
			require.Len(t, first.moved, c.first)
			require.Len(t, second.moved, c.second)
		})
	}
}

func TestObserverFunctionsMayBeNil(t *testing.T) {
	m := newDisks(t).Observe(fsm.Observer{})
	in := m.Instance()
	_, err := in.Fire(t.Context(), "create", user, nil)
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "create", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
}
