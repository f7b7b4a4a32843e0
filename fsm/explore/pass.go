package explore

import (
	"context"
	"slices"
)

// pass looks for a fair run that stays in a region of states forever. The states that such
// a run visits again and again are strongly connected. So it takes the strongly connected
// components of the region, by the algorithm of Tarjan, and asks for each whether a run
// that visits all of its states and takes all of its steps is fair.
type pass struct {
	s *search
	x *expander
	// By state. The states of one group are examined together. Group 0 is outside.
	group  []uint32
	before []uint32 // the state before it in the region; noState: the property begins here
	order  []uint32 // of the visit, from 1; 0: not visited
	low    []uint32 // the earliest state on the stack that it reaches
	groups uint32
	fair   []uint32 // of the state that look examined: the fair action of each step
	seen   []sight  // by action
	in     []uint32 // the actions that are seen
}

// passBytes is the memory that a state needs in a pass: its entries in the lists above, in
// the list of the region, in the stack, and in the list of calls.
const passBytes = 4*4 + 4 + 4 + 8

// sight is what the states of a component show about an action.
type sight struct {
	last     uint32 // the last state that wants it
	wants    int    // number of states in which it is possible, or waits for room
	possible bool   // in some state
	taken    bool   // by a step inside the component
}

func newPass(s *search) *pass {
	l := &pass{s: s, x: newExpander(s.t), groups: 1, seen: make([]sight, s.t.actions.size()+1)}
	for _, list := range []*[]uint32{&l.group, &l.before, &l.order, &l.low} {
		*list = make([]uint32, s.store.n)
	}
	l.x.emit = func(_ []byte, m move) { l.fair = append(l.fair, m.fair) }
	return l
}

// look lists the actions of a state: in fair those of its steps, in order of its edges, and
// in x.waiting those that wait for room.
func (l *pass) look(id uint32) {
	l.fair = l.fair[:0]
	l.x.expand(l.s.store.state(id))
}

// region returns the states in which a property has begun and is not fulfilled.
func (l *pass) region(p *pending) (states []uint32) {
	visit := func(id, before uint32) {
		if l.group[id] == 0 && !p.to.has(id) {
			l.group[id], l.before[id] = 1, before
			states = append(states, id)
		}
	}
	for id := range uint32(l.s.store.n) {
		if p.from.has(id) {
			visit(id, noState)
		}
	}
	for i := 0; i < len(states); i++ {
		from, to := l.s.edgesOf(states[i])
		for e := from; e < to; e++ {
			visit(l.s.edge(e)&^isFault, states[i])
		}
	}
	return states
}

// unending returns the states of a component of the region in which a fair run can stay,
// the one with the earliest state, or nil if there is none.
func (l *pass) unending(ctx context.Context, region []uint32) (run []uint32, err error) {
	for work := [][]uint32{region}; len(work) > 0 && err == nil; work = work[1:] {
		err = l.components(ctx, work[0], func(c []uint32) {
			unfair := l.unfair(c)
			switch {
			case unfair == 0:
				if run == nil || slices.Min(c) < slices.Min(run) {
					run = slices.Clone(c)
				}
			case l.s.t.actions.values[unfair-1].h.kind == StepSend:
				// A fair run may exist in the states where the channel has no room.
				if full := l.without(c, unfair); len(full) > 0 {
					work = append(work, full)
				}
			}
		})
	}
	return run, err
}

// without makes a group of the states of a component in which an action is not possible.
func (l *pass) without(c []uint32, action uint32) (rest []uint32) {
	for _, id := range c {
		if l.look(id); !slices.Contains(l.fair, action) {
			rest = append(rest, id)
		}
	}
	l.regroup(rest)
	return rest
}

func (l *pass) regroup(states []uint32) {
	l.groups++
	for _, id := range states {
		l.group[id] = l.groups
	}
}

// components calls found for every strongly connected component of a group, which it makes
// a group of its own before. The steps are those without faults.
func (l *pass) components(ctx context.Context, states []uint32, found func(c []uint32)) error {
	type call struct{ id, edge uint32 }
	var calls []call
	var stack []uint32
	visited := uint32(0)
	enter := func(id uint32) {
		visited++
		l.order[id], l.low[id] = visited, visited
		from, _ := l.s.edgesOf(id)
		stack, calls = append(stack, id), append(calls, call{id, from})
	}
	for _, id := range states {
		l.order[id] = 0
	}
	for _, root := range states {
		group := l.group[root]
		if l.order[root] == 0 {
			enter(root)
		}
		for len(calls) > 0 {
			if visited%between == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			at := &calls[len(calls)-1]
			id := at.id
			if _, end := l.s.edgesOf(id); at.edge < end {
				next := l.s.edge(at.edge)
				at.edge++
				switch {
				case next&isFault != 0 || l.group[next] != group:
				case l.order[next] == 0:
					enter(next)
				default:
					l.low[id] = min(l.low[id], l.order[next])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				caller := calls[len(calls)-1].id
				l.low[caller] = min(l.low[caller], l.low[id])
			}
			if l.low[id] == l.order[id] {
				first := len(stack) - 1
				for stack[first] != id {
					first--
				}
				l.regroup(stack[first:])
				found(stack[first:])
				stack = stack[:first]
			}
		}
	}
	return ctx.Err()
}

// unfair returns the first action for which no run through all states and steps of a
// component is fair, or 0.
func (l *pass) unfair(c []uint32) uint32 {
	see := func(a, id uint32) *sight {
		s := &l.seen[a]
		if s.wants == 0 {
			l.in = append(l.in, a)
		}
		if s.wants == 0 || s.last != id {
			s.last, s.wants = id, s.wants+1
		}
		return s
	}
	for _, id := range c {
		l.look(id)
		edge, _ := l.s.edgesOf(id)
		for i, a := range l.fair {
			if a != 0 {
				s := see(a, id)
				s.possible = true
				s.taken = s.taken || l.group[l.s.edge(edge+uint32(i))] == l.group[id]
			}
		}
		for _, a := range l.x.waiting {
			see(a, id)
		}
	}
	first := uint32(0)
	for _, a := range l.in {
		if s := &l.seen[a]; s.wants == len(c) && s.possible && !s.taken && (first == 0 || a < first) {
			first = a
		}
		l.seen[a] = sight{}
	}
	l.in = l.in[:0]
	return first
}
