package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// Do fires an event that begins an operation, and does its work when the
// object's turn has come. It returns as soon as the operation is admitted:
//
//	reserve a place in the queue   or ErrFull, ErrStopping: nothing written
//	admit: one compare-and-set     or the errors of Fire:   nothing written
//	work, in its turn
//	outcome: one compare-and-set, by an event of Config, if the operation is
//	still this one and this process still owns it
//
// The record has the new state before the work waits; who asks next is refused
// by the table, or admitted behind it where the table allows that. If there is no
// object and the event leads out of the absent state, Do makes it, with the zero
// payload edited by the change.
//
// Work may call the manager for other objects. For its own, Do from inside is
// refused by the table as from outside, and waiting for it by
// [queue.ErrWouldDeadlock]. Work that ignores its context cannot be ended: it
// keeps the object's place in the queue, the sweeper takes the operation away
// from it at the deadline, and what it returns then counts for nothing.
//
// Errors: those of [Manager.Fire] and [Manager.Create]; [queue.ErrFull],
// [queue.ErrStopping] and [queue.ErrTerminated]; [ErrStale] if this process has
// lost its ownership; [ErrInvalid] for work that is none, a handler that is not
// registered, a manager without Worker or Done, an event that begins no operation,
// and a function where the table does work again after a crash.
func (m *Manager[S, E, T]) Do(ctx context.Context, id string, e E, actor fsm.Actor, work Work, change *Change[T]) (*Handle[S, T], error) {
	return m.do(ctx, id, actor, []Step[E]{{Event: e, Work: work}}, change)
}

// Step is one of several operations that are done one after another.
type Step[E comparable] struct {
	Event E
	Work  Work
}

// DoSteps is Do for a chain: every step is an operation of its own, whose event
// is fired when the step before has succeeded, by the same actor. The chain keeps
// the object's place in the queue, so that nothing that waits there comes in
// between. It ends with the first step that does not succeed, and with the first
// whose event is refused, because somebody moved the object at rest between two
// steps.
//
// The steps that follow are kept in the record if all of them are named
// handlers; a process that takes the operation over then goes on with them. Of
// the works' Class, Preempt and QueueTimeout, those of the first count.
func (m *Manager[S, E, T]) DoSteps(ctx context.Context, id string, actor fsm.Actor, steps []Step[E], change *Change[T]) (*Handle[S, T], error) {
	return m.do(ctx, id, actor, slices.Clone(steps), change)
}

// do keeps the steps.
func (m *Manager[S, E, T]) do(ctx context.Context, id string, actor fsm.Actor, steps []Step[E], change *Change[T]) (*Handle[S, T], error) {
	for i := range steps {
		steps[i].Work.Args = bytes.Clone(steps[i].Work.Args)
	}
	if err := m.checkSteps(steps); err != nil {
		c := m.call("do", id, actor)
		if len(steps) > 0 {
			c.event = steps[0].Event
		}
		return nil, c.fail(err)
	}
	o := &operation[S, E, T]{m: m, id: id, actor: actor, steps: steps}
	return o.submit(ctx, &steps[0].Work, func(ctx context.Context) error {
		return o.admit(ctx, nil, change)
	})
}

func (m *Manager[S, E, T]) checkSteps(steps []Step[E]) error {
	switch {
	case len(steps) == 0:
		return fmt.Errorf("%w: no steps", ErrInvalid)
	case m.worker == "" || len(m.events.Done) == 0:
		return fmt.Errorf("%w: Config says no Worker, or no event for Done", ErrInvalid)
	}
	for i, s := range steps {
		if err := m.checkWork(s.Work); err != nil {
			return err
		}
		// That of the first step is refused with what is known of the object.
		if i > 0 && m.machine.EventIndex(s.Event) < 0 {
			return &fsm.TransitionError{Machine: m.table.Name, Event: fmt.Sprint(s.Event), Row: -1, Err: fsm.ErrUnknownEvent}
		}
	}
	return nil
}

func (m *Manager[S, E, T]) checkWork(w Work) error {
	switch {
	case (w.Run == nil) == (w.Handler == ""):
		return fmt.Errorf("%w: work needs a handler or a function, not both", ErrInvalid)
	case w.Handler != "" && m.handlers[w.Handler] == nil:
		return fmt.Errorf("%w: no handler %q", ErrInvalid, w.Handler)
	case w.Timeout < 0 || w.QueueTimeout < 0:
		return fmt.Errorf("%w: a negative time-out", ErrInvalid)
	}
	return nil
}

