package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// call is one request on its way: read, decide, edit, commit, tell.
type call[S, E comparable, T any] struct {
	m       *Manager[S, E, T]
	verb    string
	id      string
	event   E // meaningless for add
	actor   fsm.Actor
	q       decide.Request
	change  *Change[T]   // nil is none
	reason  string       // of the change, or said otherwise
	payload T            // given to create and add, else read from the record
	before  StoredRecord // the record that the request was decided on
	known   decide.Record
	d       decide.Decision // the last
	wrote   bool
	ignored bool    // the table ignores the event, and there is nothing to write
	result  T       // if wrote or ignored: the payload as it is now
	work    *Work   // what begins with the operation
	steps   []byte  // what is to follow it
	outcome Outcome // of work, if the call writes one
	task    *Task   // and its task
	// and then the report, and the events to say it by: one of them is the event
	outcomeOf decide.Request
	ends      []int
	creates   bool // if there is no object, the event makes it
	joins     bool // it is a part of another object's operation
	told      bool // before is known already: from a conflict, or from a list
	aged      bool // before was not read for this call, nor told by its conflict
	sent      bool // the last error is the store's answer to a commit, not somebody's own
	lent      bool // a store may still be at the draft
	guesses   bool // before is a recalled record, which may be over

	draft  Commit
	one    [1]StoredChange // of the draft
	tokens Token           // the last one drawn; kept from use to use
}

// How often a call reads again what has changed under it: a report, because it
// is about an operation and not about a state, and a create whose object is
// still absent. Who is overtaken this often gives up with the conflict.
const maxAttempts = 16

// call returns a call that is used again when it is done: with the record before
// and the commit it is most of what a request would put on the stack, and a
// goroutine's first stack is small.
func (m *Manager[S, E, T]) call(verb, id string, actor fsm.Actor) *call[S, E, T] {
	c, ok := m.calls.Get().(*call[S, E, T])
	if !ok {
		c = new(call[S, E, T])
	}
	c.m, c.verb, c.id, c.actor, c.q.Actor = m, verb, id, actor, actor
	return c
}

// done gives the call back. Nobody looks at it any more. A call that is not given
// back is garbage, no more.
func (c *call[S, E, T]) done() {
	if c.lent {
		return
	}
	// What is left in it is written before it is read: the record, the commit
	// and what was decided. They are most of it.
	var event E
	var payload T
	m := c.m
	c.event, c.payload, c.result, c.change, c.reason = event, payload, payload, nil, ""
	c.q, c.task = decide.Request{}, nil
	if c.outcome != 0 {
		c.outcomeOf, c.ends, c.outcome = decide.Request{}, nil, 0
	}
	c.work, c.steps, c.before.State = nil, nil, ""
	c.creates, c.joins, c.told, c.aged, c.wrote, c.ignored = false, false, false, false, false, false
	m.calls.Put(c)
}

// run performs the request. The error is complete.
func (c *call[S, E, T]) run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return c.fail(err)
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx)
		if err == nil {
			return nil
		}
		if c.d.Err == decide.ErrExists {
			return c.fail(&existsError{&ConflictError{Current: c.before}})
		}
		lost, conflict := c.lost(err)
		switch {
		case !conflict || c.before.Exists():
			return c.fail(err)
		case lost.Current.Exists():
			return c.fail(&existsError{lost})
		case attempt == maxAttempts:
			return c.fail(err)
		}
		// Only the numbers of the absent object moved on, which changes nothing
		// for who wants to create it.
		c.before, c.told, c.aged = lost.Current, true, false
	}
}

// finish is run for a caller that needs no more of the call.
func (c *call[S, E, T]) finish(ctx context.Context, rec *Record[S, T]) error {
	err := c.run(ctx)
	if err == nil {
		c.record(rec)
	}
	c.done()
	return err
}

// record makes rec the record as the call has left it; there is none if it has
// moved nothing.
func (c *call[S, E, T]) record(rec *Record[S, T]) {
	r, state, origin := &c.before, c.known.State, c.known.Origin
	switch {
	case c.wrote:
		r, state, origin = c.after(), c.d.State, c.d.Origin
	case !c.ignored:
		return
	}
	rec.State, rec.Origin = c.m.machine.StateAt(state), c.m.machine.StateAt(origin)
	c.m.fill(rec, r)
	rec.Payload = c.result
}

// fires makes the call one that fires its event.
func (c *call[S, E, T]) fires(change *Change[T]) {
	c.q.Verb, c.q.Event, c.q.Work = decide.Fire, c.m.machine.EventIndex(c.event), c.work != nil
	c.changes(change)
}

