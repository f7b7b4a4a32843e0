package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
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
