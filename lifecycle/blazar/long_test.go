package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// The texts of plugin errors are longer than a reason. A refusal leads back nevertheless,
// and an error of one reservation is recorded and prevents no call for the next one.
func TestLongErrorOfPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 5000)
		var ended []int
		s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Update: func(context.Context, blazar.Allocation) error { return fmt.Errorf("%w: %s", blazar.ErrRefused, text) },
			OnEnd: func(_ context.Context, a blazar.Allocation) error {
				ended = append(ended, a.Amount)
				if a.Amount == 1 {
					return errors.New(text)
				}
				return nil
			},
		}}})
		createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(time.Hour), Reservations: []blazar.Request{
			{Resource: "host", Amount: 1}, {Resource: "host", Amount: 2},
		}})
		_, err := s.StartLease(t.Context(), "l")
		require.NoError(t, err)
		_, err = s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: time.Now().Add(2 * time.Hour)})
		require.ErrorIs(t, err, blazar.ErrRefused)
		requireLease(t, s, "l", blazar.LeaseActive)

		_, err = s.EndLease(t.Context(), "l")
		require.ErrorContains(t, err, text)
		lease := requireLease(t, s, "l", blazar.LeaseError)
		require.Equal(t, []int{1, 2}, ended)
		require.Equal(t, blazar.ReservationError, lease.Reservations[0].Status)
		require.Equal(t, strings.Repeat("x", 4093)+"...", lease.Reservations[0].Reason)
		require.Equal(t, blazar.ReservationDeleted, lease.Reservations[1].Status)
	})
}
