package explore

import (
	"fmt"
	"slices"
)

// Actor is one participant with a local state of type L. [NewActor] makes one.
//
// L is a small value that == compares: numbers, strings, booleans, and arrays and
// structs of them. Explore refuses pointers, interfaces, channels and
// floating-point numbers, because == does not compare their content. Traces show
// a local state by its String method, or as %+v.
type Actor[L comparable] struct {
	sys *System
	at  int
}

// actorPart is an actor without its type.
type actorPart struct {
	name  string
	table func() table // an empty one
	start func(table) []uint32
}

// NewActor adds an actor with its initial local state. The system may start in
// each of several initial states, and in each combination if several actors have
// several.
func NewActor[L comparable](s *System, name string, initial ...L) *Actor[L] {
	part := partName("actor", name)
	s.needName(part, name)
	if slices.ContainsFunc(s.actors, func(a *actorPart) bool { return a.name == name }) {
		s.problem(part, "declared twice")
	}
	if len(initial) == 0 {
		s.problem(part, "no initial state")
	}
	if err := plain[L](); err != nil {
		s.problem(part, "its local state "+err.Error())
	}
	initial = slices.Clone(initial)
	s.actors = append(s.actors, &actorPart{
		name:  name,
		table: func() table { return newInterned[L]() },
		start: func(t table) (ids []uint32) {
			for _, l := range initial {
				if id := t.(*interned[L]).add(l); !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			return ids
		},
	})
	return &Actor[L]{sys: s, at: len(s.actors) - 1}
}

// In returns the local state of the actor in a state of the system.
func (a *Actor[L]) In(v *View) L {
	v.mustBeOf(a.sys)
	return v.t.locals[a.at].(*interned[L]).values[v.t.lay.local(v.state, a.at)]
}

// Acts adds local actions. f calls step for every step that the actor can take in
// local state l without a message, with a label for traces and the next local
// state. If f makes no call, the actor has no action in l.
func (a *Actor[L]) Acts(f func(l L, step func(label string, next L))) Action {
	if f == nil {
		a.sys.problem(a.part(), "an action without a function")
		return Action{}
	}
	return addHandler(a, StepAct, nil, func(l L, _ none, emit func(result[L, none])) {
		f(l, func(label string, next L) { emit(result[L, none]{label: label, next: next}) })
	})
}

func (a *Actor[L]) part() string { return partName("actor", a.sys.actors[a.at].name) }

// Sends adds messages that an actor sends. f calls send for every message that
// the actor may put into the channel in local state l, with the next local state.
// Each call is one step. The step is possible only while the channel has room.
func Sends[L, M comparable](a *Actor[L], c *Chan[M], f func(l L, send func(label string, m M, next L))) Action {
	part := fmt.Sprintf("%s sending into %s", a.part(), c.part())
	if !a.sys.same(part, c.sys) {
		return Action{}
	}
	if f == nil {
		a.sys.problem(part, "no function")
		return Action{}
	}
	return addHandler(a, StepSend, c, func(l L, _ M, emit func(result[L, M])) {
		f(l, func(label string, m M, next L) { emit(result[L, M]{label: label, message: m, next: next}) })
	})
}

// Receives adds deliveries. f calls next with the local state after message m
// arrives in local state l. If f makes several calls, each is possible. If f makes
// none, the actor consumes the message and keeps its local state. A delivery is
// one step: an answer is a step of its own.
//
// An ordered channel delivers the oldest message, an unordered one any. If several
// actors receive from one channel, each of them may get a message.
func Receives[L, M comparable](a *Actor[L], c *Chan[M], f func(l L, m M, next func(label string, l L))) Action {
	part := fmt.Sprintf("%s receiving from %s", a.part(), c.part())
	if !a.sys.same(part, c.sys) {
		return Action{}
	}
	if f == nil {
		a.sys.problem(part, "no function")
		return Action{}
	}
	if slices.ContainsFunc(a.sys.handlers, func(h *handler) bool {
		return h.kind == StepDeliver && h.actor == a.at && h.channel == c.at
	}) {
		a.sys.problem(part, "declared twice")
	}
	return addHandler(a, StepDeliver, c, func(l L, m M, emit func(result[L, M])) {
		consumed := true
		f(l, m, func(label string, next L) {
			consumed = false
			emit(result[L, M]{label: label, next: next})
		})
		if consumed {
			emit(result[L, M]{next: l})
		}
	})
}
