package store

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

// A clock that is wrong decides when a sweep comes, and nothing else: the sweep of a slow
// clock finds nothing, that of a fast clock comes too early, and the report that comes after
// it is refused.
func TestWrongClocks(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	at := func(ahead time.Duration) disks {
		other := newPlace(p.server)
		other.prefix = p.prefix
		other.ahead.Store(int64(ahead))
		return lifecycle.Must(disk, other.open(t), nil)
	}
	right, slow, fast := at(0), at(-time.Hour), at(time.Hour)
	_, err := right.Create(t.Context(), "a", "make", user, 0, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		disks
		swept int
	}{{slow, 0}, {right, 0}, {fast, 1}, {fast, 0}} {
		results, err := c.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, results, c.swept)
	}
	_, err = right.Fire(t.Context(), "a", "done", worker, nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "the sweep has returned the disk to its origin")

	// A change of the slow clock is older for others. Its deadline has passed for them.
	_, err = slow.Create(t.Context(), "b", "make", user, 0, nil)
	require.NoError(t, err)
	results, err := right.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 1)
	_, err = slow.Fire(t.Context(), "b", "done", worker, nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	p.audit(t)
}

// Watch finds a change by the writer's time: a clock that is ten seconds behind or an hour
// ahead does no harm, and a change of one that is an hour behind is missed, although Listen
// wakes for it.
func TestWatchByWrongClocks(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	manager := func(ahead time.Duration) (*etcdstore.Store, disks) {
		other := newPlace(p.server)
		other.prefix = p.prefix
		other.ahead.Store(int64(ahead))
		store := other.open(t)
		return store, lifecycle.Must(disk, store, nil)
	}
	store, right := manager(0)
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := make(woken, 1000), make(chan error, 1)
	go func() {
		ended <- store.Listen(ctx, func(changed lifecycle.Key) { lifecycle.Wake(changed, right); w.wake(changed) })
	}()
	w.until(t, lifecycle.Key{})
	next, stop := iter.Pull2(lifecycle.Watch(ctx, right))
	defer stop()
	create := func(id string, ahead time.Duration) {
		_, m := manager(ahead)
		_, err := m.Create(t.Context(), id, "make", user, 0, nil)
		require.NoError(t, err)
		w.until(t, lifecycle.Key{Machine: disk.Table().Name, ID: id})
	}
	sees := func(want string) {
		got, err, _ := next()
		require.NoError(t, err)
		require.Equal(t, want, got.ID)
	}
	create("a", 0)
	sees("a")
	create("b", -10*time.Second)
	sees("b")
	create("c", time.Hour)
	sees("c")
	create("d", -time.Hour)
	create("e", 0)
	sees("e") // pages are in order of id: d would be the first
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
