package explore

import (
	"context"
	"maps"
	"slices"
)

// Model is one state of type S and its steps: the low-level form of a [System], for
// state machines without actors and messages. The rules for the local state of
// an [Actor] apply to S. The functions must be pure.
type Model[S comparable] struct {
	// Name appears in verdicts and errors.
	Name string
	// Initial are the states in which the model may start: at least one.
	Initial []S
	// Next calls step for every step that is possible in s, with a label for
	// traces, whether the step is a fault, and the next state. The state counts how
	// many faults may happen.
	Next func(s S, step func(label string, fault bool, next S))
	// Always has the invariants by name. Explore checks them in order of names.
	Always map[string]func(s S) error
	// Rests reports whether a state is a resting one, see [System.Rests]. nil: every
	// state must have a step that is not a fault.
	Rests func(s S) bool
	// LeadsTo has the liveness properties by name, see [System.LeadsTo]. Explore checks
	// them in order of names.
	LeadsTo map[string]LeadsTo[S]
	// Fair reports whether the steps with a label are fair, see [Action.Fair]. Steps with
	// the same label are one action. Faults are never fair. nil: no step is fair.
	Fair func(label string) bool
}

// LeadsTo is a liveness property of a [Model]: a state of From is followed by a state of
// To. A nil From is every state.
type LeadsTo[S comparable] struct{ From, To func(s S) bool }

// Explore explores the model, see [System.Explore].
func (m *Model[S]) Explore(ctx context.Context, config *Config) (*Verdict, error) {
	sys := New(m.Name)
	state := NewActor(sys, "state", m.Initial...)
	sys.function(&rule{kind: StepAct, channel: none, label: "Next", fair: m.Fair, call: func(s, _ any, emit func(result)) {
		m.Next(s.(S), func(label string, fault bool, next S) {
			emit(result{label: label, fault: fault, next: next})
		})
	}})
	in := func(states func(S) bool) func(*View) bool {
		if states == nil {
			return nil
		}
		return func(v *View) bool { return states(state.In(v)) }
	}
	for _, name := range slices.Sorted(maps.Keys(m.Always)) {
		sys.Always(name, func(v *View) error { return m.Always[name](state.In(v)) })
	}
	sys.Rests(in(m.Rests))
	for _, name := range slices.Sorted(maps.Keys(m.LeadsTo)) {
		sys.LeadsTo(name, in(m.LeadsTo[name].From), in(m.LeadsTo[name].To))
	}
	return sys.Explore(ctx, config)
}
