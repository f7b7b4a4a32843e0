package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
)

// hangingLists is a store that does not answer some calls until their contexts end.
type hangingLists struct {
	hanging
	lists atomic.Int32
}

func (s *hangingLists) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if s.lists.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, lifecycle.Ended(ctx)
	}
	return s.MemoryStore.List(ctx, q)
}

// TestRunHangs: the store does not answer one call of a sweep. The sweep ends, and the next
// ones act.
func TestRunHangs(t *testing.T) {
	hangs := map[string]func(*hangingLists){
		"owners":   func(s *hangingLists) { s.lists.Store(1) },
		"orphans":  func(s *hangingLists) { s.lists.Store(3) },
		"own task": func(s *hangingLists) { s.gets.Store(1) },
		"move":     func(s *hangingLists) { s.commits.Store(1) },
	}
	for name, hang := range hangs {
		inBubble(t, name, func(t *testing.T) {
			store := &hangingLists{hanging: hanging{MemoryStore: lifecycle.NewMemoryStore()}}
			m := workers(store, lifecycle.Config[event]{})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(untilEnded), nil)
			synctest.Wait()
			hang(store)
			ctx, stop := context.WithCancel(t.Context())
			var sweeping errgroup.Group
			sweeping.Go(func() error { return lifecycle.Run(ctx, 5*time.Minute, nil, m) })
			time.Sleep(time.Hour)
			stop()
			require.NoError(t, sweeping.Wait())
			require.EqualValues(t, "running", get(t, m, "a").State, "the deadline has passed")
			require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		})
	}
}