// changes says what the call does besides moving the object.
func (c *call[S, E, T]) changes(change *Change[T]) {
	if change != nil {
		c.change, c.reason = change, change.Reason
		c.q.Force, c.q.Edits = change.Force, change.Edit != nil
	}
}

// after is the record that was written. Something was.
func (c *call[S, E, T]) after() *StoredRecord { return &c.draft.Changes[0].To }

// lost returns the conflict with which the store answered a commit. A conflict
// that a guard or Edit brought along from elsewhere is none.
func (c *call[S, E, T]) lost(err error) (*ConflictError, bool) {
	if !c.sent || errors.Is(err, ErrUnknownOutcome) {
		return nil, false
	}
	return errors.AsType[*ConflictError](err)
}

// check refuses what is wrong whatever the object's state.
func (c *call[S, E, T]) check() error {
	q := &c.q
	if err := checkID(c.id); err != nil {
		return err
	}
	if err := c.checkTexts(); err != nil {
		return err
	}
	if q.Verb != decide.Add && q.Verb != decide.Override && q.Event < 0 {
		return &fsm.TransitionError{
			Machine: c.m.table.Name, Event: fmt.Sprint(c.event), Actor: c.actor, Row: -1, Err: fsm.ErrUnknownEvent,
		}
	}
	if q.Verb != decide.Add {
		return nil
	}
	if _, ok := c.m.table.ActorIndex(c.actor); !ok {
		return &fsm.TransitionError{
			Machine: c.m.table.Name, To: c.m.table.States[c.m.table.Initial].Name, Actor: c.actor, Row: -1,
			Err: fsm.ErrWrongActor,
		}
	}
	return nil
}

// checkTexts refuses what comes from the caller and is to be kept as text.
func (c *call[S, E, T]) checkTexts() error {
	if c.reason != "" {
		if err := checkText("reason", c.reason); err != nil {
			return err
		}
	}
	if c.q.Verb == decide.Override { // every other actor is one of the table
		if err := checkText("actor", string(c.actor)); err != nil {
			return err
		}
	}
	if c.change == nil {
		return nil
	}
	if err := checkRequire(c.change.Require); err != nil {
		return err
	}
	for i := range c.change.Messages {
		if err := errors.Join(checkText("topic", c.change.Messages[i].Topic), checkText("key", c.change.Messages[i].Key)); err != nil {
			return err
		}
	}
	return nil
}

