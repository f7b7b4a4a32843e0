package explore

import (
	"fmt"
	"slices"
)

// System describes a protocol: actors with small local states, bounded channels
// between them, and faults with budgets. [New] makes one. [NewActor], [NewChannel],
// [Sends], [Receives], [Strikes] and its methods add the parts.
//
// A System keeps every fault of its description, and Explore returns all of them
// at once. Building a System therefore returns no errors. Several explorations of
// one System may run at the same time. Nothing may change a System meanwhile.
//
// Every function of a System must be pure: the same arguments give the same
// result, and the function changes nothing else. One exploration calls them from
// several goroutines, and calls a handler once for each argument.
type System struct {
	name     string
	actors   []*actorPart
	channels []*channelPart
	budgets  []budgetPart
	handlers []*handler // in order of declaration, strikes included
	faults   []*Fault
	always   []property
	rests    func(*View) bool
	leads    []leadsTo
	model    bool // made by a [Model]
	problems []error
}

type budgetPart struct {
	name string
	most int
}

type property struct {
	name  string
	holds func(*View) error
}

// New returns a system without parts. The name appears in verdicts and errors.
func New(name string) *System { return &System{name: name} }

// Budget limits how often faults happen in one run. [System.Budget] makes one. The
// zero Budget is empty: its faults never happen.
type Budget struct {
	sys *System
	at  int
}

// maxBudget is the largest number that the two bytes of a budget hold.
const maxBudget = 1<<16 - 1

// Budget adds a budget. The faults that share it happen at most n times in one
// run, all together. A budget of 0 turns its faults off.
func (s *System) Budget(name string, n int) Budget {
	part := partName("budget", name)
	if slices.ContainsFunc(s.budgets, func(b budgetPart) bool { return b.name == name }) {
		s.problem(part, "declared twice")
	}
	if n < 0 || n > maxBudget {
		s.problem(part, fmt.Sprintf("%d is not between 0 and %d", n, maxBudget))
		n = 0
	}
	s.needName(part, name)
	s.budgets = append(s.budgets, budgetPart{name: name, most: n})
	return Budget{sys: s, at: len(s.budgets) - 1}
}

// Left returns what a state has left of the budget. It returns 0 for the zero
// Budget.
func (b Budget) Left(v *View) int {
	if b.sys == nil {
		return 0
	}
	v.mustBeOf(b.sys)
	return v.t.lay.budget(v.state, b.at)
}

// Always adds an invariant: a condition on every reachable state. The error of
// holds describes the violation and becomes [Verdict.Problem].
func (s *System) Always(name string, holds func(v *View) error) {
	part := partName("invariant", name)
	s.needName(part, name)
	if holds == nil {
		s.problem(part, "no function")
	}
	if slices.ContainsFunc(s.always, func(p property) bool { return p.name == name }) {
		s.problem(part, "declared twice")
	}
	s.always = append(s.always, property{name: name, holds: holds})
}

// Rests declares the resting states: those in which no work is outstanding. With
// it, the system must be able to come to rest from every reachable state without
// further faults. Without it, every reachable state must have a step that is no fault.
func (s *System) Rests(rests func(v *View) bool) {
	switch {
	case rests == nil:
		s.problem("resting states", "no function")
	case s.rests != nil:
		s.problem("resting states", "declared twice")
	}
	s.rests = rests
}

// check returns the faults of the description. Those that the methods found come
// first.
func (s *System) check() []error {
	problems := slices.Clone(s.problems)
	add := func(part, what string) {
		problems = append(problems, &ModelError{System: s.name, Part: part, Problem: what})
	}
	if len(s.actors) == 0 {
		add("", "no actor")
	}
	if len(s.always) == 0 && s.rests == nil && len(s.leads) == 0 {
		add("", "nothing to check: no invariant, no resting states and no property")
	}
	moves := false
	sends, receives := make([]bool, len(s.channels)), make([]bool, len(s.channels))
	for _, h := range s.handlers {
		moves = moves || h.kind != StepFault
		switch h.kind {
		case StepSend:
			sends[h.channel] = true
		case StepDeliver:
			receives[h.channel] = true
		}
	}
	if len(s.actors) > 0 && !moves {
		add("", "no actor has an action, sends or receives")
	}
	for i, c := range s.channels {
		if !sends[i] && !c.filled {
			add(partName("channel", c.name), "no actor sends into it")
		}
		if !receives[i] {
			add(partName("channel", c.name), "no actor receives from it")
		}
	}
	for _, f := range s.faults {
		if len(f.empties) == 0 && len(f.strikes) == 0 {
			add(partName("fault", f.name), "does nothing: it empties no channel and strikes no actor")
		}
	}
	return problems
}

func (s *System) problem(part, what string) {
	s.problems = append(s.problems, &ModelError{System: s.name, Part: part, Problem: what})
}

func (s *System) needName(part, name string) {
	if name == "" {
		s.problem(part, "no name")
	}
}

// same reports whether a part belongs to this system. If not, it adds a problem.
func (s *System) same(part string, other *System) bool {
	if s != other {
		s.problem(part, "the two belong to different systems")
	}
	return s == other
}

func partName(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }
