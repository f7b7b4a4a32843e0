package explore

// AnyChannel is a [Channel] with any type of messages, such as one that a fault empties.
type AnyChannel interface{ place() (*System, int) }

func (c *Channel[M]) place() (*System, int) { return c.sys, c.at }

// Fault is one step that happens to the system from outside, such as a disconnect
// or a crash. [System.Fault] makes one.
type Fault struct {
	sys     *System
	name    string
	label   string // in errors
	budget  Budget
	empties []int
	strikes []int // handlers
}

// Fault adds a fault that empties the channels and strikes the actors that
// [Strikes] adds. It is possible in every state in which its budget is not used up
// and every strike is possible.
func (s *System) Fault(name string, b Budget, empties ...AnyChannel) *Fault {
	f := &Fault{sys: s, name: name, label: s.declare("fault", name), budget: b}
	s.same(f.label+" and its budget", b.sys)
	for _, c := range empties {
		if of, at := c.place(); s.same(f.label+" and a channel", of) {
			f.empties = append(f.empties, at)
		}
	}
	s.faults = append(s.faults, f)
	return f
}

// Strikes adds what a fault does to an actor. strike returns the local state after
// the fault, or false if the fault is not possible in l.
func Strikes[L comparable](f *Fault, a *Actor[L], strike func(l L) (L, bool)) {
	label := f.label + " striking " + a.label
	f.sys.once(label)
	if f.sys.same(label, a.sys) {
		f.strikes = append(f.strikes, len(a.sys.handlers))
	}
	addHandler(a, StepFault, nil, label, func(l L, _ none, emit func(result[L, none])) {
		if next, possible := strike(l); possible {
			emit(result[L, none]{next: next})
		}
	})
}
