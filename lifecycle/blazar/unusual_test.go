package blazar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// between is a store that calls a function once, after it has listed records of a machine or
// after it has read one, and that can refuse commits of that machine.
type between struct {
	*lifecycle.MemoryStore
	machine  string
	after    func() // a list
	afterGet func()
	refuse   error // nil: none
}

func (s *between) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	found, err := s.MemoryStore.List(ctx, q)
	if after := s.after; after != nil && q.Machine == s.machine {
		s.after = nil
		after()
	}
	return found, err
}

func (s *between) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	if after := s.afterGet; after != nil && key.Machine == s.machine {
		s.afterGet = nil
		after()
	}
	return r, err
}

func (s *between) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.refuse != nil && c.Changes[0].To.Machine == s.machine {
		return s.refuse
	}
	return s.MemoryStore.Commit(ctx, c)
}

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
				ctx, store := t.Context(), &between{MemoryStore: lifecycle.NewMemoryStore(), machine: "event"}
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
				createLease(t, s, inAnHour("host"))
				time.Sleep(time.Hour)
				store.after = func() { require.NoError(t, c.meantime(ctx, s)) }
				handled, err := s.Process(ctx)
				require.NoError(t, err)
				require.Nil(t, store.after)
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
		ctx, store := t.Context(), &between{MemoryStore: lifecycle.NewMemoryStore(), machine: "event"}
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		lease := createLease(t, s, inAnHour("host"))
		_, err := s.Leases.Override(ctx, "l", blazar.LeaseActive, "operator", "it has started elsewhere", nil)
		require.NoError(t, err)
		_, err = s.Events.Override(ctx, lease.Events[0].ID, blazar.EventUndone, "operator", "by mistake", nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)

		store.refuse = lifecycle.ErrUnavailable
		handled, err := s.Process(ctx)
		require.NoError(t, err)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventUndone, handled[0].Status)
		require.ErrorIs(t, handled[0].Err, lifecycle.ErrUnavailable)
		store.refuse = nil

		store.afterGet = func() { require.NoError(t, s.DeleteLease(ctx, "l")) }
		handled, err = s.Process(ctx)
		require.NoError(t, err)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventAbsent, handled[0].Status)
		require.ErrorIs(t, handled[0].Err, lifecycle.ErrNotFound)
	})
}

// A lease that is deleted while leases are listed is not in the list.
func TestListDuringDelete(t *testing.T) {
	store := &between{MemoryStore: lifecycle.NewMemoryStore(), machine: "lease"}
	s := newService(t, store, nil)
	for _, id := range []string{"a", "b"} {
		_, err := s.CreateLease(t.Context(), id, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
		require.NoError(t, err)
	}
	store.after = func() { require.NoError(t, s.DeleteLease(t.Context(), "a")) }
	list, err := s.ListLeases(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "b", list[0].ID)
}

// A reservation that an operator has moved to ERROR keeps its lease from the start. The other
// reservation starts, and is released by the delete.
func TestStartWithFailedReservation(t *testing.T) {
	var calls []string
	note := func(what string) func(context.Context, blazar.Allocation) error {
		return func(_ context.Context, a blazar.Allocation) error {
			calls = append(calls, what+" "+shortName(a.Reservation))
			return nil
		}
	}
	store := newChecked(t)
	s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {OnStart: note("start"), OnEnd: note("end")}}})
	spec := inAnHour("host")
	spec.Reservations = append(spec.Reservations, spec.Reservations[0])
	lease := createLease(t, s, spec)
	_, err := s.Reservations.Override(t.Context(), lease.Reservations[0].ID, blazar.ReservationError, "operator", "broken", nil)
	require.NoError(t, err)
	store.faults = nil // a pending lease with a failed reservation
	_, err = s.StartLease(t.Context(), "l")
	require.ErrorContains(t, err, "it is error and cannot become active")
	lease = requireLease(t, s, "l", blazar.LeaseError)
	require.Equal(t, blazar.ReservationError, lease.Reservations[0].Status)
	require.Equal(t, "broken", lease.Reservations[0].Reason)
	require.Equal(t, blazar.ReservationActive, lease.Reservations[1].Status)
	require.Equal(t, []string{"start reservation-2"}, calls)
	require.NoError(t, s.DeleteLease(t.Context(), "l"))
	store.requireNoFaults(t)
}

func TestUpdateIntoThePast(t *testing.T) {
	s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
	lease := createLease(t, s, inAnHour("host"))
	_, err := s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{Start: time.Now().Add(-time.Hour)})
	var input *blazar.InputError
	require.ErrorAs(t, err, &input)
	require.ErrorContains(t, err, "start: it must not be in the past")
	require.True(t, requireLease(t, s, "l", blazar.LeasePending).Spec.Start.Equal(lease.Spec.Start))
}

// A lease without events, which an operator has removed, has no reservation that can be updated.
func TestUpdateWithoutEvents(t *testing.T) {
	s := newService(t, lifecycle.NewMemoryStore(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
	lease := createLease(t, s, inAnHour("host"))
	for _, e := range lease.Events {
		_, err := s.Events.Override(t.Context(), e.ID, blazar.EventAbsent, "operator", "repair", nil)
		require.NoError(t, err)
	}
	for _, update := range []blazar.LeaseUpdate{
		{End: lease.Spec.End.Add(time.Hour)},
		{Amounts: map[string]int{lease.Reservations[0].ID: 2}},
	} {
		_, err := s.UpdateLease(t.Context(), "l", update)
		var input *blazar.InputError
		require.ErrorAs(t, err, &input)
	}
	_, err := s.StartLease(t.Context(), "l")
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	lease = requireLease(t, s, "l", blazar.LeasePending)
	require.Equal(t, 1, lease.Reservations[0].Amount)
	require.NoError(t, s.DeleteLease(t.Context(), "l"))
}

// A delete interrupts the release of the reservations of a refused creation. The delete alone
// releases those that are left.
func TestDeleteDuringUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		s := newService(t, lifecycle.NewMemoryStore(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Reserve: func(_ context.Context, a blazar.Allocation) (string, error) {
				if strings.HasSuffix(a.Reservation, "3") {
					return "", blazar.ErrRefused
				}
				return "", nil
			},
			OnEnd: func(ctx context.Context, a blazar.Allocation) error {
				ended = append(ended, shortName(a.Reservation))
				if len(ended) == 1 {
					<-ctx.Done()
				}
				return nil
			},
		}}})
		spec := inAnHour("host")
		spec.Reservations = append(spec.Reservations, spec.Reservations[0], spec.Reservations[0])
		var created error
		go func() { _, created = s.CreateLease(t.Context(), "l", spec) }()
		synctest.Wait()
		require.NoError(t, s.DeleteLease(t.Context(), "l"))
		synctest.Wait()
		require.ErrorIs(t, created, lifecycle.ErrStale)
		require.False(t, errors.Is(created, blazar.ErrRefused))
		require.Equal(t, []string{"reservation-2", "reservation-1", "reservation-2", "reservation-3"}, ended)
	})
}
