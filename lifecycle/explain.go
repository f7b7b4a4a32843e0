package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/queue"
)

// Explanation answers why an object does not move, and what will happen to it. It
// is a value, made for JSON and, by its String, for people. Times are in UTC.
type Explanation struct {
	Machine string `json:"machine"`
	ID      string `json:"id"`
	State   string `json:"state"`
	// Cause is why the object is stuck, in the words of [SweepResult].Cause, or that its
	// work ignores its time-out. Empty: it is not stuck.
	Cause string `json:"cause,omitempty"`
	// NextMove describes what moves the object next.
	NextMove string `json:"nextMove"`

	Origin    string    `json:"origin,omitempty"` // if it is another state
	Kind      string    `json:"kind"`
	Target    string    `json:"target,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Operation OpID      `json:"operation,omitempty"`
	Event     string    `json:"event,omitempty"` // of the last change
	Actor     fsm.Actor `json:"actor,omitempty"` // of the last change
	Reason    string    `json:"reason,omitempty"`

	Owner      string `json:"owner,omitempty"`
	Epoch      uint64 `json:"epoch,omitempty"`
	OwnerAlive bool   `json:"ownerAlive,omitempty"`
	Work       string `json:"work,omitempty"` // the handler that does it

	// Attempt is the present or next attempt of the work, of Attempts; 0: the work has no
	// [Retries]. NextAttempt is when the next one is due by the clock of its process, zero
	// if that time has come. LastError is why the last one failed.
	Attempt     int       `json:"attempt,omitempty"`
	Attempts    int       `json:"attempts,omitempty"`
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	LastError   string    `json:"lastError,omitempty"`

	// Deadline is when the sweeper acts, by the record or, if that has none, by the
	// table; zero: none. Then describes what the sweeper does.
	Deadline time.Time `json:"deadline,omitzero"`
	Then     string    `json:"then,omitempty"`
	Manual   string    `json:"manual,omitempty"` // why there is no deadline

	// Blocked lists what holds the object up: actions in the queue, preconditions
	// that do not hold. Of many actions it has the first and their number.
	Blocked []string `json:"blocked,omitempty"`
	// Actors are all actors of the table, each with every event of the state, and
	// with the actor's events of other states.
	Actors []ActorExplanation `json:"actors"`
}

// ActorExplanation is what one actor can do.
type ActorExplanation struct {
	Actor  fsm.Actor          `json:"actor"`
	Events []EventExplanation `json:"events"`
}

// EventExplanation is what one event of one actor does. An event that leads to
// another state with force has two of them.
type EventExplanation struct {
	Event    string `json:"event"`
	Possible bool   `json:"possible"`
	To       string `json:"to,omitempty"`      // empty if the event is not possible
	Forced   bool   `json:"forced,omitempty"`  // it needs Change.Force
	Ignored  bool   `json:"ignored,omitempty"` // it is accepted and changes nothing
	Why      string `json:"why,omitempty"`     // it is not possible
}

// Explain describes what moves an object next, until when and what happens then,
// what holds the object up, and which events each actor can fire and why not the
// others. It runs every guard of the state once, on a copy of the payload, with ctx
// and without any lock; a guard that panics refuses. It checks the preconditions
// that the caller names, which are those of a planned call. It changes nothing.
//
// Errors: [ErrNotFound], [ErrInvalid], [ErrForeign], or the store's.
func (m *Manager[S, E, T]) Explain(ctx context.Context, id string, require ...Precondition) (Explanation, error) {
	x, err := m.core.explain(ctx, id, require)
	if err != nil {
		return Explanation{}, m.core.failed("explain", id, err)
	}
	return x, nil
}

func (c *core) explain(ctx context.Context, id string, require []Precondition) (Explanation, error) {
	if err := checkID(id); err != nil {
		return Explanation{}, err
	}
	for i := range require {
		// A grant that is not held is in Blocked, like any other precondition that does not hold.
		if err := require[i].check(); err != nil && !errors.Is(err, ErrPrecondition) {
			return Explanation{}, err
		}
	}
	r, err := c.get(ctx, c.key(id))
	if err != nil {
		return Explanation{}, err
	}
	if !r.Exists() {
		return Explanation{}, ErrNotFound
	}
	known, stored, err := c.recognize(&r)
	if err != nil {
		return Explanation{}, err
	}
	e := explainer{core: c, r: &r, older: c.olderVersion(stored.Version), known: known, refusals: map[int]error{}}
	state := &c.table.States[e.known.State]
	x := Explanation{
		Machine: c.table.Name, ID: id, State: r.State, Kind: state.Kind.String(), Target: r.Target, Since: r.ChangedAt.UTC(),
		Operation: r.Operation, Event: r.Event, Actor: r.Actor, Reason: r.Reason,
		Owner: r.Owner, Epoch: r.Epoch, Work: r.Work, Manual: state.Manual,
	}
	if r.Origin != r.State {
		x.Origin = r.Origin
	}
	x.attempts(&r)
	dead, err := newSweep(c).ownerDead(ctx, &r)
	if err != nil {
		return x, err
	}
	x.OwnerAlive = r.Owner != "" && !dead
	x.Actors = e.actors(ctx)
	act := e.sweeps(ctx)
	x.deadline(c, &r, act)
	x.Cause = x.cause(c, &r)
	x.NextMove = x.nextMove(state.Kind, e.movers(), act)
	if x.OwnerAlive && waits(&r) {
		x.NextMove += "; the work waits for its turn"
	}
	if x.Blocked, err = c.blocked(ctx, &r, require); err != nil {
		return x, err
	}
	if ctx.Err() != nil { // a guard may have refused for that reason only
		return x, Ended(ctx)
	}
	return x, nil
}

// deadline sets Deadline and Then. The sweeper does what act describes; empty: nothing.
func (x *Explanation) deadline(c *core, r *StoredRecord, act string) {
	timeout := c.timeout(r)
	if act != "" {
		x.Then = fmt.Sprintf("after %v the sweeper %s", timeout, act)
	}
	if x.Deadline = r.Deadline.UTC(); !r.Deadline.IsZero() || timeout == 0 || c.resting(r) || x.OwnerAlive && waits(r) {
		return
	}
	if r.ChangedAt.IsZero() {
		if !x.ownerDead() { // no sweep fires the row, see sweep.ownerless
			x.Then = ""
		}
		return
	}
	x.Deadline = r.ChangedAt.Add(timeout).UTC()
	x.Then += "; the record has no deadline, so it counts from the last change"
}

// overdue reports whether the deadline has passed. The clock of the store decides, and
// this process cannot read it.
func (x *Explanation) overdue() bool {
	return !x.Deadline.IsZero() && !x.Deadline.After(time.Now())
}

func (x *Explanation) ownerDead() bool { return x.Owner != "" && !x.OwnerAlive }

// cause returns why the object is stuck.
func (x *Explanation) cause(c *core, r *StoredRecord) string {
	t := c.tasks.atWork(r.ID)
	switch {
	case x.ownerDead() && !c.resting(r):
		return ownerIsDead(r)
	case t.excess() > 0:
		process := "this process"
		if t.Owner != "" {
			process = "process " + t.Owner
		}
		return fmt.Sprintf("work has run %v longer than its time-out of %v and ignores its context: restart %s",
			t.excess().Round(time.Second), t.timeout, process)
	case x.overdue() && (x.Then != "" || !c.resting(r)):
		return deadlinePassed(x.Deadline)
	case x.Owner == "" && x.Deadline.IsZero() && !c.resting(r):
		return noOwner
	}
	return ""
}

// nextMove describes what moves the object next. The actors are those that can, and the
// sweeper does what act describes.
func (x *Explanation) nextMove(kind fsm.Kind, actors []string, act string) string {
	overdue, sweeper := x.overdue() && act != "", ""
	if overdue {
		sweeper = "the sweeper " + act + ", if the deadline has passed by the clock of the store"
	}
	either := func(mover string) string {
		if sweeper == "" {
			return mover
		}
		return mover + "; or " + sweeper
	}
	switch {
	case kind != fsm.Transitional && overdue:
		return sweeper
	case kind != fsm.Transitional && x.Deadline.IsZero():
		return "none: the object is not in transition"
	case kind != fsm.Transitional:
		return "none until the deadline: the object is not in transition"
	case x.OwnerAlive:
		return either("the process " + x.Owner + ", which is alive")
	case x.ownerDead() && act != "":
		return "the next sweep " + act
	case x.Manual != "" && (x.ownerDead() || len(actors) == 0):
		return "an operator: " + x.Manual
	case len(actors) > 0:
		return either(strings.Join(actors, " or "))
	case overdue:
		return sweeper
	case !x.Deadline.IsZero():
		return "the sweeper, after the deadline"
	case act != "":
		return "an operator: the object has no deadline"
	}
	return "an operator: the table has no row"
}

// String returns the explanation as lines of text, without the events that are not
// possible.
func (x Explanation) String() string { return x.text(false) }

// Verbose is String with all events. It has the reason why an event is not possible.
func (x Explanation) Verbose() string { return x.text(true) }

func (x Explanation) text(all bool) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(oneLine(fmt.Sprintf(format, args...)))
		b.WriteString("\n")
	}
	head := fmt.Sprintf("%s %q is %s (%s)", x.Machine, x.ID, x.State, x.Kind)
	if !x.Since.IsZero() {
		head += " since " + x.Since.Format(time.RFC3339)
	}
	if x.Origin != "" {
		head += ", origin " + x.Origin
	}
	if x.Target != "" {
		head += ", target " + x.Target
	}
	line("%s", head)
	if x.Cause != "" {
		line("  cause: %s", x.Cause)
	}
	line("  next move: %s", x.NextMove)
	if last := x.lastChange(); last != "" {
		line("  last change: %s", last)
	}
	if work := x.work(); work != "" {
		line("  work: %s", work)
	}
	switch {
	case !x.Deadline.IsZero() && x.Then != "":
		line("  deadline: %s; %s", x.Deadline.Format(time.RFC3339), x.Then)
	case !x.Deadline.IsZero():
		line("  deadline: %s", x.Deadline.Format(time.RFC3339))
	case x.Manual != "":
		line("  no deadline: %s", x.Manual)
	}
	for _, text := range x.Blocked {
		line("  %s", text)
	}
	for _, a := range x.Actors {
		heading := false
		for _, e := range a.Events {
			if !e.Possible && !all {
				continue
			}
			if !heading {
				line("  %s:", a.Actor)
				heading = true
			}
			line("    %s", e.text())
		}
	}
	return b.String()
}

// lastChange returns the last change in one line; empty: nothing is known about it.
func (x *Explanation) lastChange() string {
	last := x.Event
	if last == "" && x.Actor != "" {
		last = "added"
	}
	if x.Actor != "" {
		last += " by " + string(x.Actor)
	}
	if x.Operation != 0 && last != "" {
		last += fmt.Sprintf(" in operation %d", x.Operation)
	}
	if x.Reason != "" && last != "" {
		last += ": "
	}
	return last + x.Reason
}

func (e EventExplanation) text() string {
	text := e.Event
	switch {
	case e.Ignored:
		text += " is ignored"
	case e.Possible:
		text += " to " + e.To
	default:
		text = "not " + text
	}
	if e.Forced {
		text += ", with force"
	}
	if !e.Possible {
		text += ": " + e.Why
	}
	return text
}

// blocked lists the actions in the object's queue and the preconditions that do
// not hold.
func (c *core) blocked(ctx context.Context, r *StoredRecord, require []Precondition) (list []string, err error) {
	if q, ok := c.queue.(interface{ Inspect(Key) []queue.Info[Key] }); ok {
		list = actions(q.Inspect(r.Key), r.Event)
	}
	for _, p := range require {
		failed := &PreconditionError{Precondition: p}
		holds := p.Grant != nil && p.held() == nil
		if p.Grant == nil {
			if failed.Current, err = c.get(ctx, p.Key); err != nil {
				return nil, err
			}
			holds = slices.Contains(p.States, failed.Current.State)
		}
		if !holds {
			list = append(list, "precondition: "+failed.detail())
		}
	}
	return list, nil
}

// actions lists the first actions in a queue, and the one of the object's present
// operation, which has the name of its event.
func actions(infos []queue.Info[Key], event string) (list []string) {
	const most = 10
	own := len(infos) - 1
	for own >= 0 && infos[own].Name != event {
		own--
	}
	omitted := 0
	for i, a := range infos {
		if i >= most && i != own {
			omitted++
			continue
		}
		text := "queue: " + cmp.Or(a.Name, "an action") + " is " + a.State.String()
		if a.Paused && a.State == queue.Waiting {
			text += ", class " + strconv.Quote(a.Class) + " is paused"
		}
		switch {
		case a.State == queue.Running:
			text += " since " + a.Started.UTC().Format(time.RFC3339)
		case a.State == queue.Delayed:
			text += " until " + a.Due.UTC().Format(time.RFC3339)
		case a.Ahead > 0:
			text += fmt.Sprintf(" since %s, %d ahead", a.Accepted.UTC().Format(time.RFC3339), a.Ahead)
		}
		list = append(list, text)
	}
	if omitted > 0 {
		list = append(list, fmt.Sprintf("queue: and %d more", omitted))
	}
	return list
}
