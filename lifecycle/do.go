package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// Do fires an event that starts an operation, and does its work in the object's
// turn. It returns as soon as the operation is admitted:
//
//	reserve a place in the queue   or ErrFull, ErrStopping: nothing written
//	admit: one compare-and-set     or the errors of Fire:   nothing written
//	work, in its turn
//	outcome: one compare-and-set, by an event of Config, if the object is still
//	in this operation and this process still owns it
//
// The record has the new state before the work waits. The table refuses a later
// request, or admits it behind this one. If the object does not exist and the
// event leads out of the absent state, Do creates it, with the zero payload that
// the change edits.
//
// Work may call the manager for other objects. For its own object, the table
// refuses Do as from outside, and waiting for such an operation returns
// [queue.ErrWouldDeadlock]. Work that ignores its context cannot be ended: it keeps
// the object's place in the queue, the sweeper ends the operation at the deadline,
// and the result of the work then has no effect.
//
// Errors: those of [Manager.Fire] and [Manager.Create]; [ErrNotFound] if the object
// does not exist and the event creates none; [queue.ErrFull], [queue.ErrStopping]
// and [queue.ErrTerminated]; [queue.ErrInvalid] for a Class that the queue does not
// have; [ErrStale] if this process has lost its ownership; [ErrInvalid] for work
// without a handler or function, a handler that is not registered, a manager
// without WorkerActor or Done, an event that starts no operation, a function where
// the table does work again after a crash, and a Work.With that cannot take part.
func (m *Manager[S, E, T]) Do(ctx context.Context, id string, e E, actor fsm.Actor, work Work, change *Change[T]) (*Handle[S, T], error) {
	c := m.call(decide.Fire, "do", id, e, actor, change)
	c.ask.MayExist = true
	o, err := m.core.do(ctx, &c.request, work)
	if err != nil {
		return nil, err
	}
	return &Handle[S, T]{o: o, record: func(r *StoredRecord) Record[S, T] {
		rec, _ := m.record(r) // it was decoded before it was written, or when it was read
		return rec
	}}, nil
}

// do submits an operation. Its error is complete.
func (c *core) do(ctx context.Context, r *request, work Work) (*operation, error) {
	work.Args = bytes.Clone(work.Args)
	r.work, r.ask.Work = &work, true
	o := &operation{core: c, work: work, requests: []*request{r}}
	err := c.checkWorker()
	if err == nil {
		err = c.checkWork(&work)
	}
	if err == nil && work.With != nil {
		err = o.join(work.With)
	}
	if err != nil {
		return nil, r.fail(ctx, err)
	}
	return o, o.submit(ctx)
}

// operation is an operation whose work this process does. [core.do] makes one for
// a caller, the sweeper makes one for work that is done again.
type operation struct {
	core     *core
	work     Work
	requests []*request // of the admission: the object's own first, then those of Work.With
	require  []Precondition
	ticket   *queue.Ticket[Key]

	// Written by the admission, read afterwards.
	task     *Task
	admitted StoredRecord

	mu      sync.Mutex
	settled bool         // the outcome is decided: last and err are final
	last    StoredRecord // as the operation has last left the object
	err     error        // an OutcomeError; nil: success
}

// join makes the changes of a transaction a part of the operation.
func (o *operation) join(tx *Tx) error {
	if err := tx.use(); err != nil {
		return err
	}
	for _, r := range tx.requests {
		if err := r.core.checkWorker(); err != nil {
			return err
		}
		if r.core.owner != o.core.owner {
			return fmt.Errorf("%w: the manager of %s has another Owner", ErrInvalid, r.core.table.Name)
		}
		r.joins = true
	}
	o.requests, o.require = append(o.requests, tx.requests...), tx.require
	return nil
}

// submit gives the operation its place in the queue, which admits it. Its error is
// complete.
func (o *operation) submit(ctx context.Context) error {
	r := o.requests[0]
	if err := checkID(r.id); err != nil {
		return r.fail(ctx, err)
	}
	if owner := o.core.owner; owner != nil && owner.alive.Err() != nil {
		return r.fail(ctx, context.Cause(owner.alive))
	}
	name := ""
	if r.ask.Event >= 0 {
		name = o.core.eventName(r.ask.Event)
	}
	r.onCommit = o.noteAdmitted
	ticket, err := o.core.enqueue(ctx, o.turns(), &queue.Action{
		Name: name, Class: o.work.Class, Preempt: o.work.Preempt, QueueTimeout: o.work.QueueTimeout,
		Admit: o.admit, Guard: o.turn, Run: o.run, Settle: o.settle,
	})
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return refused.Err // of admit, and complete
	}
	if err != nil {
		return r.fail(ctx, err)
	}
	o.ticket = ticket
	return nil
}

