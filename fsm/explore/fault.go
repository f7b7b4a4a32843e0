package explore

import "slices"

// Channels are the channels that a fault can empty: values of [Chan].
type Channels interface{ place() (*System, int) }

func (c *Chan[M]) place() (*System, int) { return c.sys, c.at }

// Fault is one step that happens to the system from outside, such as a disconnect
// or a crash. [System.Fault] makes one.
type Fault struct {
	sys     *System
	name    string
	budget  int // -1: none
	empties []int
	strikes []int // handlers
}

// Fault adds a fault that empties the channels and strikes the actors that
// [Strikes] adds. It is possible in every state in which its budget is not used up
// and every strike is possible.
func (s *System) Fault(name string, b Budget, empties ...Channels) *Fault {
	part := partName("fault", name)
	s.needName(part, name)
	f := &Fault{sys: s, name: name, budget: -1}
	if slices.ContainsFunc(s.faults, func(other *Fault) bool { return other.name == name }) {
		s.problem(part, "declared twice")
	}
	if b.sys == nil {
		s.problem(part, "no budget")
	} else if s.same(part+" and its budget", b.sys) {
		f.budget = b.at
	}
	for _, c := range empties {
		if of, at := c.place(); s.same(part+" and a channel", of) {
			f.empties = append(f.empties, at)
		}
	}
	s.faults = append(s.faults, f)
	return f
}

// Strikes adds what a fault does to an actor. strike returns the local state after
// the fault, or false if the fault is not possible in l.
func Strikes[L comparable](f *Fault, a *Actor[L], strike func(l L) (L, bool)) {
	part := partName("fault", f.name) + " striking " + a.part()
	if strike == nil {
		f.sys.problem(part, "no function")
		return
	}
	if !f.sys.same(part, a.sys) {
		return
	}
	if slices.ContainsFunc(f.strikes, func(i int) bool { return f.sys.handlers[i].actor == a.at }) {
		f.sys.problem(part, "declared twice")
	}
	f.strikes = append(f.strikes, len(f.sys.handlers))
	strikes := addHandler(a, StepFault, nil, func(l L, _ none, emit func(result[L, none])) {
		if next, possible := strike(l); possible {
			emit(result[L, none]{next: next, fault: true})
		}
	})
	strikes.h.fault = f.name
}
