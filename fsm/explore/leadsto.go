package explore

import (
	"context"
	"slices"
)

// Action is one function of an actor, as [Actor.Acts], [Sends] or [Receives] added it.
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
// state of to, or reaches one later. A nil from is every state. Explore considers the runs in which no fault
// happens again and again, and in which the fair actions are taken as [Action.Fair]
// describes. It checks the properties in order of declaration, after everything else.
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

// pending are the states in which a property begins, and those in which it is fulfilled.
type pending struct{ from, to bits }

// checkLeadsTo checks the properties. If one does not hold, or the memory does not
// suffice, it completes the verdict and returns true.
func (s *search) checkLeadsTo(ctx context.Context) (done bool, err error) {
	if len(s.leads) == 0 {
		return false, nil
	}
	s.pass = passBytes * int64(s.store.n)
	if s.bounded() {
		return true, nil
	}
	for i, p := range s.leads {
		l := newPass(s)
		run, err := l.unending(ctx, l.region(&s.pending[i]))
		if err != nil {
			return true, err
		}
		if run != nil {
			s.verdict.Property = p.name
			l.counterexample(run)
			return true, nil
		}
	}
	return false, nil
}
