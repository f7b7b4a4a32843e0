package explore

import (
	"fmt"
	"slices"
)

// System is a protocol to be explored: actors with small local states, bounded
// channels between them, and faults with budgets. It is made with [New],
// filled by [NewActor], [NewChannel], [Sends], [Receives], [Strikes] and its own
// methods, and explored by [System.Explore].
//
// Whatever is wrong with the description is kept and returned by Explore, all of
// it at once, so that building needs no error handling. A System must not be
// changed while it is explored; explorations do not change it, and several may
// run at the same time.
//
// Every function that a System is given must be pure: the same arguments give
// the same result, and nothing else changes. Those of one exploration are called
// from several goroutines at once, and handlers once for each argument.
type System struct {
	name     string
	actors   []*actorPart
	channels []*channelPart
	budgets  []budgetPart
	handlers []*handler // in order of declaration; strikes among them
	faults   []*Fault
	always   []property
	rests    func(*View) bool
	once     bool // a [Model]: what a handler said is needed once
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

// New makes a system without parts. The name is for people.
func New(name string) *System { return &System{name: name} }

// Budget is how often some kind of fault may still happen in one run. The zero
// Budget is none: what it is given to never happens.
type Budget struct {
	sys *System
	at  int
}

// maxBudget bounds what a counter of a state has to hold.
const maxBudget = 1 << 16

// Budget adds a budget: the faults that share it happen at most n times in a
// run, together. 0 is allowed and takes the faults away.
func (s *System) Budget(name string, n int) Budget {
	part := partName("budget", name)
	if slices.ContainsFunc(s.budgets, func(b budgetPart) bool { return b.name == name }) {
		s.problem(part, "declared twice")
	}
	if n < 0 || n > maxBudget {
		s.problem(part, fmt.Sprintf("%d is not between 0 and %d", n, maxBudget))
		n = 0
	}
	s.nameOf(part, name)
	s.budgets = append(s.budgets, budgetPart{name: name, most: n})
	return Budget{sys: s, at: len(s.budgets) - 1}
}

// Left returns how much of the budget is left in a state; 0 for the zero Budget.
func (b Budget) Left(v *View) int {
	if b.sys == nil {
		return 0
	}
	v.mustBeOf(b.sys)
	return int(v.ids[v.t.lay.budget(b.at)])
}

// Always adds an invariant: a condition on every reachable state. The error says
// what is wrong with the state; it becomes [Verdict.Problem].
func (s *System) Always(name string, holds func(v *View) error) {
	part := partName("invariant", name)
	s.nameOf(part, name)
	if holds == nil {
		s.problem(part, "no function")
	}
	if slices.ContainsFunc(s.always, func(p property) bool { return p.name == name }) {
		s.problem(part, "declared twice")
	}
	s.always = append(s.always, property{name: name, holds: holds})
}

// Rests says which states are resting ones: nothing is owed to anybody. With it
// a system must be able to come to rest from every reachable state without
// further faults; without it, only invariants are looked at.
func (s *System) Rests(rests func(v *View) bool) {
	switch {
	case rests == nil:
		s.problem("resting states", "no function")
	case s.rests != nil:
		s.problem("resting states", "declared twice")
	}
	s.rests = rests
}

// check returns everything that is wrong with the description as a whole,
// behind what was found while it was made.
func (s *System) check() []error {
	problems := slices.Clone(s.problems)
	add := func(part, what string) {
		problems = append(problems, &ModelError{System: s.name, Part: part, Problem: what})
	}
	if len(s.actors) == 0 {
		add("", "no actor")
	}
	if len(s.always) == 0 && s.rests == nil {
		add("", "nothing to check: no invariant and no resting states")
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
		add("", "no actor ever does anything")
	}
	for i, c := range s.channels {
		if !sends[i] && !c.filled {
			add(partName("channel", c.name), "nobody sends into it")
		}
		if !receives[i] {
			add(partName("channel", c.name), "nobody receives from it")
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

func (s *System) nameOf(part, name string) {
	if name == "" {
		s.problem(part, "no name")
	}
}

func partName(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }
