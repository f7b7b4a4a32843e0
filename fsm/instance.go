package fsm

import (
	"context"
	"sync/atomic"
)

// Instance is one object in memory: a machine and an atomic status. If several
// goroutines fire at once, each move has exactly one winner, self transitions
// included. The others get [ErrConflict].
//
// [Machine.Instance] and [Machine.InstanceAt] make an Instance without allocation.
// It has 16 bytes on 64-bit systems. The zero Instance panics. An Instance is safe
// for concurrent use and must not be copied after its first use.
type Instance[S, E comparable, T any] struct {
	word    atomic.Uint64 // the status, and a count of moves above it
	machine *Machine[S, E, T]
}

// The count makes every move a new word, self transitions included. It wraps
// after 2^40 moves. A compare-and-set is wrong only if other goroutines make
// exactly so many moves between its load and its comparison.
const (
	countOne   = 1 << (2 * originShift)
	statusBits = uint64(countOne - 1)
)

// Instance returns a new object in the initial state.
func (m *Machine[S, E, T]) Instance() (in Instance[S, E, T]) {
	in.machine = m
	in.word.Store(wordOf(m.table.Initial, m.table.Initial))
	return
}

// InstanceAt returns an object with this status. It does not check that the
// origin fits the state. A status from outside goes through [Machine.ParseStatus]
// first. The error is [ErrUnknownState].
func (m *Machine[S, E, T]) InstanceAt(at Status[S]) (in Instance[S, E, T], err error) {
	state, origin := m.states.of(at.State), m.states.of(at.Origin)
	if state < 0 || origin < 0 {
		err = &TransitionError{
			Machine: m.table.Name, From: nameOf(at.State), Origin: nameOf(at.Origin), Row: -1, Err: ErrUnknownState,
		}
		return
	}
	in.machine = m
	in.word.Store(wordOf(state, origin))
	return
}

// Status returns the present status.
func (in *Instance[S, E, T]) Status() Status[S] { return in.machine.statusOf(in.word.Load()) }

// State returns the present state.
func (in *Instance[S, E, T]) State() S { return in.Status().State }

// Fire moves the object by event e if the table permits it to this actor. It
// returns the step that the object took. The order is fixed: row, actor, origin,
// guard, compare-and-set, observer. A guard runs before the compare-and-set. If the
// object moves meanwhile, Fire returns [ErrConflict] and does not retry. A guard
// gets payload both as the payload before and as the payload after.
//
// Errors: those of [Machine.Next], and ErrConflict. After an error, Fire has not
// moved the object.
func (in *Instance[S, E, T]) Fire(ctx context.Context, e E, actor Actor, payload *T) (Step[S], error) {
	return in.fire(ctx, e, actor, payload, false)
}

// FireForced is [Instance.Fire] that also takes forced rows.
func (in *Instance[S, E, T]) FireForced(ctx context.Context, e E, actor Actor, payload *T) (Step[S], error) {
	return in.fire(ctx, e, actor, payload, true)
}

func (in *Instance[S, E, T]) fire(ctx context.Context, e E, actor Actor, payload *T, force bool) (Step[S], error) {
	m, w := in.machine, in.word.Load()
	ed, err := m.choose(ctx, w, e, actor, payload, force)
	if err != nil {
		m.refused(err)
		return Step[S]{}, err
	}
	if err := in.swap(w, ed, actor); err != nil {
		return Step[S]{}, err
	}
	return m.step(ed, w), nil
}

// swap takes an edge from the word on which it was chosen.
func (in *Instance[S, E, T]) swap(w uint64, ed *edge, actor Actor) error {
	m := in.machine
	next := w // an ignored event keeps the word, and conflicts if the object has moved
	if ed.flags&ignores == 0 {
		next = (w&^statusBits + countOne) | ed.move(w&statusBits)
	}
	if !in.word.CompareAndSwap(w, next) {
		err := m.table.detail(w, m.table.Rows[ed.row].Event, actor)
		err.Err = ErrConflict
		m.refused(err)
		return err
	}
	if m.observer != nil {
		m.moved(w, next, actor, ed)
	}
	return nil
}

// Pending is a move that [Instance.Next] decided and that is not made yet. The
// zero Pending is no move. It may be copied.
type Pending[S comparable] struct {
	Step[S]
	of    *atomic.Uint64 // the word of the instance, which identifies the object
	seen  uint64
	edge  *edge
	actor Actor
}

// Next returns the move that Fire would make, and does not make it. It is for a
// caller whose own effect comes between decision and move, and may fail:
//
//	move, err := crane.Next(ctx, Lift, User, &load)
//	...the effect...
//	step, err := crane.CompareAndSwap(move)
//
// Errors: those of [Machine.Next].
func (in *Instance[S, E, T]) Next(ctx context.Context, e E, actor Actor, payload *T) (move Pending[S], err error) {
	m, w := in.machine, in.word.Load()
	ed, err := m.choose(ctx, w, e, actor, payload, false)
	if err != nil {
		return move, err
	}
	return Pending[S]{Step: m.step(ed, w), of: &in.word, seen: w, edge: ed, actor: actor}, nil
}

// CompareAndSwap makes the move that [Instance.Next] decided. If the object has
// moved since, self transitions included, it returns [ErrConflict] and the caller's
// effect has no move. A move can be made once. An ignored event can be accepted any
// number of times, because it moves nothing. CompareAndSwap panics if Next of
// another Instance returned the Pending, or none.
func (in *Instance[S, E, T]) CompareAndSwap(move Pending[S]) (Step[S], error) {
	if move.edge == nil || move.of != &in.word {
		panic("fsm: CompareAndSwap of a move that Next of this instance did not return")
	}
	if err := in.swap(move.seen, move.edge, move.actor); err != nil {
		return Step[S]{}, err
	}
	return move.Step, nil
}

func (m *Machine[S, E, T]) refused(err error) {
	if o := m.observer; o != nil && o.Refused != nil {
		o.Refused(err)
	}
}

func (m *Machine[S, E, T]) moved(before, after uint64, actor Actor, ed *edge) {
	o, t := m.observer, m.table
	if o.Moved == nil {
		return
	}
	o.Moved(Moved{
		Machine: t, From: t.States[wordState(before)].Name, Origin: t.States[wordOrigin(before)].Name,
		To: t.States[wordState(after)].Name, Event: t.Events[t.Rows[ed.row].Event], Actor: actor,
		Row: int(ed.row), Ignored: ed.flags&ignores != 0,
	})
}