// operation is an operation, or a chain of them, that this process does.
type operation[S, E comparable, T any] struct {
	m      *Manager[S, E, T]
	id     string
	actor  fsm.Actor
	steps  []Step[E] // the present one, and those that follow
	with   []AnyPart // what takes part in it; of a chain nothing does
	handle Handle[S, T]
	action queue.Action

	// Of the goroutine that does it: the submitter until it is admitted, then
	// that of the queue, which writes what follows, steps and handle.last under
	// mu. The bad schedule without it: the queue is told to abandon work that
	// does not end, settles it, and meanwhile the work ends nevertheless.
	mu      sync.Mutex
	settled bool         // somebody else has the word: nothing here is written any more
	rec     StoredRecord // as this process has last written it
	task    *Task        // of the present step
	first   Task         // that of the first one
	closed  bool         // the outcome of the present step is decided
	told    Outcome      // Lost or TimedOut, if that is why its work ended
}

// note writes the fields of the goroutine that does the operation, unless it was
// abandoned.
func (o *operation[S, E, T]) note(write func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled {
		return fmt.Errorf("lifecycle: %w", queue.ErrAbandoned)
	}
	write()
	return nil
}

// submit puts the operation into the queue. Its error is complete.
func (o *operation[S, E, T]) submit(ctx context.Context, w *Work, admit func(context.Context) error) (*Handle[S, T], error) {
	var event E
	if len(o.steps) > 0 {
		event = o.steps[0].Event
	}
	fail := func(err error) (*Handle[S, T], error) {
		c := o.m.call("do", o.id, o.actor)
		c.event = event
		return nil, c.fail(err)
	}
	if err := checkID(o.id); err != nil {
		return fail(err)
	}
	if o.m.owner != nil && o.m.owner.alive.Err() != nil {
		return fail(context.Cause(o.m.owner.alive))
	}
	name := ""
	if i := o.m.machine.EventIndex(event); i >= 0 {
		name = o.m.table.Events[i]
	}
	o.action = queue.Action{
		Name: name, Class: w.Class, Preempt: w.Preempt, QueueTimeout: w.QueueTimeout,
		Admit: admit, Guard: o.guard, Run: o.run, Settle: o.settle,
	}
	ticket, err := o.m.enqueue(ctx, o.m.key(o.id), o.lanes(w), &o.action)
	if err == nil {
		o.handle.ticket = ticket
		return &o.handle, nil
	}
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return nil, refused.Err // of admit, and complete
	}
	return fail(err)
}

// admit fires the event of the present step. With a record, it is decided on
// that one and no other.
func (o *operation[S, E, T]) admit(ctx context.Context, on *StoredRecord, change *Change[T]) error {
	step := &o.steps[0]
	c := o.m.call("do", o.id, o.actor)
	c.event, c.creates, c.work = step.Event, true, &step.Work
	c.steps = o.m.encodeSteps(o.actor, o.steps[1:])
	if on != nil {
		c.before, c.told = *on, true
	}
	c.fires(change)
	begun := false
	defer func() {
		if !begun && c.wrote { // the observer has panicked
			o.forsake(ctx, c.after(), Panicked, errUnsettled)
		}
	}()
	var err error
	if len(o.with) == 0 {
		err = c.run(ctx)
	} else {
		err = Together(ctx, append([]AnyPart{&Part[S, E, T]{c: c}}, o.with...)...)
	}
	if err != nil {
		return err
	}
	begun = true
	err = o.begun(c.after(), &c.rec)
	if err != nil { // abandoned meanwhile
		o.forsake(ctx, c.after(), Canceled, err)
	}
	c.done()
	return err
}

// forsake ends an operation that was admitted, and whose work nobody will begin.
// If it cannot be written, the sweeper finds it.
func (o *operation[S, E, T]) forsake(ctx context.Context, r *StoredRecord, outcome Outcome, why error) {
	own := &operation[S, E, T]{
		m: o.m, id: o.id, actor: o.actor, steps: o.steps, rec: *r,
		task: &Task{Key: r.Key, Operation: r.Operation, Owner: r.Owner, Epoch: r.Epoch},
	}
	brief := briefly(ctx, outcomeWithin)
	defer brief.finish()
	_ = own.end(brief, outcome, why)
}

// begun notes the operation whose work is to be done now.
func (o *operation[S, E, T]) begun(r *StoredRecord, rec *Record[S, T]) error {
	t := &o.first
	if o.task != nil {
		t = new(Task)
	}
	t.Key, t.Operation, t.Owner, t.Epoch, t.beats = r.Key, r.Operation, r.Owner, r.Epoch, o.m
	t.With, t.parts = o.companions(), o.with
	return o.note(func() {
		o.rec, o.closed, o.task = *r, false, t
		// Before the guard reads the record: what is taken away later is told.
		o.m.tasks.add(t)
		if o.handle.admitted.Operation == 0 {
			o.handle.admitted = *rec
		}
		o.handle.last = *rec
	})
}

// guard is asked when the turn has come: the operation may have been taken away
// while it waited.
func (o *operation[S, E, T]) guard(ctx context.Context) error {
	growStack()
	c := o.m.call("guard", o.id, o.actor)
	defer c.done()
	err := c.read(ctx)
	if err == nil && !o.m.owns(o.task, &c.before) {
		err = errors.Join(stale(&c.before), o.note(func() { o.told = Lost }))
	}
	return err
}

