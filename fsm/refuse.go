package fsm

import (
	"errors"
	"fmt"
)

// refuse says why no edge of the cell agreed, guards aside.
func (t *Table) refuse(word uint64, event int, actor Actor, force bool) error {
	c, state, bit := t.compiled, wordState(word), t.compiled.actorBit(actor)
	if bit == 0 { // not declared
		err := t.detail(word, event, actor)
		if c.first(state, event) != 0 {
			err.Err = ErrWrongActor
		}
		return err
	}
	var mine, byForce bool
	for i := c.first(state, event); i != 0; i = c.edges[i].next {
		ed := &c.edges[i]
		mine = mine || ed.actors&bit != 0
		byForce = byForce || ed.actors&bit != 0 && c.fits(ed, wordOrigin(word)) && !force
	}
	if mine && !byForce {
		err := t.detail(word, event, actor)
		err.Reason = errOrigin
		return err
	}
	if c.refusals == nil {
		return c.refusalAt(t, state, event, bit)
	}
	return &c.refusals[(state*c.width+event)*len(c.actors)+actorNumber(bit)]
}

// errOrigin is the reason where rows exist but the object came from elsewhere.
var errOrigin = errors.New("no row for an object of this origin")

// detail is the start of a refusal: not allowed, for no special reason yet.
func (t *Table) detail(word uint64, event int, actor Actor) *TransitionError {
	err := &TransitionError{
		Machine: t.Name, From: t.States[wordState(word)].Name,
		Origin: t.States[wordOrigin(word)].Name,
		Actor:  actor, Row: -1, Err: ErrNotAllowed,
	}
	if event >= 0 {
		err.Event = t.Events[event]
	}
	return err
}

// guardRefusal adds the reason of one guard to those of the guards before it.
func (t *Table) guardRefusal(before error, row int, word uint64, actor Actor, reason error) error {
	r := &t.Rows[row]
	err := t.detail(word, r.Event, actor)
	err.Err, err.Row, err.Guard, err.Reason = ErrGuard, row, r.Guard, reason
	if first, ok := before.(*TransitionError); ok {
		err.Reason = errors.Join(first.Reason, fmt.Errorf("%s: %w", r.Guard, reason))
		err.Row, err.Guard = first.Row, first.Guard
	}
	return err
}

// unknown says which value of a request is not declared.
func (m *Machine[S, E, T]) unknown(at Status[S], e E, actor Actor) *TransitionError {
	err := &TransitionError{
		Machine: m.table.Name, From: nameOf(at.State), Origin: nameOf(at.Origin),
		Event: nameOf(e), Actor: actor, Row: -1, Err: ErrUnknownEvent,
	}
	if m.states.of(at.State) < 0 || m.states.of(at.Origin) < 0 {
		err.Err = ErrUnknownState
	}
	return err
}
