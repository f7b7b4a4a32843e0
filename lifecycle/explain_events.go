package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// explainer asks of one record what every event would do, by the functions that
// decide about the event when it is fired.
type explainer[S, E comparable, T any] struct {
	m       *Manager[S, E, T]
	r       *StoredRecord
	known   decide.Record
	reasons map[int]error // of the guards that were asked, by row
}

// guard asks the guard of a row, once, about a payload of its own: one that changes
// it against the rules has changed nothing.
func (x *explainer[S, E, T]) guard(ctx context.Context, row int) (reason error) {
	if x.m.table.Rows[row].Guard == "" {
		return nil
	}
	reason, asked := x.reasons[row]
	if asked {
		return reason
	}
	defer func() {
		if p := recover(); p != nil {
			reason = fmt.Errorf("it panics: %v", p)
		}
		x.reasons[row] = reason
	}()
	payload, err := x.m.unpack(x.r.Payload)
	if err != nil {
		return fmt.Errorf("it cannot be asked: %w", err)
	}
	return x.m.machine.Check(ctx, row, &payload)
}

// decides is what is decided about a request. Its error is the table's.
func (x *explainer[S, E, T]) decides(ctx context.Context, q decide.Request) decide.Decision {
	rows, d, ok := q.Candidates(x.m.table, &x.known, nil)
	if ok {
		results := make([]error, len(rows))
		for i, row := range rows {
			results[i] = x.guard(ctx, row)
		}
		d = q.Decide(x.m.table, &x.known, rows, results)
	}
	if busy, ok := d.Err.(*decide.BusyError); ok {
		d.Err = busy.Refusal
	}
	return d
}

func (x *explainer[S, E, T]) actors(ctx context.Context) []ActorExplanation {
	list := make([]ActorExplanation, len(x.m.table.Actors))
	for i, actor := range x.m.table.Actors {
		list[i] = ActorExplanation{Actor: actor, Events: []EventExplanation{}}
		for event := range x.m.table.Events {
			if x.leaves(event) {
				list[i].Events = append(list[i].Events, x.event(ctx, event, actor)...)
			}
		}
		if actor != fsm.Sweeper { // nobody wonders why it does not act elsewhere
			list[i].Events = append(list[i].Events, x.elsewhere(i)...)
		}
	}
	return list
}

// leaves reports whether the state has a row for an event, for whomever.
func (x *explainer[S, E, T]) leaves(event int) bool {
	return slices.ContainsFunc(x.m.table.Rows, func(row fsm.TableRow) bool {
		return row.Event == event && slices.Contains(row.From, x.known.State)
	})
}

// event is what becomes of an event, without force and by force.
func (x *explainer[S, E, T]) event(ctx context.Context, event int, actor fsm.Actor) (list []EventExplanation) {
	fire := decide.Request{Verb: decide.Fire, Event: event, Actor: actor}
	free := x.decides(ctx, fire)
	fire.Force = true
	forced := x.decides(ctx, fire)
	if !errors.Is(free.Err, fsm.ErrForcedOnly) {
		list = append(list, x.entry(event, actor, free, false))
	}
	if errors.Is(free.Err, fsm.ErrForcedOnly) || forced.Err == nil && (free.Err != nil || forced.Row != free.Row) {
		list = append(list, x.entry(event, actor, forced, true))
	}
	return list
}

func (x *explainer[S, E, T]) entry(event int, actor fsm.Actor, d decide.Decision, force bool) EventExplanation {
	e := EventExplanation{Event: x.m.table.Events[event], Possible: d.Err == nil, Forced: force}
	switch {
	case d.Err == nil && d.Write:
		e.To = x.m.table.States[d.State].Name
	case d.Err == nil:
		e.To, e.Ignored = x.r.State, true
	default:
		who, to := x.could(event)
		e.To, e.Why = to, reason(d.Err)
		if len(who) > 0 && errors.Is(d.Err, fsm.ErrWrongActor) {
			e.Why = "only by " + strings.Join(who, ", ")
		}
	}
	return e
}

// could are the actors that have a row for an event here, whatever its guard says,
// and where they lead, if that is one state.
func (x *explainer[S, E, T]) could(event int) (who []string, to string) {
	t, states := x.m.table, map[string]bool{}
	for _, actor := range t.Actors {
		rows, _ := t.Candidates(nil, x.known.State, x.known.Origin, event, actor, true)
		for _, row := range rows {
			state, _ := t.After(x.known.State, x.known.Origin, row)
			to = t.States[state].Name
			states[to] = true
		}
		if len(rows) > 0 {
			who = append(who, string(actor))
		}
	}
	if len(states) != 1 {
		to = ""
	}
	return who, to
}

// elsewhere are the events for which the state has no row, and the actor one in
// another state.
func (x *explainer[S, E, T]) elsewhere(actor int) (list []EventExplanation) {
	t := x.m.table
	states := make([][]string, len(t.Events))
	for i := range t.Rows {
		row := &t.Rows[i]
		if len(row.Actors) > 0 && !slices.Contains(row.Actors, actor) {
			continue
		}
		for _, from := range row.From {
			name := t.States[from].Name
			if row.Forced {
				name += " (by force)"
			}
			if !slices.Contains(states[row.Event], name) {
				states[row.Event] = append(states[row.Event], name)
			}
		}
	}
	for event, in := range states {
		if len(in) > 0 && !x.leaves(event) {
			list = append(list, EventExplanation{Event: t.Events[event], Why: "only in " + strings.Join(few(in, "and %d more"), ", ")})
		}
	}
	return list
}

// movers are the actors who can move the object on, if their guards agree; the
// sweeper is none of them.
func (x *explainer[S, E, T]) movers() (who []string) {
	t := x.m.table
	for event := range t.Events {
		for _, actor := range t.Actors {
			rows, _ := t.Candidates(nil, x.known.State, x.known.Origin, event, actor, false)
			moves := slices.ContainsFunc(rows, func(row int) bool { return t.Rows[row].Then != fsm.ThenIgnore })
			if moves && actor != fsm.Sweeper && !slices.Contains(who, string(actor)) {
				who = append(who, string(actor))
			}
		}
	}
	return who
}

// then is what a sweep does after the deadline.
func (x *explainer[S, E, T]) then(ctx context.Context) string {
	t := x.m.table
	q, care := decide.Sweep(t, &x.known, decide.Sight{Overdue: true})
	if care != decide.FireEvent {
		return ""
	}
	within, _ := t.Deadline(x.known.State, x.known.Origin)
	text := fmt.Sprintf("after %v the sweeper fires %s: ", within, t.Events[q.Event])
	d := x.decides(ctx, q)
	switch {
	case d.Err != nil:
		text += "as it is now, that is refused: " + reason(d.Err)
	case !d.Write:
		text += "that is ignored"
	case d.Begins && d.State == x.known.State:
		text += "the operation begins anew"
	case t.Rows[d.Row].Then == fsm.ThenReturn:
		text += "it goes back to " + t.States[d.State].Name
	case d.Removes:
		text += "it is removed"
	default:
		text += "it goes to " + t.States[d.State].Name
	}
	if x.m.observe != nil {
		text += ", unless something else is observed"
	}
	return text
}

// few are the first of many, and how many there are beside them.
func few(list []string, more string) []string {
	const most = 10
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], fmt.Sprintf(more, len(list)-most))
}
