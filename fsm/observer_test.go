package fsm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// ear writes down what an observer is told.
type ear struct {
	moved   []fsm.Moved
	refused []error
}

func (e *ear) observer() fsm.Observer {
	return fsm.Observer{
		Moved:   func(m fsm.Moved) { e.moved = append(e.moved, m) },
		Refused: func(err error) { e.refused = append(e.refused, err) },
	}
}

func TestObserverIsToldOfEveryAcceptedEvent(t *testing.T) {
	var e ear
	m := newDisks(t).Observe(e.observer())
	in := m.Instance()
	d := &disk{free: 1}
	type call = func() (fsm.Step[string], error)
	fire := func(event string, actor fsm.Actor) call {
		return func() (fsm.Step[string], error) { return in.Fire(t.Context(), event, actor, d) }
	}
	force := func(event string, actor fsm.Actor) call {
		return func() (fsm.Step[string], error) { return in.FireForced(t.Context(), event, actor, d) }
	}
	swap := func(event string, actor fsm.Actor) call {
		return func() (fsm.Step[string], error) {
			move := sure(in.Next(t.Context(), event, actor, d))
			require.Empty(t, e.moved, "told before the move")
			return in.CompareAndSwap(move)
		}
	}
	for _, c := range []struct {
		call call
		want fsm.Moved
	}{
		{fire("create", user), fsm.Moved{From: "ABSENT", Origin: "ABSENT", To: "CREATING", Event: "create", Actor: user, Row: 0}},
		{fire("done", worker), fsm.Moved{From: "CREATING", Origin: "ABSENT", To: "CREATED", Event: "done", Actor: worker, Row: 1}},
		{fire("resize", user), fsm.Moved{From: "CREATED", Origin: "CREATED", To: "CREATED", Event: "resize", Actor: user, Row: 3}},
		{swap("delete", user), fsm.Moved{From: "CREATED", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{fire("delete", user), fsm.Moved{From: "DELETING", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 8, Ignored: true}},
		{swap("delete", user), fsm.Moved{From: "DELETING", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 8, Ignored: true}},
		{fire("failed", worker), fsm.Moved{From: "DELETING", Origin: "CREATED", To: "CREATED", Event: "failed", Actor: worker, Row: 7}},
		{fire("delete", user), fsm.Moved{From: "CREATED", Origin: "CREATED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{fire("done", worker), fsm.Moved{From: "DELETING", Origin: "CREATED", To: "TOBEDELETED", Event: "done", Actor: worker, Row: 5}},
		{force("delete", user), fsm.Moved{From: "TOBEDELETED", Origin: "TOBEDELETED", To: "DELETING", Event: "delete", Actor: user, Row: 4}},
		{fire("done", worker), fsm.Moved{From: "DELETING", Origin: "TOBEDELETED", To: "DELETED", Event: "done", Actor: worker, Row: 6}},
		{force("restore", user), fsm.Moved{From: "DELETED", Origin: "DELETED", To: "CREATED", Event: "restore", Actor: user, Row: 9}},
		{fire("lost", guest), fsm.Moved{From: "CREATED", Origin: "CREATED", To: "BROKEN", Event: "lost", Actor: guest, Row: 10}},
	} {
		e = ear{}
		step, err := c.call()
		require.NoError(t, err)
		c.want.Machine = m.Table()
		require.Equal(t, []fsm.Moved{c.want}, e.moved)
		require.Empty(t, e.refused)
		require.Equal(t, in.State(), c.want.To)
		require.Equal(t, step.Row, c.want.Row)
		require.Equal(t, step.Ignored, c.want.Ignored)
	}
}

func TestObserverIsToldOfEveryRefusal(t *testing.T) {
	var e ear
	m := newDisks(t).Observe(e.observer())
	for _, r := range refusals {
		if r.want.Event == "" || r.is == fsm.ErrUnknownState {
			continue // no instance fires
		}
		e = ear{}
		err := r.call(t.Context(), m)
		require.Equal(t, []error{err}, e.refused, r.name)
		require.NotNil(t, detail(t, e.refused[0]))
		if r.is != fsm.ErrConflict {
			require.Empty(t, e.moved, r.name)
		}
	}
	e = ear{}
	in := sure(m.InstanceAt(m.At("DELETED")))
	_, err := in.FireForced(t.Context(), "restore", worker, nil)
	require.Equal(t, []error{err}, e.refused)
}

// Questions move nothing and are not told.
func TestObserverIsNotToldOfQuestions(t *testing.T) {
	var e ear
	m := newDisks(t).Observe(e.observer())
	in := sure(m.InstanceAt(m.At("CREATED")))
	for _, event := range []string{"delete", "create", "explode"} {
		_, _ = in.Next(t.Context(), event, user, nil)
		_, _ = m.Next(t.Context(), m.At("CREATED"), event, user, nil)
		_, _ = m.NextForced(t.Context(), m.At("CREATED"), event, user, nil)
		_ = m.Can(t.Context(), m.At("CREATED"), event, user, nil)
	}
	_, _ = m.NextTo(t.Context(), m.At("CREATED"), "DELETED", user, nil)
	require.Empty(t, e.moved)
	require.Empty(t, e.refused)
}

func TestObserveLeavesTheReceiverAlone(t *testing.T) {
	var first, second ear
	plain := newDisks(t)
	before := plain.Instance()
	one := plain.Observe(first.observer())
	two := one.Observe(second.observer())
	for _, in := range []*fsm.Instance[string, string, disk]{&before, new(plain.Instance())} {
		_, err := in.Fire(t.Context(), "create", user, nil)
		require.NoError(t, err)
	}
	require.Empty(t, first.moved)

	a, b := one.Instance(), two.Instance()
	_, err := a.Fire(t.Context(), "create", user, nil)
	require.NoError(t, err)
	require.Len(t, first.moved, 1)
	require.Empty(t, second.moved)
	_, err = b.Fire(t.Context(), "create", user, nil)
	require.NoError(t, err)
	require.Len(t, first.moved, 1, "a second observer takes the place of the first")
	require.Len(t, second.moved, 1)
}

func TestObserverFunctionsMayBeNil(t *testing.T) {
	m := newDisks(t).Observe(fsm.Observer{})
	in := m.Instance()
	_, err := in.Fire(t.Context(), "create", user, nil)
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "create", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	move, err := in.Next(t.Context(), "done", worker, nil)
	require.NoError(t, err)
	require.NoError(t, second(in.CompareAndSwap(move)))
	require.ErrorIs(t, second(in.CompareAndSwap(move)), fsm.ErrConflict)
}
