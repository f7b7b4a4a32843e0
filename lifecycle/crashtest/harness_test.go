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

// Only selects one point.
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

// Run ends after 20 failed points.
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

// own is a memory store with a clock of its own, which stands still until it is
// set forward.
type own struct {
	*lifecycle.MemoryStore
	now  time.Time
	slow time.Duration // how long a call takes, on the clock of this process
}

func (s *own) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	overdue := q.Overdue
	q.Overdue = false
	found, err := s.MemoryStore.List(ctx, q)
	if overdue {
		found = slices.DeleteFunc(found, func(r lifecycle.StoredRecord) bool {
			return r.Deadline.IsZero() || r.Deadline.After(s.now)
		})
	}
	return found, err
}

func (s *own) Commit(ctx context.Context, c *lifecycle.Commit) error {
	time.Sleep(s.slow)
	for i := range c.Changes {
		if c.Changes[i].Timeout > 0 {
			c.Changes[i].Timeout += time.Until(s.now)
		}
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store with a clock of its own is made older, in a bubble and outside of one,
// where the kit also waits for who takes longer than it is calm.
func TestAge(t *testing.T) {
	for name, test := range map[string]struct {
		h    Harness
		slow time.Duration
	}{
		"in a bubble": {Harness{Synctest: true}, 0},
		"outside":     {Harness{Calm: 2 * time.Millisecond}, 0},
		"slow":        {Harness{Calm: time.Millisecond, Kinds: []Kind{DeathBefore}}, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			h := test.h
			h.New = func(testing.TB) lifecycle.Store {
				return &own{MemoryStore: lifecycle.NewMemoryStore(), now: time.Now(), slow: test.slow}
			}
			h.Age = func(_ testing.TB, store lifecycle.Store, d time.Duration) {
				s := store.(*own)
				s.now = s.now.Add(d)
			}
			if h.Kinds == nil {
				h.Kinds = []Kind{CrashAfter, DeathBefore, Paused}
			}
			c := Run(t, h, plainPlanted().Scenario)
			require.Equal(t, 5*len(h.Kinds), c.Covered)
		})
	}
}

// A script that does not end with its context does not keep the point from ending.
func TestDeafScript(t *testing.T) {
	s := plainPlanted().Scenario
	woken := make(chan struct{})
	s.Rounds, s.Ends = 2, nil
	s.Script = func(context.Context, *World[vms]) error { <-woken; return nil }
	h := Harness{Calm: time.Millisecond, wait: time.Millisecond, New: memory, Age: func(testing.TB, lifecycle.Store, time.Duration) {}}
	r := &recorder{TB: t}
	explore(r, &h, s.plain(), func(try func(t testing.TB)) { try(r) })
	close(woken)
	require.Contains(t, r.text(), "the script or one of its requests does not end with its context: the script has not ended")
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
