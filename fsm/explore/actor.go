package explore

import (
	"fmt"
	"slices"
)

// Actor is one participant, with a local state of type L. It is made with
// [NewActor].
//
// L is a small value that is compared with ==: numbers, strings, booleans,
// arrays and structs of them. Pointers, interfaces, channels and floating-point
// numbers are refused, because equal states would not be found equal. In traces
// a local state is shown by its String method, or as %+v.
type Actor[L comparable] struct {
	sys *System
	at  int
}

// actorPart is an actor without its type.
type actorPart struct {
	name  string
	table func() localTable // an empty one
	start func(localTable) []uint32
}

// NewActor adds an actor with its initial local state. With several the system
// may start in each; with several such actors, in each combination.
func NewActor[L comparable](s *System, name string, initial ...L) *Actor[L] {
	part := partName("actor", name)
	s.nameOf(part, name)
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
		table: func() localTable { t := newInterned[L](); return &t },
		start: func(t localTable) (ids []uint32) {
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

// In returns the local state that the actor has in a state of the system.
func (a *Actor[L]) In(v *View) L {
	v.mustBeOf(a.sys)
	return v.t.locals[a.at].(*interned[L]).values[v.ids[a.at]]
}

// Acts adds local actions: f calls step for every step that the actor can take
// in local state l without a message, with a label for traces and the local
// state after it. No call: it can do nothing.
func (a *Actor[L]) Acts(f func(l L, step func(label string, next L))) {
	if f == nil {
		a.sys.problem(a.part(), "an action without a function")
		return
	}
	a.acts(func(l L, step func(label string, fault bool, next L)) {
		f(l, func(label string, next L) { step(label, false, next) })
	})
}

// acts is Acts for steps that may be faults, as those of a [Model] are.
func (a *Actor[L]) acts(f func(l L, step func(label string, fault bool, next L))) {
	a.sys.handlers = append(a.sys.handlers, &handler{
		kind: StepAct, actor: a.at,
		call: func(t *tables, local, _ uint32) func() []allowed {
			type said struct {
				label string
				fault bool
				next  L
			}
			var all []said
			locals := t.locals[a.at].(*interned[L])
			f(locals.values[local], func(label string, fault bool, next L) {
				all = append(all, said{label, fault, next})
			})
			return func() []allowed {
				outs := make([]allowed, len(all))
				for i, s := range all {
					outs[i] = allowed{next: locals.add(s.next), label: t.label(s.label), fault: s.fault}
				}
				return outs
			}
		},
	})
}

func (a *Actor[L]) part() string { return partName("actor", a.sys.actors[a.at].name) }

// Sends adds messages that an actor sends: f calls send for every message that
// it may put into the channel in local state l, with the local state after it.
// Each is one step, and is possible only while the channel has room.
func Sends[L, M comparable](a *Actor[L], c *Chan[M], f func(l L, send func(label string, m M, next L))) {
	part := fmt.Sprintf("%s sending into %s", a.part(), c.part())
	if !a.sys.same(part, c.sys) || f == nil {
		if f == nil {
			a.sys.problem(part, "no function")
		}
		return
	}
	a.sys.handlers = append(a.sys.handlers, &handler{
		kind: StepSend, actor: a.at, channel: c.at,
		call: func(t *tables, local, _ uint32) func() []allowed {
			type said struct {
				label string
				m     M
				next  L
			}
			var all []said
			locals := t.locals[a.at].(*interned[L])
			messages := t.channels[c.at].messages.(*messages[M])
			f(locals.values[local], func(label string, m M, next L) { all = append(all, said{label, m, next}) })
			return func() []allowed {
				outs := make([]allowed, len(all))
				for i, s := range all {
					outs[i] = allowed{next: locals.add(s.next), message: messages.add(s.m), label: t.label(s.label)}
				}
				return outs
			}
		},
	})
}

// Receives adds deliveries: f is what the actor makes of a message m in local
// state l, by calling next. No call: the message is consumed and nothing else
// changes. Several calls: each may happen. Either way it is one step; whoever
// wants to answer, does so in a step of its own.
//
// An ordered channel delivers the oldest message, an unordered one any. Of
// several actors that receive from one channel, any may get a message.
func Receives[L, M comparable](a *Actor[L], c *Chan[M], f func(l L, m M, next func(label string, l L))) {
	part := fmt.Sprintf("%s receiving from %s", a.part(), c.part())
	if !a.sys.same(part, c.sys) || f == nil {
		if f == nil {
			a.sys.problem(part, "no function")
		}
		return
	}
	for _, h := range a.sys.handlers {
		if h.kind == StepDeliver && h.actor == a.at && h.channel == c.at {
			a.sys.problem(part, "declared twice")
		}
	}
	a.sys.handlers = append(a.sys.handlers, &handler{
		kind: StepDeliver, actor: a.at, channel: c.at,
		call: func(t *tables, local, message uint32) func() []allowed {
			type said struct {
				label string
				next  L
			}
			var all []said
			locals := t.locals[a.at].(*interned[L])
			messages := t.channels[c.at].messages.(*messages[M])
			f(locals.values[local], messages.values[message], func(label string, next L) { all = append(all, said{label, next}) })
			return func() []allowed {
				outs := make([]allowed, len(all))
				for i, s := range all {
					outs[i] = allowed{next: locals.add(s.next), message: message, label: t.label(s.label)}
				}
				if len(outs) == 0 { // consumed
					outs = append(outs, allowed{next: local, message: message, label: t.label("")})
				}
				return outs
			}
		},
	})
}

// same reports whether a part belongs to this system too, and notes it if not.
func (s *System) same(part string, other *System) bool {
	if s != other {
		s.problem(part, "the two belong to different systems")
	}
	return s == other
}
