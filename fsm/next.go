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

// Can returns nil if [Machine.Next] would return a step, otherwise its error.
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
		return step, m.unknown(at, nameOf(e), actor)
	}
	word := wordOf(state, origin)
	ed, err := m.choose(ctx, word, e, actor, payload, force)
	if err != nil {
		return step, err
	}
	m.arrive(&step, ed, ed.move(word))
	return step, nil
}

// arrive fills in the step along an edge to the status after it.
func (m *Machine[S, E, T]) arrive(step *Step[S], ed *edge, after uint64) {
	step.State, step.Origin = m.names[wordState(after)], m.names[wordOrigin(after)]
	step.Row, step.Ignored = int(ed.row), ed.flags&ignores != 0
}

func (m *Machine[S, E, T]) statusOf(word uint64) Status[S] {
	return Status[S]{State: m.names[wordState(word)], Origin: m.names[wordOrigin(word)]}
}

// choose returns the first edge of the cell that permits the request, or the
// refusal. Next, Can and every method of an Instance choose their row here.
func (m *Machine[S, E, T]) choose(ctx context.Context, word uint64, e E, actor Actor, payload *T, force bool) (*edge, error) {
	event := m.events.of(e)
	if event < 0 {
		return nil, m.unknown(m.statusOf(word), nameOf(e), actor)
	}
	bit := m.c.actorBit(actor)
	var refused *TransitionError
	for ed := m.c.first(wordState(word), event); ed != nil; ed = ed.next {
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
	return nil, m.table.refuse(word, event, actor)
}

// NextTo returns the step by which this actor moves the object from a status to a
// target state. It is for a peer that reports states and has no events. If several
// rows lead to the target, NextTo takes the first one in order of declaration that
// actor, origin and guard permit. It takes neither ignore rows nor forced rows, and does
// not look at rows that lead elsewhere: [Machine.Next] with the event of the row may take an
// earlier one.
//
// Errors: those of [Machine.Next]. The detail names the target in place of an
// event.
func (m *Machine[S, E, T]) NextTo(ctx context.Context, at Status[S], to S, actor Actor, payload *T) (step Step[S], err error) {
	state, origin, target := m.states.of(at.State), m.states.of(at.Origin), m.states.of(to)
	if state < 0 || origin < 0 || target < 0 {
		refused := m.unknown(at, "", actor)
		refused.To, refused.Err = nameOf(to), ErrUnknownState
		return step, refused
	}
	word, bit := wordOf(state, origin), m.c.actorBit(actor)
	refused := m.table.detail(word, "", actor)
	for _, ed := range m.c.out[state] {
		if ed.flags&ignores != 0 || !m.c.fits(ed, origin) || wordState(ed.move(word)) != target {
			continue
		}
		switch {
		case ed.actors&bit == 0:
			if refused.Err == ErrNotAllowed {
				refused.Err = ErrWrongActor
			}
		case ed.flags&forced != 0:
			if refused.Err != ErrForcedOnly && refused.Err != ErrGuard {
				refused.Err, refused.Row = ErrForcedOnly, int(ed.row)
			}
		default:
			reason := m.Check(ctx, int(ed.row), payload, payload)
			if reason == nil {
				m.arrive(&step, ed, ed.move(word))
				return step, nil
			}
			refused = m.table.guardRefusal(refused, int(ed.row), word, actor, reason)
		}
	}
	refused.Event, refused.To = "", nameOf(to)
	return step, refused
}

// Permitted yields the events for which this actor has a row in a status, in order of
// declaration. It runs no guards and leaves forced rows out. An undeclared status or actor
// yields nothing.
func (m *Machine[S, E, T]) Permitted(at Status[S], actor Actor) iter.Seq[E] {
	return func(yield func(E) bool) {
		state, origin := m.states.of(at.State), m.states.of(at.Origin)
		if state < 0 || origin < 0 {
			return
		}
		bit := m.c.actorBit(actor)
		for event, e := range m.eventsBy {
			ed := m.c.first(state, event)
			for ed != nil && (ed.actors&bit == 0 || !m.c.agrees(ed, origin, false)) {
				ed = ed.next
			}
			if ed != nil && !yield(e) {
				return
			}
		}
	}
}
