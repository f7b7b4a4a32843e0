package explore

import (
	"context"
	"slices"
)

// Action is one function of an actor, as [Actor.Acts], [Sends] or [Receives] added it. The
// methods of the zero Action do nothing.
type Action struct{ h *handler }

// Fair declares the function fair, which the properties of [System.LeadsTo] depend on: an
// action of it that stays possible is taken sooner or later. Local steps with the same
// label are one action. So are the sends of equal messages, and the deliveries of equal
// messages. A send that waits for room counts as possible if its channel has room again
// and again.
//
// Without Fair an action may never be taken: a user need not make a request, and a
// message may stay in a channel forever.
func (a Action) Fair() {
	if a.h != nil {
		a.h.fair = func(string) bool { return true }
	}
}

// leadsTo is a property.
type leadsTo struct {
	name     string
	from, to func(*View) bool
}

// LeadsTo adds a liveness property: each run that reaches a state of from is then in a
// state of to, or reaches one later. A nil from is every state. Explore considers the runs
// in which no fault happens again and again, and in which the fair actions are taken as
// [Action.Fair] describes. It checks the properties in order of declaration, after
// everything else.
func (s *System) LeadsTo(name string, from, to func(v *View) bool) {
	part := partName("property", name)
	s.needName(part, name)
	if to == nil {
		s.problem(part, "no function")
	}
	if slices.ContainsFunc(s.leads, func(p leadsTo) bool { return p.name == name }) {
		s.problem(part, "declared twice")
	}
	s.leads = append(s.leads, leadsTo{name, from, to})
}

// lead is a property in a search, with its states.
type lead struct {
	leadsTo
	begun     bits // states of from that do not fulfil it
	fulfilled bits // states of to
}

// finishLeadsTo checks the properties, the last check of a search, and completes the
// verdict.
func (s *search) finishLeadsTo(ctx context.Context) error {
	if len(s.leads) > 0 {
		s.pass = passBytes * int64(s.store.n)
		if s.bounded() {
			return nil
		}
	}
	for _, p := range s.leads {
		l := newPass(s)
		run, err := l.unending(ctx, l.region(p))
		if err != nil {
			return err
		}
		if run != nil {
			s.verdict.Property = p.name
			l.counterexample(run)
			return nil
		}
	}
	s.holds()
	return nil
}
