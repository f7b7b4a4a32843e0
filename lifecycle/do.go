package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/fsm"
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
// Errors: those of [Manager.Fire] and [Manager.Create], [ErrNotFound] if there is
// no object and the event makes none; [queue.ErrFull], [queue.ErrStopping] and
// [queue.ErrTerminated]; [queue.ErrInvalid] for a Class that the queue does not
// have; [ErrStale] if this process has lost its ownership; [ErrInvalid] for work
// that is none, a handler that is not registered, a manager without Worker or Done,
// an event that begins no operation, and a function where the table does work again
// after a crash.
func (m *Manager[S, E, T]) Do(ctx context.Context, id string, e E, actor fsm.Actor, work Work, change *Change[T]) (*Handle[S, T], error) {
	o := m.operation()
	o.one[0] = Step[E]{Event: e, Work: work}
	return m.do(ctx, o, id, actor, o.one[:], change)
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
// the works' Class, Preempt and QueueTimeout, those of the first count, and its
// Class there, too.
func (m *Manager[S, E, T]) DoSteps(ctx context.Context, id string, actor fsm.Actor, steps []Step[E], change *Change[T]) (*Handle[S, T], error) {
	return m.do(ctx, m.operation(), id, actor, slices.Clone(steps), change)
}

// do keeps the steps.
func (m *Manager[S, E, T]) do(ctx context.Context, o *operation[S, E, T], id string, actor fsm.Actor, steps []Step[E], change *Change[T]) (*Handle[S, T], error) {
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
	o.id, o.actor, o.steps, o.change = id, actor, steps, change
	h, err := o.submit(ctx, &steps[0].Work, o.admits)
	if err != nil {
		o.reuse() // nobody has settled it, and nobody will
	}
	return h, err
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

// operation is an operation, or a chain of them, that this process does. It is
// used again once it is settled, see reuse: what somebody else may hold for longer
// is in held.
type operation[S, E comparable, T any] struct {
	m      *Manager[S, E, T]
	id     string
	actor  fsm.Actor
	steps  []Step[E]  // the present one, and those that follow
	one    [1]Step[E] // the steps, where there is one
	with   []AnyPart  // what takes part in it; of a chain nothing does
	change *Change[T] // of the first step
	*held[S, T]

	// Of the goroutine that does it: the submitter until it is admitted, then
	// that of the queue, which writes what follows, steps and handle.last under
	// mu. The bad schedule without it: the queue is told to abandon work that
	// does not end, settles it, and meanwhile the work ends nevertheless.
	mu      sync.Mutex
	settled bool         // somebody else has the word: nothing here is written any more
	rec     StoredRecord // as this process has last written it
	task    *Task        // of the present step
	closed  bool         // the outcome of the present step is decided
	told    Outcome      // Lost or TimedOut, if that is why its work ended
	exited  bool         // the edit of its outcome has called Goexit

	// Its methods as the queue takes them, made once.
	admits, guards, runs func(context.Context) error
	settles              func(context.Context, queue.Outcome, error)
}

// held is the part of an operation that outlives it in the hands of others: of who
// has asked for it, of its work, of the queue and of stores, by a ticket or a
// context that they keep. It is never used again.
type held[S comparable, T any] struct {
	handle Handle[S, T]
	action queue.Action
	first  Task         // that of the first step
	brief  briefContext // of settle
}

// operation returns an operation without any content.
func (m *Manager[S, E, T]) operation() *operation[S, E, T] {
	o, ok := m.operations.Get().(*operation[S, E, T])
	if !ok {
		o = &operation[S, E, T]{m: m}
		o.admits = func(ctx context.Context) error { return o.admit(ctx, nil, o.change) }
		o.guards, o.runs, o.settles = o.guard, o.run, o.settle
	}
	o.held = new(held[S, T])
	return o
}

// reuse gives an operation back that is settled, or was refused. The queue calls
// nothing of it any more, because Settle is the last that it calls; work that was
// abandoned may still run, and keeps its operation for itself. Only a queue of
// package queue is trusted in that: another [Queue] may have put something around
// the action.
func (o *operation[S, E, T]) reuse() {
	if !o.m.trusts || o.admits == nil {
		return
	}
	m := o.m
	o.steps, o.one, o.with, o.change, o.held = nil, [1]Step[E]{}, nil, nil, nil
	o.rec, o.task, o.closed, o.told, o.exited = StoredRecord{}, nil, false, 0, false
	m.operations.Put(o)
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
	h := o.held // the operation may be settled, and another one, when it is enqueued
	h.action.Name, h.action.Class, h.action.Preempt, h.action.QueueTimeout = name, w.Class, w.Preempt, w.QueueTimeout
	h.action.Admit, h.action.Guard, h.action.Run, h.action.Settle = admit, o.guards, o.runs, o.settles
	ticket, err := o.m.enqueue(ctx, o.m.key(o.id), o.lanes(w), &h.action)
	if err == nil {
		h.handle.ticket = ticket
		return &h.handle, nil
	}
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return nil, refused.Err // of admit, and complete
	}
	return fail(err)
}

// admit fires the event of the present step. With a record, which was listed or
// written before, it is decided on that one and no other, but for a payload that
// somebody has written into it by hand.
func (o *operation[S, E, T]) admit(ctx context.Context, on *StoredRecord, change *Change[T]) error {
	step := &o.steps[0]
	c := o.m.call("do", o.id, o.actor)
	c.event, c.creates, c.work = step.Event, true, &step.Work
	c.steps = o.m.encodeSteps(o.actor, o.action.Class, o.steps)
	if on != nil {
		c.before, c.told, c.aged = *on, true, true
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
		// Or a codec says the same otherwise every time.
		if lost, conflict := c.lost(err); conflict && on != nil && sameButPayload(&lost.Current, on) {
			c.before, c.told, c.aged = lost.Current, true, false
			err = c.run(ctx)
		}
	} else {
		err = Together(ctx, append([]AnyPart{&Part[S, E, T]{c: c}}, o.with...)...)
	}
	if err != nil {
		if c.perhapsBegun(err) {
			for _, p := range o.with {
				p.looseEnd()
			}
		}
		return err
	}
	begun = true
	err = o.begun(c)
	if err != nil { // abandoned meanwhile
		o.forsake(ctx, c.after(), Canceled, err)
	}
	c.done()
	return err
}

// perhapsBegun notes an operation that may have begun, if it may: then this process
// has it and does nothing.
func (c *call[S, E, T]) perhapsBegun(err error) bool {
	if !c.sent || !errors.Is(err, ErrUnknownOutcome) {
		return false
	}
	r := &c.one[0].To
	c.m.tasks.unsettled(&Task{Key: r.Key, Operation: r.Operation, Owner: r.Owner, Epoch: r.Epoch})
	return true
}

// sameButPayload reports whether nothing but payloads can tell two records of an
// object apart: what a decision is made of is the same.
func sameButPayload(a, b *StoredRecord) bool {
	return a.Revision == b.Revision && a.State == b.State && a.Origin == b.Origin && a.Target == b.Target &&
		a.Sequence == b.Sequence && a.Operation == b.Operation && a.Owner == b.Owner && a.Epoch == b.Epoch &&
		a.Work == b.Work && bytes.Equal(a.Args, b.Args) && bytes.Equal(a.Steps, b.Steps)
}

// forsake ends an operation that was admitted, and whose work nobody will begin.
// If it cannot be written, the sweeper finds it.
func (o *operation[S, E, T]) forsake(ctx context.Context, r *StoredRecord, outcome Outcome, why error) {
	own := &operation[S, E, T]{
		m: o.m, id: o.id, actor: o.actor, steps: o.steps, with: o.with, rec: *r, held: new(held[S, T]),
		task: &Task{Key: r.Key, Operation: r.Operation, Owner: r.Owner, Epoch: r.Epoch},
	}
	brief := briefly(ctx)
	defer brief.finish()
	_ = own.end(brief, outcome, why)
}

// begun notes the operation whose work is to be done now.
func (o *operation[S, E, T]) begun(c *call[S, E, T]) error {
	r := c.after()
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
		c.record(&o.handle.last)
		if o.handle.admitted.Operation == 0 {
			o.handle.admitted = o.handle.last
		}
	})
}

