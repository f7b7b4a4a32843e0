package explore

import "context"

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
		for id := range uint32(s.store.n) {
			if s.rests.has(id) {
				continue
			}
			loop := s.way(id, func(edge) bool { return true }, func(e edge) bool { return e.to == id })
			if loop != nil {
				s.found(Livelock, s.store.path(id), loop)
				return nil
			}
		}
	}
	return s.finishLeadsTo(ctx)
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
