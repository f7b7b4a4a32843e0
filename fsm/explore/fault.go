package explore

// AnyChannel is a [Channel] with any type of messages, such as one that a fault empties.
type AnyChannel interface{ place() (*System, int) }

func (c *Channel[M]) place() (*System, int) { return c.sys, c.at }

// Fault is one step that happens to the system from outside, such as a disconnect
// or a crash. [System.Fault] makes one.
type Fault struct {
	sys  *System
	rule *rule
}

// Fault adds a fault that empties the channels and strikes the actors that
// [Strikes] adds. It is possible in every state in which its budget is not used up
// and every strike is possible.
func (s *System) Fault(name string, b Budget, empties ...AnyChannel) *Fault {
	r := &rule{kind: StepFault, actor: none, channel: none, label: s.declare("fault", name), name: name, budget: b}
	if b.sys == nil {
		s.problem(r.label, "the zero Budget: make one with System.Budget")
	} else {
		s.same(r.label+" and its budget", b.sys)
	}
	for _, c := range empties {
		of, at := c.place()
		s.same(r.label+" and a channel", of)
		r.empties = append(r.empties, at)
	}
	s.faults = append(s.faults, r)
	return &Fault{s, r}
}

// Strikes adds what a fault does to an actor. strike returns the local state after
// the fault, or false if the fault is not possible in l.
func Strikes[L comparable](f *Fault, a *Actor[L], strike func(l L) (L, bool)) {
	r := &rule{kind: StepFault, actor: a.at, channel: none, label: f.rule.label + " striking " + a.label}
	f.sys.once(r.label)
	f.sys.same(r.label, a.sys)
	r.call = func(l, _ any, emit func(result)) {
		if next, possible := strike(l.(L)); possible {
			emit(result{next: next})
		}
	}
	f.sys.function(r)
	f.rule.strikes = append(f.rule.strikes, r)
}
