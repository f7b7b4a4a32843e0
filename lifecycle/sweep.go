package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Remedy is what a sweep did about an object that is stuck.
type Remedy uint8

const (
	// Moved: the event was fired; the object is in To.
	Moved Remedy = iota + 1
	// Redone: the operation began anew, and this process does its work.
	Redone
	// Continued: the owner died between two steps, and this process does the
	// next one.
	Continued
	// LeftToPerson: the table says that somebody has to look after it, in Manual.
	LeftToPerson
	// LeftAlone: nobody owns it, or who did is dead, and the table has no row for
	// that: an override has put it there, or another table.
	LeftAlone
	// LeftToOthers: its work is a handler that this process does not have.
	LeftToOthers
	// Overtaken: somebody else moved it first.
	Overtaken
	// Unmoved: it could not be moved, for the reason in Err.
	Unmoved
)

var remedies = [...]string{
	"", "moved", "redone", "continued", "left to a person", "left alone", "left to others", "overtaken", "unmoved",
}

// String returns the remedy in lower case.
func (r Remedy) String() string {
	if int(r) < len(remedies) && r > 0 {
		return remedies[r]
	}
	return fmt.Sprintf("Remedy(%d)", uint8(r))
}

// Case is one object that a sweep found stuck, and what became of it.
type Case struct {
	Key
	Remedy    Remedy
	From, To  string
	Event     string
	Actor     fsm.Actor
	Operation OpID   // before
	Owner     string // before
	OwnerDead bool   // else its deadline was over
	Manual    string // why the table has no deadline
	Err       error
}

// String tells the case in a line.
func (c Case) String() string {
	text := fmt.Sprintf("%s in %s, operation %d: %v", c.Key.text(), c.From, c.Operation, c.Remedy)
	if c.To != "" {
		text += " to " + c.To + " by " + c.Event
	}
	if c.OwnerDead {
		text += ", owner " + c.Owner + " is dead"
	}
	if c.Manual != "" {
		text += ": " + c.Manual
	}
	if c.Err != nil {
		text += ": " + c.Err.Error()
	}
	return oneLine(text)
}

// Sweep looks once after every object that is stuck: its deadline is over, or
// the process that owned its operation is dead. What is done about it is the row
// of the table with the deadline: back to the origin, to a failed state, or the
// operation anew, which does its work again in this process. [Config.Observe]
// may look at the outside world first and choose another event.
//
// Clocks decide when Sweep looks, never who is right: every move is a
// compare-and-set on the record that was found, so that several sweepers, and
// owners that come back, do no work twice. What is stuck is found by the states
// in transition and those with deadlines; objects at rest cost nothing.
//
// Work of this manager whose operation another process has taken is told so: its
// context ends.
//
// It returns a case for each, also those it left alone. The error is the store's
// or the context's, and ends the sweep; the cases until then are returned too.
func (m *Manager[S, E, T]) Sweep(ctx context.Context) ([]Case, error) {
	var s sweeper[S, E, T]
	err := m.lookAround(ctx)
	if err == nil {
		err = s.expireOwners(ctx, m)
	}
	if err == nil {
		err = s.overdue(ctx)
	}
	if err == nil {
		err = s.orphans(ctx)
	}
	if err == nil && m.owner != nil && m.owner.epoch > 1 {
		// What an earlier life has left at rest, between two steps, nobody else
		// looks for: an owner of that name lives.
		err = s.ownedBy(ctx, m.owner.name)
	}
	if err != nil {
		err = &Error{Verb: "sweep", Machine: m.table.Name, Err: err}
	}
	return s.cases, err
}

// Recover is for the start of a process: it does what [Manager.Sweep] does about
// the operations of dead owners, earlier epochs of its own name first, without
// waiting for any deadline. The error is [ErrInvalid] without [Config.Owner], or
// as of Sweep.
func (m *Manager[S, E, T]) Recover(ctx context.Context) ([]Case, error) {
	if m.owner == nil {
		return nil, &Error{Verb: "recover", Machine: m.table.Name, Err: fmt.Errorf("%w: Config has no Owner", ErrInvalid)}
	}
	var s sweeper[S, E, T]
	err := s.expireOwners(ctx, m)
	if err == nil {
		err = s.ownedBy(ctx, m.owner.name)
	}
	if err == nil {
		err = s.orphans(ctx)
	}
	if err != nil {
		err = &Error{Verb: "recover", Machine: m.table.Name, Err: err}
	}
	return s.cases, err
}

