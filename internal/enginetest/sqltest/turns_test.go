package sqltest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// replica opens a store of its own over a database, and joins a process.
func replica(t *testing.T, e engine, w way, name string) (*sqlstore.Store, *lifecycle.Owner) {
	t.Helper()
	db := pool(t, w)
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	owner, err := lifecycle.Join(t.Context(), store, name, 0)
	require.NoError(t, err)
	return store, owner
}

// places returns how many places the lanes of all turns have.
func places(t *testing.T, store lifecycle.Store) (n int) {
	lanes, err := store.List(t.Context(), lifecycle.Query{Machine: "interlock.turns", Limit: lifecycle.MaxPage})
	require.NoError(t, err)
	for _, lane := range lanes {
		var list []any
		require.NoError(t, json.Unmarshal(lane.Args, &list))
		n += len(list)
	}
	return n
}

// An action that one replica has admitted during the migration of another one runs after the
// migration.
func TestActionWaitsForTheMigrationOfAnotherReplica(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		w := e.open(t)
		var replicas [2]*ovc.Service
		var store *sqlstore.Store
		for i := range replicas {
			var owner *lifecycle.Owner
			store, owner = replica(t, e, w, fmt.Sprint("ovc-", i))
			replicas[i] = ovc.Must(store, &ovc.Config{Owner: owner, Shared: true})
		}
		one, other := replicas[0], replicas[1]
		_, err := one.Objects(ovc.KindVM).Add(t.Context(), "m", ovc.Running, ovc.Observer, ovc.Model{}, nil)
		require.NoError(t, err)
		began, end := make(chan struct{}), make(chan struct{})
		migration, err := one.Migrate(t.Context(), "m", &ovc.Options{Run: func(context.Context) error {
			close(began)
			<-end
			return nil
		}})
		require.NoError(t, err)
		<-began
		stopped := make(chan struct{})
		stop, err := other.Do(t.Context(), ovc.KindVM, "m", ovc.Stop, &ovc.Options{Run: func(context.Context) error {
			close(stopped)
			return nil
		}})
		require.NoError(t, err)
		// The other replica waits when its place is behind that of the migration.
		require.Eventually(t, func() bool { return places(t, store) == 2 }, 30*time.Second, 10*time.Millisecond)
		select {
		case <-stopped:
			t.Error("the machine was stopped during its migration")
		default:
		}
		close(end)
		require.NoError(t, migration.Wait(t.Context()))
		now, err := stop.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, ovc.Halted, now.State)
		for _, s := range replicas {
			require.NoError(t, s.Close(t.Context()))
		}
	})
}

// slowCloud creates VMs and counts those that are created at once.
type slowCloud struct {
	mu      sync.Mutex
	takes   time.Duration
	started map[string]time.Time
	most    int
}

func (c *slowCloud) Validate(context.Context, tumblebug.SubGroup) error               { return nil }
func (c *slowCloud) Prepare(context.Context, tumblebug.Resource) error                { return nil }
func (c *slowCloud) Release(context.Context, tumblebug.Resource) error                { return nil }
func (c *slowCloud) Control(context.Context, tumblebug.VMRef, tumblebug.Action) error { return nil }

func (c *slowCloud) Create(_ context.Context, vm tumblebug.VMRef) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started[vm.VMID] = time.Now()
	busy := 0
	for _, at := range c.started {
		if time.Since(at) < c.takes {
			busy++
		}
	}
	c.most = max(c.most, busy)
	return nil
}

func (c *slowCloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.started[vm.VMID]
	switch {
	case !ok:
		return "", tumblebug.ErrNoVM
	case time.Since(at) < c.takes:
		return tumblebug.Creating, nil
	}
	return tumblebug.Running, nil
}

// The limit of a region holds for two replicas together, and VMs wait for their turns longer
// than their deadline.
func TestLimitOfTwoReplicas(t *testing.T) {
	const limit, each = 2, 12
	onEach(t, func(t *testing.T, e engine) {
		w := e.open(t)
		cloud := &slowCloud{takes: 200 * time.Millisecond, started: map[string]time.Time{}}
		running, stop := context.WithCancel(t.Context())
		defer stop()
		var background sync.WaitGroup
		var replicas [2]*tumblebug.System
		for i := range replicas {
			store, owner := replica(t, e, w, fmt.Sprint("tb-", i))
			s := tumblebug.Must(store, cloud, &tumblebug.Config{
				Owner: owner, Shared: true, Poll: 20 * time.Millisecond, Limits: map[string]tumblebug.Limit{"aws": {VMs: limit}},
				VMTimeouts: map[tumblebug.State]time.Duration{tumblebug.Creating: 2 * time.Second},
			})
			background.Go(func() { _ = owner.Run(running) })
			background.Go(func() { _ = lifecycle.Run(running, 100*time.Millisecond, nil, s) })
			replicas[i] = s
			_, err := s.CreateMci(t.Context(), "ns", tumblebug.MciReq{Name: fmt.Sprint("m", i), SubGroups: []tumblebug.SubGroup{
				{Name: fmt.Sprint("g", i), Size: each, Provider: "aws", Region: "r"},
			}})
			require.NoError(t, err)
		}
		for i, s := range replicas {
			status, err := s.Wait(t.Context(), "ns", fmt.Sprint("m", i))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("Running:%d (R:%[1]d/%[1]d)", each), status.Status)
		}
		require.LessOrEqual(t, cloud.most, limit)
		stop()
		background.Wait()
		for _, s := range replicas {
			require.NoError(t, s.Close(t.Context()))
		}
	})
}
