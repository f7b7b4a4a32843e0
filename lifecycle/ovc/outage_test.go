package ovc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// delayed is an action that waits for its turn behind a migration, for long.
type delayed struct {
	s         *ovc.Service
	migration *queue.Ticket[lifecycle.Key]
	ticket    *ovc.Ticket
	performed bool // by the method of the service, or by the function of the request
}

func delay(t *testing.T, store lifecycle.Store, function bool) *delayed {
	d, options := &delayed{}, &ovc.Options{}
	d.s = ovc.Must(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		d.performed = c.Method == ovc.Pause
		return nil
	}})
	running(t, d.s, "m")
	if function {
		options.Run = func(context.Context) error { d.performed = true; return nil }
	}
	d.migration = migrate(t, d.s, "m", &ovc.Options{Run: func(context.Context) error {
		time.Sleep(ovc.StuckAfter / 2)
		return nil
	}})
	d.ticket = begin(t, d.s, ovc.KindVM, "m", ovc.Pause, options)
	synctest.Wait()
	return d
}

// The store fails for a moment when the turn of an action comes that has waited for long. The
// action is performed.
func TestStoreFailsAtTheBeginning(t *testing.T) {
	for name, function := range map[string]bool{"method": false, "function": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := scripttest.NewStore()
				d := delay(t, store, function)
				fails := store.OnceBefore(scripttest.Call{Method: "Commit"}, func() { store.Outage(time.Millisecond) })
				require.NoError(t, d.migration.Wait(t.Context()))
				require.Equal(t, ovc.Paused, outcome(t, d.ticket).State)
				require.True(t, fails())
				require.True(t, d.performed)
			})
		})
	}
}

// The store fails when SelfHeal extends the deadline of an action that waits, which it does
// once the action has waited for a while.
func TestStoreFailsForWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, down := scripttest.NewStore(), errors.New("the store is down")
		d := delay(t, store, false)
		store.Refuse(scripttest.Call{Method: "Commit"}, down)
		time.Sleep(ovc.StuckAfter / 5)
		require.Empty(t, heal(t, d.s).Stuck)
		time.Sleep(ovc.StuckAfter / 5)
		_, err := d.s.SelfHeal(t.Context())
		require.ErrorIs(t, err, down)
		store.Before(nil)
		require.NoError(t, d.migration.Wait(t.Context()))
		require.Equal(t, ovc.Paused, outcome(t, d.ticket).State)
	})
}

// An action that ends after its turn has begun, and before its method does, is not performed.
func TestEndedBeforeItsMethod(t *testing.T) {
	byAnother := func(t *testing.T, store *scripttest.Store, _ *ovc.Ticket) {
		_, err := ovc.Must(store.MemoryStore, nil).UpdateStatus(t.Context(), ovc.KindVM, "m", ovc.Pausing, ovc.Running)
		require.NoError(t, err)
	}
	byItsCaller := func(_ *testing.T, _ *scripttest.Store, action *ovc.Ticket) { action.Cancel(nil) }
	for name, c := range map[string]struct {
		end    func(*testing.T, *scripttest.Store, *ovc.Ticket)
		outage time.Duration
		is     error
	}{
		"by another process":              {byAnother, 0, lifecycle.ErrStale},
		"by another process in an outage": {byAnother, time.Minute, lifecycle.ErrStale},
		"by its caller in an outage":      {byItsCaller, time.Minute, queue.ErrCanceled},
	} {
		for work, function := range map[string]bool{"method": false, "function": true} {
			t.Run(name+", "+work, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := scripttest.NewStore()
					d := delay(t, store, function)
					reads := 0
					store.Before(func(call scripttest.Call) error {
						if call.Method != "Get" {
							return nil
						}
						if reads++; reads == 2 { // the first one begins the turn
							c.end(t, store, d.ticket)
							store.Outage(c.outage)
						}
						return nil
					})
					require.NoError(t, d.migration.Wait(t.Context()))
					_, err := d.ticket.Wait(t.Context())
					require.ErrorIs(t, err, c.is)
					require.False(t, d.performed)
					require.Equal(t, ovc.Running, get(t, d.s, ovc.KindVM, "m").State)
				})
			})
		}
	}
}
