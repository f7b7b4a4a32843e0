package queue

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Queuer runs actions: the actions of one key one at a time in the order of their
// acceptance, those of different keys in parallel, under limits. The zero value is
// ready to use and has the defaults of [Config]. A Queuer is safe for concurrent
// use and must not be copied. It needs no closing: an idle Queuer has no goroutine.
type Queuer[K comparable] struct {
	// Set by New or by the first submit, never changed after.
	once   sync.Once
	config Config[K] // the limits of classes are in the classes
	epoch  time.Time

	// mu guards everything below, the lanes, the classes and the tickets. It is
	// never held while user code runs.
	mu      sync.Mutex
	root    class[K]
	classes map[string]*class[K] // without the root
	lanes   map[K]*lane[K]       // lanes that have an action or are halted
	peak    int                  // most lanes since the map was made
	ids     map[string]*Ticket[K]
	blocked []*submitter[K] // until Admit has answered, in the order of their arrival
	waits   []wait[K]       // inside actions, not ended

	seq    uint64 // of the last place
	turn   uint64 // the last one given
	starts uint64 // of attempts
	total  int    // places: reserved or accepted, and not ended

	untaken []*Ticket[K] // running, but no worker has taken them yet
	kept    []*Ticket[K] // with a share of the limits and no worker: between two attempts, ended there, or abandoned
	workers int          // goroutines, without workers of abandoned actions; workers >= running()
	strays  int          // goroutines of abandoned actions that have not returned; not only workers

	closed  bool
	aborted *EndError
	drained chan struct{} // closed when the queue is closed and total == 0
}

// prepare sets the defaults before the first submit.
func (q *Queuer[K]) prepare() {
	q.epoch = time.Now().Add(-1)
	if q.config.Base == nil {
		q.config.Base = context.Background()
	}
	if q.root.rule == nil {
		q.root.rule = new(rule)
	}
	q.root.rule.limit.MaxRunning = cmp.Or(q.root.rule.limit.MaxRunning, defaultMaxRunning)
}

// now returns the time since just before the first submit, so it is never 0. Tickets
// keep this instead of a time.Time, which makes them a fifth smaller.
func (q *Queuer[K]) now() time.Duration { return time.Since(q.epoch) }

// at turns a result of now into a point in time, and 0 into the zero time.
func (q *Queuer[K]) at(now time.Duration) time.Time {
	if now == 0 {
		return time.Time{}
	}
	return q.epoch.Add(now)
}

// running counts the tickets that run. REQUIRES: q.mu.
func (q *Queuer[K]) running() int { return q.root.total.running - len(q.kept) }

// waiting counts the places of tickets that do not run. REQUIRES: q.mu.
func (q *Queuer[K]) waiting() int { return q.total - q.running() }