// guard is asked when the turn has come: the operation may have been taken away
// while it waited.
func (o *operation[S, E, T]) guard(ctx context.Context) error {
	growStack(false)
	var now StoredRecord
	err := o.m.read(ctx, o.task.Key, &now)
	if err != nil || now.Revision == o.rec.Revision || o.m.owns(o.task, &now) {
		return err
	}
	return errors.Join(stale(&now), o.note(func() { o.told = Lost }))
}

// growStack makes the stack of a new goroutine as big as an outcome needs, while
// there is little on it. It would grow twice otherwise, at its deepest, and each
// time every frame is adjusted: that takes longer than the outcome.
//
//go:noinline
func growStack(deep bool) {
	if deep { // never: the room is made on the way in, and need not be empty
		var room [5 << 10]byte
		runtime.KeepAlive(&room)
	}
}

// run does all steps. What it returns is the outcome of the last that it began.
func (o *operation[S, E, T]) run(ctx context.Context) error {
	for {
		if err := o.work(ctx); err != nil || len(o.steps) == 1 {
			return err
		}
		// From here on the store is asked on behalf of the table: what cancels
		// the work does not cancel that it was done.
		brief := briefly(ctx)
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
			brief := briefly(ctx)
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
		alive := o.m.owner.alive
		defer context.AfterFunc(alive, func() { t.tell(context.Cause(alive)) })()
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
