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
		err = m.unknown(at, "", "")
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

func (in *Instance[S, E, T]) fire(ctx context.Context, e E, actor Actor, payload *T, force bool) (step Step[S], err error) {
	m, before := in.machine, in.word.Load()
	ed, err := m.choose(ctx, before, e, actor, payload, force)
	if err != nil {
		m.refused(ctx, err)
		return step, err
	}
	after := before // an ignored event keeps the word, and conflicts if the object has moved
	if ed.flags&ignores == 0 {
		after = (before&^statusBits + countOne) | ed.move(before&statusBits)
	}
	if !in.word.CompareAndSwap(before, after) {
		err = m.table.conflict(before, ed, actor)
		m.refused(ctx, err)
		return step, err
	}
	if m.observer != nil {
		m.moved(ctx, before, after, ed, actor)
	}
	m.arrive(&step, ed, after)
	return step, nil
}

func (m *Machine[S, E, T]) refused(ctx context.Context, err error) {
	if o := m.observer; o != nil && o.Refused != nil {
		o.Refused(ctx, err)
	}
}

func (m *Machine[S, E, T]) moved(ctx context.Context, before, after uint64, ed *edge, actor Actor) {
	o, t := m.observer, m.table
	if o.Moved == nil {
		return
	}
	o.Moved(ctx, Moved{
		Machine: t, From: t.States[wordState(before)].Name, Origin: t.States[wordOrigin(before)].Name,
		To: t.States[wordState(after)].Name, Event: t.Events[t.Rows[ed.row].Event], Actor: actor,
		Row: int(ed.row), Ignored: ed.flags&ignores != 0,
	})
}