// checkRequire refuses preconditions that say nothing.
func checkRequire(list []Precondition) error {
	for i := range list {
		if err := list[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// attempt reads the record, decides and commits, once; before that it guesses, if
// the store recalls the record.
func (c *call[S, E, T]) attempt(ctx context.Context) error {
	if c.recall(ctx) {
		if settled, err := c.guess(ctx); settled {
			return err
		}
	}
	if err := c.prepare(ctx); err != nil || !c.d.Write {
		return err
	}
	return c.commit(ctx)
}

// prepare reads the record and decides. What is to be written is not yet.
func (c *call[S, E, T]) prepare(ctx context.Context) error {
	c.sent, c.wrote, c.ignored, c.d.Err, c.d.Write = false, false, false, nil, false
	if !c.told {
		c.aged = false
		if err := c.m.read(ctx, c.m.key(c.id), &c.before); err != nil {
			return err
		}
	}
	c.told = false
	if c.change != nil && c.change.Expect != "" && c.change.Expect != c.before.Revision {
		return &ConflictError{Expect: c.change.Expect, From: c.before.State, Current: c.before}
	}
	var err error
	if err = c.m.known(&c.before, &c.known); err != nil {
		return c.refuses(err)
	}
	if c.change != nil && c.change.Operation != 0 && c.before.Exists() && c.before.Operation != c.change.Operation {
		return stale(&c.before)
	}
	q := &c.q
	if c.creates && q.Verb <= decide.Fire {
		q.Verb = decide.Fire
		if !c.known.Exists && c.m.makes && (c.change == nil || c.change.Operation == 0) {
			q.Verb, q.Either = decide.Create, true
		}
	}
	if c.outcome != 0 {
		var ok bool
		c.q, ok = c.outcomeOf.Outcome(c.m.table, &c.known, decide.Outcome(c.outcome), c.ends)
		switch {
		case ok:
		case c.isOver():
			c.d = decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
			return public(c.d.Err)
		default:
			return c.refuses(fmt.Errorf("%w: no event says how the work ended", ErrInvalid))
		}
		c.event, c.actor = c.m.machine.EventAt(q.Event), q.Actor
	}
	if q.Verb == decide.Report && c.known.Exists && c.m.table.States[c.known.State].Kind.Resting() {
		if c.guesses {
			return errGuess // the history would be asked
		}
		if q.Repeats, err = c.repeats(ctx); err != nil {
			return err
		}
	}
	q.Undo = len(c.m.undo) > 0 && q.Verb != decide.Add && q.Verb != decide.Override && slices.Contains(c.m.undo, c.event)
	if err = c.decide(ctx); err != nil {
		return err
	}
	d := &c.d
	switch {
	case d.Err != nil:
		return public(d.Err)
	case q.Work && !d.Begins:
		return fmt.Errorf("%w: %v in %s begins no operation to work in", ErrInvalid, c.event, c.before.State)
	case q.Work && c.work.Run != nil && c.m.redoes && decide.Redoes(c.m.table, d.State, d.Origin):
		return fmt.Errorf("%w: after a crash the work of %s is done again: it needs a handler, not a function",
			ErrInvalid, c.m.table.States[d.State].Name)
	case d.Write:
		return nil
	case c.before.Exists():
		c.result, err = c.m.unpack(c.before.Payload)
		c.ignored = err == nil
		return err
	case q.Verb != decide.Report:
		return ErrNotFound // the table ignores the event, and there is no object
	}
	return nil // a repeated report about an object that is gone
}

// refuses makes an error of one object alone the word about its outcome, as if the
// table had refused it: nothing can be written, however often it is tried, and the
// outcomes of others do not depend on it.
func (c *call[S, E, T]) refuses(err error) error {
	if c.outcome != 0 {
		c.d = decide.Decision{Row: -1, Verdict: decide.Refused, Err: err}
	}
	return err
}

// isOver reports whether the operation whose outcome is to be written is not the
// object's any more: somebody else has ended it, and no event is needed to say so.
func (c *call[S, E, T]) isOver() bool {
	q, r := &c.outcomeOf, &c.known
	return !r.Exists || c.m.table.States[r.State].Kind.Resting() ||
		r.Operation != q.Operation || r.Owner != q.Owner || r.Epoch != q.Epoch
}

// read makes r what the store has of an object.
func (m *Manager[S, E, T]) read(ctx context.Context, key Key, r *StoredRecord) (err error) {
	if m.memory != nil {
		return m.memory.read(ctx, key, r)
	}
	*r, err = m.store.Get(ctx, key)
	return err
}

// known makes rec a stored record as decisions see it.
func (m *Manager[S, E, T]) known(r *StoredRecord, rec *decide.Record) (err error) {
	*rec = decide.Record{
		Exists: r.Exists(), Sequence: r.Sequence, Operation: uint64(r.Operation), Saved: r.Saved != nil,
		Work: r.Work != "", Steps: len(r.Steps) > 0, Owner: r.Owner, Epoch: r.Epoch,
	}
	if !rec.Exists {
		return nil
	}
	rec.State, rec.Origin, err = m.table.ParseStatus(r.State, r.Origin)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

// decide runs the guards that the request's candidates ask for, and decides.
// The payload is a fresh copy afterwards: a guard that changed its copy against
// the rules has changed nothing.
func (c *call[S, E, T]) decide(ctx context.Context) error {
	var buf [4]int
	rows, d, ok := c.q.Candidates(c.m.table, &c.known, buf[:0])
	if !ok {
		c.d = d
		return nil
	}
	var space [4]error
	results := space[:0]
	for _, row := range rows {
		var reason error
		if c.m.table.Rows[row].Guard != "" {
			var err error
			if reason, err = c.guard(ctx, row); err != nil {
				return err
			}
		}
		results = append(results, reason)
		if reason == nil {
			break
		}
	}
	c.d = c.q.Decide(c.m.table, &c.known, rows, results)
	return nil
}

// guard asks the guard of a row. It stands by itself because what the guard sees
// is allocated, and most rows have none.
func (c *call[S, E, T]) guard(ctx context.Context, row int) (reason, err error) {
	payload, err := c.present()
	if err != nil {
		return nil, err
	}
	return c.m.machine.Check(ctx, row, &payload), nil
}

// present returns a copy of the payload that the object has, or is to be
// created with.
func (c *call[S, E, T]) present() (T, error) {
	if c.before.Exists() {
		return c.m.unpack(c.before.Payload)
	}
	if c.m.plain {
		return c.payload, nil
	}
	packed, err := c.m.pack(c.payload)
	if err != nil {
		return c.payload, err
	}
	return c.m.unpack(packed)
}

// fail wraps an error with everything that is known about the call.
func (c *call[S, E, T]) fail(err error) error {
	e := &Error{
		Verb: c.verb, Machine: c.m.table.Name, ID: c.id, From: c.before.State, Actor: c.actor, Err: err,
	}
	if c.verb != "add" && c.verb != "override" {
		e.Event = fmt.Sprint(c.event)
	}
	if tell := c.m.observer.Refused; tell != nil {
		tell(e)
	}
	return e
}
