package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
)

// Explanation is the answer to the question at three in the morning: why does
// this object not move, and what will happen to it. It is a value, made for JSON
// and, by its String, for people. Times are in UTC, whoever tells them.
type Explanation struct {
	Machine   string    `json:"machine"`
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Origin    string    `json:"origin,omitempty"` // where it was at rest last, if that is another state
	Kind      string    `json:"kind"`
	Target    string    `json:"target,omitempty"`
	Since     time.Time `json:"since"`
	Operation OpID      `json:"operation,omitempty"`
	Event     string    `json:"event,omitempty"` // of the last change
	Actor     fsm.Actor `json:"actor,omitempty"` // of the last change
	Reason    string    `json:"reason,omitempty"`

	// Owes says who owes the next move, in words.
	Owes       string `json:"owes"`
	Owner      string `json:"owner,omitempty"`
	Epoch      uint64 `json:"epoch,omitempty"`
	OwnerAlive bool   `json:"ownerAlive,omitempty"`
	Work       string `json:"work,omitempty"` // the handler that does it
	// Next are the events of the steps that follow in a chain of named handlers.
	Next []string `json:"next,omitempty"`

	// Deadline is until when the move is to be made; zero: there is none. Then
	// says what happens after it, in words.
	Deadline time.Time `json:"deadline,omitzero"`
	Then     string    `json:"then,omitempty"`
	Manual   string    `json:"manual,omitempty"` // why there is no deadline

	// InTheWay is what is known to hold it up: places in the queue, locks,
	// preconditions that do not hold. Of many places, and of many locks, it has the
	// first and how many there are.
	InTheWay []string `json:"inTheWay,omitempty"`
	// Actors are all actors of the table, each with every event of the state, and
	// people and peers with those that they can say in other states.
	Actors []ActorExplanation `json:"actors"`
}

// ActorExplanation is what one actor can do.
type ActorExplanation struct {
	Actor  fsm.Actor          `json:"actor"`
	Events []EventExplanation `json:"events"`
}

// EventExplanation is what becomes of one event that one actor says. There are
// two of an event that leads elsewhere by force.
type EventExplanation struct {
	Event    string `json:"event"`
	Possible bool   `json:"possible"`
	To       string `json:"to,omitempty"`      // empty if it is not possible and could lead to several
	Forced   bool   `json:"forced,omitempty"`  // it needs force
	Ignored  bool   `json:"ignored,omitempty"` // it is accepted, and changes nothing
	Why      string `json:"why,omitempty"`     // it is not possible
}

