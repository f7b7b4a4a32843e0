package blazar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// An operator moves a lease whose method hangs. The same commit moves its events to
// statuses that the document's table allows: no method is at work on them any more.
func TestOverrideMovesEvents(t *testing.T) {
	for _, tt := range []struct {
		during     blazar.Call // "": no method is at work, and the lease is PENDING
		to         blazar.LeaseState
		start, end blazar.EventState
	}{
		{blazar.Start, blazar.LeasePending, blazar.EventUndone, blazar.EventUndone},
		{blazar.Start, blazar.LeaseActive, blazar.EventDone, blazar.EventUndone},
		{blazar.Start, blazar.LeaseTerminated, blazar.EventDone, blazar.EventDone},
		{blazar.Start, blazar.LeaseError, blazar.EventError, blazar.EventUndone},
		{blazar.Start, blazar.LeaseUpdating, blazar.EventUndone, blazar.EventUndone},
		{blazar.Start, blazar.LeaseDeleting, blazar.EventInProgress, blazar.EventUndone},
		{blazar.Terminate, blazar.LeasePending, blazar.EventUndone, blazar.EventUndone},
		{blazar.Terminate, blazar.LeaseActive, blazar.EventDone, blazar.EventUndone},
		{blazar.Terminate, blazar.LeaseTerminated, blazar.EventDone, blazar.EventDone},
		{blazar.Terminate, blazar.LeaseError, blazar.EventDone, blazar.EventError},
		{"", blazar.LeaseActive, blazar.EventDone, blazar.EventUndone},
		{"", blazar.LeaseTerminated, blazar.EventDone, blazar.EventDone},
		{"", blazar.LeaseError, blazar.EventError, blazar.EventUndone},
	} {
		t.Run(string(tt.during)+" "+string(tt.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), newChecked(t)
				s := newService(t, store, nil)
				createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
				if tt.during == blazar.Terminate {
					_, err := s.StartLease(ctx, "l")
					require.NoError(t, err)
				}
				release := make(chan struct{})
				if tt.during != "" {
					go func() {
						_, _ = s.Guard(ctx, "l", tt.during, func(context.Context, blazar.LeaseDetails) error { <-release; return nil })
					}()
					synctest.Wait()
				}
				_, err := s.Leases.Override(ctx, "l", tt.to, "operator", "it hangs", nil)
				require.NoError(t, err)
				close(release)
				synctest.Wait()
				lease := requireLease(t, s, "l", tt.to)
				require.Equal(t, tt.start, lease.Events[0].Status)
				require.Equal(t, tt.end, lease.Events[1].Status)
				store.requireNoFaults(t)
			})
		})
	}
}

// A lease whose start was interrupted by an operator starts again when it is due.
func TestStartAfterOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		s := newService(t, store, nil)
		createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
		release := make(chan struct{})
		go func() {
			_, _ = s.Guard(ctx, "l", blazar.Start, func(context.Context, blazar.LeaseDetails) error { <-release; return nil })
		}()
		synctest.Wait()
		_, err := s.Leases.Override(ctx, "l", blazar.LeasePending, "operator", "it hangs", nil)
		require.NoError(t, err)
		close(release)
		synctest.Wait()
		_, err = s.Process(ctx)
		require.NoError(t, err)
		requireLease(t, s, "l", blazar.LeaseActive)
		store.requireNoFaults(t)
	})
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
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	_, err := s.StartLease(t.Context(), "l")
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	lease = requireLease(t, s, "l", blazar.LeasePending)
	require.Equal(t, 1, lease.Reservations[0].Amount)
	require.NoError(t, s.DeleteLease(t.Context(), "l"))
}
