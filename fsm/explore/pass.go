package explore

import (
	"context"
	"maps"
	"slices"
)

// pass looks for a fair run that stays in a region of states forever. The states that such
// a run visits again and again are strongly connected. So it takes the strongly connected
// components of the region, by the algorithm of Tarjan, and checks for each whether a
// run that visits all of its states and takes all of its steps is fair.
type pass struct {
	*search
	// By state. The states of one group are examined together. Group 0 is outside.
	group  []uint32
	order  []uint32 // of the visit, from 1; 0: not visited
	low    []uint32 // the earliest state on the stack that it reaches
	before []uint32 // of a property: the state before it in the region; noState: the property begins here
	groups uint32
}

// passBytes is the memory that a state needs in a pass without a property: its entries in
// the first lists above, in the list of states, in the stack, and in the list of calls.
const passBytes = 3*4 + 4 + 4 + 8

// between is the number of states between two reports of progress.
const between = 1 << 14

func newPass(s *search) *pass {
	n := s.store.n
	return &pass{search: s, groups: 1, group: make([]uint32, n), order: make([]uint32, n), low: make([]uint32, n)}
}

// region returns the states in which a property has begun and is not fulfilled.
func (p *pass) region(l *lead) (states []uint32) {
	p.before = make([]uint32, p.store.n)
	visit := func(id, before uint32) {
		if p.group[id] == 0 && !l.fulfilled[id] {
			p.group[id], p.before[id] = 1, before
			states = append(states, id)
		}
	}
	for id := range uint32(p.store.n) {
		if l.begun[id] {
			visit(id, noState)
		}
	}
	for i := 0; i < len(states); i++ {
		for e := range p.edgesOf(states[i]) {
			visit(e.to, e.from)
		}
	}
	return states
}

// unending returns the states of a component of the region in which a fair run can stay,
// the one with the earliest state, or nil if there is none.
func (p *pass) unending(ctx context.Context, region []uint32) (run []uint32) {
	for work := [][]uint32{region}; len(work) > 0; work = work[1:] {
		p.components(ctx, work[0], func(c []uint32) {
			unfair := p.unfair(c)
			if unfair == 0 {
				if run == nil || slices.Min(c) < slices.Min(run) {
					run = slices.Clone(c)
				}
				return
			}
			// A fair run may exist in the states where the action has no room.
			full := slices.DeleteFunc(slices.Clone(c), func(id uint32) bool { return slices.Contains(p.actions(id, false), unfair) })
			if len(full) > 0 {
				p.regroup(full)
				work = append(work, full)
			}
		})
	}
	return run
}

func (p *pass) regroup(states []uint32) {
	p.groups++
	for _, id := range states {
		p.group[id] = p.groups
	}
}

// components calls found for every strongly connected component of a group, which it makes
// a group of its own before. The steps are those without faults. It stops if the context
// ends, which is then in the verdict.
func (p *pass) components(ctx context.Context, states []uint32, found func(c []uint32)) {
	type call struct{ id, edge uint32 }
	var calls []call
	var stack []uint32
	visited := uint32(0)
	enter := func(id uint32) {
		visited++
		if visited%between == 0 {
			p.progress("check", int(visited), len(states))
			p.verdict.Reason = ctx.Err()
		}
		p.order[id], p.low[id] = visited, visited
		stack, calls = append(stack, id), append(calls, call{id, p.firstEdge(id)})
	}
	for _, id := range states {
		p.order[id] = 0
	}
	for _, root := range states {
		group := p.group[root]
		if p.order[root] == 0 {
			enter(root)
		}
		for len(calls) > 0 {
			if p.ended() {
				return
			}
			at := &calls[len(calls)-1]
			id := at.id
			if at.edge < p.firstEdge(id+1) {
				e := p.edge(id, at.edge)
				if e.isStep() && p.group[e.to] == group {
					if p.order[e.to] == 0 {
						enter(e.to) // and look at the edge again afterwards
						continue
					}
					p.low[id] = min(p.low[id], p.low[e.to])
				}
				at.edge++
				continue
			}
			calls = calls[:len(calls)-1]
			if p.low[id] == p.order[id] {
				first := len(stack) - 1
				for stack[first] != id {
					first--
				}
				p.regroup(stack[first:])
				found(stack[first:])
				stack = stack[:first]
			}
		}
	}
	p.verdict.Reason = ctx.Err()
}

// unfair returns an action for which no run through all states and steps of a component is
// fair, or 0: in every state it is possible or waits for room, in one it is possible, and no
// step inside takes it.
func (p *pass) unfair(c []uint32) uint32 {
	open := p.actions(c[0], true)
	remove := func(which func(a uint32) bool) { open = slices.DeleteFunc(open, which) }
	for _, id := range c {
		here := p.actions(id, true)
		remove(func(a uint32) bool { return !slices.Contains(here, a) })
		for e := range p.edgesOf(id) {
			if e.isStep() && p.inside(e) {
				remove(func(a uint32) bool { return a == e.fair() })
			}
		}
		if len(open) == 0 {
			return 0
		}
	}
	for _, id := range c {
		for _, a := range p.actions(id, false) {
			if slices.Contains(open, a) {
				return a
			}
		}
	}
	return 0
}

// actions lists the fair actions of a state that are possible and, with waiting, those that
// wait for room.
func (p *pass) actions(id uint32, waiting bool) (list []uint32) {
	for e := range p.edgesOf(id) {
		if e.fair() != 0 && (waiting || e.isStep()) {
			list = append(list, e.fair())
		}
	}
	return list
}

func (p *pass) inside(e edge) bool { return p.group[e.from] == p.group[e.to] }

// counterexample completes the verdict with a run to a component and a fair run in it: for
// every fair action, it takes the action or visits a state in which the action is neither
// possible nor waits for room.
func (p *pass) counterexample(c []uint32) {
	slices.Sort(c)
	due := map[uint32]bool{} // actions that the run has to take
	for _, id := range c {
		actions := p.actions(id, false)
		if len(actions) == 0 {
			p.found(Unreached, p.path(id), nil) // the run may stop here
			return
		}
		for _, a := range actions {
			due[a] = true
		}
	}
	home := c[0]
	drop := func(id uint32) { // a run that visits a state need not take the actions that it lacks
		maps.DeleteFunc(due, func(a uint32, _ bool) bool { return !slices.Contains(p.actions(id, true), a) })
	}
	ends := func(e edge) bool {
		for a := range due {
			if a == e.fair() || !slices.Contains(p.actions(e.to, true), a) {
				return true
			}
		}
		return len(due) == 0 && e.to == home
	}
	drop(home)
	var loop []edge
	for at := home; len(due) > 0 || at != home; {
		for _, e := range p.way(at, p.inside, ends) {
			delete(due, e.fair())
			drop(e.to)
			loop = append(loop, e)
			at = e.to
		}
	}
	p.found(Unreached, p.path(home), loop)
}

// path returns a run to a state of the region.
func (p *pass) path(id uint32) []uint32 {
	var inside []uint32
	for ; p.before[id] != noState; id = p.before[id] {
		inside = append(inside, id)
	}
	slices.Reverse(inside)
	return append(p.store.path(id), inside...)
}
