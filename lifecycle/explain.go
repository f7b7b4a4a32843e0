package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
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

	// Deadline is until when the move is to be made; zero: there is none. Then
	// says what happens after it, in words.
	Deadline time.Time `json:"deadline,omitzero"`
	Then     string    `json:"then,omitempty"`
	Manual   string    `json:"manual,omitempty"` // why there is no deadline

	// InTheWay is everything that is known to hold it up: places in the queue,
	// locks, preconditions that do not hold.
	InTheWay []string `json:"inTheWay,omitempty"`
	// Actors are all actors of the table, each with every event of the state.
	Actors []ActorExplanation `json:"actors"`
}

// ActorExplanation is what one actor can do.
type ActorExplanation struct {
	Actor  fsm.Actor          `json:"actor"`
	Events []EventExplanation `json:"events"`
}

// EventExplanation is one event of the state for one actor.
type EventExplanation struct {
	Event    string `json:"event"`
	Possible bool   `json:"possible"`
	To       string `json:"to,omitempty"`
	Forced   bool   `json:"forced,omitempty"` // it needs force
	Why      string `json:"why,omitempty"`    // it is not possible
}

// Explain says about an object who owes the next move, since when and until
// when, what happens then, what is in the way, and for each actor which events
// are possible and why the others are not. It runs the guards of the state once,
// and asks about each of the preconditions, which are those of a call that the
// caller has in mind. It changes nothing.
//
// Errors: those of [Manager.Get].
func (m *Manager[S, E, T]) Explain(ctx context.Context, id string, require ...Precondition) (Explanation, error) {
	fail := func(err error) (Explanation, error) {
		return Explanation{}, &Error{Verb: "explain", Machine: m.table.Name, ID: id, Err: err}
	}
	if err := checkID(id); err != nil {
		return fail(err)
	}
	r, err := m.store.Get(ctx, m.key(id))
	if err == nil && !r.Exists() {
		err = ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	rec, err := m.record(&r)
	if err != nil {
		return fail(err)
	}
	why, err := m.machine.Explain(ctx, rec.Status, &rec.Payload)
	if err != nil {
		return fail(err)
	}
	x := Explanation{
		Machine: m.table.Name, ID: id, State: r.State, Kind: why.Kind.String(), Target: r.Target, Since: r.ChangedAt.UTC(),
		Operation: r.Operation, Event: r.Event, Actor: r.Actor, Reason: r.Reason,
		Owner: r.Owner, Epoch: r.Epoch, Work: r.Work, Deadline: r.Deadline.UTC(), Manual: why.Manual,
	}
	if r.Origin != r.State {
		x.Origin = r.Origin
	}
	if x.OwnerAlive, err = m.ownerAlive(ctx, &r); err != nil {
		return fail(err)
	}
	x.deadline(m.table, &r)
	x.owes(m.table, &r, why)
	if err := m.inTheWay(ctx, &x, &r, require); err != nil {
		return fail(err)
	}
	for _, actor := range m.table.Actors {
		x.Actors = append(x.Actors, explainActor(actor, why))
	}
	return x, nil
}

func (m *Manager[S, E, T]) ownerAlive(ctx context.Context, r *StoredRecord) (bool, error) {
	s := sweeper[S, E, T]{m: m, alive: map[string]OpID{}}
	orphan, err := s.orphaned(ctx, r)
	return r.Owner != "" && !orphan, err
}

// deadline says what the sweeper will do.
func (x *Explanation) deadline(t *fsm.Table, r *StoredRecord) {
	state, origin, err := t.ParseStatus(r.State, r.Origin)
	if err != nil {
		return
	}
	within, row := t.Deadline(state, origin)
	if row < 0 {
		return
	}
	next, _ := t.After(state, origin, row)
	x.Then = fmt.Sprintf("after %v the sweeper fires %s: ", within, t.Events[t.Rows[row].Event])
	switch to := &t.States[next]; {
	case next == state && t.Rows[row].Supersede:
		x.Then += "the operation begins anew"
	case t.Rows[row].Then == fsm.ThenReturn:
		x.Then += "it goes back to " + to.Name
	case to.Kind == fsm.Absent:
		x.Then += "it is removed"
	default:
		x.Then += "it goes to " + to.Name
	}
}

// owes says who is to make the next move.
func (x *Explanation) owes(t *fsm.Table, r *StoredRecord, why fsm.Explanation) {
	var who []string
	for _, row := range why.Rows {
		for _, a := range row.Actors {
			if a != fsm.Sweeper && !row.Forced && !slices.Contains(who, string(a)) {
				who = append(who, string(a))
			}
		}
	}
	dead := r.Owner != "" && !x.OwnerAlive
	switch {
	case why.Kind != fsm.Transitional && len(r.Steps) > 0 && dead:
		x.Owes = "the process " + r.Owner + ", which is dead: the next sweep goes on with the next step"
	case why.Kind != fsm.Transitional && len(r.Steps) > 0 && r.Owner != "":
		x.Owes = "the process " + r.Owner + ", which is alive: the next step"
	case why.Kind != fsm.Transitional && x.Deadline.IsZero():
		x.Owes = "nobody: it is at rest"
	case why.Kind != fsm.Transitional:
		x.Owes = "nobody until the deadline: it is at rest"
	case r.Owner != "" && x.OwnerAlive:
		x.Owes = "the process " + r.Owner + ", which is alive"
	case dead && x.Then != "":
		x.Owes = "the process " + r.Owner + ", which is dead: the next sweep acts"
	case why.Manual != "" && (dead || len(who) == 0):
		x.Owes = "a person: " + why.Manual
	case len(who) > 0:
		x.Owes = strings.Join(who, " or ")
	case !x.Deadline.IsZero():
		x.Owes = "the sweeper, after the deadline"
	default:
		x.Owes = "a person: the table has no row for it"
	}
}

// inspector is a queue that can be looked into, as queue.Queuer can.
type inspector interface {
	Inspect(Key) []queue.Info[Key]
}

func (m *Manager[S, E, T]) inTheWay(ctx context.Context, x *Explanation, r *StoredRecord, require []Precondition) error {
	if q, ok := m.queue.(inspector); ok {
		for _, a := range q.Inspect(r.Key) {
			text := "queue: " + a.Name + " is " + a.State.String()
			switch {
			case a.State == queue.Running:
				text += " since " + a.Started.UTC().Format(time.RFC3339)
			case a.Ahead > 0:
				text += fmt.Sprintf(" since %s, %d ahead", a.Accepted.UTC().Format(time.RFC3339), a.Ahead)
			}
			x.InTheWay = append(x.InTheWay, text)
		}
	}
	if m.locks != nil {
		holders, err := m.locks(ctx, *r)
		if err != nil {
			return err
		}
		for _, h := range holders {
			x.InTheWay = append(x.InTheWay, "lock: "+h.String())
		}
	}
	for _, p := range require {
		now, err := m.store.Get(ctx, p.Key)
		if err != nil {
			return err
		}
		if !slices.Contains(p.States, now.State) {
			x.InTheWay = append(x.InTheWay, "precondition: "+(&PreconditionError{Precondition: p, Current: now}).detail())
		}
	}
	return nil
}

func explainActor(actor fsm.Actor, why fsm.Explanation) ActorExplanation {
	x := ActorExplanation{Actor: actor, Events: []EventExplanation{}}
	for _, row := range why.Rows {
		e := EventExplanation{Event: row.Event, To: row.To, Forced: row.Forced}
		switch {
		case !slices.Contains(row.Actors, actor):
			e.Why = "only by " + actors(row.Actors)
		case row.Err != nil:
			e.Why = reason(row.Err)
		default:
			e.Possible = true
		}
		x.Events = append(x.Events, e)
	}
	return x
}

func actors(list []fsm.Actor) string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// String tells it in lines for people.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q is %s (%s) since %s", x.Machine, x.ID, x.State, x.Kind, x.Since.Format(time.RFC3339))
	if x.Origin != "" {
		fmt.Fprintf(&b, ", came from %s", x.Origin)
	}
	b.WriteString("\n")
	if x.Event != "" {
		fmt.Fprintf(&b, "  last change: %s by %s in operation %d", x.Event, x.Actor, x.Operation)
		if x.Reason != "" {
			fmt.Fprintf(&b, ": %s", x.Reason)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "  the next move is owed by %s\n", x.Owes)
	if x.Work != "" {
		fmt.Fprintf(&b, "  work: %s\n", x.Work)
	}
	if !x.Deadline.IsZero() {
		fmt.Fprintf(&b, "  deadline: %s; %s\n", x.Deadline.Format(time.RFC3339), x.Then)
	}
	if x.Manual != "" {
		fmt.Fprintf(&b, "  no deadline: %s\n", x.Manual)
	}
	for _, w := range x.InTheWay {
		fmt.Fprintf(&b, "  %s\n", w)
	}
	for _, a := range x.Actors {
		fmt.Fprintf(&b, "  %s:\n", a.Actor)
		for _, e := range a.Events {
			switch {
			case e.Possible && e.Forced:
				fmt.Fprintf(&b, "    %s to %s, by force\n", e.Event, e.To)
			case e.Possible:
				fmt.Fprintf(&b, "    %s to %s\n", e.Event, e.To)
			default:
				fmt.Fprintf(&b, "    not %s: %s\n", e.Event, e.Why)
			}
		}
	}
	return b.String()
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
