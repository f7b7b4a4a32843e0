package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestLimits: what is longer than its limit is refused by every verb, and the store
// keeps nothing of it. Three reports with reasons of 20 MiB once grew a file to 80 MiB.
func TestLimits(t *testing.T) {
	type text struct{ Text string }
	store := lifecycle.NewMemoryStore()
	machine := fsm.Must[text](noteTable())
	m := lifecycle.Must(machine, store, nil)
	long := strings.Repeat("x", 20<<20)
	add(t, m, "a", user, text{})
	before := all(t, store, "note", "a", "b")
	fire := func(c *lifecycle.Change[text]) error {
		_, err := m.Fire(t.Context(), "a", "edit", user, c)
		return err
	}
	edit := func(s string) *lifecycle.Change[text] {
		return &lifecycle.Change[text]{Edit: func(p *text) error { p.Text = s; return nil }}
	}
	message := func(msg lifecycle.Message) *lifecycle.Change[text] {
		return &lifecycle.Change[text]{Messages: []lifecycle.Message{msg}}
	}
	refused := func(err error, what string) {
		t.Helper()
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, what)
		require.Less(t, len(err.Error()), 500)
		require.Equal(t, before, all(t, store, "note", "a", "b"))
	}
	for range 3 {
		_, err := m.Report(t.Context(), "a", 1, "edit", user, &lifecycle.Change[text]{Reason: long})
		refused(err, "reason of 20971520 bytes, more than 4096")
	}
	_, err := lifecycle.Reconcile(t.Context(), m, user, []lifecycle.PeerReport[event]{{ID: "a", Operation: 1, Ended: true, Event: "edit", Reason: long}}, nil)
	refused(err, "reason of")
	refused(fire(&lifecycle.Change[text]{Reason: long}), "reason of")
	refused(fire(edit(long)), "payload of 20971531 bytes, more than 1048576")
	refused(fire(message(lifecycle.Message{Topic: long})), "topic of 20971520 bytes, more than 1024")
	refused(fire(message(lifecycle.Message{Key: long})), "key of")
	refused(fire(message(lifecycle.Message{Payload: []byte(long)})), "message of 20971520 bytes, more than 1048576")
	_, err = m.Override(t.Context(), "a", "Draft", user, long, nil)
	refused(err, "reason of")
	_, err = m.Override(t.Context(), "a", "Draft", fsm.Actor(long), "why", nil)
	refused(err, "actor of 20971520 bytes, more than 255")
	_, err = m.Add(t.Context(), "b", initial(m), user, text{long}, nil)
	refused(err, "payload of")
	var tx lifecycle.Tx
	m.In(&tx).Add("b", initial(m), user, text{long}, nil)
	refused(tx.Commit(t.Context()), "payload of")

	// The limits are those of Config.
	m = lifecycle.Must(machine, store, &lifecycle.Config[event]{Limits: lifecycle.Limits{Reason: 3, Payload: -1}})
	refused(fire(&lifecycle.Change[text]{Reason: "four"}), "reason of 4 bytes, more than 3")
	require.NoError(t, fire(edit(strings.Repeat("x", 2<<20))))
	require.NoError(t, fire(&lifecycle.Change[text]{Reason: "two"}))

	// A payload that is longer already stays, until an edit makes it short.
	m = lifecycle.Must(machine, store, nil)
	require.NoError(t, fire(nil))
	require.ErrorIs(t, fire(edit(strings.Repeat("x", 1<<20))), lifecycle.ErrInvalid)
	require.NoError(t, fire(edit("short")))
}

// TestLimitsOfWork: arguments that are too long start no operation. A payload that is
// too long makes the outcome a failure, and the record has the reason.
func TestLimitsOfWork(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
		Limits:   lifecycle.Limits{Args: 3, Payload: 8, Reason: 1},
		Handlers: map[string]lifecycle.Handler{"noop": func(context.Context, []byte) error { return nil }},
	})
	running(t, m, "a")
	before := get(t, m, "a")
	_, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Named("noop", []byte("four")), nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "arguments of 4 bytes, more than 3")
	require.Equal(t, before, get(t, m, "a"))
	for reason, edit := range map[string]func(*size) error{
		"a reason of the library is not limited": func(p *size) error {
			p.N = 1
			return errors.New("a reason of the library is not limited")
		},
		"payload of 9 bytes, more than 8": func(p *size) error { p.N = 100; return nil },
	} {
		t.Run(reason, func(t *testing.T) {
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
				lifecycle.EditOutcome(ctx, edit)
				return nil
			}), nil)
			rec, err := ticket.Wait(t.Context())
			failed := outcomeError(t, err)
			require.Equal(t, lifecycle.Failed, failed.Outcome)
			require.NoError(t, failed.Unwritten)
			require.Contains(t, rec.Reason, reason)
			require.Equal(t, before.Payload, rec.Payload)
		})
	}
}

// A payload is checked before work whose outcome writes it.
func TestCheckPayload(t *testing.T) {
	require.NoError(t, lifecycle.Limits{}.CheckPayload(size{N: 1}))
	require.NoError(t, lifecycle.Limits{Payload: -1}.CheckPayload(strings.Repeat("x", 2<<20)))
	require.ErrorIs(t, lifecycle.Limits{}.CheckPayload(strings.Repeat("x", 1<<20)), lifecycle.ErrInvalid)
	require.ErrorIs(t, lifecycle.Limits{}.CheckPayload(json.RawMessage("{")), lifecycle.ErrInvalid)
}