// Explain says about an object who owes the next move, since when and until
// when, what happens then, what is in the way, and for each actor which events
// are possible and why the others are not. It asks every guard of the state once,
// each about a payload of its own, with ctx and without any lock; one that panics
// lets nobody through. It asks about each of the preconditions, which are those of
// a call that the caller has in mind. It changes nothing.
//
// What cannot be found out is told as such: guards whose payload cannot be read,
// and locks that cannot be asked about. Errors: [ErrNotFound], [ErrInvalid],
// [ErrForeign], or the store's.
func (m *Manager[S, E, T]) Explain(ctx context.Context, id string, require ...Precondition) (Explanation, error) {
	fail := func(err error) (Explanation, error) {
		return Explanation{}, &Error{Verb: "explain", Machine: m.table.Name, ID: id, Err: err}
	}
	err := checkID(id)
	if err == nil {
		err = checkRequire(require)
	}
	if err != nil {
		return fail(err)
	}
	r, err := m.store.Get(ctx, m.key(id))
	if err == nil && !r.Exists() {
		err = ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	why := explainer[S, E, T]{m: m, r: &r, reasons: map[int]error{}}
	if err := m.known(&r, &why.known); err != nil {
		return fail(err)
	}
	state := &m.table.States[why.known.State]
	x := Explanation{
		Machine: m.table.Name, ID: id, State: r.State, Kind: state.Kind.String(), Target: r.Target, Since: r.ChangedAt.UTC(),
		Operation: r.Operation, Event: r.Event, Actor: r.Actor, Reason: r.Reason,
		Owner: r.Owner, Epoch: r.Epoch, Work: r.Work, Deadline: r.Deadline.UTC(), Manual: state.Manual,
	}
	if r.Origin != r.State {
		x.Origin = r.Origin
	}
	if x.OwnerAlive, err = m.ownerAlive(ctx, &r); err != nil {
		return fail(err)
	}
	x.Actors = why.actors(ctx)
	x.Then = why.then(ctx)
	x.Next = m.following(&r)
	x.owes(&r, state.Kind, why.movers())
	if err := m.inTheWay(ctx, &x, &r, require); err != nil {
		return fail(err)
	}
	if ctx.Err() != nil { // what the guards said may be no more than that
		return fail(Ended(ctx))
	}
	return x, nil
}

func (m *Manager[S, E, T]) ownerAlive(ctx context.Context, r *StoredRecord) (bool, error) {
	s := sweeper[S, E, T]{m: m, alive: map[string]OpID{}}
	orphan, err := s.orphaned(ctx, r)
	return r.Owner != "" && !orphan, err
}

// following are the events of the steps that follow in a chain.
func (m *Manager[S, E, T]) following(r *StoredRecord) (events []string) {
	_, _, steps, err := m.decodeSteps(r)
	if err != nil {
		return []string{err.Error()}
	}
	for _, s := range steps {
		events = append(events, m.table.Events[m.machine.EventIndex(s.Event)])
	}
	return events
}

// owes says who is to make the next move: who are the actors that could.
func (x *Explanation) owes(r *StoredRecord, kind fsm.Kind, who []string) {
	dead, late := r.Owner != "" && !x.OwnerAlive, !x.Deadline.IsZero() && !x.Deadline.After(time.Now())
	orSweeper := ""
	if late && x.Then != "" {
		// Whether it is over is for the store's clock to say, which cannot be asked.
		orSweeper = " or the sweeper, because the deadline is over by the clock of this process"
	}
	switch {
	case kind != fsm.Transitional && len(r.Steps) > 0 && dead:
		x.Owes = "the process " + r.Owner + ", which is dead: the next sweep goes on with the next step"
	case kind != fsm.Transitional && len(r.Steps) > 0 && r.Owner != "":
		x.Owes = "the process " + r.Owner + ", which is alive: the next step"
	case kind != fsm.Transitional && x.Deadline.IsZero():
		x.Owes = "nobody: it is at rest"
	case kind != fsm.Transitional && orSweeper != "":
		x.Owes = strings.TrimPrefix(orSweeper, " or ")
	case kind != fsm.Transitional:
		x.Owes = "nobody until the deadline: it is at rest"
	case r.Owner != "" && x.OwnerAlive:
		x.Owes = "the process " + r.Owner + ", which is alive" + orSweeper
	case dead && x.Then != "":
		x.Owes = "the process " + r.Owner + ", which is dead: the next sweep acts"
	case x.Manual != "" && (dead || len(who) == 0):
		x.Owes = "a person: " + x.Manual
	case len(who) > 0:
		x.Owes = strings.Join(who, " or ") + orSweeper
	case orSweeper != "":
		x.Owes = strings.TrimPrefix(orSweeper, " or ")
	case !x.Deadline.IsZero():
		x.Owes = "the sweeper, after the deadline"
	default:
		x.Owes = "a person: the table has no row for it"
	}
}

// String tells it in lines for people.
func (x Explanation) String() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(oneLine(fmt.Sprintf(format, args...)))
		b.WriteString("\n")
	}
	head := fmt.Sprintf("%s %q is %s (%s) since %s", x.Machine, x.ID, x.State, x.Kind, x.Since.Format(time.RFC3339))
	if x.Origin != "" {
		head += ", came from " + x.Origin
	}
	if x.Target != "" {
		head += ", on its way to " + x.Target
	}
	line("%s", head)
	last := "added"
	if x.Event != "" {
		last = x.Event
	}
	last += " by " + string(x.Actor)
	if x.Operation != 0 {
		last += fmt.Sprintf(" in operation %d", x.Operation)
	}
	if x.Reason != "" {
		last += ": " + x.Reason
	}
	line("  last change: %s", last)
	line("  the next move is owed by %s", x.Owes)
	if x.Work != "" {
		line("  work: %s", x.Work)
	}
	if len(x.Next) > 0 {
		line("  steps that follow: %s", strings.Join(x.Next, ", "))
	}
	if !x.Deadline.IsZero() {
		line("  deadline: %s; %s", x.Deadline.Format(time.RFC3339), x.Then)
	}
	if x.Manual != "" {
		line("  no deadline: %s", x.Manual)
	}
	for _, w := range x.InTheWay {
		line("  %s", w)
	}
	for _, a := range x.Actors {
		line("  %s:", a.Actor)
		for _, e := range a.Events {
			line("    %s", e.text())
		}
	}
	return b.String()
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
		text += ", by force"
	}
	if !e.Possible {
		text += ": " + e.Why
	}
	return text
}

// LocksOf looks up in a [lock.Locker] who holds or awaits what is at, above and
// below the path that belongs to an object: for [Config.Locks].
func LocksOf(l lock.Locker, path func(StoredRecord) (lock.Path, error)) func(context.Context, StoredRecord) ([]lock.Holder, error) {
	return func(ctx context.Context, r StoredRecord) ([]lock.Holder, error) {
		p, err := path(r)
		if err != nil {
			return nil, err
		}
		return l.Holders(ctx, p, lock.Above|lock.At|lock.Below)
	}
}
