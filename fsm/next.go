package fsm

import (
	"context"
	"iter"
)

// Next returns the step that event e by this actor takes from a status, and
// changes nothing. The rows of the cell are tried in order of declaration:
// first the actor, then the origin, then the guard, which gets ctx and payload.
// Nothing else looks at the context: nothing here waits.
//
// Errors: [ErrNotAllowed], [ErrWrongActor], [ErrGuard], [ErrForcedOnly],
// [ErrUnknownState], [ErrUnknownEvent]; the detail is a [TransitionError].
func (m *Machine[S, E, T]) Next(ctx context.Context, at Status[S], e E, actor Actor, payload *T) (Step[S], error) {
	if cell := m.quick(at, e, actor); cell != nil {
		return Step[S]{Status: Status[S]{State: cell.state, Origin: cell.origin}, Row: int(cell.row)}, nil
	}
	return m.next(ctx, at, e, actor, payload, false)
}

// NextForced is Next that also takes rows which are forced only.
func (m *Machine[S, E, T]) NextForced(ctx context.Context, at Status[S], e E, actor Actor, payload *T) (Step[S], error) {
	return m.next(ctx, at, e, actor, payload, true)
}

// Can returns nil if [Machine.Next] would step, or its error.
func (m *Machine[S, E, T]) Can(ctx context.Context, at Status[S], e E, actor Actor, payload *T) error {
	if m.quick(at, e, actor) != nil {
		return nil
	}
	word, event, err := m.locate(at, e, actor)
	if err != nil {
		return err
	}
	_, err = m.choose(ctx, word, event, actor, payload, false)
	return err
}

func (m *Machine[S, E, T]) next(ctx context.Context, at Status[S], e E, actor Actor, payload *T, force bool) (Step[S], error) {
	word, event, err := m.locate(at, e, actor)
	if err != nil {
		return Step[S]{}, err
	}
	ed, err := m.choose(ctx, word, event, actor, payload, force)
	if err != nil {
		return Step[S]{}, err
	}
	return m.step(ed, m.c.moved(ed, word)), nil
}

// locate turns a status and an event into a word and an index.
func (m *Machine[S, E, T]) locate(at Status[S], e E, actor Actor) (uint64, int, error) {
	state := m.states.of(at.State)
	origin := state
	if at.Origin != at.State {
		origin = m.states.of(at.Origin)
	}
	event := m.events.of(e)
	if state < 0 || origin < 0 || event < 0 {
		return 0, 0, m.unknown(at, e, actor)
	}
	return wordOf(int(state), int(origin)), int(event), nil
}

// step is the typed form of a taken edge.
func (m *Machine[S, E, T]) step(ed *edge, word uint64) Step[S] {
	return Step[S]{
		Status: Status[S]{State: m.names[wordState(word)], Origin: m.names[wordOrigin(word)]},
		Row:    int(ed.row), Ignored: ed.flags&ignores != 0,
	}
}

// choose returns the first edge of the cell that agrees, or why none does. It
// is the one place where rows are chosen; [Instance.Fire] only takes a short
// cut through it.
func (m *Machine[S, E, T]) choose(ctx context.Context, word uint64, event int, actor Actor, payload *T, force bool) (*edge, error) {
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
		reason := m.Check(ctx, int(ed.row), payload)
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

// NextTo returns the step by which this actor gets the object from a status to
// a target state: the way of a peer that reports states and knows no events. Of
// several rows that lead there, the first in order of declaration whose actor,
// origin and guard agree is taken; ignore rows lead nowhere and are passed
// over, as are rows that are forced only.
//
// Errors: those of [Machine.Next]; the detail names the target instead of an
// event.
func (m *Machine[S, E, T]) NextTo(ctx context.Context, at Status[S], to S, actor Actor, payload *T) (Step[S], error) {
	state, origin, target := m.states.of(at.State), m.states.of(at.Origin), m.states.of(to)
	if state < 0 || origin < 0 || target < 0 {
		var unnamed E
		err := m.unknown(at, unnamed, actor)
		err.Event, err.To, err.Err = "", nameOf(to), ErrUnknownState
		return Step[S]{}, err
	}
	word, bit := wordOf(int(state), int(origin)), m.c.actorBit(actor)
	sentinel, byForce := ErrNotAllowed, int32(-1)
	var refused error
	for _, i := range m.c.out[state] {
		ed := &m.c.edges[i]
		if ed.flags&ignores != 0 || !m.c.fits(ed, int(origin)) {
			continue
		}
		after := m.c.moved(ed, word)
		switch {
		case wordState(after) != int(target):
		case ed.actors&bit == 0:
			if sentinel == ErrNotAllowed {
				sentinel = ErrWrongActor
			}
		case ed.flags&forced != 0:
			if sentinel = ErrForcedOnly; byForce < 0 {
				byForce = ed.row
			}
		default:
			reason := m.Check(ctx, int(ed.row), payload)
			if reason == nil {
				return m.step(ed, after), nil
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
// declaration. Guards are not run; rows that are forced only are left out. The
// slices in the rows are shared and read only. An undeclared status or actor
// yields nothing.
func (m *Machine[S, E, T]) Permitted(at Status[S], actor Actor) iter.Seq[Row[S, E]] {
	return func(yield func(Row[S, E]) bool) {
		state, origin := m.states.of(at.State), m.states.of(at.Origin)
		if state < 0 || origin < 0 {
			return
		}
		bit := m.c.actorBit(actor)
		for _, i := range m.c.out[state] {
			ed := &m.c.edges[i]
			if ed.actors&bit != 0 && m.c.agrees(ed, int(origin), false) && !yield(m.spec[ed.row]) {
				return
			}
		}
	}
}

// agrees reports whether the edge may be taken from this origin by a request
// that is forced or not. Actor and guard are asked elsewhere.
func (c *compiled) agrees(ed *edge, origin int, force bool) bool {
	return (force || ed.flags&forced == 0) && c.fits(ed, origin)
}
