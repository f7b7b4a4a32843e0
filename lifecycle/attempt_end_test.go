package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// The observer of a failed attempt cancels the operation: there is no next attempt, and the
// work has failed by itself.
func TestCancelAfterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticket *lifecycle.Ticket[state, size]
		admitted := make(chan struct{})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Handlers: map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error { <-admitted; return errBoom }},
			Observer: lifecycle.Observer{Retried: func(context.Context, lifecycle.FailedAttempt) { ticket.Cancel(errors.New("too late")) }},
		})
		stopped(t, m, "a")
		ticket = do(t, m, "a", "start", user, lifecycle.Work{Handler: "boot", Retries: lifecycle.Retries{Attempts: 3}}, nil)
		close(admitted)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.Equal(t, errBoom, failed.Err)
		require.NoError(t, failed.Unwritten)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

// An attempt ends after the deadline, and the store fails then. There is no next attempt: a
// sweep may have ended the operation already.
func TestAttemptEndsAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		attempts := 0
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error {
			attempts++
			time.Sleep(2 * time.Minute)
			store.reset()
			store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
				if n == 1 {
					return lifecycle.ErrUnavailable
				}
				return write()
			}
			return errBoom
		}}})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Handler: "boot", Retries: lifecycle.Retries{Attempts: 3}}, nil)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.Equal(t, errBoom, failed.Err)
		require.Equal(t, 1, attempts)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}
