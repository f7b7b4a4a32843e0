package explore

import "fmt"

// Actor is one participant with a local state of type L. [NewActor] makes one.
//
// L is a small value that == compares: numbers, strings, booleans, and arrays and
// structs of them. Explore refuses pointers, interfaces, channels and
// floating-point numbers, because == does not compare their content. Traces show
// a local state by its String method, or as %+v.
type Actor[L comparable] struct {
	sys   *System
	at    int
	label string // in errors
}

// NewActor adds an actor with its initial local state. The system may start in
// each of several initial states, and in each combination if several actors have
// several.
func NewActor[L comparable](s *System, name string, initial ...L) *Actor[L] {
	a := &Actor[L]{sys: s, at: len(s.actors), label: s.declare("actor", name)}
	if len(initial) == 0 {
		s.problem(a.label, "no initial state")
	}
	if err := plain[L](); err != nil {
		s.problem(a.label, "its local state "+err.Error())
	}
	s.actors = append(s.actors, actorPart{name, untyped(initial)})
	return a
}

// In returns the local state of the actor in a state of the system.
func (a *Actor[L]) In(v *View) L {
	v.mustBeOf(a.sys)
	return v.t.locals[a.at].value(v.state[a.at]).(L)
}

// Acts adds local actions. f calls step for every step that the actor can take in
// local state l without a message, with a label for traces and the next local
// state. If f makes no call, the actor has no action in l.
func (a *Actor[L]) Acts(f func(l L, step func(label string, next L))) Action {
	n := 1
	for _, r := range a.sys.functions {
		if r.kind == StepAct && r.actor == a.at {
			n++
		}
	}
	r := &rule{kind: StepAct, actor: a.at, channel: none, label: fmt.Sprintf("%s in action %d", a.label, n)}
	r.call = func(l, _ any, emit func(result)) {
		f(l.(L), func(label string, next L) { emit(result{label: label, next: next}) })
	}
	return a.sys.function(r)
}

// Sends adds messages that an actor sends. f calls send for every message that
// the actor may put into the channel in local state l, with the next local state.
// Each call is one step. The step is possible only while the channel has room.
func Sends[L, M comparable](a *Actor[L], c *Channel[M], f func(l L, send func(label string, m M, next L))) Action {
	r := &rule{kind: StepSend, actor: a.at, channel: c.at, label: fmt.Sprintf("%s sending into %s", a.label, c.label)}
	a.sys.same(r.label, c.sys)
	r.call = func(l, _ any, emit func(result)) {
		f(l.(L), func(label string, m M, next L) { emit(result{label: label, message: m, next: next}) })
	}
	return a.sys.function(r)
}

// Receives adds deliveries. f calls next with the local state after message m
// arrives in local state l. If f makes several calls, each is possible. If f makes
// none, the actor consumes the message and keeps its local state. A delivery is
// one step: an answer is a step of its own.
//
// An ordered channel delivers the oldest message, an unordered one any. If several
// actors receive from one channel, each of them may get a message.
func Receives[L, M comparable](a *Actor[L], c *Channel[M], f func(l L, m M, next func(label string, l L))) Action {
	r := &rule{kind: StepDeliver, actor: a.at, channel: c.at, label: fmt.Sprintf("%s receiving from %s", a.label, c.label)}
	a.sys.once(r.label)
	a.sys.same(r.label, c.sys)
	r.call = func(l, m any, emit func(result)) {
		consumed := true
		f(l.(L), m.(M), func(label string, next L) {
			consumed = false
			emit(result{label: label, message: m, next: next})
		})
		if consumed {
			emit(result{message: m, next: l})
		}
	}
	return a.sys.function(r)
}

// Action is one function of an actor, as [Actor.Acts], [Sends] or [Receives] added it.
type Action struct{ rule *rule }

// Fair declares the function fair, which the properties of [System.LeadsTo] depend on: an
// action of it that stays possible is taken sooner or later. Local steps with the same
// label are one action. So are the sends of equal messages, and the deliveries of equal
// messages. A send that waits for room counts as possible if its channel has room again
// and again.
//
// Without Fair an action may never be taken: a user need not make a request, and a
// message may stay in a channel forever.
func (a Action) Fair() { a.rule.fair = func(string) bool { return true } }
