package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/queue"
)

// outcomeWithin is how long the store may take to write an outcome. No caller waits
// for it with a context of its own, and a store that hangs must not hold the
// object's turn forever. The sweeper finds the object afterwards.
const outcomeWithin = 10 * time.Second

// settle is the last call of the queue for an operation: it writes the outcome. A
// panic of user code becomes the reason why the outcome is not written, and continues
// in the queue, which reports it.
//
// The work may still run if the operation was abandoned. Nothing that it does
// from then on reaches the operation: its task is the only thing they share, and
// the task has a lock.
func (o *operation) settle(ctx context.Context, how queue.Outcome, why error) {
	outcome := o.task.outcome(outcomeOf(how))
	if _, ok := why.(*turnError); ok {
		outcome = Canceled // the work has not begun
	}
	if failed, ok := why.(*attemptError); ok { // the queue ended before the next attempt
		why = failed.error
	}
	var err error = o.failure(outcome, why, &queue.PanicError{Goexit: true}) // unless tryOutcome returns or panics
	defer func() {
		v := recover()
		if v != nil {
			err = o.panicked(outcome, why, v, nil)
		}
		if temporary(err) && ctx.Err() == nil && o.core.retries.begin() {
			o.retrying.Store(true)
			go o.retry(ctx, outcome, why, err)
			return
		}
		o.finish(ctx, err)
		if v != nil {
			panic(v)
		}
	}()
	err = o.tryOutcome(ctx, outcome, why)
}

// finish reports the end of the operation and makes its outcome final. A panic of the
// observer becomes a part of the outcome, and continues.
func (o *operation) finish(ctx context.Context, err error) {
	reported, _ := err.(*OutcomeError)
	if reported == nil {
		reported = o.failure(Succeeded, nil, nil)
	}
	defer func() {
		v := recover()
		if v != nil {
			err = o.panicked(reported.Outcome, reported.Err, v, reported.Unwritten)
		}
		o.end(err, reported.Unwritten == nil)
		if v != nil {
			panic(v)
		}
	}()
	if finished := o.core.observer.Finished; finished != nil {
		finished(o.core.carry(ctx, o.work.carrier), Finished{
			Key: o.task.Key, Operation: o.task.Operation, Event: o.admitted.Event, Took: time.Since(o.submitted), Err: err,
		})
	}
}

// panicked returns the error of an operation after user code has panicked that was to
// write or to report its outcome. REQUIRES: a deferred function calls it, so that the stack
// is that of the panic.
func (o *operation) panicked(outcome Outcome, why error, v any, before error) error {
	var unwritten error = &queue.PanicError{Value: v, Stack: debug.Stack()}
	if before != nil {
		unwritten = errors.Join(before, unwritten)
	}
	return o.failure(outcome, why, unwritten)
}

// tryOutcome writes the outcome once. The context of the queue may have ended: the
// outcome is written nevertheless.
func (o *operation) tryOutcome(ctx context.Context, outcome Outcome, why error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), outcomeWithin)
	defer stop()
	ctx = o.core.carry(ctx, o.work.carrier)
	err := o.conclude(ctx, outcome, why)
	if refused := o.core.observer.Refused; refused != nil && temporary(err) {
		refused(ctx, &Error{
			Verb: "outcome", Machine: o.task.Machine, ID: o.task.ID, From: o.admitted.State, Actor: o.core.worker, Err: err,
		})
	}
	return err
}

