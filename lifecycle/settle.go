package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// settle is told by the queue how the work ended, whatever it was.
func (o *operation[S, E, T]) settle(ctx context.Context, how queue.Outcome, err error) {
	own := o
	if how == queue.Abandoned {
		// The work may go on for as long as it likes, with an operation that
		// nobody looks at any more.
		o.mu.Lock()
		o.settled = true
		own = &operation[S, E, T]{
			m: o.m, id: o.id, actor: o.actor, steps: o.steps, with: o.with, rec: o.rec, task: o.task, closed: o.closed, told: o.told,
			held: new(held[S, T]),
		}
		own.handle.last = o.handle.last
		o.mu.Unlock()
	}
	panics := true
	defer func() {
		o.handle.settled.Store(true)
		if own == o && !panics {
			o.reuse()
		}
	}()
	defer o.m.tasks.remove(own.task)
	// The store and the observer are somebody else's code: if they panic, the
	// queue reports it, and who waits must not read that all is well.
	defer func() {
		switch {
		case panics && own.exited: // the work's own edit has called Goexit
			brief := briefly(ctx)
			o.handle.err = own.end(brief, Panicked, &queue.PanicError{Goexit: true})
			brief.finish()
			o.handle.last = own.handle.last
		case panics:
			o.handle.err = own.failed(outcomeOf(how), err, errUnsettled)
		}
		// What is not written may be left in transition. And a chain that gives up
		// although its step may be written must not be gone on with by whoever
		// finds its steps in the record some day; it may be written and look lost,
		// when the observer of that commit has panicked.
		failed, ok := errors.AsType[*OutcomeError](o.handle.err)
		if ok && (failed.Unwritten != nil || failed.Outcome == Lost && len(own.steps) > 1) {
			o.m.tasks.unsettled(own.task)
		}
	}()
	failed := own.settleNow(ctx, how, err)
	panics = false
	if own != o {
		o.handle.last = own.handle.last
	}
	if failed != nil {
		o.handle.err = failed
	}
}

func (o *operation[S, E, T]) settleNow(ctx context.Context, how queue.Outcome, err error) error {
	outcome := outcomeOf(how)
	if o.told != 0 && outcome != Panicked {
		outcome = o.told
	}
	if o.closed { // the chain ended between two steps
		if inner, ok := errors.AsType[*OutcomeError](err); ok && inner.Key == o.rec.Key && inner.Operation == o.rec.Operation {
			return inner
		}
		return o.failed(outcome, err, nil)
	}
	// The base context of the queue may have ended: what happened is written
	// nevertheless, or left to the sweeper.
	o.brief.Context = ctx
	defer o.brief.finish()
	return o.end(&o.brief, outcome, err)
}

var errUnsettled = errors.New("lifecycle: the store, the observer, a guard or Along panicked")

// failed is the error of an operation that did not succeed.
func (o *operation[S, E, T]) failed(outcome Outcome, why, unwritten error) *OutcomeError {
	return &OutcomeError{Key: o.rec.Key, Operation: o.rec.Operation, Outcome: outcome, Err: why, Unwritten: unwritten}
}

// end writes the outcome of the present step, and returns nil if the work
// succeeded and that is written.
func (o *operation[S, E, T]) end(ctx context.Context, outcome Outcome, why error) error {
	if outcome == Lost {
		if len(o.with) > 0 && (o.m.owner == nil || o.m.owner.alive.Err() == nil) {
			// Nobody else knows that their work has ended; if this is not
			// written, their deadline is left.
			_ = o.concludeTogether(ctx, nil, Canceled, "")
		}
		o.lostTo(why)
		return o.failed(Lost, why, nil)
	}
	c := o.m.call("outcome", o.id, o.m.worker)
	c.outcome, c.task, c.ends = outcome, o.task, o.m.events.Of(decide.Outcome(outcome))
	c.outcomeOf = decide.Request{
		Verb: decide.Report, Actor: o.m.worker, Operation: uint64(o.task.Operation),
		Owned: true, Owner: o.task.Owner, Epoch: o.task.Epoch,
		Steps: outcome == Succeeded && len(o.steps) > 1,
	}
	if why != nil {
		c.reason = shortened(why.Error())
	}
	if edit, ok := o.edit(outcome); ok {
		c.change, c.outcomeOf.Edits = &Change[T]{Edit: func(payload *T) error { return caught(edit, payload, &o.exited) }}, true
	} else if c.m.along == nil {
		// Nobody but the table is asked about the record, so it may be an old one.
		c.before, c.told, c.aged = o.rec, true, true
	}
	var err error
	if len(o.with) == 0 {
		err = c.conclude(ctx)
	} else {
		err = o.concludeTogether(ctx, c, outcome, c.reason)
	}
	if edited, ok := errors.AsType[*editError](err); ok {
		// Without its effect on the payload the work has not succeeded. Nothing
		// was written yet.
		outcome = Failed
		if errors.Is(edited.err, queue.ErrPanic) {
			outcome = Panicked
		}
		return o.end(ctx, outcome, edited.err)
	}
	if along, ok := errors.AsType[*alongError](err); ok && outcome == Succeeded && errors.Is(along.err, ErrPrecondition) {
		// What the work has made of other objects does not go with its success.
		return o.end(ctx, Failed, along.err)
	}
	return o.ended(ctx, c, outcome, why, err)
}

