package queue

import (
	"iter"
	"time"
)

// Info is what is known about an action at one moment. Times are zero where it
// has not come so far.
type Info[K comparable] struct {
	Keys     []K
	Name     string
	ID       string
	Class    string
	Seq      uint64
	State    State
	Ahead    int // most actions in front of it in one of its lanes
	Attempt  int // attempts begun
	Accepted time.Time
	Started  time.Time // of the last attempt
	Ended    time.Time // of the action, or of the last attempt while it is Retrying
	Outcome  Outcome   // Pending until Ending
	Err      error     // of the outcome, or of the last attempt
}

// info REQUIRES: q.mu.
func (t *Ticket[K]) info() Info[K] { return t.infoBehind(nil, 0) }

// infoBehind is info where it is known already how many are ahead of one of the
// entries: going through a lane would else take the square of its length.
func (t *Ticket[K]) infoBehind(counted *entry[K], ahead int) Info[K] {
	i := Info[K]{
		Keys: t.keys(), Name: t.act.Name, ID: t.act.ID, Class: t.class.path, Seq: t.seq,
		State: t.state, Attempt: int(t.attempt), Outcome: t.outcome, Err: t.err,
	}
	if t.state != Ended {
		for e := range t.entries {
			if e == counted {
				i.Ahead = max(i.Ahead, ahead)
				continue
			}
			n := 0
			for o := e.prev; o != nil; o = o.prev {
				n++
			}
			i.Ahead = max(i.Ahead, n)
		}
	}
	if t.state != Admitting {
		i.Accepted = t.q.at(t.accepted)
	}
	if t.attempt > 0 {
		i.Started = t.q.at(t.started)
	}
	if t.ended > 0 {
		i.Ended = t.q.at(t.ended)
	}
	return i
}

// Inspect lists the actions of a key in their order: the running one, then those
// that wait. Empty if there are none.
func (q *Queuer[K]) Inspect(key K) []Info[K] {
	hashable(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil {
		return nil
	}
	infos := make([]Info[K], 0, l.depth)
	for e := l.head; e != nil; e = e.next {
		infos = append(infos, e.ticket.infoBehind(e, len(infos)))
	}
	return infos
}

// LaneInfo is what is known about a key at one moment.
type LaneInfo struct {
	Waiting  int // without the running one
	Blocked  int // submitters that wait for room
	Running  string
	Since    time.Time // when Running started; zero: none runs
	Oldest   time.Time // when the first of the waiting ones was accepted; zero: none waits
	Halted   bool
	Stopping bool
}

func (q *Queuer[K]) laneInfo(l *lane[K]) LaneInfo {
	i := LaneInfo{Waiting: int(l.depth), Halted: l.halted, Stopping: l.stopping}
	if l.crowd != nil {
		i.Blocked = l.crowd.n
	}
	e := l.head
	if e != nil && e.ticket.holds {
		i.Waiting--
		i.Running, i.Since = e.ticket.act.Name, q.at(e.ticket.started)
		e = e.next
	}
	for ; e != nil; e = e.next {
		if e.ticket.state != Admitting {
			i.Oldest = q.at(e.ticket.accepted)
			break
		}
	}
	return i
}

// All goes over the keys that have something, in no order. Every key is shown as
// it is when it comes, and left out if it has nothing any more; keys that come
// meanwhile may be left out.
func (q *Queuer[K]) All() iter.Seq2[K, LaneInfo] {
	return func(yield func(K, LaneInfo) bool) {
		q.mu.Lock()
		keys := make([]K, 0, len(q.lanes))
		for k := range q.lanes {
			keys = append(keys, k)
		}
		q.mu.Unlock()
		for _, k := range keys {
			q.mu.Lock()
			l := q.lanes[k]
			var i LaneInfo
			if l != nil {
				i = q.laneInfo(l)
			}
			q.mu.Unlock()
			if l != nil && !yield(k, i) {
				return
			}
		}
	}
}

// Stats are gauges, at one moment.
type Stats struct {
	Keys      int // that have an action, stand still, or are waited for by a submitter
	Running   int
	Waiting   int // everything accepted or reserved that does not run
	Retrying  int // of Waiting, between two attempts
	Admitting int // of Waiting, reserved
	Blocked   int // submitters that wait for room
	Halted    int // keys
	Abandoned int // goroutines of abandoned actions that have not returned

	OldestWaiting  time.Duration // since acceptance
	LongestRunning time.Duration // of the present attempt
}

// Stats counts. It looks at every key: fit for a scrape, not for every request.
func (q *Queuer[K]) Stats() Stats {
	q.prepare()
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Keys: len(q.lanes), Running: q.running, Waiting: q.total - q.running,
		Blocked: q.blocked, Abandoned: q.stray,
	}
	for _, l := range q.lanes {
		if l.halted {
			s.Halted++
		}
		oldest := false
		for e := l.head; e != nil; e = e.next {
			t := e.ticket
			switch {
			case e != &t.entry: // counted in the lane of its first key
			case t.state == Admitting:
				s.Admitting++
			case t.state == Retrying:
				s.Retrying++
			}
			if !oldest && !t.holds && t.state != Admitting {
				oldest = true
				s.OldestWaiting = max(s.OldestWaiting, time.Duration(now-t.accepted))
			}
		}
	}
	if q.first != nil {
		s.LongestRunning = time.Duration(now - q.first.started)
	}
	return s
}

func (q *Queuer[K]) tellStarted(t *Ticket[K]) {
	q.mu.Lock()
	i := t.info()
	waited := t.started - max(t.accepted, t.ended)
	q.mu.Unlock()
	q.observer.Started(Started[K]{i, time.Duration(waited)})
}

func (q *Queuer[K]) tellFinished(t *Ticket[K]) {
	if q.observer.Finished == nil && (!t.halts || q.observer.Halted == nil) {
		return
	}
	now := q.now()
	q.mu.Lock()
	i := t.info()
	i.Ended = q.at(now)
	var ran time.Duration
	if t.attempt > 0 {
		ran = time.Duration(now - t.started)
		if !t.holds {
			ran = time.Duration(t.ended - t.started)
		}
	}
	q.mu.Unlock()
	if f := q.observer.Finished; f != nil {
		f(Finished[K]{i, ran})
	}
	if f := q.observer.Halted; f != nil && t.halts {
		for _, k := range i.Keys {
			f(Halted[K]{k, i})
		}
	}
}
