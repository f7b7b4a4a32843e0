package instruments

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// The sources of gauges.
type (
	queuer   interface{ Stats() queue.Stats }
	lockTree interface{ Counts() lock.Snapshot }
)

// Gauges are values that are read when a back end needs them. The zero value has none. It
// is safe for concurrent use. A source replaces the former one of the same name: two series
// with equal labels would make a scrape fail.
type Gauges struct {
	mu       sync.Mutex
	managers map[string]*stuck
	queues   map[string]queuer
	locks    map[string]lockTree
}

// Read reads all gauges, and calls record with each value. Managers are read at once, so that
// a store that does not answer delays a scrape by readWithin, however many machines it has. The
// error has the panics of stores, whose values are missing.
func (g *Gauges) Read(ctx context.Context, record func(m *Metric, value float64, labels ...string)) error {
	g.mu.Lock()
	managers, queues, locks := maps.Clone(g.managers), maps.Clone(g.queues), maps.Clone(g.locks)
	g.mu.Unlock()
	for name, q := range queues {
		s := q.Stats()
		record(queueDepth, float64(s.Running), name, "running")
		record(queueDepth, float64(s.Waiting), name, "waiting")
		record(queueDepth, float64(s.Delayed), name, "delayed")
		record(queueDepth, float64(s.Retrying), name, "retrying")
		record(queueOldest, s.OldestWaiting.Seconds(), name)
	}
	for name, l := range locks {
		s := l.Counts()
		record(lockRequests, float64(s.Held), name, "held")
		record(lockRequests, float64(s.Waiting), name, "waiting")
	}
	var reads sync.WaitGroup
	machines := slices.Collect(maps.Keys(managers))
	counts := make([]map[string]int, len(machines))
	panics := make([]error, len(machines))
	for i, machine := range machines {
		reads.Go(func() {
			panics[i] = protect.Call(func() error { counts[i] = managers[machine].count(ctx); return nil })
		})
	}
	reads.Wait()
	for i, machine := range machines {
		for cause, n := range counts[i] {
			record(StuckObjects, float64(n), machine, cause)
		}
	}
	return errors.Join(panics...)
}

// AddManager adds the number of stuck objects of a machine.
func (g *Gauges) AddManager(machine string, m lifecycle.AnyManager) {
	add(g, &g.managers, machine, &stuck{find: func(ctx context.Context) ([]lifecycle.SweepResult, error) {
		return lifecycle.Stuck(ctx, m, lifecycle.MaxPage)
	}})
}

// AddQueue adds the depth of a queue, and how long its first action waits.
func (g *Gauges) AddQueue(name string, q queuer) { add(g, &g.queues, name, q) }

// AddLocks adds the numbers of requests in a lock tree.
func (g *Gauges) AddLocks(name string, l lockTree) { add(g, &g.locks, name, l) }

func add[Source any](g *Gauges, sources *map[string]Source, name string, source Source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *sources == nil {
		*sources = map[string]Source{}
	}
	(*sources)[label(name)] = source
}

// A read of stuck objects is used for readEvery, and ends after readWithin, so that many
// scrapes do not load the store.
const (
	readEvery  = 10 * time.Second
	readWithin = 5 * time.Second
)

// stuck counts the stuck objects of a manager.
type stuck struct {
	find func(context.Context) ([]lifecycle.SweepResult, error)

	mu      sync.Mutex
	reading bool
	read    time.Time // the begin of the last read
	counts  map[string]int
}

// count returns the numbers of the last read, or reads. It returns nil if the store does not
// answer: a number that is not known is not zero.
func (s *stuck) count(ctx context.Context) map[string]int {
	s.mu.Lock()
	if s.reading || !s.read.IsZero() && time.Since(s.read) < readEvery {
		defer s.mu.Unlock()
		return s.counts
	}
	s.reading, s.read = true, time.Now()
	s.mu.Unlock()

	ctx, stop := context.WithTimeout(ctx, readWithin)
	defer stop()
	var counts map[string]int
	defer func() { // also if the store panics
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reading, s.counts = false, counts
	}()
	found, err := s.find(ctx)
	if err != nil {
		return nil
	}
	counts = map[string]int{ownerDead: 0, overdue: 0, unattended: 0}
	for i := range found {
		counts[causeOf(&found[i])]++
	}
	return counts
}
