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

// explainer finds out what every event would do to one record, by the functions
// that decide about the event when it is fired.
type explainer struct {
	*core
	r        *StoredRecord
	older    *older // the version of the record, if it is not the manager's; else nil
	known    decide.Record
	refusals map[int]error // of the guards that have run, by row
}

// guard runs the guard of a row, once, without a change of the payload.
func (e *explainer) guard(ctx context.Context, row int) (refusal error) {
	if e.table.Rows[row].Guard == "" {
		return nil
	}
	if refusal, ok := e.refusals[row]; ok {
		return refusal
	}
	defer func() {
		if p := recover(); p != nil {
			refusal = fmt.Errorf("the guard panics: %v", p)
		}
		e.refusals[row] = refusal
	}()
	refusal, err := e.payloads.guard(ctx, row, e.r.Payload, e.r.Payload)
	if err != nil {
		return fmt.Errorf("the guard cannot run: %w", err)
	}
	return refusal
}

// decide returns the decision about a request.
func (e *explainer) decide(ctx context.Context, ask decide.Request) decide.Decision {
	rows, d, ok := ask.Candidates(e.table, &e.known, nil)
	if ok {
		refusals := make([]error, len(rows))
		for i, row := range rows {
			refusals[i] = e.guard(ctx, row)
		}
		d = ask.Decide(e.table, &e.known, rows, refusals)
		if e.older != nil {
			d = e.older.fit(e.table, d, true)
		}
	}
	if busy, ok := d.Err.(*decide.BusyError); ok {
		d.Err = busy.Refusal
	}
	return d
}

func (e *explainer) actors(ctx context.Context) []ActorExplanation {
	list := make([]ActorExplanation, len(e.table.Actors))
	for i, actor := range e.table.Actors {
		list[i] = ActorExplanation{Actor: actor, Events: []EventExplanation{}}
		for event := range e.table.Events {
			if e.leaves(event) {
				list[i].Events = append(list[i].Events, e.event(ctx, event, actor)...)
			}
		}
		if actor != fsm.Sweeper {
			list[i].Events = append(list[i].Events, e.elsewhere(i)...)
		}
	}
	return list
}

// leaves reports whether the state has a row for an event, by any actor.
func (e *explainer) leaves(event int) bool {
	return slices.ContainsFunc(e.table.Rows, func(row fsm.TableRow) bool {
		return row.Event == event && slices.Contains(row.From, e.known.State)
	})
}

// event returns what an event does without force, and with force if that differs.
func (e *explainer) event(ctx context.Context, event int, actor fsm.Actor) (list []EventExplanation) {
	fire := decide.Request{Verb: decide.Fire, Event: event, Actor: actor}
	free := e.decide(ctx, fire)
	fire.Force = true
	forced := e.decide(ctx, fire)
	if !errors.Is(free.Err, fsm.ErrForcedOnly) {
		list = append(list, e.entry(event, actor, free, false))
	}
	if errors.Is(free.Err, fsm.ErrForcedOnly) || forced.Err == nil && forced.Row != free.Row {
		list = append(list, e.entry(event, actor, forced, true))
	}
	return list
}

func (e *explainer) entry(event int, actor fsm.Actor, d decide.Decision, force bool) EventExplanation {
	x := EventExplanation{Event: e.table.Events[event], Possible: d.Err == nil, Forced: force}
	switch {
	case d.Write:
		x.To = e.table.States[d.State].Name
	case d.Err == nil:
		x.To, x.Ignored = e.r.State, true
	default:
		x.Why = reason(d.Err)
		if actors := e.permitted(event); len(actors) > 0 && errors.Is(d.Err, fsm.ErrWrongActor) {
			x.Why = "only by " + strings.Join(actors, ", ")
		}
	}
	return x
}

// permitted returns the actors that have a row for an event in this state. Guards do not
// matter.
func (e *explainer) permitted(event int) (actors []string) {
	for _, actor := range e.table.Actors {
		if rows, _ := e.table.Candidates(nil, e.known.State, e.known.Origin, event, actor, true); len(rows) > 0 {
			actors = append(actors, string(actor))
		}
	}
	return actors
}

// elsewhere returns the events for which this state has no row, and the actor has
// one in another state.
func (e *explainer) elsewhere(actor int) (list []EventExplanation) {
	t := e.table
	states := make([][]string, len(t.Events))
	for i := range t.Rows {
		row := &t.Rows[i]
		if len(row.Actors) > 0 && !slices.Contains(row.Actors, actor) {
			continue
		}
		for _, from := range row.From {
			name := t.States[from].Name
			if row.Forced {
				name += " (with force)"
			}
			if !slices.Contains(states[row.Event], name) {
				states[row.Event] = append(states[row.Event], name)
			}
		}
	}
	const most = 10
	for event, in := range states {
		if len(in) == 0 || e.leaves(event) {
			continue
		}
		if len(in) > most {
			in = append(in[:most:most], fmt.Sprintf("and %d more", len(in)-most))
		}
		list = append(list, EventExplanation{Event: t.Events[event], Why: "only in " + strings.Join(in, ", ")})
	}
	return list
}

// movers returns the actors that can move the object on, if their guards permit it.
// The sweeper is none of them.
func (e *explainer) movers() (actors []string) {
	t := e.table
	for event := range t.Events {
		for _, actor := range t.Actors {
			rows, _ := t.Candidates(nil, e.known.State, e.known.Origin, event, actor, false)
			moves := slices.ContainsFunc(rows, func(row int) bool { return t.Rows[row].Then != fsm.ThenIgnore })
			if moves && actor != fsm.Sweeper && !slices.Contains(actors, string(actor)) {
				actors = append(actors, string(actor))
			}
		}
	}
	return actors
}

// sweeps describes what a sweep does after the deadline, or if the owner is dead. Empty:
// nothing.
func (e *explainer) sweeps(ctx context.Context) string {
	t := e.table
	ask, care := decide.Sweep(t, &e.known, decide.Cause{Overdue: true})
	if care != decide.FireEvent {
		return ""
	}
	text := "fires " + t.Events[ask.Event] + ": "
	d := e.decide(ctx, ask)
	switch {
	case d.Err != nil:
		text += "the table refuses it now: " + reason(d.Err)
	case !d.Write:
		text += "the table ignores it"
	case d.Begins && d.State == e.known.State:
		text += "the operation starts again"
	case t.Rows[d.Row].Then == fsm.ThenReturn:
		text += "the object returns to " + t.States[d.State].Name
	case d.Removes:
		text += "the object is removed"
	default:
		text += "the object moves to " + t.States[d.State].Name
	}
	text += e.redoes(ask)
	if e.observe != nil {
		text += ", unless Config.Observe returns another event"
	}
	return text
}

// redoes describes what keeps a sweep of this process from firing a row that may do the recorded
// work again, whichever row the guards choose. Empty: nothing, or there is no work.
func (e *explainer) redoes(ask decide.Request) string {
	if !ask.Redoes(e.table, &e.known) {
		return ""
	}
	if !e.canDo(e.r.Work) {
		return fmt.Sprintf(", in a process that can do the work %q", e.r.Work)
	}
	if _, err := recordedWork(e.r); err != nil {
		return ", but its work cannot be read: " + err.Error()
	}
	return ""
}
