package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// reports collects what Config.Progress receives.
type reports []string

func (r *reports) add(what string, done, total int) {
	*r = append(*r, fmt.Sprintf("%s: %d of %d", what, done, total))
}

// TestDrainProgress: Drain reports the work that is left, and then the outcomes that are not
// written because the store is down.
func TestDrainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got reports
		store, m := outage(t, lifecycle.Config[event]{Progress: got.add})
		do(t, m, "a", "start", user, sleeping(2500*time.Millisecond), nil)
		synctest.Wait()
		go func() {
			time.Sleep(1500 * time.Millisecond)
			store.dead.Store(true)
			time.Sleep(5 * time.Second)
			store.dead.Store(false)
		}()
		require.NoError(t, lifecycle.Drain(t.Context(), m))
		require.Equal(t, reports{
			"drain work-vm: 0 of 1", "drain work-vm: 0 of 1",
			"write outcomes of work-vm: 0 of 1", "write outcomes of work-vm: 0 of 1",
		}, got[:4])
		require.EqualValues(t, "running", get(t, m, "a").State)
	})
}

// TestDrainProgressEnds: the error of a drain that does not end is the same with and without
// Progress.
func TestDrainProgressEnds(t *testing.T) {
	for name, config := range map[string]lifecycle.Config[event]{
		"without": {}, "with": {Progress: func(string, int, int) {}},
	} {
		inBubble(t, name, func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), config)
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, sleeping(time.Minute), nil)
			ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Second, errBoom)
			defer stop()
			start := time.Now()
			err := lifecycle.Drain(ctx, m)
			require.ErrorIs(t, err, queue.ErrNotDrained)
			require.ErrorIs(t, err, errBoom)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 10*time.Second, time.Since(start))
			require.NoError(t, lifecycle.Drain(t.Context(), m))
			require.EqualValues(t, "stopped", wait(t, ticket).State)
		})
	}
}

// TestMigrateProgress: Migrate reports every record of its page.
func TestMigrateProgress(t *testing.T) {
	var got reports
	store := lifecycle.NewMemoryStore()
	for _, id := range []string{"a", "b", "c"} {
		create(t, oldDisk(store), id, "create", "user", diskSize{KB: 3})
	}
	m := lifecycle.Must(disk2, store, &lifecycle.Config[string]{
		Version: "2", Older: []lifecycle.Version{firstDisk()}, Switch: true, Progress: got.add,
	})
	_, err := lifecycle.Migrate(t.Context(), m, "operator", "a", 0)
	require.NoError(t, err)
	require.Equal(t, reports{"migrate a page of disk: 1 of 2", "migrate a page of disk: 2 of 2"}, got)
}
