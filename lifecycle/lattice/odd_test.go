package lattice_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// A delete is repeated if the services move the system at the same moment.
func TestDeleteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		c := live(t, store, lattice.Infrastructure{}, "s")
		overtaken := store.OnceBefore(scripttest.Call{Method: "Commit", State: string(lattice.Deleting)}, func() {
			require.NoError(t, c.SetService(t.Context(), "s", lock.MustParse("/a"), lattice.ServiceDegraded))
		})
		h, err := c.DeleteSystem(t.Context(), "s")
		require.NoError(t, err)
		require.True(t, overtaken())
		rec, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.False(t, rec.State != lattice.DoesNotExist && rec.State != "", "%s", rec.State)
	})
}

// A controller starts with records that no controller leaves, but an override or another
// program may. Every action ends, conflicting ones do not run at once, and no lock is left.
func TestOddRecordsAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		old := live(t, store, lattice.Infrastructure{}, "live", "other", "torn", "failed", "pending", "deleting")
		synctest.Wait()
		for _, s := range []lattice.State{"failed", "pending", "deleting"} {
			_, err := old.Systems().Override(t.Context(), string(s), s, lattice.User, "odd", nil)
			require.NoError(t, err)
		}
		require.NoError(t, old.Close(t.Context()))

		deploys := lifecycle.Must(lattice.Deploy, store, nil)
		teardowns := lifecycle.Must(lattice.Teardown, store, nil)
		put := func(m *lifecycle.Manager[lattice.ActionState, lattice.ActionEvent, lattice.Action], id string, a lattice.Action, to lattice.ActionState) {
			_, err := m.Add(t.Context(), id, lattice.ActionPending, lattice.Backend, a, nil)
			require.NoError(t, err, id)
			if to != lattice.ActionPending {
				_, err = m.Override(t.Context(), id, to, lattice.Backend, "odd", nil)
				require.NoError(t, err, id)
			}
		}
		at := func(path string) lattice.Action {
			return lattice.Action{System: "live", Path: lock.MustParse(path)}
		}
		put(deploys, "live/a-b", at("/a/b"), lattice.ActionAccepted)
		put(deploys, "live/z", at("/a"), lattice.ActionInProgress) // conflicts
		put(deploys, "live/late", at("/a/b/c"), lattice.ActionPending)
		put(deploys, "live/with/a/slash", at("/c"), lattice.ActionAccepted)
		put(deploys, "live/nowhere", lattice.Action{}, lattice.ActionAccepted) // all of it
		put(deploys, "live/over", at("/"), lattice.ActionSucceeded)
		put(teardowns, "live/t", lattice.Action{System: "live"}, lattice.ActionInProgress)
		put(deploys, "other/of-another", at("/x"), lattice.ActionInProgress) // the id decides
		put(teardowns, "torn/t", lattice.Action{}, lattice.ActionInProgress)
		put(deploys, "torn/d", at("/"), lattice.ActionAccepted)
		for _, s := range []string{"failed", "pending", "deleting", "none", ""} {
			put(deploys, s+"/accepted", at("/a"), lattice.ActionAccepted)
			put(teardowns, s+"/begun", lattice.Action{}, lattice.ActionInProgress)
		}
		put(deploys, "bare", at("/a"), lattice.ActionAccepted)
		put(deploys, "other/", at("/a"), lattice.ActionInProgress)

		var mu sync.Mutex
		running := map[lattice.SystemID][]lattice.Running{}
		done := map[string]int{}
		work := func(what string) func(context.Context, lattice.Running) error {
			return func(_ context.Context, r lattice.Running) error {
				mu.Lock()
				for _, other := range running[r.System] {
					if other.Path.Covers(r.Path) || r.Path.Covers(other.Path) {
						t.Errorf("%s and %s run at once", r.ID, other.ID)
					}
				}
				running[r.System] = append(running[r.System], r)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				for i, other := range running[r.System] {
					if other.ID == r.ID {
						running[r.System] = append(running[r.System][:i:i], running[r.System][i+1:]...)
						break
					}
				}
				done[string(r.System)+"/"+r.ID+" "+what]++
				return nil
			}
		}
		c := live(t, store, lattice.Infrastructure{Deploy: work("deployed"), Teardown: work("torn down")})
		for range 5 {
			time.Sleep(10 * time.Second)
			require.NoError(t, sweep(t.Context(), c))
		}
		synctest.Wait()
		for system := range c.Actions().Systems() {
			t.Errorf("%s has locks", system)
		}
		ends := map[string]string{}
		for _, m := range []*lifecycle.Manager[lattice.ActionState, lattice.ActionEvent, lattice.Action]{deploys, teardowns} {
			for rec, err := range m.All(t.Context(), lifecycle.Select[lattice.ActionState]{}) {
				require.NoError(t, err)
				ends[rec.ID] = strings.TrimSpace(string(rec.State) + " " + rec.Reason)
			}
		}
		// They run while the accepted actions take their locks again.
		for _, id := range []string{"live/t", "live/nowhere"} {
			require.Regexp(t, `^failed unable to acquire lifecycle lock: locked by deploys z(, with/a/slash)?$`, ends[id])
			delete(ends, id)
		}
		require.Equal(t, map[string]string{
			"live/z":            "succeeded",
			"live/with/a/slash": "succeeded",
			"live/over":         "succeeded odd",
			"live/a-b":          "failed unable to acquire lifecycle lock: locked by deploys z",
			"live/late":         "failed unable to acquire lifecycle lock: locked by deploys z",
			"other/of-another":  "succeeded",
			"other/":            `failed lattice: lock: invalid: "deploy " of system "other" has no name`,
			"torn/t":            "succeeded",
			"torn/d":            "failed unable to acquire lifecycle lock: locked by teardown t",
			"failed/accepted":   "failed system failed is failed",
			"failed/begun":      "failed system failed is failed",
			"pending/accepted":  "failed system pending is pending",
			"pending/begun":     "failed system pending is pending",
			"deleting/accepted": "failed system deleting is deleting",
			"deleting/begun":    "failed system deleting is deleting",
			"none/accepted":     "failed system none is does-not-exist",
			"none/begun":        "failed system none is does-not-exist",
			"/accepted":         "failed system  is does-not-exist",
			"/begun":            "failed system  is does-not-exist",
			"bare":              "failed system bare is does-not-exist",
		}, ends)
		require.Equal(t, map[string]int{
			"live/z deployed": 1, "live/with/a/slash deployed": 1, "other/of-another deployed": 1, "torn/t torn down": 1,
		}, done)
	})
}

// A service that a later program has recorded, and this one cannot read, keeps no system from
// being created.
func TestForeignServiceOfAnEarlierSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		later := fsm.Must[struct{}](fsm.Spec[string, string]{
			Name: lattice.Service.Name(), Initial: "newer", Actors: []fsm.Actor{"observer"},
			States: []fsm.State[string]{{Name: "newer"}, {Name: "none", Kind: fsm.Absent}},
			Rows:   fsm.Rows(fsm.Move("none", "make", "newer"), fsm.Move("newer", "end", "none")),
		})
		_, err := lifecycle.Must(later, store, nil).Add(t.Context(), "s/a", "newer", "observer", struct{}{}, nil)
		require.NoError(t, err)
		c := live(t, store, lattice.Infrastructure{}, "s")
		require.NoError(t, c.Close(t.Context()))
	})
}
