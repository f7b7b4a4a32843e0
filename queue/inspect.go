package queue

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// Info is the state of an action at one moment. A time is zero if it has not come.
type Info[K comparable] struct {
	Keys     []K
	Name     string
	ID       string
	Class    string
	Seq      uint64
	State    ActionState
	Ahead    int  // actions in front of it, in the longest of its lanes
	Paused   bool // its class or a class above is paused
	Attempt  int  // attempts begun, also one that Guard refused
	Accepted time.Time
	Due      time.Time // end of the Delay
	Started  time.Time // of the last attempt; zero if Base ended before it began
	Ended    time.Time // of the action, or of the last attempt until the next one starts
	Outcome  Outcome   // Pending until Ending
	Err      error     // of the outcome, or of the last attempt
}

// info REQUIRES: q.mu.
func (t *Ticket[K]) info() Info[K] {
	q := t.q
	i := Info[K]{
		Keys: make([]K, len(t.places)), Name: t.act.Name, ID: t.act.ID, Class: t.class.path, Seq: t.seq,
		State: t.state, Paused: t.class.paused(), Attempt: int(t.attempt),
		Accepted: q.at(t.accepted), Due: q.at(t.due), Started: q.at(t.started), Ended: q.at(t.ended),
		Outcome: t.outcome, Err: t.err,
	}
	for n, p := range t.places {
		i.Keys[n] = p.key
		i.Ahead = max(i.Ahead, p.lane.index(t))
	}
	return i
}

// Inspect lists the actions of a key in their order: the running one first, delayed ones
// last.
func (q *Queuer[K]) Inspect(key K) []Info[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil {
		return nil
	}
	infos := make([]Info[K], l.size())
	for i, t := range l.tickets() {
		infos[i] = t.info()
	}
	return infos
}

// LaneInfo is the state of a key at one moment.
type LaneInfo struct {
	Running      string    `json:"running,omitempty"`     // the name of the action
	RunningSince time.Time `json:"runningSince,omitzero"` // when Running started; zero if no action runs
	Waiting      int       `json:"waiting"`               // without the running one
	Delayed      int       `json:"delayed"`               // of Waiting
	WaitingSince time.Time `json:"waitingSince,omitzero"` // of the first waiting action; zero if all are delayed or being admitted
	Halted       bool      `json:"halted,omitempty"`
	Stopping     bool      `json:"stopping,omitempty"`
}

func (l *lane[K]) info() LaneInfo {
	i := LaneInfo{Waiting: l.waitingBeside(nil), Delayed: len(l.delayed), Halted: l.halted, Stopping: l.drained != nil}
	if r := l.running(); r != nil {
		i.Running, i.RunningSince = r.act.Name, r.q.at(r.started)
	}
	if t := l.firstWaiting(); t != nil {
		i.WaitingSince = t.q.at(max(t.accepted, t.due))
	}
	return i
}

// firstWaiting returns the first accepted ticket that does not run, or nil.
func (l *lane[K]) firstWaiting() *Ticket[K] {
	for _, t := range l.queue {
		if t != l.running() && t.state != Admitting {
			return t
		}
	}
	return nil
}

// All iterates over the keys that have an action or are halted, in no order. Each key
// has its state of the moment at which it is yielded, and is omitted if it has become
// idle. Keys that become busy during the iteration may be omitted.
func (q *Queuer[K]) All() iter.Seq2[K, LaneInfo] {
	return func(yield func(K, LaneInfo) bool) {
		q.mu.Lock()
		keys := slices.Collect(maps.Keys(q.lanes))
		q.mu.Unlock()
		for _, k := range keys {
			var i LaneInfo
			q.mu.Lock()
			l := q.lanes[k]
			if l != nil {
				i = l.info()
			}
			q.mu.Unlock()
			if l != nil && !yield(k, i) {
				return
			}
		}
	}
}

// ClassInfo is a class and its limit at one moment.
type ClassInfo struct {
	Path    string `json:"path"`    // empty: the root, which is the whole queue
	Running int    `json:"running"` // actions of the class and of those below, also in a back-off with [Retry].Keep
	Ready   int    `json:"ready"`   // actions of the class itself that only limits and pauses keep from starting
	Limit
	Paused bool `json:"paused,omitempty"` // by [Queuer.PauseClass] of this class, not of one above
}

// Classes returns the classes that the queue has now, the patterns among them, in order of
// path. An action that names no class is of the root.
func (q *Queuer[K]) Classes() []ClassInfo {
	q.once.Do(q.prepare)
	q.mu.Lock()
	defer q.mu.Unlock()
	list := []ClassInfo{q.root.info()}
	for _, c := range q.classes {
		list = append(list, c.info())
	}
	slices.SortFunc(list, func(a, b ClassInfo) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

func (c *class[K]) info() ClassInfo {
	return ClassInfo{c.path, c.total.running, len(c.ready), c.rule.limit, c.rule.paused}
}

// Stats are gauges of one moment.
type Stats struct {
	Keys      int `json:"keys"` // with an action, or halted
	Running   int `json:"running"`
	Waiting   int `json:"waiting"`   // accepted or reserved, and not running
	Delayed   int `json:"delayed"`   // of Waiting
	Retrying  int `json:"retrying"`  // of Waiting: in a back-off
	Admitting int `json:"admitting"` // of Waiting: reserved
	Blocked   int `json:"blocked"`   // submitters that wait for room
	Halted    int `json:"halted"`    // keys
	Abandoned int `json:"abandoned"` // goroutines of abandoned actions that have not returned

	// The JSON form has no durations: a reader needs points in time.
	OldestWaiting  time.Duration `json:"-"` // since its acceptance or the end of its Delay
	LongestRunning time.Duration `json:"-"` // of the present attempt
}

// Stats counts. It visits every key: call it for a scrape, not for every request.
func (q *Queuer[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Keys: len(q.lanes), Running: q.running(), Waiting: q.waiting(),
		Abandoned: q.strays,
	}
	for _, b := range q.blocked {
		if !b.reserved {
			s.Blocked++
		}
	}
	for _, l := range q.lanes {
		if l.halted {
			s.Halted++
		}
		if t := l.running(); t != nil && t.started > 0 { // 0: the base ended before the attempt
			s.LongestRunning = max(s.LongestRunning, q.now()-t.started)
		}
		if t := l.firstWaiting(); t != nil {
			s.OldestWaiting = max(s.OldestWaiting, q.now()-max(t.accepted, t.due))
		}
		for _, t := range l.tickets() {
			switch {
			case t.places[0].lane != l: // counted in the lane of its first key
			case t.state == Delayed:
				s.Delayed++
			case t.state == Admitting:
				s.Admitting++
			case t.state == Retrying:
				s.Retrying++
			}
		}
	}
	return s
}
