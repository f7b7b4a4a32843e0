package crashtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Only repeats one point, and says so.
func TestOnly(t *testing.T) {
	h := memoryHarness()
	h.Only = "crash after write 3 "
	r, c := judge(t, h, plainPlanted().Scenario)
	require.Empty(t, r.failures)
	require.Equal(t, Coverage{Writes: 5, Found: 45, Covered: 1}, c)
	h.Only = "no such point"
	r, _ = judge(t, h, plainPlanted().Scenario)
	require.Equal(t, []string{"crashtest: 5 writes, 45 points found, 0 covered, 0 tried"}, r.failures)
}

// A scenario that fails everywhere is given up.
func TestGivesUp(t *testing.T) {
	s := plainPlanted().Scenario
	script := s.Script
	s.Script = func(ctx context.Context, w *World[vms]) error {
		err := script(ctx, w)
		if !w.Faultless() {
			w.Blame("it rains")
		}
		return err
	}
	h := memoryHarness()
	h.Kinds = []Kind{CrashBefore, CrashAfter, DeathBefore, DeathAfter, Paused}
	r, c := judge(t, h, s)
	require.Len(t, r.failures, maxFailures+1)
	require.Equal(t, "crashtest: failures at 20 points of 20 tried, no more are tried", r.failures[maxFailures])
	require.Equal(t, Coverage{Writes: 5, Found: 25, Covered: 20}, c)
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	s := plainPlanted().Scenario
	require.PanicsWithValue(t, "crashtest: Run needs a Harness with New", func() { Run(t, Harness{}, s) })
	require.PanicsWithValue(t, "crashtest: Run needs a Harness with Synctest or Age", func() {
		Run(t, Harness{New: memory}, s)
	})
	s.Script = nil
	require.PanicsWithValue(t, "crashtest: Run needs a Scenario with Start and Script", func() { Run(t, memoryHarness(), s) })
}

// old is a memory store with a clock of its own, that is set forward.
type old struct {
	*lifecycle.MemoryStore
	by time.Duration
}

func (s *old) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	overdue := q.Overdue
	q.Overdue = false
	found, err := s.MemoryStore.List(ctx, q)
	if overdue {
		now := time.Now().Add(s.by)
		found = slices.DeleteFunc(found, func(r lifecycle.StoredRecord) bool {
			return r.Deadline.IsZero() || r.Deadline.After(now)
		})
	}
	return found, err
}

func (s *old) Commit(ctx context.Context, c *lifecycle.Commit) error {
	for i := range c.Changes {
		if c.Changes[i].Within > 0 {
			c.Changes[i].Within += s.by
		}
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store that does not live by the clock of this process runs outside of a
// bubble, and is made older instead.
func TestAge(t *testing.T) {
	c := Run(t, Harness{
		New: func(testing.TB) lifecycle.Store { return &old{MemoryStore: lifecycle.NewMemoryStore()} },
		Age: func(_ testing.TB, store lifecycle.Store, d time.Duration) {
			store.(*old).by += d
		},
		Calm: 2 * time.Millisecond, Kinds: []Kind{CrashAfter, DeathBefore, Paused},
	}, plainPlanted().Scenario)
	require.Equal(t, 15, c.Covered)
}

func TestKinds(t *testing.T) {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.String())
	}
	require.Equal(t, "crash before, crash after, death before, death after, error instead of, lost request of, "+
		"lost answer of, no answer ever of, pause before", strings.Join(names, ", "))
	require.Equal(t, "Kind(99)", Kind(99).String())
}
