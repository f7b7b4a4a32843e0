package ovc_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// A machine was added with a disk that does not exist. It is destroyed without the disk.
func TestMissingDisk(t *testing.T) {
	var calls []ovc.Call
	s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		calls = append(calls, c)
		return nil
	}})
	_, err := s.Add(t.Context(), ovc.KindVM, "m", ovc.Running, ovc.Model{Disks: []string{"d", "missing"}})
	require.NoError(t, err)
	_, err = s.Add(t.Context(), ovc.KindDisk, "d", ovc.Assigned, ovc.Model{VM: "m"})
	require.NoError(t, err)
	require.Equal(t, ovc.Destroyed, perform(t, s, ovc.KindVM, "m", ovc.Destroy, nil).State)
	require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindDisk, "d").State)
	require.Len(t, calls, 3)
	require.Equal(t, []string{"d"}, calls[2].Disks)
}

// A disk in the recycle bin was added with a machine that does not exist. It is destroyed.
func TestExpiresWithoutItsMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.Must(lifecycle.NewMemoryStore(), nil)
		_, err := s.Add(t.Context(), ovc.KindDisk, "d", ovc.ToBeDeleted, ovc.Model{VM: "missing"})
		require.NoError(t, err)
		time.Sleep(ovc.Retention + time.Second)
		h := heal(t, s)
		require.Len(t, h.Expired, 1)
		require.Equal(t, ovc.Destroyed, outcome(t, h.Expired[0]).State)
	})
}

// bin is a store that calls a function after it has listed objects that are overdue.
type bin struct {
	*lifecycle.MemoryStore
	after func()
	get   error // of machines; nil: none

	before func() error // before a read of a machine; the error is that of the read
}

func (s *bin) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	found, err := s.MemoryStore.List(ctx, q)
	if s.after != nil && q.Overdue && len(found) > 0 && found[0].State == string(ovc.Deleted) {
		after := s.after
		s.after = nil
		after()
	}
	return found, err
}

func (s *bin) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.get != nil && key.Machine == ovc.KindVM.Machine().Name() {
		return lifecycle.StoredRecord{}, s.get
	}
	if s.before != nil && key.Machine == ovc.KindVM.Machine().Name() {
		if err := s.before(); err != nil {
			return lifecycle.StoredRecord{}, err
		}
	}
	return s.MemoryStore.Get(ctx, key)
}

// A user restores a cloudspace while SelfHeal looks at it, or another process destroys it first.
// SelfHeal leaves it alone.
func TestSelfHealIsOvertaken(t *testing.T) {
	for name, want := range map[string]ovc.State{"restored": ovc.Deployed, "being restored": ovc.Restoring, "destroyed": ovc.Destroyed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &bin{MemoryStore: lifecycle.NewMemoryStore()}
				s := ovc.Must(store, nil)
				add(t, s, ovc.KindCloudspace, "i", ovc.Model{})
				perform(t, s, ovc.KindCloudspace, "i", ovc.Deploy, nil)
				perform(t, s, ovc.KindCloudspace, "i", ovc.Delete, nil)
				time.Sleep(ovc.Retention + time.Second)
				end := make(chan struct{})
				store.after = func() {
					switch name {
					case "restored":
						perform(t, s, ovc.KindCloudspace, "i", ovc.Restore, nil)
					case "being restored":
						begin(t, s, ovc.KindCloudspace, "i", ovc.Restore, deaf(end))
					default:
						outcome(t, heal(t, s).Expired[0])
					}
				}
				require.Empty(t, heal(t, s).Expired)
				require.Nil(t, store.after)
				require.Equal(t, want, get(t, s, ovc.KindCloudspace, "i").State)
				close(end)
			})
		})
	}
}

// SelfHeal returns what has kept it from a destruction. A later call destroys the disk.
func TestSelfHealFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bin{MemoryStore: lifecycle.NewMemoryStore()}
		s := ovc.Must(store, nil)
		running(t, s, "m")
		add(t, s, ovc.KindDisk, "d", ovc.Model{})
		perform(t, s, ovc.KindDisk, "d", ovc.Create, nil)
		perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"})
		perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
		time.Sleep(ovc.Retention + time.Second)
		store.get = errors.New("the store is down")
		h, err := s.SelfHeal(t.Context())
		require.ErrorIs(t, err, store.get)
		require.Empty(t, h.Expired)
		require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)

		store.get = nil
		closed := ovc.Must(store, nil)
		require.NoError(t, closed.Close(t.Context()))
		h, err = closed.SelfHeal(t.Context())
		require.ErrorIs(t, err, queue.ErrTerminated)
		require.Empty(t, h.Expired)
		require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)

		for _, ticket := range heal(t, s).Expired {
			require.Equal(t, ovc.Destroyed, outcome(t, ticket).State)
		}
		require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindDisk, "d").State)
	})
}

// A sequence of methods ends at the end of its context, although the method that runs then
// succeeds.
func TestSequenceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []ovc.Event
		s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
			methods = append(methods, c.Method)
			time.Sleep(time.Minute)
			return nil
		}})
		running(t, s, "m")
		methods = nil
		ticket := begin(t, s, ovc.KindVM, "m", ovc.Destroy, &ovc.Options{Timeout: 90 * time.Second})
		_, err := ticket.Wait(t.Context())
		var failed *lifecycle.OutcomeError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, []ovc.Event{ovc.Stop, ovc.Delete}, methods)
		require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
	})
}

// Work of the service's own handler with arguments that are not a job fails.
func TestForeignJob(t *testing.T) {
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	running(t, s, "m")
	ticket, err := s.Objects(ovc.KindVM).Do(t.Context(), "m", ovc.Pause, ovc.API, lifecycle.Named("methods", json.RawMessage("{")), nil)
	require.NoError(t, err)
	_, err = ticket.Wait(t.Context())
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
}

func TestSharedNeedsOwner(t *testing.T) {
	_, err := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Shared: true})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Owner: new(lifecycle.Owner)})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

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
