package fsm

import (
	"errors"
	"fmt"
)

// errOrigin is the reason if the cell has rows, but none for the origin of the object.
var errOrigin = errors.New("no row for an object of this origin")

// refuse returns the refusal of a request without a candidate in its cell. It names
// the origin only if the origin is the reason.
func (t *Table) refuse(word uint64, event int, actor Actor) error {
	err := t.detail(word, t.Events[event], actor)
	c := t.decider()
	bit, mine := c.actorBit(actor), false
	for ed := c.first(wordState(word), event); ed != nil; ed = ed.next {
		if ed.actors&bit == 0 {
			continue
		}
		mine = true
		if c.fits(ed, wordOrigin(word)) { // a forced request takes the edge
			err.Err, err.Origin, err.Row = ErrForcedOnly, "", int(ed.row)
			return err
		}
	}
	switch {
	case mine:
		err.Reason = errOrigin
		return err
	case c.first(wordState(word), event) != nil:
		err.Err = ErrWrongActor
	}
	err.Origin = ""
	return err
}

// detail returns a refusal with ErrNotAllowed and no reason. The caller completes it.
func (t *Table) detail(word uint64, event string, actor Actor) *TransitionError {
	return &TransitionError{
		Machine: t.Name, From: t.States[wordState(word)].Name, Origin: t.States[wordOrigin(word)].Name,
		Event: event, Actor: actor, Row: -1, Err: ErrNotAllowed,
	}
}

// conflict returns the refusal of a move along an edge from a word that has changed.
func (t *Table) conflict(word uint64, ed *edge, actor Actor) error {
	err := t.detail(word, t.Events[t.Rows[ed.row].Event], actor)
	err.Err = ErrConflict
	return err
}

// guardRefusal returns the refusal of a guard. It joins the reason to those of the
// guards before it, which are in first; first may be nil.
func (t *Table) guardRefusal(first *TransitionError, row int, word uint64, actor Actor, reason error) *TransitionError {
	guard := t.Rows[row].Guard
	if first != nil && first.Err == ErrGuard {
		first.Reason = fmt.Errorf("%w; %s: %w", first.Reason, guard, reason)
		return first
	}
	err := t.detail(word, t.Events[t.Rows[row].Event], actor)
	err.Err, err.Row, err.Guard, err.Reason = ErrGuard, row, guard, reason
	return err
}

// unknown returns the refusal of a request with an undeclared value. The event is empty if the
// request has none.
func (m *Machine[S, E, T]) unknown(at Status[S], event string, actor Actor) *TransitionError {
	err := &TransitionError{
		Machine: m.table.Name, From: nameOf(at.State), Origin: nameOf(at.Origin),
		Event: event, Actor: actor, Row: -1, Err: ErrUnknownEvent,
	}
	switch {
	case m.states.of(at.State) < 0:
		err.Err = ErrUnknownState
	case m.states.of(at.Origin) < 0:
		err.Err, err.Reason = ErrUnknownState, fmt.Errorf("origin %q is not declared", err.Origin)
	}
	return err
}
