package ovc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// flaky is a store that refuses the next commit.
type flaky struct {
	*lifecycle.MemoryStore
	refuses bool
}

func (s *flaky) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.refuses {
		s.refuses = false
		return lifecycle.ErrUnavailable
	}
	return s.MemoryStore.Commit(ctx, c)
}

// The store fails for a moment when the turn of an action comes that has waited for long. The
// action is performed.
func TestStoreFailsAtTheBeginning(t *testing.T) {
	for name, run := range map[string]bool{"method": false, "function": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &flaky{MemoryStore: lifecycle.NewMemoryStore()}
				performed := false
				s := ovc.Must(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
					performed = c.Method == ovc.Pause
					return nil
				}})
				running(t, s, "m")
				options := &ovc.Options{}
				if run {
					options.Run = func(context.Context) error { performed = true; return nil }
				}
				migration := migrate(t, s, "m", &ovc.Options{Run: func(context.Context) error {
					time.Sleep(ovc.StuckAfter / 2)
					return nil
				}})
				ticket := begin(t, s, ovc.KindVM, "m", ovc.Pause, options)
				store.refuses = true
				require.NoError(t, migration.Wait(t.Context()))
				require.Equal(t, ovc.Paused, outcome(t, ticket).State)
				require.False(t, store.refuses)
				require.True(t, performed)
			})
		})
	}
}

// An action that ends after its turn has begun, and before its method does, is not performed.
func TestEndedBeforeItsMethod(t *testing.T) {
	type action struct {
		ticket *ovc.Ticket
		store  *lifecycle.MemoryStore
	}
	byAnother := func(t *testing.T, a action) {
		_, err := ovc.Must(a.store, nil).UpdateStatus(t.Context(), ovc.KindVM, "m", ovc.Pausing, ovc.Running)
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		end    func(*testing.T, action)
		outage time.Duration
		is     error
	}{
		"by another process":              {byAnother, 0, lifecycle.ErrStale},
		"by another process in an outage": {byAnother, time.Minute, lifecycle.ErrStale},
		"by its caller in an outage":      {func(_ *testing.T, a action) { a.ticket.Cancel(nil) }, time.Minute, queue.ErrCanceled},
	} {
		for work, run := range map[string]bool{"method": false, "function": true} {
			t.Run(name+", "+work, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &bin{MemoryStore: lifecycle.NewMemoryStore()}
					performed := false
					s := ovc.Must(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
						performed = c.Method == ovc.Pause
						return nil
					}})
					running(t, s, "m")
					options := &ovc.Options{}
					if run {
						options.Run = func(context.Context) error { performed = true; return nil }
					}
					migration := migrate(t, s, "m", &ovc.Options{Run: func(context.Context) error {
						time.Sleep(ovc.StuckAfter / 2)
						return nil
					}})
					ticket := begin(t, s, ovc.KindVM, "m", ovc.Pause, options)
					synctest.Wait()
					reads, until := 0, time.Time{}
					store.before = func() error {
						if reads++; reads == 2 { // the first one begins the turn
							c.end(t, action{ticket, store.MemoryStore})
							until = time.Now().Add(c.outage)
						}
						if time.Now().Before(until) {
							return lifecycle.ErrUnavailable
						}
						return nil
					}
					require.NoError(t, migration.Wait(t.Context()))
					_, err := ticket.Wait(t.Context())
					require.ErrorIs(t, err, c.is)
					require.False(t, performed)
					require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
				})
			})
		}
	}
}
