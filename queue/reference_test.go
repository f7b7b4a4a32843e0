package queue_test

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// reference is the naive queue: one list of all actions in the order of their
// acceptance. Every method searches the list.
type reference struct {
	limits map[string]queue.Limit // with "" for the root
	perKey int
	all    int // MaxWaiting
	halts  bool

	list   []*refAction // not ended, in order
	halted map[string]bool
	paused map[string]bool // classes
	served map[string]int  // the last start, by class, and by "own " and class
	now    time.Duration
	turn   int
	starts int
}

type refAction struct {
	id       int
	keys     []string
	class    string
	preempt  queue.Preempt
	obeys    bool
	attempts int
	backoff  time.Duration
	keep     bool
	patience time.Duration // QueueTimeout
	delay    time.Duration

	state   queue.ActionState
	outcome queue.Outcome
	turn    int  // 0: not ready
	share   bool // it counts under the limits
	attempt int
	signal  queue.Outcome
	wake    time.Duration
	expires time.Duration
}

func delayed(a *refAction) bool { return a.state == queue.Delayed }

// inLane returns the actions that have places in the lane of the key.
func (r *reference) inLane(key string) []*refAction {
	return slices.DeleteFunc(r.of(key), delayed)
}

// of returns the actions of the key, delayed ones last.
func (r *reference) of(key string) (list []*refAction) {
	for _, later := range []bool{false, true} {
		for _, a := range r.list {
			if slices.Contains(a.keys, key) && delayed(a) == later {
				list = append(list, a)
			}
		}
	}
	return list
}

func (r *reference) count(state func(*refAction) bool) (n int) {
	for _, a := range r.list {
		if state(a) {
			n++
		}
	}
	return n
}

func running(a *refAction) bool { return a.state == queue.Running }

// submit reports whether the action was accepted.
func (r *reference) submit(a *refAction) bool {
	if a.preempt == queue.NoPreempt {
		for _, k := range a.keys {
			if r.perKey > 0 && len(r.of(k)) >= r.perKey {
				return false
			}
		}
		if r.all > 0 && len(r.list)-r.count(running) >= r.all {
			return false
		}
	}
	a.state = queue.Waiting
	a.expires = r.now + a.patience
	var waiting, stopped []*refAction
	if a.preempt != queue.NoPreempt {
		for _, k := range a.keys {
			for _, o := range r.of(k) {
				switch {
				case o.preempt != queue.NoPreempt && o.state != queue.Running:
				case o.state == queue.Running:
					if a.preempt == queue.PreemptRunning && !slices.Contains(stopped, o) {
						stopped = append(stopped, o)
					}
				case !slices.Contains(waiting, o):
					waiting = append(waiting, o)
				}
			}
		}
	}
	r.list = append(r.list, a)
	r.over(waiting, queue.Superseded)
	if a.delay > 0 {
		a.state, a.wake = queue.Delayed, r.now+a.delay
	}
	r.ready(a)
	r.start()
	// The actions that obey their context end in the order of their ids.
	slices.SortFunc(stopped, func(a, b *refAction) int { return a.id - b.id })
	for _, o := range stopped {
		r.interrupt(o, queue.Preempted)
	}
	return true
}

// interrupt makes a running action end.
func (r *reference) interrupt(a *refAction, o queue.Outcome) {
	if a.signal == queue.Pending {
		a.signal = o
	}
	if a.obeys {
		r.over([]*refAction{a}, a.signal)
	}
}

// finish ends an attempt that returns without being cancelled.
func (r *reference) finish(a *refAction, o queue.Outcome) {
	if o == queue.Failed && a.attempt < a.attempts && a.signal == queue.Pending {
		a.turn, a.share = 0, a.keep
		a.state = queue.Retrying
		a.wake = r.now + a.backoff
		if a.backoff == 0 {
			a.state = queue.Waiting
			r.ready(a)
		}
		r.start()
		return
	}
	if (o == queue.Failed || o == queue.Panicked) && r.halts && a.signal == queue.Pending {
		for _, k := range a.keys {
			r.halted[k] = true
		}
	}
	r.over([]*refAction{a}, o)
}

// over ends actions. None of them starts when an earlier one of the list ends. Each
// gives up its places, and then actions that may start do.
func (r *reference) over(list []*refAction, o queue.Outcome) {
	for _, a := range list {
		if delayed(a) { // it has no place in a lane to give up
			r.list = slices.DeleteFunc(r.list, func(b *refAction) bool { return a == b })
		}
		a.state, a.outcome, a.turn = queue.Ended, o, 0
	}
	for _, a := range list {
		r.list = slices.DeleteFunc(r.list, func(b *refAction) bool { return a == b })
		for _, k := range a.keys {
			if lane := r.inLane(k); len(lane) > 0 {
				r.ready(lane[0])
			}
		}
		r.start()
	}
}

