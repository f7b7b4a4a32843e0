package queue

import (
	"context"
	"sync"
	"time"
)

// Queuer runs actions: those of one key one at a time in the order they were
// accepted, those of different keys side by side, under limits. The zero value
// is ready and has the defaults of [Config]. It is safe for concurrent use and
// must not be copied. It needs no closing: an idle one has no goroutine.
type Queuer[K comparable] struct {
	// Set by New or prepare, never changed after.
	once       sync.Once
	epoch      time.Time // all times below are nanoseconds since, on the monotonic clock
	base       context.Context
	maxPerKey  int
	maxWaiting int
	onFailure  Policy
	handlers   map[string]Handler
	observer   Observer[K]
	classes    map[string]*class[K] // without the root
	unnamed    map[string]Limit     // of the classes directly below a path that are not named

	// mu guards everything below, the lanes, the classes and the tickets but
	// their atomic fields. It is never held while other people's code runs. It
	// is one on purpose: see the rejected designs.
	mu    sync.Mutex
	root  class[K]
	lanes map[K]*lane[K] // those that hold an entry, stand still, or are wanted by a blocked submitter
	peak  int            // most lanes since the map was made
	spare *lane[K]       // free list
	nfree int
	ids   map[string]*Ticket[K]
	grown map[string]*class[K] // made because somebody named them, kept

	seq     uint64 // last place given
	turn    uint64 // last turn given
	total   int    // places: accepted or reserved, and not ended
	running int    // of them, those that hold a share of the limits; total - running wait
	first   *Ticket[K]
	last    *Ticket[K] // the running ones, by start
	stray   int        // goroutines of abandoned actions that have not returned
	idle    *worker[K] // lingers, and belongs to who takes it from here; nil: none does

	blocked int      // submitters that wait for room
	arrival uint64   // of the last one
	roomy   roomy[K] // those for whom there is room in their lanes

	closed  bool // terminated or aborted
	aborted *EndError
	drained chan struct{} // made by who waits for total == 0
}

func (q *Queuer[K]) prepare() {
	q.once.Do(func() {
		q.epoch = time.Now()
		if q.base == nil {
			q.base = context.Background()
		}
		if q.onFailure == 0 {
			q.onFailure = Continue
		}
		if q.root.limit.MaxRunning == 0 {
			q.root.limit.MaxRunning = DefaultMaxRunning
		}
		q.root.best = never
	})
}

func (q *Queuer[K]) now() int64 { return int64(time.Since(q.epoch)) }

// at turns a time of the queue into one of the wall clock.
func (q *Queuer[K]) at(ns int64) time.Time { return q.epoch.Add(time.Duration(ns)) }