// turns returns the objects whose turns the work takes, the operation's own first.
func (o *operation) turns() []Key {
	var keys []Key
	for _, r := range o.requests {
		keys = append(keys, r.key())
	}
	keys = append(keys, o.work.Also...)
	var once []Key
	for _, k := range keys {
		if !slices.Contains(once, k) {
			once = append(once, k)
		}
	}
	return once
}

// admit commits the start of the operation.
func (o *operation) admit(ctx context.Context) error {
	returned := false
	defer func() {
		if !returned && o.task != nil {
			// An observer has panicked after the commit, and the queue will not do
			// the work. The panic continues in the caller.
			o.settle(ctx, queue.Panicked, errUnsettled)
		}
	}()
	culprit, err := apply(ctx, o.requests, o.require)
	returned = true
	switch {
	case err == nil && o.task == nil:
		return errNoWork
	case err == nil:
		return nil
	}
	if errors.Is(err, ErrUnknownOutcome) {
		// The operation may have started: then this process owns it and does
		// nothing for it.
		for _, r := range o.requests {
			if o.owns(r) {
				r.core.tasks.leave(newTask(r.core, &r.change.To))
			}
		}
	}
	return culprit.fail(ctx, err)
}

// errNoWork refuses the place in the queue if the guards of the sweeper's row have
// ended the operation, instead of starting it again.
var errNoWork = errors.New("lifecycle: no work to do again")

// noteAdmitted notes the operation that was admitted, before any observer learns of it:
// from now on the work learns that its operation is taken away.
func (o *operation) noteAdmitted(r *request) {
	if r.decision.Work != decide.NewWork && r.decision.Work != decide.Redo {
		return // see errNoWork
	}
	t := newTask(o.core, &r.change.To)
	t.timeout = o.work.Timeout
	for _, other := range o.requests[1:] {
		if o.owns(other) {
			t.with = append(t.with, newTask(other.core, &other.change.To))
		}
	}
	o.task, o.admitted, o.last = t, r.change.To, r.change.To
	o.core.tasks.add(t)
}

// owns reports whether a request leaves its object in an operation of this process.
// A change of Work.With may continue the operation of another process.
func (o *operation) owns(r *request) bool {
	if r.change == nil {
		return false
	}
	to := &r.change.To
	return !r.core.resting(to) && OwnerRef{to.Owner, to.Epoch} == o.core.self()
}

// turn runs when the object's turn has come. The operation may have been taken
// away while it waited.
func (o *operation) turn(ctx context.Context) error {
	now, err := o.core.store.Get(ctx, o.task.Key)
	if err != nil || o.task.owns(&now) {
		return err
	}
	o.task.end(Lost)
	return stale(&now)
}

// run does the work. Its context ends if the operation is taken away, if the owner
// is lost, or after the work's time-out.
func (o *operation) run(ctx context.Context) error {
	ctx, cancel, err := o.task.begin(ctx)
	defer cancel(nil)
	if err != nil {
		return err
	}
	if o.work.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.work.Timeout, &endError{o.task, TimedOut, queue.ErrTimeout})
		defer stop()
	}
	if owner := o.core.owner; owner != nil {
		defer context.AfterFunc(owner.alive, func() { o.task.lose(context.Cause(owner.alive)) })()
	}
	if o.work.Run != nil {
		err = o.work.Run(ctx)
	} else {
		err = o.core.handlers[o.work.Handler](ctx, bytes.Clone(o.work.Args))
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	// The context has ended, and then the work: the cause is the better reason.
	// errors.Is would be wrong here, because the work may return the error of
	// another operation that it has waited for.
	cause := context.Cause(ctx)
	if ended, ok := cause.(*endError); ok && ended.task == o.task {
		o.task.end(ended.outcome)
	}
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
