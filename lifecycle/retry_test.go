package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// forgetful is a store that declares no history.
type forgetful struct{ *hooked }

func (s forgetful) Capabilities() lifecycle.Capabilities {
	c := s.hooked.Capabilities()
	c.History = false
	return c
}

// TestWrittenOutcomeIsUnknown: the first commit of an outcome is written, and the
// store fails before it answers. The next attempt finds that the operation is over,
// by this very commit.
func TestWrittenOutcomeIsUnknown(t *testing.T) {
	cases := map[string]struct {
		event   event
		work    error
		then    string // what another caller does before the next attempt
		history bool
		lost    bool
	}{
		"done":                      {event: "start", history: true},
		"failed":                    {event: "start", work: errBoom, history: true},
		"removed":                   {event: "delete", history: true},
		"moved on":                  {event: "start", then: "stop", history: true},
		"without history":           {event: "start"},
		"removed without history":   {event: "delete"},
		"moved on without history":  {event: "start", then: "stop", lost: true},
		"failed without history":    {event: "start", work: errBoom},
		"created anew":              {event: "delete", then: "create", history: true},
		"of an owner":               {event: "start", history: true},
		"of an owner, then removed": {event: "delete", history: true},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			var s lifecycle.Store = store
			if !c.history {
				s = forgetful{store}
			}
			config := lifecycle.Config[event]{}
			if name[:2] == "of" {
				config.Owner = join(t, s, "p", time.Hour)
			}
			m := workers(s, config)
			stopped(t, m, "a")
			end := make(chan struct{})
			ticket := do(t, m, "a", c.event, user, lifecycle.Func(func(context.Context) error { <-end; return c.work }), nil)
			synctest.Wait()
			store.reset()
			store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
				switch n {
				case 1:
					return store.lose(t, commit)
				case 2:
					return lifecycle.ErrUnavailable
				}
				return write()
			}
			close(end)
			synctest.Wait()
			written := stored(t, store, "a")
			if c.then != "" {
				do(t, m, "a", event(c.then), user, lifecycle.Func(fine), nil)
			}
			rec, err := ticket.Wait(t.Context())
			switch {
			case c.lost:
				require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
				return
			case c.work != nil:
				failed := outcomeError(t, err)
				require.Equal(t, lifecycle.Failed, failed.Outcome)
				require.ErrorIs(t, failed.Err, c.work)
				require.NoError(t, failed.Unwritten)
			default:
				require.NoError(t, err)
			}
			want := written.State
			if c.event == "delete" {
				want = "none"
			}
			require.EqualValues(t, want, rec.State)
			require.Equal(t, written.Sequence, rec.Sequence)
			require.Equal(t, written.Revision, rec.Revision)
			require.True(t, written.ChangedAt.Equal(rec.ChangedAt))
		})
	}
}

// TestRetryAfterAnotherState: the work moves its object to another state of the
// operation, and that extends the deadline. The outcome is written again until then.
func TestRetryAfterAnotherState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		m := lifecycle.Must(parcel, store, &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
		add(t, m, "a", user, size{})
		ticket := do(t, m, "a", "send", user, lifecycle.Func(func(ctx context.Context) error {
			time.Sleep(50 * time.Minute)
			_, err := m.Fire(ctx, "a", "collected", "worker", nil)
			time.Sleep(50 * time.Minute)
			return err
		}), nil)
		time.Sleep(90 * time.Minute)
		store.dead.Store(true)
		time.Sleep(10*time.Minute + time.Second)
		store.dead.Store(false)
		require.EqualValues(t, "delivered", wait(t, ticket).State)
	})
}

// TestDrainInsideWork: Drain inside work, with a context that has ended, changes
// nothing. The outcome of the work is written again.
func TestDrainInsideWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, m := outage(t, lifecycle.Config[event]{})
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			require.ErrorIs(t, lifecycle.Drain(ended, m), queue.ErrWouldDeadlock)
			store.dead.Store(true)
			return nil
		}), nil)
		time.Sleep(10 * time.Second)
		store.dead.Store(false)
		require.EqualValues(t, "running", wait(t, ticket).State)
	})
}

// TestHookMeetsDeadOwner: BeforeCommit returns the error of a process that is dead.
// The owner of the operation is another one, so the operation is not lost.
func TestHookMeetsDeadOwner(t *testing.T) {
	_, m := outage(t, lifecycle.Config[event]{BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
		if ch.To.Event == "done" && ch.From == "starting" {
			return nil, &lifecycle.OwnerError{Owner: lifecycle.OwnerRef{Name: "q", Epoch: 1}}
		}
		return nil, nil
	}})
	failed := outcomeOf(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil))
	require.Equal(t, lifecycle.Succeeded, failed.Outcome)
	require.ErrorIs(t, failed.Unwritten, lifecycle.ErrStale)
}
