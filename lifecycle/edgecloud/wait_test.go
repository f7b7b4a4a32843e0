package edgecloud_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// requested returns a coordinator with a creation of the cluster c that the CRM has not
// started.
func requested(t *testing.T, store lifecycle.Store) (*edgecloud.Coordinator, clusterRecord) {
	t.Helper()
	c := newCoordinator(t, store)
	rec, err := c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	return c, rec
}

// The CRM starts, or the object is removed, while the patience of Wait ends. Wait changes
// nothing.
func TestPatienceEndsTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		before string // the call of the store before which it happens
		happen func(t *testing.T, c *edgecloud.Coordinator, rec clusterRecord)
		want   error
		state  edgecloud.State
	}{
		"the CRM starts": {"Commit", func(t *testing.T, c *edgecloud.Coordinator, rec clusterRecord) {
			report(t, c, rec, edgecloud.Creating)
		}, edgecloud.ErrStillWorking, edgecloud.Creating},
		"undone": {"Get", func(t *testing.T, c *edgecloud.Coordinator, rec clusterRecord) {
			report(t, c, rec, edgecloud.CreateError)
			_, err := c.Clusters.Undo(t.Context(), "c", rec.Operation, "")
			require.NoError(t, err)
		}, edgecloud.ErrFailed, edgecloud.NotPresent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripttest.NewStore()
				c, rec := requested(t, s)
				const patience = 1500 * time.Millisecond
				began := time.Now()
				s.Before(func(call scripttest.Call) error {
					if call.Is(scripttest.Call{Method: tt.before, Machine: "clusterinst"}) && time.Since(began) == patience {
						s.Before(nil)
						tt.happen(t, c, rec)
					}
					return nil
				})
				_, err := c.Clusters.Wait(t.Context(), rec, patience)
				require.ErrorIs(t, err, tt.want)
				requireCluster(t, c, "c", tt.state)
			})
		})
	}
}

// Another caller undoes a failed operation while Wait does. That is no error of Wait.
func TestWaitLosesTheUndo(t *testing.T) {
	for name, before := range map[string]scripttest.Call{"before it reads": readClusterNote, "before its commit": commitOfCluster} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := scripttest.NewStore()
			c, rec := requested(t, s)
			report(t, c, rec, edgecloud.CreateError)
			s.OnceBefore(before, func() {
				_, err := c.Clusters.Undo(ctx, "c", rec.Operation, "")
				require.NoError(t, err)
			})
			now, err := c.Clusters.Wait(ctx, rec, 0)
			require.Equal(t, &edgecloud.FailedError{
				Key: clusterKey("c"), Operation: rec.Operation, State: edgecloud.CreateError, Errors: []string{"no quota"}, Undone: true,
			}, err)
			require.Equal(t, clusterRecord{ID: "c"}, now)
		})
	}
}

// Wait cannot read the end of its operation. An outage of the store does not mean that the
// operation was superseded.
func TestWaitCannotReadTheHistory(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		stale bool
	}{
		"outage":     {lifecycle.ErrUnavailable, false},
		"no history": {errors.ErrUnsupported, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := scripttest.NewStore()
			c, rec := requested(t, store)
			store.Refuse(scripttest.Call{Method: "History"}, tt.err)
			report(t, c, rec, edgecloud.Ready)
			_, err := c.Clusters.Update(ctx, "c", nil, nil)
			require.NoError(t, err)
			_, err = c.Clusters.Wait(ctx, rec, 0)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.stale, errors.Is(err, lifecycle.ErrStale))
		})
	}
}

// A delete that is being prepared has no order, and no request returns its record. Wait
// refuses it: the delete may end without an outcome of the CRM.
func TestWaitForAPreparation(t *testing.T) {
	ctx := t.Context()
	c, _ := inState(t, edgecloud.DeletePrepare)
	rec, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	_, err = c.Clusters.Manager().Fire(ctx, "c", edgecloud.PrepareFailed, edgecloud.Controller,
		&lifecycle.Change[edgecloud.ClusterSpec]{Force: true})
	require.NoError(t, err)
	_, err = c.Clusters.Wait(ctx, rec, 0)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}
