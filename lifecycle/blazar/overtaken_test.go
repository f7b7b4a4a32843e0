package blazar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// What a user does after Process has listed the events counts.
func TestProcessIsOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		meantime func(ctx context.Context, s *blazar.Service) error
		event    blazar.EventState
		lease    blazar.LeaseState
		is       error
	}{
		"by an update that postpones the start": {
			func(ctx context.Context, s *blazar.Service) error {
				_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Start: time.Now().Add(30 * time.Minute)})
				return err
			},
			blazar.EventUndone, blazar.LeasePending, nil,
		},
		"by a delete": {
			func(ctx context.Context, s *blazar.Service) error { return s.DeleteLease(ctx, "l") },
			blazar.EventAbsent, "", lifecycle.ErrNotFound,
		},
		"by a start": {
			func(ctx context.Context, s *blazar.Service) error { _, err := s.StartLease(ctx, "l"); return err },
			blazar.EventDone, blazar.LeaseActive, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), scripttest.NewStore()
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
				createLease(t, s, inAnHour("host"))
				time.Sleep(time.Hour)
				overtaken := store.OnceAfter(scripttest.Call{Method: "List", Machine: "event"}, func() {
					require.NoError(t, c.meantime(ctx, s))
				})
				handled, err := s.Process(ctx)
				require.NoError(t, err)
				require.True(t, overtaken())
				require.Len(t, handled, 1)
				require.Equal(t, c.event, handled[0].Status, "%v", handled[0].Err)
				if c.is != nil {
					require.ErrorIs(t, handled[0].Err, c.is)
				} else {
					require.Equal(t, c.event == blazar.EventDone, handled[0].Err == nil)
				}
				if c.lease == "" {
					_, err := s.GetLease(ctx, "l")
					require.ErrorIs(t, err, lifecycle.ErrNotFound)
				} else {
					requireLease(t, s, "l", c.lease)
				}
			})
		})
	}
}

// A lease is deleted when Process has found that it cannot start now.
func TestGiveUpIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), scripttest.NewStore()
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		lease := createLease(t, s, inAnHour("host"))
		_, err := s.Leases.Override(ctx, "l", blazar.LeaseActive, "operator", "it has started elsewhere", nil)
		require.NoError(t, err)
		_, err = s.Events.Override(ctx, lease.Events[0].ID, blazar.EventUndone, "operator", "by mistake", nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)

		store.Refuse(scripttest.Call{Method: "Commit", Machine: "event"}, lifecycle.ErrUnavailable)
		handled, err := s.Process(ctx)
		require.NoError(t, err)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventUndone, handled[0].Status)
		require.ErrorIs(t, handled[0].Err, lifecycle.ErrUnavailable)
		store.Before(nil)

		store.OnceAfter(scripttest.Call{Method: "Get", Machine: "event"}, func() { require.NoError(t, s.DeleteLease(ctx, "l")) })
		handled, err = s.Process(ctx)
		require.NoError(t, err)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventAbsent, handled[0].Status)
		require.ErrorIs(t, handled[0].Err, lifecycle.ErrNotFound)
	})
}

// A lease that is deleted while leases are listed is not in the list.
func TestListDuringDelete(t *testing.T) {
	store := scripttest.NewStore()
	s := newService(t, store, nil)
	for _, id := range []string{"a", "b"} {
		_, err := s.CreateLease(t.Context(), id, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
		require.NoError(t, err)
	}
	store.OnceAfter(scripttest.Call{Method: "List", Machine: "lease"}, func() { require.NoError(t, s.DeleteLease(t.Context(), "a")) })
	list, err := s.ListLeases(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "b", list[0].ID)
}
