package explore

import (
	"context"
	"slices"
)

// finish checks the properties that need all states: whether the system can come to rest,
// and those of [System.LeadsTo]. It completes the verdict.
func (s *search) finish(ctx context.Context) {
	s.store.slots = nil // the search is over
	if s.t.sys.rests != nil || len(s.leads) > 0 {
		s.reserved = passBytes * int64(s.store.n)
		if len(s.leads) > 0 {
			s.reserved += 4 * int64(s.store.n) // pass.before
		}
		if s.limits(ctx); s.ended() {
			return
		}
	}
	if s.t.sys.rests != nil {
		s.livelock(ctx)
	}
	for _, l := range s.leads {
		if s.ended() {
			return
		}
		p := newPass(s)
		if run := p.unending(ctx, p.region(l)); run != nil && !s.ended() {
			s.verdict.Property = l.name
			p.counterexample(run)
		}
	}
	if s.ended() {
		return
	}
	s.verdict.Outcome = Holds
	for i, r := range s.t.rules {
		used := slices.ContainsFunc(s.chunks, func(c *chunk) bool { return c.used[i] })
		if !used && (r.call != nil || r.budget.possible()) {
			s.verdict.Unused = append(s.verdict.Unused, r.label)
		}
	}
	for _, l := range s.leads {
		s.verdict.Live = append(s.verdict.Live, l.name)
	}
}

// livelock finds out whether the system can come to rest from every state. If not, it
// completes the verdict with a run to the earliest state that is on a loop, and with a
// shortest loop. There is a loop: a step leads out of each of the states that cannot come
// to rest, to another of them.
//
// A component comes after those to which its steps lead, so that rests has their states
// already.
func (s *search) livelock(ctx context.Context) {
	p := newPass(s)
	all := make([]uint32, s.store.n)
	for id := range all {
		all[id] = uint32(id)
	}
	first := uint32(noState)
	p.components(ctx, all, func(c []uint32) {
		rests, loops := false, false
		for _, id := range c {
			rests = rests || s.rests[id]
			for e := range s.edgesOf(id) {
				rests = rests || e.isStep() && s.rests[e.to]
				loops = loops || e.isStep() && p.inside(e)
			}
		}
		if loops && !rests {
			first = min(first, slices.Min(c))
		}
		for _, id := range c {
			s.rests[id] = rests
		}
	})
	if first != noState && !s.ended() {
		s.found(Livelock, s.store.path(first), s.way(first, p.inside, func(e edge) bool { return e.to == first }))
	}
}
