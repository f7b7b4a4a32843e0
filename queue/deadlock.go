package queue

// wait is a call of Ticket.Wait inside a running action.
type wait[K comparable] struct {
	in, target *Ticket[K]
	ctxDone    <-chan struct{} // of the call's context
}

// wouldDeadlock reports whether the target may depend on the end of the running
// action self. It follows everything that the target waits for. Under a full limit
// it follows all actions that run, although the end of one of them is
// enough: so it refuses some waits that would end, and never allows one that would
// not.
//
// A check at the time of the wait is enough. An action that starts later waits for
// nothing, so it ends and gives back its share, unless it waits: then it is checked. The
// same holds for an action in a back-off that has kept its share.
//
// A delayed target is refused. The bad schedule: self has lane a and waits for a delayed
// action of lane b; an action of both lanes is submitted, behind self in a; then the
// target enters b behind that one. REQUIRES: q.mu.
func (q *Queuer[K]) wouldDeadlock(self, target *Ticket[K]) bool {
	if target.state == Delayed {
		return true
	}
	seen := map[*Ticket[K]]bool{}
	for list := []*Ticket[K]{target}; len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if !seen[t] {
			seen[t] = true
			list = append(list, q.waitsFor(t)...)
		}
	}
	return seen[self]
}

// waitsFor returns the tickets that have to end before t can end. REQUIRES: q.mu.
func (q *Queuer[K]) waitsFor(t *Ticket[K]) (list []*Ticket[K]) {
	if t.state == Ending || t.state == Ended {
		return nil // a goroutine that Run has left behind may still wait
	}
	if t.hasShare {
		for _, w := range q.waits {
			if w.in != t {
				continue
			}
			select {
			case <-w.ctxDone: // the call returns soon
			default:
				list = append(list, w.target)
			}
		}
		return list
	}
	for _, p := range t.places {
		// The next one in front waits for those in front of it, unless it is being settled.
		for i := p.lane.index(t) - 1; i >= 0; i-- {
			list = append(list, p.lane.queue[i])
			if p.lane.queue[i].state != Ending {
				break
			}
		}
	}
	var below, top *class[K] // top is the highest class in which too many actions run
	for c := t.class; c != nil; below, c = c, c.parent {
		if c.full() || below != nil && c.crowded(below) { // a pause needs the end of no action
			top = c
		}
	}
	if top == nil {
		return list
	}
	for _, l := range q.lanes {
		if r := l.running(); r != nil && r.class.below(top) {
			list = append(list, r)
		}
	}
	return list
}
