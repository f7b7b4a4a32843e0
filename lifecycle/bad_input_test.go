package lifecycle_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Extreme durations do not panic.
func TestOddTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		ctx, stop := context.WithTimeout(t.Context(), 10)
		defer stop()
		for _, ttl := range []time.Duration{1, 2, math.MaxInt64} {
			require.NoError(t, join(t, store, "p", ttl).Run(ctx))
		}
		m := workers(store, lifecycle.Config[event]{})
		for _, every := range []time.Duration{1, 6e18, math.MaxInt64} {
			require.NoError(t, lifecycle.Run(ctx, every, nil, m))
		}
	})
}

// What no manager has made is refused where it is given, and not met later.
func TestNotMadeByTheConstructor(t *testing.T) {
	// A transaction that was used is refused everywhere.
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{})
	used := txOf(creating(m, "b", "create", user, size{}, nil))
	require.NoError(t, used.Commit(t.Context()))
	require.ErrorIs(t, used.Commit(t.Context()), lifecycle.ErrInvalid)
	work := nothing
	work.With = used
	_, err := m.Do(t.Context(), "a", "create", user, work, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	hooked := workers(store, lifecycle.Config[event]{BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
		return used, nil
	}})
	_, err = hooked.Create(t.Context(), "a", "create", user, size{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	absent(t, m, "a")
}

// A peer's text, however long, does not flood a log.
func TestLongTexts(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	long := strings.Repeat("\xff", 1<<20)
	_, err := m.Report(t.Context(), long, 1, "done", "worker", nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Less(t, len(err.Error()), 3000)
	_, err = m.Report(t.Context(), "a", 1, "done", "worker", &lifecycle.Change[size]{Reason: long})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Less(t, len(err.Error()), 3000)
	_, err = m.Fire(t.Context(), "a", "start", user, &lifecycle.Change[size]{Expect: lifecycle.Revision(long)})
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Less(t, len(err.Error()), 3000)
}

// An account with a bad entry changes nothing.
func TestReconcileAllOrNothing(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	create(t, m, "a", "create", user, size{})
	fine := lifecycle.PeerReport[event]{ID: "a", Operation: 1, Ended: true, Event: "done"}
	for _, c := range []struct {
		name string
		bad  lifecycle.PeerReport[event]
		want error
	}{
		{"no id", lifecycle.PeerReport[event]{Operation: 1, Ended: true, Event: "done"}, lifecycle.ErrInvalid},
		{"unknown event", lifecycle.PeerReport[event]{ID: "b", Operation: 1, Ended: true, Event: "fly"}, fsm.ErrUnknownEvent},
		{"reason not UTF-8", lifecycle.PeerReport[event]{ID: "b", Operation: 1, Ended: true, Event: "done", Reason: "\xff"}, lifecycle.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := lifecycle.Reconcile(t.Context(), m, "worker", []lifecycle.PeerReport[event]{fine, c.bad}, nil)
			require.ErrorIs(t, err, c.want)
			require.Empty(t, r.Outcomes)
		})
	}
	require.Equal(t, state("creating"), get(t, m, "a").State)
}

// EditOutcome with nil takes an earlier edit back.
func TestEditOutcomeNil(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	rec := wait(t, do(t, m, "a", "create", user, lifecycle.Func(func(ctx context.Context) error {
		lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 7; return nil })
		lifecycle.EditOutcome(ctx, (func(*size) error)(nil))
		return nil
	}), nil))
	require.Zero(t, rec.Payload.N)
	require.Equal(t, state("stopped"), rec.State)
}
