package blazar_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// intruder is a store in which somebody is faster than the reader of a
// reservation, once.
type intruder struct {
	*lifecycle.MemoryStore
	before atomic.Pointer[func(id string)]
}

func (s *intruder) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if key.Machine == "reservation" {
		if intrude := s.before.Swap(nil); intrude != nil {
			(*intrude)(key.ID)
		}
	}
	return s.MemoryStore.Get(ctx, key)
}

// A reservation whose amount is updated with its lease is the one that the
// combination was checked with.
func TestUpdateOfAReservationThatFailsMeanwhile(t *testing.T) {
	ctx := t.Context()
	store := &intruder{MemoryStore: lifecycle.NewMemoryStore()}
	config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}}
	s, others := blazar.New(store, config), blazar.New(store.MemoryStore, config)
	start := time.Now().Add(time.Hour)
	lease := must(s.CreateLease(ctx, "l", blazar.LeaseSpec{
		Start: start, End: start.Add(time.Hour), Reservations: []blazar.Request{{Resource: "host", Amount: 1}},
	}))(t)
	id := lease.Reservations[0].ID
	fail := func(id string) {
		_, err := others.Reservations.Override(ctx, id, blazar.ReservationError, "operator", "the host has burnt down", nil)
		require.NoError(t, err)
	}
	store.before.Store(&fail)
	_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Amounts: map[string]int{id: 2}})
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Nil(t, store.before.Load())
	lease = must(s.GetLease(ctx, "l"))(t)
	require.Equal(t, blazar.ReservationError, lease.Reservations[0].Status)
	require.Equal(t, blazar.LeaseError, lease.Status, strings.TrimSpace(lease.Reason))
}
