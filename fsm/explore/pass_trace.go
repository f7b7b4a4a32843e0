package explore

import (
	"maps"
	"slices"
)

// counterexample completes the verdict with a run to a component, and a fair run in it.
func (l *pass) counterexample(c []uint32) {
	slices.Sort(c)
	for _, id := range c {
		l.look(id)
		if !slices.ContainsFunc(l.fair, func(a uint32) bool { return a != 0 }) {
			l.s.found(Unreached, l.path(id), nil, nil) // no action is possible that must be taken
			return
		}
	}
	loop, fair := l.fairLoop(c)
	l.s.found(Unreached, l.path(c[0]), loop, fair)
}

// path returns the states of a run to a state of the region, in reverse order.
func (l *pass) path(id uint32) (states [][]byte) {
	for ; l.before[id] != noState; id = l.before[id] {
		states = append(states, l.s.store.state(id))
	}
	return append(states, l.s.store.path(id)...)
}

// step is a step inside a component.
type step struct{ from, to, fair uint32 }

// fairLoop returns the states of a fair run from the first state of a component back to
// it, in reverse order and with the state once, and the actions of its steps in order. For
// every fair action, the run takes it or visits a state that does not want it.
func (l *pass) fairLoop(c []uint32) (states [][]byte, fair []uint32) {
	home := c[0]
	due := map[uint32]bool{}
	for _, id := range c {
		l.look(id)
		for _, a := range l.fair {
			due[a] = true
		}
	}
	delete(due, 0)
	l.settle(due, home)
	for at := home; len(due) > 0 || at != home; {
		for _, s := range l.reach(at, home, due) {
			states, fair = append(states, l.s.store.state(s.to)), append(fair, s.fair)
			delete(due, s.fair)
			l.settle(due, s.to)
			at = s.to
		}
	}
	slices.Reverse(states)
	return states, fair
}

// settle removes the actions from due that a state does not want.
func (l *pass) settle(due map[uint32]bool, id uint32) {
	l.look(id)
	maps.DeleteFunc(due, func(a uint32, _ bool) bool { return !l.wants(a) })
}

// wants reports whether the state that look examined wants an action.
func (l *pass) wants(a uint32) bool {
	return slices.Contains(l.fair, a) || slices.Contains(l.x.waiting, a)
}

// reach returns a shortest way inside a component that takes an action of due, or ends in a
// state that does not want one. If none is due, it ends in home.
func (l *pass) reach(from, home uint32, due map[uint32]bool) (way []step) {
	by := map[uint32]step{}
	to := func(id uint32) []step {
		for ; id != from; id = by[id].from {
			way = append(way, by[id])
		}
		slices.Reverse(way)
		return way
	}
	for work := []uint32{from}; ; work = work[1:] {
		id := work[0]
		l.look(id)
		for a := range due {
			if !l.wants(a) {
				return to(id)
			}
		}
		edge, _ := l.s.edgesOf(id)
		for i, a := range l.fair {
			next := l.s.edge(edge + uint32(i))
			if next&isFault != 0 || l.group[next] != l.group[id] {
				continue
			}
			if due[a] || len(due) == 0 && next == home {
				return append(to(id), step{id, next, a})
			}
			if _, known := by[next]; !known && next != from {
				by[next] = step{id, next, a}
				work = append(work, next)
			}
		}
	}
}