// growStack makes the stack of a new goroutine as big as an outcome needs, while
// there is little on it. It would grow twice otherwise, at its deepest, and each
// time every frame is adjusted: that takes longer than the outcome.
//
//go:noinline
func growStack() {
	var room [5 << 10]byte
	runtime.KeepAlive(&room)
}

// run does all steps. What it returns is the outcome of the last that it began.
func (o *operation[S, E, T]) run(ctx context.Context) error {
	for {
		if err := o.work(ctx); err != nil || len(o.steps) == 1 {
			return err
		}
		// From here on the store is asked on behalf of the table: what cancels
		// the work does not cancel that it was done.
		brief := briefly(ctx, outcomeWithin)
		err := o.end(brief, Succeeded, nil)
		brief.finish()
		if err != nil {
			return err
		}
		err = o.note(func() { o.steps = o.steps[1:] })
		switch {
		case err != nil:
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		default:
			err = o.admit(ctx, &o.rec, nil)
		}
		if err != nil {
			brief := briefly(ctx, outcomeWithin)
			o.release(brief)
			brief.finish()
			return err
		}
		// As of the first step. The bad schedule without it: the operation is
		// taken away between its commit and begun, which finds nobody to tell.
		if err = o.guard(ctx); err != nil {
			return err
		}
	}
}

// work does the work of the present step. Its context ends when the operation is
// taken away, or the owner is lost.
func (o *operation[S, E, T]) work(ctx context.Context) error {
	w := &o.steps[0].Work
	t := o.task
	own, told := t.begins(ctx)
	defer own.finish()
	if told != nil {
		return errors.Join(o.note(func() { o.told = Lost }), told)
	}
	ctx = own
	if w.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.Timeout, &toldError{t, TimedOut, queue.ErrTimeout})
		defer stop()
	}
	if o.m.owner != nil {
		defer context.AfterFunc(o.m.owner.alive, func() { t.tell(context.Cause(o.m.owner.alive)) })()
	}
	var err error
	if w.Run != nil {
		err = w.Run(ctx)
	} else {
		err = o.m.handlers[w.Handler](ctx, bytes.Clone(w.Args)) // the record has these
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	// It was told to end, and has: why says more than what it made of it.
	cause := context.Cause(ctx)
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	// Not by errors.Is: work that waits for another operation, and returns that
	// this one was lost or timed out, has failed itself.
	if told, ok := cause.(*toldError); ok && told.task == t {
		err = errors.Join(o.note(func() { o.told = told.outcome }), err)
	}
	return err
}

// toldError is the cause of a context whose work was told to end by this package.
type toldError struct {
	task    *Task
	outcome Outcome
	err     error
}

func (e *toldError) Error() string { return e.err.Error() }
func (e *toldError) Unwrap() error { return e.err }

// outcomeWithin is how long a store may take to write an outcome, on behalf of
// nobody who waits. Then the object is left to the sweeper: a store that hangs
// must not hold up the queue for good.
const outcomeWithin = 10 * time.Second

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
		}
		own.handle.last = o.handle.last
		o.mu.Unlock()
	}
	defer o.m.tasks.remove(own.task)
	// The store and the observer are somebody else's code: if they panic, the
	// queue reports it, and who waits must not read that all is well.
	panics := true
	defer func() {
		if panics {
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
	o.handle.last, o.handle.err = own.handle.last, failed
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
	brief := briefly(ctx, outcomeWithin)
	defer brief.finish()
	return o.end(brief, outcome, err)
}

var errUnsettled = errors.New("lifecycle: the store or the observer panicked")

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
	var edited *editError
	if edit, ok := o.edit(outcome); ok {
		c.change, c.outcomeOf.Edits = &Change[T]{Edit: func(payload *T) error { return caught(edit, payload) }}, true
	}
	var err error
	if len(o.with) == 0 {
		err = c.conclude(ctx)
	} else {
		err = o.concludeTogether(ctx, c, outcome, c.reason)
	}
	if errors.As(err, &edited) {
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
	}
	abandoned := o.note(func() {
		o.closed = true
		if !applied {
			return
		}
		o.rec, o.handle.last = *c.after(), c.rec
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

// editError is the failure of what the work wanted to change in the payload.
type editError struct{ err error }

func (e *editError) Error() string { return e.err.Error() }
func (e *editError) Unwrap() error { return e.err }

// caught calls an edit that runs where nobody sees it panic.
func caught[T any](edit func(*T) error, payload *T) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &queue.PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			err = &editError{err}
		}
	}()
	return edit(payload)
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

// conclude is report for work's own outcome.
func (c *call[S, E, T]) conclude(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx)
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