// end makes the outcome final. What this process has not written, and owns, is
// unresolved.
func (o *operation) end(err error, written bool) {
	o.core.tasks.remove(o.task)
	if !written {
		o.core.tasks.addUnresolved(o.task)
	}
	for _, t := range o.unwritten {
		t.core.tasks.addUnresolved(t)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	close(o.done)
}

// conclude writes the outcome of the operation, for all of its objects in one
// commit. It returns nil if the work has succeeded and that is written.
func (o *operation) conclude(ctx context.Context, outcome Outcome, why error) error {
	o.unwritten = nil
	if outcome == Lost {
		o.noteLoss(why)
		if owner := o.core.owner; len(o.task.with) > 0 && (owner == nil || owner.alive.Err() == nil) {
			// No other process does the work of the other objects. If this cannot
			// be written, their deadlines remain.
			_ = o.write(ctx, o.outcomes(Canceled, why)[1:])
		}
		return o.failure(Lost, why, nil)
	}
	requests := o.outcomes(outcome, why)
	own := requests[0]
	err := o.attachEdit(own, outcome)
	if err == nil {
		err = o.write(ctx, requests)
	}
	if edit, ok := errors.AsType[*editError](err); ok {
		// Without its effect on the payload the work has not succeeded. Nothing was
		// written.
		outcome = Failed
		if errors.Is(edit.error, queue.ErrPanic) {
			outcome = Panicked
		}
		return o.conclude(ctx, outcome, edit.error)
	}
	hook, hooked := errors.AsType[*hookError](err)
	if hooked && outcome == Succeeded && errors.Is(hook.error, ErrPrecondition) {
		return o.conclude(ctx, Failed, hook.error)
	}
	switch {
	case ownerLost(err) && !hooked: // another process takes the operation over
		return o.failure(Lost, errors.Join(err, why), nil)
	case err != nil:
		if unknown, ok := err.(*UnknownOutcomeError); ok {
			o.sent = append(o.sent, sentOutcome{changesOf(requests), unknown.Token, outcome, why})
		}
		return o.failure(outcome, why, err)
	}
	return o.concluded(own, outcome, why)
}

// concluded returns the result of the operation after its own report was committed, or left
// out of the commit.
func (o *operation) concluded(own *request, outcome Outcome, why error) error {
	switch {
	case own.written():
		o.setLast(own.recordAfter())
	case own.earlier != nil:
		o.setLast(own.earlier.changes[own.key].To)
		outcome, why = own.earlier.outcome, own.earlier.why
	case !o.task.owns(&own.before): // another writer has ended the operation
		why = errors.Join(stale(&own.before, own.version), why)
		o.noteLoss(why)
		return o.failure(Lost, why, nil)
	case own.decision.Err != nil:
		return o.failure(outcome, why, own.decision.Err)
	default:
		return o.failure(outcome, why, fmt.Errorf("%w: the table ignores %s", fsm.ErrNotAllowed, own.event))
	}
	if outcome == Succeeded {
		return nil
	}
	return o.failure(outcome, why, nil)
}

// sentOutcome is an attempt to write the outcome whose commit may have been written.
type sentOutcome struct {
	changes map[Key]*StoredChange
	token   Token
	outcome Outcome
	why     error
}

// changesOf returns the changes that the last attempt has sent.
func changesOf(requests []*request) map[Key]*StoredChange {
	changes := map[Key]*StoredChange{}
	for _, r := range requests {
		if !r.sent.IsZero() {
			change := *r.change
			change.To = r.recordAfter()
			changes[r.key] = &change
		}
	}
	return changes
}

// writtenBefore returns the attempt of unknown outcome that was written after all, for
// the object of a record, or nil. The bad schedules without it: the commit is written, the
// store fails before its answer, and the next attempt takes the end of the operation for
// another writer's; or the operation goes on, and the next attempt fires the event again in
// the state that the first one has reached. Without a row of the history, the last change
// of the object decides.
func (o *operation) writtenBefore(ctx context.Context, now *StoredRecord) (*sentOutcome, error) {
	for i := range o.sent {
		sent := &o.sent[i]
		change := sent.changes[now.Key]
		if change == nil {
			continue
		}
		to := &change.To
		// An absent record has no token, and some stores keep none.
		written := now.Sequence == to.Sequence && now.Event == to.Event && now.Actor == to.Actor && !differ(now.ChangeToken, sent.token)
		revision, at := now.Revision, now.ChangedAt
		row, err := o.core.rowOf(ctx, change)
		if err != nil {
			return nil, err
		}
		if row != nil {
			written, revision, at = row.Token == sent.token, row.Revision, row.At
		}
		if written {
			change.Stamp(revision, at)
			return sent, nil
		}
	}
	return nil, nil
}

// outcomes returns the reports that write the outcome: of the object itself, and of
// every other one in the operation.
func (o *operation) outcomes(outcome Outcome, why error) []*request {
	var list []*request
	for _, t := range append([]*Task{o.task}, o.task.with...) {
		r := t.request("outcome", decide.Report)
		r.ending, r.succeeded = o, outcome == Succeeded
		if why != nil {
			r.Reason = storable.Text(fmt.Sprint(why), maxReason) // fmt recovers if Error panics
		}
		list = append(list, r)
	}
	return list
}

// write commits the reports of an outcome. Objects that the report cannot move any
// more are left out. An object whose report may not be written is unresolved: it
// goes on, and no work is done for it. Only one goroutine at a time writes.
func (o *operation) write(ctx context.Context, requests []*request) error {
	defer func() { // also if user code panics
		for _, r := range requests {
			if r.task != o.task && !r.written() && r.earlier == nil && r.decision.Verdict != decide.Stale {
				o.unwritten = append(o.unwritten, r.task)
			}
		}
	}()
	_, err := apply(ctx, requests, nil)
	return err
}

// recordAfter returns the record as the request leaves it: in the form of the manager's version,
// and with the version in whose form the store has it.
func (r *request) recordAfter() StoredRecord {
	to := r.change.To
	to.Version = r.version
	return to
}

// chooseEvent makes the request the report that writes the outcome, in the state
// that the object is in now. It returns false if there is none: the decision is
// then why.
func (r *request) chooseEvent() bool {
	c := r.core
	// The operation of an object at rest is over, whatever the table permits there. The
	// owner alone does not show that: without Config.Owner it is empty in both states.
	over := !r.known.Exists || c.table.States[r.known.State].Kind.Resting() ||
		r.known.Operation != r.ask.Operation || r.known.Owner != r.ask.Owner || r.known.Epoch != r.ask.Epoch
	if over {
		r.decision = decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
		return false
	}
	report := r.ask
	report.Actor = c.worker // an earlier attempt may have chosen the deadline's row
	ask, ok := report.Outcome(c.table, &r.known, r.succeeded, c.events)
	if ok {
		ask.Edits = r.Edit != nil
		r.ask, r.event = ask, c.table.Events[ask.Event]
		return true
	}
	err := fmt.Errorf("%w: no event of Config reports how the work ended", ErrInvalid)
	r.decision = decide.Decision{Row: -1, Verdict: decide.Refused, Err: err}
	return false
}

// failure returns the error of an operation that did not succeed.
func (o *operation) failure(outcome Outcome, why, unwritten error) *OutcomeError {
	return &OutcomeError{Key: o.task.Key, Operation: o.task.Operation, Admission: o.task.Admission, Outcome: outcome, Err: why, Unwritten: unwritten}
}

// setLast notes the record that the operation has left.
func (o *operation) setLast(r StoredRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = r
}

// noteLoss notes the record that the operation was lost to, if the error has it.
func (o *operation) noteLoss(why error) {
	to, ok := errors.AsType[*staleError](why)
	if !ok || to.now.Key != o.task.Key || to.now.Operation < o.task.Operation || !to.now.Exists() {
		return
	}
	now := to.now
	known, _, err := o.core.recognize(&now) // a change that removes the object has the absent state
	if err != nil || o.core.table.States[known.State].Kind == fsm.Absent {
		return
	}
	if _, err := o.core.payloads.decode(now.Payload); err != nil {
		return
	}
	now.Version = to.version
	o.setLast(now)
}

// attachEdit makes the work's EditOutcome the edit of the outcome.
func (o *operation) attachEdit(r *request, outcome Outcome) error {
	o.task.mu.Lock()
	edit := o.task.edit
	o.task.mu.Unlock()
	if outcome != Succeeded || edit == nil {
		return nil
	}
	typed, ok := o.core.payloads.editPayload(edit)
	if !ok {
		return &editError{fmt.Errorf("%w: EditOutcome with a %T, which is not of the manager's payload", ErrInvalid, edit)}
	}
	r.Edit = func(payload *[]byte) error {
		if _, err := o.core.payloads.decode(*payload); err != nil {
			return err // the record is foreign, and the edit has not failed
		}
		if err := protect.Call(func() error { return typed(payload) }); err != nil {
			return &editError{err}
		}
		return nil
	}
	return nil
}

// editError is the failure of an EditOutcome. It has no Unwrap: an [ErrForeign] that the edit
// has returned is not about the record.
type editError struct{ error }

// maxReason is how much of an error's text a record keeps, in bytes.
const maxReason = 1000
