package explore

import (
	"context"
	"slices"
)

// between is the number of states between two calls of goesOn.
const between = 1 << 14

// goesOn reports progress, and returns the error of the context.
func (s *search) goesOn(ctx context.Context, done, total int) error {
	s.progress("check", done, total)
	return ctx.Err()
}

// finish checks the properties that need all states: whether the system can come to rest,
// and those of [System.LeadsTo].
func (s *search) finish(ctx context.Context) error {
	s.verdict.Bytes = max(s.verdict.Bytes, s.bytes())
	s.store.slots = nil // the search is over
	if s.live {
		if err := s.spread(ctx); err != nil {
			return err
		}
		var lost []uint32 // states that cannot come to rest
		for id := range uint32(s.store.n) {
			if !s.rests.has(id) {
				lost = append(lost, id)
			}
		}
		if len(lost) > 0 {
			return s.livelock(ctx, lost)
		}
	}
	return s.finishLeadsTo(ctx)
}

// livelock completes the verdict with a run to the earliest state that is on a loop, and
// with a shortest loop. There is a loop: a step leads out of each of the states, to another
// of them.
func (s *search) livelock(ctx context.Context, states []uint32) error {
	s.pass = passBytes * int64(s.store.n)
	if s.bounded() {
		return nil
	}
	l := newPass(s)
	l.regroup(states)
	first := uint32(noState)
	err := l.components(ctx, states, func(c []uint32) {
		if id := slices.Min(c); id < first && l.onLoop(id) {
			first = id
		}
	})
	if err != nil {
		return err
	}
	loop := s.way(first, l.inside, func(e edge) bool { return e.to == first })
	s.found(Livelock, s.store.path(first), loop)
	return nil
}

// onLoop reports whether a step leads from a state to a state of its component. From there
// a run can come back.
func (l *pass) onLoop(id uint32) bool {
	for e := range l.edgesOf(id) {
		if e.isStep() && l.inside(e) {
			return true
		}
	}
	return false
}

// spread adds to rests every state from which a step leads to one of rests, until
// there are no more. Most steps lead to later states, so it starts with the latest
// one. Some steps lead to earlier states, so it alternates the direction.
func (s *search) spread(ctx context.Context) error {
	for back, changed := true, true; changed; back = !back {
		changed = false
		for i := range s.store.n {
			if i%between == 0 {
				if err := s.goesOn(ctx, i, s.store.n); err != nil {
					return err
				}
			}
			id := uint32(i)
			if back {
				id = uint32(s.store.n - 1 - i)
			}
			if s.rests.has(id) {
				continue
			}
			for e := range s.edgesOf(id) {
				if e.isStep() && s.rests.has(e.to) {
					s.rests.add(id)
					changed = true
					break
				}
			}
		}
	}
	return nil
}
