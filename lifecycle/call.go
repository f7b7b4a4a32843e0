package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	change  Change[T]
	payload T            // given to create and add, else read from the record
	before  StoredRecord // the record that the request was decided on
	told    bool         // before comes from the conflict of the attempt before
	sent    bool         // the last error is the store's answer to a commit, not somebody's own
}

// How often a call reads again what has changed under it: a report, because it
// is about an operation and not about a state, and a create whose object is
// still absent. Who is overtaken this often gives up with the conflict.
const maxAttempts = 16

func (m *Manager[S, E, T]) call(verb, id string, actor fsm.Actor) *call[S, E, T] {
	return &call[S, E, T]{m: m, verb: verb, id: id, actor: actor}
}

// run performs the request. The error is complete.
func (c *call[S, E, T]) run(ctx context.Context, q decide.Request) (Record[S, T], error) {
	if err := c.check(q); err != nil {
		return Record[S, T]{}, c.fail(err)
	}
	for attempt := 1; ; attempt++ {
		rec, d, err := c.attempt(ctx, q)
		if err == nil {
			return rec, nil
		}
		if d.Err == decide.ErrExists {
			return Record[S, T]{}, c.fail(&existsError{&ConflictError{Current: c.before}})
		}
		lost, conflict := c.lost(err)
		switch {
		case !conflict || c.before.Exists():
			return Record[S, T]{}, c.fail(err)
		case lost.Current.Exists():
			return Record[S, T]{}, c.fail(&existsError{lost})
		case attempt == maxAttempts:
			return Record[S, T]{}, c.fail(err)
		}
		// Only the numbers of the absent object moved on, which changes nothing
		// for who wants to create it.
		c.before, c.told = lost.Current, true
	}
}

// lost returns the conflict with which the store answered a commit. A conflict
// that a guard or Edit brought along from elsewhere is none.
func (c *call[S, E, T]) lost(err error) (*ConflictError, bool) {
	if !c.sent || errors.Is(err, ErrUnknownOutcome) {
		return nil, false
	}
	return errors.AsType[*ConflictError](err)
}

// check refuses what is wrong whatever the object's state.
func (c *call[S, E, T]) check(q decide.Request) error {
	if err := checkID(c.id); err != nil {
		return err
	}
	if q.Verb != decide.Add && q.Event < 0 {
		return &fsm.TransitionError{
			Machine: c.m.table.Name, Event: fmt.Sprint(c.event), Actor: c.actor, Row: -1, Err: fsm.ErrUnknownEvent,
		}
	}
	if _, ok := c.m.table.ActorIndex(c.actor); q.Verb == decide.Add && !ok {
		return &fsm.TransitionError{
			Machine: c.m.table.Name, To: c.m.table.States[c.m.table.Initial].Name, Actor: c.actor, Row: -1,
			Err: fsm.ErrWrongActor,
		}
	}
	return nil
}

// attempt reads the record, decides and commits, once.
func (c *call[S, E, T]) attempt(ctx context.Context, q decide.Request) (Record[S, T], decide.Decision, error) {
	var none Record[S, T]
	c.sent = false
	q.Undo = q.Verb != decide.Add && slices.Contains(c.m.undo, c.event)
	if !c.told {
		if err := c.read(ctx); err != nil {
			return none, decide.Decision{}, err
		}
	}
	c.told = false
	known, err := c.known()
	if err != nil {
		return none, decide.Decision{}, err
	}
	if q.Verb == decide.Report && known.Exists && c.m.table.States[known.State].Kind.Resting() {
		if q.Repeats, err = c.repeats(ctx, q); err != nil {
			return none, decide.Decision{}, err
		}
	}
	d, err := c.decide(ctx, q, known)
	switch {
	case err != nil:
		return none, d, err
	case d.Err != nil:
		return none, d, public(d.Err)
	}
	if !d.Write {
		if !c.before.Exists() && q.Verb != decide.Report {
			return none, d, ErrNotFound // the table ignores the event, and there is no object
		}
		if !c.before.Exists() {
			return none, d, nil // a repeated report about an object that is gone
		}
		rec, err := c.m.record(&c.before)
		return rec, d, err
	}
	rec, err := c.commit(ctx, q, d)
	return rec, d, err
}

func (c *call[S, E, T]) read(ctx context.Context) (err error) {
	c.before, err = c.m.store.Get(ctx, c.m.key(c.id))
	return err
}

// known is the record as decisions see it.
func (c *call[S, E, T]) known() (decide.Record, error) {
	rec := decide.Record{
		Exists: c.before.Exists(), Sequence: c.before.Sequence,
		Operation: uint64(c.before.Operation), Saved: c.before.Saved != nil,
	}
	if !rec.Exists {
		return rec, nil
	}
	var err error
	rec.State, rec.Origin, err = c.m.table.ParseStatus(c.before.State, c.before.Origin)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return rec, err
}

