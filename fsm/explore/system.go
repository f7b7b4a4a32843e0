package explore

import (
	"errors"
	"fmt"
)

// ErrModel reports that the description of a system is faulty, or that one of its
// functions panicked. The error names the system and its part. After a panic it has the
// state and the stack, and matches the error with which the function panicked. The
// exploration has no verdict.
var ErrModel = errors.New("explore: bad model")

// System describes a protocol: actors with small local states, bounded channels
// between them, and faults with budgets. [New] makes one. [NewActor], [NewChannel],
// [Sends], [Receives], [Strikes] and its methods add the parts.
//
// A System keeps every fault of its description, and Explore returns all of them
// at once. Building a System therefore returns no errors. Several explorations of
// one System may run at the same time. Nothing may change a System meanwhile.
//
// Every function of a System must be pure: the same arguments give the same
// result, and the function changes nothing else. One exploration calls its functions
// in the goroutine of the caller, and the function of an actor once for each argument.
type System struct {
	name      string
	actors    []actorPart
	channels  []channelPart
	budgets   []budgetPart
	functions []*rule // of actors, and the strikes of faults, in order of declaration
	losses    []*rule // of each channel its loss and its duplication
	faults    []*rule
	always    []property
	rests     func(*View) bool
	leads     []property
	declared  map[string]bool
	problems  []error
}

type actorPart struct {
	name    string
	initial []any // local states
}

type channelPart struct {
	name    string
	spec    ChannelSpec
	initial []any // messages, the oldest first
}

type budgetPart struct {
	name string
	most uint32
}

// property is an invariant or a liveness property.
type property struct {
	name, label string
	holds       func(*View) error // of an invariant
	from, to    func(*View) bool  // of a liveness property
}

// New returns a system without parts. The name appears in verdicts and errors.
func New(name string) *System { return &System{name: name, declared: make(map[string]bool)} }

// Budget limits how often faults happen in one run. [System.Budget] makes one. In a
// [ChannelSpec] the zero Budget is empty: its faults never happen. [System.Fault] refuses it.
type Budget struct {
	sys *System
	at  int
}

const maxBudget = 1<<16 - 1

// Budget adds a budget. The faults that share it happen at most n times in one
// run, all together. A budget of 0 turns its faults off.
func (s *System) Budget(name string, n int) Budget {
	label := s.declare("budget", name)
	if n < 0 || n > maxBudget {
		s.problem(label, fmt.Sprintf("%d is not between 0 and %d", n, maxBudget))
	}
	s.budgets = append(s.budgets, budgetPart{name, uint32(n)})
	return Budget{sys: s, at: len(s.budgets) - 1}
}

// possible reports whether the budget is not empty from the start.
func (b Budget) possible() bool { return b.sys != nil && b.sys.budgets[b.at].most > 0 }

// Always adds an invariant: a condition on every reachable state. The error of
// holds describes the violation and becomes [Verdict.Problem].
func (s *System) Always(name string, holds func(v *View) error) {
	s.always = append(s.always, property{name: name, label: s.declare("invariant", name), holds: holds})
}

// Rests declares the resting states: those in which no work is outstanding. With
// it, the system must be able to come to rest from every reachable state without
// further faults. Without it, every reachable state must have a step that is not a fault.
func (s *System) Rests(rests func(v *View) bool) {
	s.once(restingStates)
	s.rests = rests
}

const restingStates = "resting states"

// LeadsTo adds a liveness property: each run that reaches a state of from is then in a
// state of to, or reaches one later. A nil from is every state. Explore considers the runs
// in which no fault happens again and again, and in which the fair actions are taken as
// [Action.Fair] describes. It checks the properties in order of declaration, after
// everything else.
func (s *System) LeadsTo(name string, from, to func(v *View) bool) {
	s.leads = append(s.leads, property{name: name, label: s.declare("property", name), from: from, to: to})
}

// declare notes the name of a part, and returns it as errors name it.
func (s *System) declare(kind, name string) (label string) {
	label = fmt.Sprintf("%s %q", kind, name)
	if name == "" {
		s.problem(label, "no name")
	}
	s.once(label)
	return label
}

// once adds a problem if a part is declared for the second time.
func (s *System) once(label string) {
	if s.declared[label] {
		s.problem(label, "declared twice")
	}
	s.declared[label] = true
}

// same adds a problem unless a part belongs to this system.
func (s *System) same(label string, other *System) {
	if s != other {
		s.problem(label, "the two belong to different systems")
	}
}

func (s *System) problem(label, what string) {
	s.problems = append(s.problems, fmt.Errorf("%w: system %q: %s: %s", ErrModel, s.name, label, what))
}