// Run sweeps until ctx ends, which is no error: about every so often, up to a
// fifth sooner or later, so that several processes do not look at the same
// moment. Tell, if it is not nil, gets what each sweep found, and its error; a
// sweep that fails is tried again at the next time. Default of every, at 0: 10
// seconds. It starts no goroutine.
func (m *Manager[S, E, T]) Run(ctx context.Context, every time.Duration, tell func([]Case, error)) error {
	if every < 0 {
		return &Error{Verb: "run", Machine: m.table.Name, Err: fmt.Errorf("%w: every %v", ErrInvalid, every)}
	}
	if every == 0 {
		every = 10 * time.Second
	}
	every = min(every, math.MaxInt64/2) // with its jitter
	for {
		pause := time.NewTimer(every - every/5 + rand.N(every/5*2+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		cases, err := m.Sweep(ctx)
		// What it has done until its context ended was done.
		if tell != nil && (ctx.Err() == nil || len(cases) > 0) {
			tell(cases, err)
		}
	}
}

// sweeper is one sweep.
type sweeper[S, E comparable, T any] struct {
	m     *Manager[S, E, T]
	cases []Case
	alive map[string]OpID // owners by name, with their epoch; 0: dead
	seen  map[string]bool // the objects of the cases
}

var ownersDefault = sync.OnceValue(func() *fsm.Machine[ownerState, ownerEvent, struct{}] {
	return ownersMachine(DefaultTTL)
})

// expireOwners declares dead who has not beaten for its time to live. From then
// on nothing that it writes is accepted: its next heart-beat fails, and its
// operations are taken by a compare-and-set.
func (s *sweeper[S, E, T]) expireOwners(ctx context.Context, m *Manager[S, E, T]) error {
	s.m, s.alive = m, map[string]OpID{}
	if m.table.Name == ownersTableName {
		return nil
	}
	owners := sweeper[ownerState, ownerEvent, struct{}]{m: New(ownersDefault(), m.store, nil)}
	return owners.overdue(ctx)
}

// overdue looks after objects whose deadline is over.
func (s *sweeper[S, E, T]) overdue(ctx context.Context) error {
	var states []string
	for i := range s.m.table.States {
		if s.m.hasDeadline(i) {
			states = append(states, s.m.table.States[i].Name)
		}
	}
	if len(states) == 0 {
		return nil
	}
	return s.each(ctx, Query{States: states, Overdue: true}, func(r *StoredRecord) error {
		return s.care(ctx, r, decide.Sight{Overdue: true})
	})
}

// hasDeadline reports whether a state has a row with one, whatever the origin.
func (m *Manager[S, E, T]) hasDeadline(state int) bool {
	return slices.ContainsFunc(m.table.Rows, func(r fsm.TableRow) bool {
		return r.Within > 0 && slices.Contains(r.From, state)
	})
}

// orphans looks after objects in transition whose owner is dead, and after steps
// that a dead owner has left.
func (s *sweeper[S, E, T]) orphans(ctx context.Context) error {
	var states []string
	for _, st := range s.m.table.States {
		if st.Kind == fsm.Transitional {
			states = append(states, st.Name)
		}
	}
	if len(states) == 0 {
		return nil
	}
	dead := map[string]bool{}
	err := s.each(ctx, Query{States: states}, func(r *StoredRecord) error {
		orphan, err := s.orphaned(ctx, r)
		if orphan {
			dead[r.Owner] = true
		}
		if err != nil || !orphan && !s.m.forNobody(r) {
			return err
		}
		return s.care(ctx, r, decide.Sight{OwnerDead: true})
	})
	if err != nil || s.m.table.Name == ownersTableName {
		return err
	}
	// Owners that died at rest, between two steps, are found by their record.
	gone := Query{Machine: ownersTableName, States: []string{string(ownerDead)}}
	err = s.page(ctx, gone, func(r *StoredRecord) error { dead[r.ID] = true; return nil })
	for _, name := range slices.Sorted(maps.Keys(dead)) {
		if err == nil && name != "" {
			err = s.ownedBy(ctx, name)
		}
	}
	return err
}

// ownedBy looks after the objects of an owner, as far as it is dead or an
// earlier epoch.
func (s *sweeper[S, E, T]) ownedBy(ctx context.Context, name string) error {
	return s.each(ctx, Query{Owner: name}, func(r *StoredRecord) error {
		orphan, err := s.orphaned(ctx, r)
		if err != nil || !orphan {
			return err
		}
		return s.care(ctx, r, decide.Sight{OwnerDead: true})
	})
}

// forNobody reports whether nobody here will ever move an object: no process
// owns it, or this one has given it up, and the table has no deadline for it.
func (m *Manager[S, E, T]) forNobody(r *StoredRecord) bool {
	state, origin, err := m.table.ParseStatus(r.State, r.Origin)
	row := -1
	if err == nil {
		_, row = m.table.Deadline(state, origin)
	}
	return row < 0 && (r.Owner == "" || m.tasks.gaveUp(r))
}

// orphaned reports whether a record's owner is dead, or lives under another
// epoch. Nobody is not dead.
func (s *sweeper[S, E, T]) orphaned(ctx context.Context, r *StoredRecord) (bool, error) {
	if r.Owner == "" {
		return false, nil
	}
	// What is known may be older than the record. The bad schedule: the owner is
	// read and is dead, joins anew, begins an operation, and only then its record
	// is read. Epochs grow: an earlier one than the known one is over for good,
	// and everything else but the known one is asked for.
	epoch, known := s.alive[r.Owner]
	if !known || r.Epoch > uint64(epoch) {
		owner, err := s.m.store.Get(ctx, Key{ownersTableName, r.Owner})
		if err != nil {
			return false, err
		}
		epoch = 0
		if owner.State == string(ownerAlive) {
			epoch = owner.Operation
		}
		s.alive[r.Owner] = epoch
	}
	return uint64(epoch) != r.Epoch, nil
}

// each calls f for the records of this machine that a query selects.
func (s *sweeper[S, E, T]) each(ctx context.Context, q Query, f func(*StoredRecord) error) error {
	q.Machine = s.m.table.Name
	return s.page(ctx, q, f)
}

func (s *sweeper[S, E, T]) page(ctx context.Context, q Query, f func(*StoredRecord) error) error {
	q.Limit = 500
	for {
		found, err := s.m.store.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range found {
			if err := f(&found[i]); err != nil {
				return err
			}
		}
		if len(found) < q.Limit {
			return nil
		}
		q.After = found[len(found)-1].ID
	}
}

// care does what is decided about one object. The error is one that ends the
// sweep; what concerns the object alone is in its case.
func (s *sweeper[S, E, T]) care(ctx context.Context, r *StoredRecord, sight decide.Sight) error {
	if s.seen[r.ID] { // overdue and an orphan, and nothing helped the first time
		return nil
	}
	found := Case{
		Key: r.Key, From: r.State, Operation: r.Operation, Owner: r.Owner,
		OwnerDead: sight.OwnerDead && r.Owner != "" && !s.m.tasks.gaveUp(r),
	}
	var known decide.Record
	if err := s.m.known(r, &known); err != nil {
		found.Remedy, found.Err = Unmoved, err
		s.tell(found)
		return nil
	}
	q, care := decide.Sweep(s.m.table, &known, sight)
	switch care {
	case decide.LeaveAlone:
		return nil
	case decide.AskSomebody:
		found.Remedy, found.Manual = LeftToPerson, s.m.table.States[known.State].Manual
	case decide.CannotHelp:
		found.Remedy = LeftAlone
	case decide.FireEvent:
		s.fire(ctx, r, known, q, &found)
	case decide.NextStep:
		s.next(ctx, r, &found)
	}
	s.tell(found)
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	return nil
}

func (s *sweeper[S, E, T]) tell(c Case) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[c.ID] = true
	s.cases = append(s.cases, c)
}

// fire fires the event of the deadline, or the one that was observed.
func (s *sweeper[S, E, T]) fire(ctx context.Context, r *StoredRecord, known decide.Record, q decide.Request, found *Case) {
	m := s.m
	e := m.machine.EventAt(q.Event)
	if m.observe != nil {
		seen, actor, err := m.observe(ctx, *r)
		if err != nil {
			found.Remedy, found.Err = Unmoved, err
			return
		}
		// Who says what the sweeper would have said means its row, with all that it
		// does.
		if same := actor == q.Actor && m.machine.EventIndex(seen) == q.Event; actor != "" && !same {
			e = seen
			q = decide.Request{Verb: decide.Fire, Event: m.machine.EventIndex(e), Actor: actor}
		}
	}
	found.Event, found.Actor = fmt.Sprint(e), q.Actor
	if q.Event >= 0 { // what is observed may be unknown to the table
		found.Event = m.table.Events[q.Event]
	}
	c := m.call("sweep", r.ID, q.Actor)
	c.before, c.told, c.aged, c.q, c.event = *r, true, true, q, e
	if !q.Sweep || r.Work == "" || !decide.Redoes(m.table, known.State, known.Origin) {
		err := c.run(ctx)
		found.settle(Moved, err)
		found.To = c.moved(found.Err)
		return
	}
	if m.handlers[r.Work] == nil {
		found.Remedy = LeftToOthers
		return
	}
	// Behind itself it is done no sooner. Without this a queue whose head hangs gets
	// longer with every deadline.
	if m.tasks.waits(r) {
		found.Remedy, found.Err = Unmoved, errWaits
		return
	}
	actor, work, rest, err := m.decodeSteps(r)
	if err != nil {
		found.Remedy, found.Err = Unmoved, err
		return
	}
	o := m.operation()
	o.id, o.actor = r.ID, actor
	o.steps = append([]Step[E]{{c.event, work}}, rest...)
	_, err = o.submit(ctx, &work, func(ctx context.Context) error {
		err := c.run(ctx)
		switch {
		case err != nil:
			c.perhapsBegun(err)
			return err
		case !c.wrote || c.after().Operation == r.Operation:
			return errMoved // the guards chose a row that ends it
		}
		return o.begun(c)
	})
	if err == errMoved {
		found.settle(Moved, nil)
	} else {
		found.settle(Redone, err)
	}
	found.To = c.moved(found.Err)
}

var (
	errMoved = errors.New("lifecycle: nothing to do again")
	errWaits = errors.New("lifecycle: its work waits for its turn here")
)

// next does the step that a dead owner has left.
func (s *sweeper[S, E, T]) next(ctx context.Context, r *StoredRecord, found *Case) {
	m := s.m
	actor, _, steps, err := m.decodeSteps(r)
	if err != nil || len(steps) == 0 {
		found.Remedy, found.Err = Unmoved, err
		return
	}
	found.Event, found.Actor = fmt.Sprint(steps[0].Event), actor
	if m.handlers[steps[0].Work.Handler] == nil {
		found.Remedy = LeftToOthers
		return
	}
	o := m.operation()
	o.id, o.actor, o.steps = r.ID, actor, steps
	_, err = o.submit(ctx, &steps[0].Work, func(ctx context.Context) error {
		err := o.admit(ctx, r, nil)
		if err == nil {
			found.To = o.rec.State
		}
		return err
	})
	found.settle(Continued, err)
	if refusedByTable(found.Err) {
		// The table refuses the step now: the chain has ended here.
		o.rec = *r
		o.release(ctx)
	}
}

// refusedByTable reports whether an event cannot be fired, however often it is
// tried while the object stays as it is.
func refusedByTable(err error) bool {
	for _, refusal := range []error{fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrForcedOnly, fsm.ErrGuard, ErrNotFound} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// settle says what became of a remedy.
func (c *Case) settle(remedy Remedy, err error) {
	switch {
	case err == nil:
		c.Remedy = remedy
	case errors.Is(err, ErrConflict):
		c.Remedy, c.Err = Overtaken, err
	default:
		c.Remedy, c.Err = Unmoved, err
	}
}

// moved returns the state that a call has moved its object to.
func (c *call[S, E, T]) moved(err error) string {
	if err != nil || !c.wrote {
		return ""
	}
	return c.after().State
}
