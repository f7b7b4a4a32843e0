package explore

import (
	"context"
	"iter"
)

// between is the number of states between two checks of the context.
const between = 1 << 14

// finish checks the properties that need all states: whether the system can come to rest,
// and those of [System.LeadsTo].
func (s *search) finish(ctx context.Context) error {
	s.verdict.Bytes = max(s.verdict.Bytes, s.bytes())
	s.store.slots = nil // the search is over
	if s.live {
		if err := s.spread(ctx); err != nil {
			return err
		}
		for id := range uint32(s.store.n) {
			if s.rests.has(id) {
				continue
			}
			if loop := s.loop(id); loop != nil {
				s.found(Livelock, s.store.path(id), loop, nil)
				return nil
			}
		}
	}
	if done, err := s.checkLeadsTo(ctx); done || err != nil {
		return err
	}
	s.holds()
	return nil
}

// edgesOf returns the range of the edges of a state.
func (s *search) edgesOf(id uint32) (from, to uint32) {
	if id > 0 {
		from = s.ends.at(int(id - 1))[0]
	}
	return from, s.ends.at(int(id))[0]
}

// edge returns the next state of an edge, with isFault.
func (s *search) edge(i uint32) uint32 { return s.edges.at(int(i))[0] }

// successors yields the states to which steps without faults lead.
func (s *search) successors(id uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		from, to := s.edgesOf(id)
		for i := from; i < to; i++ {
			if next := s.edge(i); next&isFault == 0 && !yield(next) {
				return
			}
		}
	}
}

// spread adds to rests every state from which a step leads to one of rests, until
// there are no more. Most steps lead to later states, so it starts with the latest
// one. Some steps lead to earlier states, so it alternates the direction.
func (s *search) spread(ctx context.Context) error {
	for back, changed := true, true; changed; back = !back {
		changed = false
		for i := range s.store.n {
			if i%between == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			id := uint32(i)
			if back {
				id = uint32(s.store.n - 1 - i)
			}
			if s.rests.has(id) {
				continue
			}
			for next := range s.successors(id) {
				if s.rests.has(next) {
					s.rests.add(id)
					changed = true
					break
				}
			}
		}
	}
	return nil
}

// loop returns the states of a shortest path from a state back to it, or nil if there
// is none. It includes the state once.
func (s *search) loop(id uint32) [][]byte {
	before := map[uint32]uint32{}
	for work := []uint32{id}; len(work) > 0; work = work[1:] {
		at := work[0]
		for next := range s.successors(at) {
			if next == id {
				states := [][]byte{s.store.state(id)}
				for ; at != id; at = before[at] {
					states = append(states, s.store.state(at))
				}
				return states
			}
			if _, seen := before[next]; !seen {
				before[next] = at
				work = append(work, next)
			}
		}
	}
	return nil
}