// decide runs the guards that the request's candidates ask for, and decides.
// The payload is a fresh copy afterwards: a guard that changed its copy against
// the rules has changed nothing.
func (c *call[S, E, T]) decide(ctx context.Context, q decide.Request, rec decide.Record) (decide.Decision, error) {
	var buf [4]int
	rows, d, ok := q.Candidates(c.m.table, rec, buf[:0])
	if !ok {
		return d, nil
	}
	var space [4]error
	results := space[:0]
	for _, row := range rows {
		var reason error
		if c.m.table.Rows[row].Guard != "" {
			payload, err := c.present()
			if err != nil {
				return d, err
			}
			reason = c.m.machine.Check(ctx, row, &payload)
		}
		results = append(results, reason)
		if reason == nil {
			break
		}
	}
	return q.Decide(c.m.table, rec, rows, results), nil
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

// commit writes what was decided. The error is that of the store or of Edit.
func (c *call[S, E, T]) commit(ctx context.Context, q decide.Request, d decide.Decision) (Record[S, T], error) {
	var none Record[S, T]
	states := c.m.table.States
	to := StoredRecord{
		Key: c.before.Key, State: states[d.State].Name, Origin: states[d.Origin].Name,
		Target: c.target(d), Sequence: d.Sequence, Operation: OpID(d.Operation),
		Actor: c.actor, Reason: c.change.Reason,
		Payload: c.before.Payload, Saved: c.before.Saved,
	}
	if q.Verb != decide.Add {
		to.Event = c.m.table.Events[q.Event]
	}
	if !d.Begins && c.before.Exists() {
		to.Owner, to.Epoch = c.before.Owner, c.before.Epoch
	}
	payload, err := c.edit(q, d, &to)
	if err != nil {
		return none, err
	}
	commit := Commit{
		Token: NewToken(), Require: c.change.Require, Messages: c.change.Messages,
		Changes: []StoredChange{{
			Expect: c.before.Revision, From: c.before.State, FromOrigin: c.before.Origin,
			To: to, Within: d.Within, Remove: d.Removes,
		}},
	}
	if err := c.send(ctx, &commit); err != nil {
		return none, err
	}
	written := &commit.Changes[0].To
	if tell := c.m.observer.Changed; tell != nil {
		tell(commit.Changes[0].Row(commit.Token))
	}
	status := fsm.Status[S]{State: c.m.machine.StateAt(d.State), Origin: c.m.machine.StateAt(d.Origin)}
	return c.m.typed(written, status, payload), nil
}

// target is where the object is heading: the state that the table says a
// transitional state leads to, or else what was said before in this operation.
func (c *call[S, E, T]) target(d decide.Decision) string {
	st := &c.m.table.States[d.State]
	switch {
	case st.Kind != fsm.Transitional:
		return ""
	case st.Target >= 0:
		return c.m.table.States[st.Target].Name
	case d.Begins:
		return ""
	}
	return c.before.Target
}

// edit sets the payloads of the record to write, and returns a copy of the
// present one for the caller.
func (c *call[S, E, T]) edit(q decide.Request, d decide.Decision, to *StoredRecord) (payload T, err error) {
	switch d.Payload {
	case decide.Save:
		to.Saved = c.before.Payload
		if to.Saved == nil {
			to.Saved = RawPayload{} // the zero payload is kept too
		}
	case decide.Restore:
		to.Payload = c.before.Saved
	case decide.Keep, decide.Drop:
	}
	if !d.Saved {
		to.Saved = nil
	}
	if !c.before.Exists() {
		if to.Payload, err = c.m.pack(c.payload); err != nil {
			return payload, err
		}
	}
	if payload, err = c.m.unpack(to.Payload); err != nil || !q.Edits {
		return payload, err
	}
	if err := c.change.Edit(&payload); err != nil {
		return payload, err
	}
	if to.Payload, err = c.m.pack(payload); err != nil {
		return payload, err
	}
	// What Edit put into the payload may be shared with its caller.
	if !c.m.plain {
		payload, err = c.m.unpack(to.Payload)
	}
	return payload, err
}

// send commits, and settles an unknown outcome by sending the same token again.
// After an unknown outcome only two things are certain: nil, and a history in
// which the row at this commit's place has another token. A conflict alone may
// be with this very commit, once its row is trimmed or forgotten; a failed
// precondition may have held when the first sending, still under way, asked.
func (c *call[S, E, T]) send(ctx context.Context, commit *Commit) error {
	const sends = 3
	c.sent = true
	var unknown error
	for range sends {
		err := c.m.store.Commit(ctx, commit)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrUnknownOutcome):
			unknown = err
			if ctx.Err() != nil { // the store can still be asked, for a moment
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), settleFor)
				defer stop()
			}
			continue
		case unknown == nil, c.disproved(ctx, commit, err):
			return err
		}
		return &UnknownOutcomeError{Token: commit.Token, Err: again(unknown, err)}
	}
	return &UnknownOutcomeError{Token: commit.Token, Err: unknown}
}

// settleFor is how long a lost answer is looked for when the caller has gone.
const settleFor = time.Second

// disproved reports whether a conflict proves that a commit was not written and
// never will be: another one has its place in the history.
func (c *call[S, E, T]) disproved(ctx context.Context, commit *Commit, err error) bool {
	historian, ok := c.m.historian()
	if _, conflict := errors.AsType[*ConflictError](err); !ok || !conflict {
		return false
	}
	to := &commit.Changes[0].To
	rows, err := historian.History(ctx, to.Key, to.Sequence-1, 1)
	return err == nil && len(rows) == 1 && rows[0].Sequence == to.Sequence && rows[0].Token != commit.Token
}

// fail wraps an error with everything that is known about the call.
func (c *call[S, E, T]) fail(err error) error {
	e := &Error{
		Verb: c.verb, Machine: c.m.table.Name, ID: c.id, From: c.before.State, Actor: c.actor, Err: err,
	}
	if c.verb != "add" {
		e.Event = fmt.Sprint(c.event)
	}
	if tell := c.m.observer.Refused; tell != nil {
		tell(e)
	}
	return e
}

// again joins two answers to one commit. An answer that would be certain, had
// nothing been sent before, is kept as text only: nobody is to act on it.
func again(unknown, err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrPrecondition) {
		return fmt.Errorf("%w; sent again: %v", unknown, err)
	}
	return fmt.Errorf("%w; sent again: %w", unknown, err)
}