// ready gives the action a turn if it is first in all its lanes.
func (r *reference) ready(a *refAction) {
	if a.state != queue.Waiting || a.turn > 0 {
		return
	}
	for _, k := range a.keys {
		if lane := r.inLane(k); r.halted[k] || len(lane) == 0 || lane[0] != a {
			return
		}
	}
	r.turn++
	a.turn = r.turn
}

// start starts the actions that have room, by turns.
func (r *reference) start() {
	for {
		var list []*refAction
		for _, a := range r.list {
			switch {
			case a.turn == 0 || a.state != queue.Waiting:
			case a.share && !r.isPaused(a.class):
				a.state = queue.Running
				a.attempt++
			case !a.share && r.room(a.class):
				list = append(list, a)
			}
		}
		if len(list) == 0 {
			return
		}
		best := r.pick("", list)
		best.state, best.share = queue.Running, true
		best.attempt++
		r.starts++
		r.served["own "+best.class] = r.starts
		for _, node := range path(best.class) {
			r.served[node] = r.starts
		}
	}
}

// pick returns the action that starts next, of some that are all at or below a class and
// have room.
func (r *reference) pick(node string, list []*refAction) (best *refAction) {
	groups := map[string][]*refAction{}
	for _, a := range list {
		group := "own " + node
		if p := path(a.class); a.class != node {
			group = p[slices.Index(p, node)-1]
		}
		groups[group] = append(groups[group], a)
	}
	var least [3]int
	for group, members := range groups {
		a := members[0]
		for _, o := range members {
			if o.turn < a.turn {
				a = o
			}
		}
		if group != "own "+node {
			a = r.pick(group, members)
		}
		order := [3]int{0, 0, a.turn}
		if r.limits[node].Fair {
			order[0] = r.count(func(o *refAction) bool {
				return o.share && (group == "own "+o.class || slices.Contains(path(o.class), group))
			})
			order[1] = r.served[group]
		}
		if best == nil || slices.Compare(order[:], least[:]) < 0 {
			best, least = a, order
		}
	}
	return best
}

// path returns the class and all classes above it.
func path(class string) []string {
	list := []string{class}
	for i := len(class) - 1; i >= 0; i-- {
		if class[i] == '/' {
			list = append(list, class[:i])
		}
	}
	if class != "" {
		list = append(list, "")
	}
	return list
}

func (r *reference) isPaused(class string) bool {
	return slices.ContainsFunc(path(class), func(c string) bool { return r.paused[c] })
}

// sharing returns a function that reports whether an action has a share of the limits of a
// class.
func sharing(class string) func(*refAction) bool {
	return func(a *refAction) bool { return a.share && slices.Contains(path(a.class), class) }
}

func (r *reference) room(class string) bool {
	if r.isPaused(class) {
		return false
	}
	nodes := path(class)
	for i, node := range nodes {
		limit := r.limits[node]
		if limit.MaxRunning > 0 && r.count(sharing(node)) >= limit.MaxRunning {
			return false
		}
		if i == 0 || limit.MaxChildren == 0 || r.count(sharing(nodes[i-1])) > 0 {
			continue
		}
		active := map[string]bool{}
		for _, a := range r.list {
			p := path(a.class)
			if j := slices.Index(p, node); a.share && j > 0 {
				active[p[j-1]] = true
			}
		}
		if len(active) >= limit.MaxChildren {
			return false
		}
	}
	return true
}

func (r *reference) cancel(a *refAction) queue.Cancellation {
	switch a.state {
	case queue.Running:
		r.interrupt(a, queue.Canceled)
		return queue.Signalled
	case queue.Delayed, queue.Waiting, queue.Retrying:
		r.over([]*refAction{a}, queue.Canceled)
		return queue.Withdrawn
	}
	return queue.Late
}

func (r *reference) resume(key string) bool {
	if !r.halted[key] {
		return false
	}
	delete(r.halted, key)
	if lane := r.inLane(key); len(lane) > 0 {
		r.ready(lane[0])
	}
	r.start()
	return true
}

func (r *reference) abandon(key string) bool {
	lane := r.inLane(key)
	if len(lane) == 0 || lane[0].state != queue.Running {
		return false
	}
	r.over(lane[:1], queue.Abandoned)
	return true
}

// sleep advances the time and ends back-offs and queue time-outs.
func (r *reference) sleep(d time.Duration) {
	until := r.now + d
	for {
		var next *refAction
		for _, a := range r.list {
			switch {
			case a.state == queue.Retrying, delayed(a):
			case a.state == queue.Waiting && a.attempt == 0 && a.patience > 0:
				a.wake = a.expires
			default:
				continue
			}
			if a.wake <= until && (next == nil || a.wake < next.wake) {
				next = a
			}
		}
		if next == nil {
			r.now = until
			return
		}
		r.now = next.wake
		if next.state == queue.Waiting {
			r.over([]*refAction{next}, queue.Expired)
			continue
		}
		if delayed(next) { // its place is the last one now
			r.list = append(slices.DeleteFunc(r.list, func(a *refAction) bool { return a == next }), next)
			next.expires = r.now + next.patience
		}
		next.state = queue.Waiting
		r.ready(next)
		r.start()
	}
}