// ended notes what became of the outcome: the call has written it, or err or its
// decision says why not.
func (o *operation[S, E, T]) ended(ctx context.Context, c *call[S, E, T], outcome Outcome, why, err error) error {
	var failed *OutcomeError
	applied := false
	switch {
	case err != nil:
		failed = o.failed(outcome, why, err)
	case c.d.Verdict == decide.Applied:
		if applied = true; outcome != Succeeded {
			failed = o.failed(outcome, why, nil)
		}
	case o.m.owns(o.task, &c.before) && c.d.Err != nil:
		failed = o.failed(outcome, why, public(c.d.Err))
	case o.m.owns(o.task, &c.before):
		failed = o.failed(outcome, why, fmt.Errorf("%w: the table ignores %v", fsm.ErrNotAllowed, c.event))
	default:
		// Another operation, or none: somebody else has ended this one.
		failed = o.failed(Lost, errors.Join(stale(&c.before), why), nil)
		o.lostTo(failed.Err)
	}
	abandoned := o.note(func() {
		o.closed = true
		if !applied {
			return
		}
		o.rec = *c.after()
		c.record(&o.handle.last)
		if c.d.Removes { // what follows, if anything, makes the object anew
			o.rec.State, o.rec.Origin, o.rec.Payload, o.rec.Saved = "", "", nil, nil
		}
	})
	switch {
	case applied && abandoned != nil:
		o.rec = *c.after() // nobody else looks at it any more
		o.release(ctx)
		return abandoned
	case failed == nil:
		c.done()
		return nil
	case abandoned != nil:
		return errors.Join(abandoned, failed)
	}
	return failed
}

// lostTo makes the record that the operation was lost to the last that its waiter
// knows, if the error has it.
func (o *operation[S, E, T]) lostTo(why error) {
	to, ok := errors.AsType[*staleError](why)
	if !ok || to.now.Key != o.task.Key || to.now.Operation < o.task.Operation || !to.now.Exists() {
		return
	}
	if rec, err := o.m.record(&to.now); err == nil {
		_ = o.note(func() { o.handle.last = rec })
	}
}

// editError is the failure of what the work wanted to change in the payload.
type editError struct{ err error }

func (e *editError) Error() string { return e.err.Error() }
func (e *editError) Unwrap() error { return e.err }

// caught calls an edit that runs where nobody sees it panic. If it calls Goexit,
// nobody can hold it up, and exited stays true.
func caught[T any](edit func(*T) error, payload *T, exited *bool) (err error) {
	*exited = true
	defer func() {
		if v := recover(); v != nil {
			*exited = false
			err = &queue.PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			err = &editError{err}
		}
	}()
	err = edit(payload)
	*exited = false
	return err
}

// edit returns what the work wants to change in the payload.
func (o *operation[S, E, T]) edit(outcome Outcome) (func(*T) error, bool) {
	if outcome != Succeeded {
		return nil, false
	}
	o.task.mu.Lock()
	defer o.task.mu.Unlock()
	if o.task.edit == nil {
		return nil, false
	}
	edit, ok := o.task.edit.(func(*T) error)
	if !ok {
		wrong := fmt.Errorf("%w: EditOutcome with a %T, not of this manager's payload", ErrInvalid, o.task.edit)
		edit = func(*T) error { return wrong }
	}
	return edit, true
}

// release takes the steps that will not be done out of the record.
func (o *operation[S, E, T]) release(ctx context.Context) {
	if !o.rec.Exists() {
		return
	}
	// If somebody was faster, the record is not this operation's any more; if
	// the store fails, the next sweep tries again.
	if err := o.m.release(ctx, &o.rec); err != nil && !errors.Is(err, ErrConflict) && o.task != nil {
		o.m.tasks.unsettled(o.task)
	}
}

// release takes owner, work and steps out of a record at rest.
func (m *Manager[S, E, T]) release(ctx context.Context, r *StoredRecord) error {
	to := *r
	to.Owner, to.Epoch, to.Work, to.Args, to.Steps = "", 0, "", nil, nil
	_, err := m.touch(ctx, r, &to, 0)
	return err
}

// conclude is report for work's own outcome. If the record is known from the
// admission, it is tried on that one first: it may have moved on since, and then
// the store has the word, and what the table said to the old one counts for nothing.
func (c *call[S, E, T]) conclude(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		guess := c.told
		err := c.attempt(ctx)
		if guess && !c.d.Write {
			continue
		}
		if _, conflict := c.lost(err); conflict && attempt < maxAttempts {
			continue
		}
		if c.d.Err != nil {
			return nil
		}
		return err
	}
}

func (m *Manager[S, E, T]) resting(r *StoredRecord) bool {
	i, ok := m.table.StateIndex(r.State)
	return ok && m.table.States[i].Kind.Resting()
}

// self returns who this process is, for records.
func (m *Manager[S, E, T]) self() (owner string, epoch uint64) {
	if m.owner == nil {
		return "", 0
	}
	return m.owner.name, m.owner.epoch
}

// maxReason is how much of an error's text a record keeps.
const maxReason = 1000

func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	end := maxReason
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
