package fsm

import (
	"context"
	"iter"
)

// Next returns the step that event e by this actor takes from a status, and
// changes nothing. It tries the rows of the state and event in order of
// declaration: actor, then origin, then guard. A guard gets ctx, and payload both
// as the payload before and as the payload after. Next does not wait and does not
// read ctx itself.
//
// Errors: [ErrNotAllowed], [ErrWrongActor], [ErrGuard], [ErrForcedOnly],
// [ErrUnknownState], [ErrUnknownEvent]. The detail is a [TransitionError].
func (m *Machine[S, E, T]) Next(ctx context.Context, at Status[S], e E, actor Actor, payload *T) (Step[S], error) {
	return m.next(ctx, at, e, actor, payload, false)
}

// NextForced is [Machine.Next] that also takes forced rows.
func (m *Machine[S, E, T]) NextForced(ctx context.Context, at Status[S], e E, actor Actor, payload *T) (Step[S], error) {
	return m.next(ctx, at, e, actor, payload, true)
}

// Can returns nil if [Machine.Next] would return a step, else its error.
func (m *Machine[S, E, T]) Can(ctx context.Context, at Status[S], e E, actor Actor, payload *T) error {
	_, err := m.next(ctx, at, e, actor, payload, false)
	return err
}

func (m *Machine[S, E, T]) next(ctx context.Context, at Status[S], e E, actor Actor, payload *T, force bool) (step Step[S], err error) {
	state := m.states.of(at.State)
	origin := state
	if at.Origin != at.State {
		origin = m.states.of(at.Origin)
	}
	if state < 0 || origin < 0 {
		return step, m.unknown(at, e, actor)
	}
	word := wordOf(state, origin)
	ed, err := m.choose(ctx, word, e, actor, payload, force)
	if err != nil {
		return step, err
	}
	return m.step(ed, word), nil
}

// step returns what an edge makes of a status.
func (m *Machine[S, E, T]) step(ed *edge, word uint64) Step[S] {
	after := ed.move(word)
	return Step[S]{Status: m.statusOf(after), Row: int(ed.row), Ignored: ed.flags&ignores != 0}
}

func (m *Machine[S, E, T]) statusOf(word uint64) Status[S] {
	return Status[S]{State: m.names[wordState(word)], Origin: m.names[wordOrigin(word)]}
}

// choose returns the first edge of the cell that permits the request, or the
// refusal. Next, Can and every method of an Instance choose their row here.
func (m *Machine[S, E, T]) choose(ctx context.Context, word uint64, e E, actor Actor, payload *T, force bool) (*edge, error) {
	event := m.events.of(e)
	if event < 0 {
		return nil, m.unknown(m.statusOf(word), e, actor)
	}
	bit := m.c.actorBit(actor)
	var refused error
	for i := m.c.first(wordState(word), event); i != 0; {
		ed := &m.c.edges[i]
		i = ed.next
		if ed.actors&bit == 0 || ed.flags != 0 && !m.c.agrees(ed, wordOrigin(word), force) {
			continue
		}
		if ed.flags&guarded == 0 {
			return ed, nil
		}
		reason := m.Check(ctx, int(ed.row), payload, payload)
		if reason == nil {
			return ed, nil
		}
		refused = m.table.guardRefusal(refused, int(ed.row), word, actor, reason)
	}
	if refused != nil {
		return nil, refused
	}
	return nil, m.table.refuse(word, event, actor, force)
}

// NextTo returns the step by which this actor moves the object from a status to a
// target state. It is for a peer that reports states and has no events. If several
// rows lead to the target, NextTo takes the first one in order of declaration whose
// actor, origin and guard permit it. It takes neither ignore rows nor forced rows.
//
// Errors: those of [Machine.Next]. The detail names the target in place of an
// event.
func (m *Machine[S, E, T]) NextTo(ctx context.Context, at Status[S], to S, actor Actor, payload *T) (Step[S], error) {
	state, origin, target := m.states.of(at.State), m.states.of(at.Origin), m.states.of(to)
	if state < 0 || origin < 0 || target < 0 {
		var unnamed E
		err := m.unknown(at, unnamed, actor)
		err.Event, err.To, err.Err = "", nameOf(to), ErrUnknownState
		return Step[S]{}, err
	}
	word, bit := wordOf(state, origin), m.c.actorBit(actor)
	sentinel, byForce := ErrNotAllowed, int32(-1)
	var refused error
	for _, i := range m.c.out[state] {
		ed := &m.c.edges[i]
		if ed.flags&ignores != 0 || !m.c.fits(ed, origin) {
			continue
		}
		after := ed.move(word)
		switch {
		case wordState(after) != target:
		case ed.actors&bit == 0:
			if sentinel == ErrNotAllowed {
				sentinel = ErrWrongActor
			}
		case ed.flags&forced != 0:
			if sentinel = ErrForcedOnly; byForce < 0 {
				byForce = ed.row
			}
		default:
			reason := m.Check(ctx, int(ed.row), payload, payload)
			if reason == nil {
				return m.step(ed, word), nil
			}
			refused = m.table.guardRefusal(refused, int(ed.row), word, actor, reason)
		}
	}
	err := m.table.detail(word, -1, actor)
	err.Err, err.Row = sentinel, int(byForce)
	if te, ok := refused.(*TransitionError); ok {
		err = te
	}
	err.Event, err.To = "", nameOf(to)
	return Step[S]{}, err
}

// Permitted yields the rows that this actor may fire from a status, in order of
// declaration. It runs no guards and leaves forced rows out. The slices in the rows
// are shared and read only. An undeclared status or actor yields nothing.
func (m *Machine[S, E, T]) Permitted(at Status[S], actor Actor) iter.Seq[Row[S, E]] {
	return func(yield func(Row[S, E]) bool) {
		state, origin := m.states.of(at.State), m.states.of(at.Origin)
		if state < 0 || origin < 0 {
			return
		}
		bit := m.c.actorBit(actor)
		for _, i := range m.c.out[state] {
			ed := &m.c.edges[i]
			if ed.actors&bit != 0 && m.c.agrees(ed, origin, false) && !yield(m.rows[ed.row]) {
				return
			}
		}
	}
}

// agrees reports whether a request, forced or not, may take the edge from this
// origin. The caller checks actor and guard.
func (c *compiled) agrees(ed *edge, origin int, force bool) bool {
	return (force || ed.flags&forced == 0) && c.fits(ed, origin)
}
