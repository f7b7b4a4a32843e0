package explore

import (
	"context"
	"maps"
	"slices"
)

// Model is the low-level form of a system: one state of type S, for which the
// same holds as for the local state of an [Actor]. It is for what is no protocol
// of actors and messages. The functions must be pure, and are called from
// several goroutines at once.
type Model[S comparable] struct {
	// Name is for people.
	Name string
	// Initial are the states in which the system may start, at least one.
	Initial []S
	// Next calls step for every step that is possible in s: with a label for
	// traces, whether it is a fault, and the state after it. How many faults may
	// happen is for the state to count.
	Next func(s S, step func(label string, fault bool, next S))
	// Always has the invariants by name. They are looked at in order of names.
	Always map[string]func(s S) error
	// Rests reports whether a state is a resting one, as in [System.Rests]. nil:
	// only invariants are looked at.
	Rests func(s S) bool
}

// Explore explores the model as [System.Explore] does a system.
func (m *Model[S]) Explore(ctx context.Context, o *Options) (*Verdict, error) {
	sys := New(m.Name)
	sys.once = true
	state := NewActor(sys, "state", m.Initial...)
	if m.Next == nil {
		sys.problem("", "no function Next")
	} else {
		state.acts(m.Next)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Always)) {
		if holds := m.Always[name]; holds != nil {
			sys.Always(name, func(v *View) error { return holds(state.In(v)) })
		} else {
			sys.Always(name, nil)
		}
	}
	if m.Rests != nil {
		sys.Rests(func(v *View) bool { return m.Rests(state.In(v)) })
	}
	return sys.Explore(ctx, o)
}
