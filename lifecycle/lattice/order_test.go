package lattice_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// Of several conflicting requests the first one gets the lock, also if the next controller
// runs them.
func TestFirstRequestIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
		c := live(t, store, infra, "s")
		request := func(round int) {
			for i := range 5 {
				// Names give no order: the first is the greatest.
				_, err := c.Deploy(t.Context(), "s", lattice.DeployID(fmt.Sprint(round, 9-i)), lock.MustParse("/a"), nil)
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
			}
		}
		check := func(round int) {
			for i := range 5 {
				rec, err := c.WaitDeploy(t.Context(), "s", lattice.DeployID(fmt.Sprint(round, 9-i)))
				require.NoError(t, err)
				want := lattice.ActionFailed
				if i == 0 {
					want = lattice.ActionSucceeded
				}
				require.Equal(t, want, rec.State, "round %d, %s: %s", round, rec.ID, rec.Reason)
			}
		}
		for round := range 20 {
			request(round)
			check(round)
		}
		require.NoError(t, c.Close(t.Context()))
		request(20) // stored only
		c = live(t, store, infra)
		check(20)
		require.NoError(t, c.Close(t.Context()))
	})
}
