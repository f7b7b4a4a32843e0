package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestOverrideIsNoUndo: an override restores no payload, also if the first event of the
// table does.
func TestOverrideIsNoUndo(t *testing.T) {
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
		Name: "undone", Initial: "good", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{{Name: "good"}, {Name: "working", Kind: fsm.Transitional}, {Name: "bad", Kind: fsm.Failed}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("bad", "undo", "good"),
			fsm.Move[state, event]("good", "work", "working"),
			fsm.Move[state, event]("working", "fail", "bad").By(user),
			fsm.Move[state, event]("working", "late", "bad").After(time.Hour),
		),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[event]{Undo: []event{"undo"}})
	add(t, m, "a", user, size{N: 1})
	fire(t, m, "a", "work", user, resize(2))
	fire(t, m, "a", "fail", user, nil)
	require.Equal(t, size{N: 2}, override(t, m, "a", "working", user, "again", nil).Payload)
	fire(t, m, "a", "fail", user, nil)
	require.Equal(t, size{N: 1}, fire(t, m, "a", "undo", user, nil).Payload)
}

// TestGuardsUntilOnePasses: the guards of rows after the one that fires do not run.
func TestGuardsUntilOnePasses(t *testing.T) {
	var ran []string
	guard := func(name string, refusal error) fsm.AnyGuard {
		return fsm.When(name, func(context.Context, *size, *size) error { ran = append(ran, name); return refusal })
	}
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
		Name: "chosen", Initial: "start", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{{Name: "start"}, {Name: "one"}, {Name: "two"}, {Name: "three"}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("start", "go", "one").If(guard("first", errBoom)),
			fsm.Move[state, event]("start", "go", "two").If(guard("second", nil)),
			fsm.Move[state, event]("start", "go", "three").If(guard("third", nil)),
			fsm.Move[state, event]("one", "back", "start").AlsoFrom("two", "three"),
		),
	}), lifecycle.NewMemoryStore(), nil)
	add(t, m, "a", user, size{})
	require.Equal(t, state("two"), fire(t, m, "a", "go", user, nil).State)
	require.Equal(t, []string{"first", "second"}, ran)
}

// TestFirstJoinAtOnce: two processes join at once under a name that no process had before.
// The later one stays.
func TestFirstJoinAtOnce(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	var rival *lifecycle.Owner
	store.afterGet = func(n int) {
		if n == 1 {
			rival = join(t, store.MemoryStore, "p", 0)
		}
	}
	owner := join(t, store, "p", 0)
	require.EqualValues(t, 2, owner.Epoch())
	require.ErrorIs(t, rival.Heartbeat(t.Context()), lifecycle.ErrStale)
	require.NoError(t, owner.Heartbeat(t.Context()))
}

// TestRefusalsNameTheRequest: the detail of an early refusal has the machine, the event or
// state, and the actor.
func TestRefusalsNameTheRequest(t *testing.T) {
	m, _ := vms(t)
	ready(t, m, "a")
	_, unknown := m.Fire(t.Context(), "a", "fly", user, nil)
	_, stranger := m.Add(t.Context(), "b", "Ready", "stranger", size{}, nil)
	for name, c := range map[string]struct {
		err  error
		want fsm.TransitionError
	}{
		"unknown event": {unknown, fsm.TransitionError{Machine: "vm", Event: "fly", Actor: user, Row: -1, Err: fsm.ErrUnknownEvent}},
		"wrong actor":   {stranger, fsm.TransitionError{Machine: "vm", To: "Ready", Actor: "stranger", Row: -1, Err: fsm.ErrWrongActor}},
	} {
		t.Run(name, func(t *testing.T) {
			refused, ok := errors.AsType[*fsm.TransitionError](c.err)
			require.True(t, ok, "%v", c.err)
			require.Equal(t, c.want, *refused)
		})
	}
}
