package explore

// Channels are the channels that a fault can empty: values of [Chan].
type Channels interface{ place() (*System, int) }

func (c *Chan[M]) place() (*System, int) { return c.sys, c.at }

// Fault is something that happens to the system from outside in one step, as a
// disconnect or a crash does. It is made with [System.Fault].
type Fault struct {
	sys     *System
	name    string
	budget  int // -1: none
	empties []int
	strikes []int // handlers
}

// Fault adds a fault that empties the channels and does to actors what [Strikes]
// adds. It can happen in every state in which the budget is not used up and
// every struck actor can be struck.
func (s *System) Fault(name string, b Budget, empties ...Channels) *Fault {
	part := partName("fault", name)
	s.nameOf(part, name)
	f := &Fault{sys: s, name: name, budget: -1}
	for _, other := range s.faults {
		if other.name == name {
			s.problem(part, "declared twice")
		}
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

// Strikes says what a fault makes of an actor in local state l. false: the fault
// cannot happen now.
func Strikes[L comparable](f *Fault, a *Actor[L], strike func(l L) (L, bool)) {
	part := partName("fault", f.name) + " striking " + a.part()
	if strike == nil {
		f.sys.problem(part, "no function")
		return
	}
	if !f.sys.same(part, a.sys) {
		return
	}
	for _, i := range f.strikes {
		if f.sys.handlers[i].actor == a.at {
			f.sys.problem(part, "declared twice")
		}
	}
	f.strikes = append(f.strikes, len(f.sys.handlers))
	f.sys.handlers = append(f.sys.handlers, &handler{
		kind: StepFault, actor: a.at, name: f.name,
		call: func(t *tables, local, _ uint32) func() []allowed {
			locals := t.locals[a.at].(*interned[L])
			next, can := strike(locals.values[local])
			return func() []allowed {
				if !can {
					return []allowed{}
				}
				return []allowed{{next: locals.add(next), fault: true}}
			}
		},
	})
}
