package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// Do fires an event that starts an operation, and does its work in the object's
// turn. It returns as soon as the operation is admitted:
//
//	reserve a place in the queue   or ErrFull, ErrTerminated: nothing written
//	admit: one compare-and-set     or the errors of Fire:   nothing written
//	work, in its turn
//	outcome: one compare-and-set, by an event of Config, if the object is still
//	in this operation and this process still owns it
//
// If the queue of the object is full, Do decides the request without a commit: a
// refusal as by Fire comes before ErrFull. While commits of requests in front are under
// way, it waits for them first, except in a call by BeforeCommit or an [Observer] with the
// context that they have received.
//
// The record has the new state before the work waits. The table refuses a later
// request, or admits it behind this one. If the object does not exist and the
// event leads out of the absent state, Do creates it, with the zero payload that
// the change edits.
//
// With [Config.Owner] an operation has no deadline while it waits for its turn: the
// commit that starts the turn sets it, before the work runs. Without an Owner the
// deadline is set at the admission and bounds the wait too.
//
// If the store fails when the turn comes, the start of the turn is tried again. If it
// fails when the work has ended, the outcome is written again, after pauses of 50
// milliseconds that double up to 5 seconds, until it is written or refused, the
// operation is lost, or its deadline has passed: that of the record, as an attempt or a
// sweep of this manager has last read it. After [ErrUnavailable] and
// [ErrUnknownOutcome] an attempt also extends the deadline. A guard that meets an outage, see
// [Manager.Report], does not refuse the outcome: it is written again within the deadline.
// The attempts need no place in the queue; the end of the queue's context, or of that
// of [Drain], ends them. [OutcomeError].Unwritten is the last error. A caller that has
// the result may write it later by [Manager.Report], with the number of the operation.
//
// Work may call the manager for other objects. For its own object, the table
// refuses Do as from outside, and waiting for such an operation returns
// [queue.ErrWouldDeadlock]. Work that ignores its context cannot be ended: it keeps
// the object's place in the queue, the sweeper ends the operation at the deadline,
// and the result of the work then has no effect.
//
// Errors: those of [Manager.Fire] and [Manager.Create]; [ErrNotFound] if the object
// does not exist and the event creates none; [ErrExists] if it exists and the event
// only creates; [queue.ErrFull], [queue.ErrStopping]
// and [queue.ErrTerminated]; [queue.ErrInvalid] for a Class that the queue does not
// have; [ErrStale] if this process has lost its ownership; [ErrMisconfigured] for work
// without a handler or function, a handler that is not registered, a manager
// without WorkerActor or Done, a function where the table may do the work again after a
// crash, an Owner that has joined another store, and an object of Work.With whose
// manager has another Owner, or whose operation the table may do again;
// [ErrInvalid] for an event that starts no operation, a Class that is not text, and a
// Work.With that cannot take part.
func (m *Manager[S, E, T]) Do(ctx context.Context, id string, e E, actor fsm.Actor, work Work, change *Change[T]) (*Ticket[S, T], error) {
	r := m.request(decide.Fire, "do", id, &e, actor, change)
	r.ask.MayExist = true
	o, err := m.core.do(ctx, r, work)
	if err != nil {
		return nil, err
	}
	return &Ticket[S, T]{o: o, record: func(r *StoredRecord) Record[S, T] {
		rec, _ := m.typed(r) // it was decoded before it was written, or when it was read
		return rec
	}}, nil
}

// do submits an operation. Its error is complete.
func (c *core) do(ctx context.Context, r *request, work Work) (*operation, error) {
	work.Args, work.carrier = bytes.Clone(work.Args), c.carrierOf(ctx)
	r.work, r.ask.Work = &work, true
	o := newOperation(c, work, r)
	// Before the configuration: a misspelt event is the caller's fault, also if it is the
	// name of the handler.
	err := r.check()
	if err == nil {
		err = c.checkWorker()
	}
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
	waits    bool // one of the objects waits for its turn, see turn.go

	failed    int       // attempts, see attempts.go
	lastError string    // of the attempts
	submitted time.Time // when the wait for the first turn began

	// Of the attempts to write the outcome, which one goroutine at a time makes.
	unwritten []*Task       // of other objects, after the last attempt
	sent      []sentOutcome // those that may have been written

	done chan struct{} // closed when the outcome is written or cannot be written: last and err are final

	retrying atomic.Bool // the queue has ended the operation, and its outcome is still being written

	mu   sync.Mutex
	last StoredRecord // as the operation has last left the object
	err  error        // an OutcomeError; nil: success
}

func newOperation(c *core, work Work, r *request) *operation {
	return &operation{core: c, work: work, requests: []*request{r}, done: make(chan struct{})}
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
			return fmt.Errorf("%w: the manager of %s has another Owner", ErrMisconfigured, r.core.table.Name)
		}
		r.joins = true
	}
	o.requests, o.require = append(o.requests, tx.requests...), tx.require
	return nil
}

// submit gives the operation its place in the queue, which admits it. If the queue of an
// object is full, the object decides: the caller learns that its request is refused, which no
// later room changes. The error is complete.
func (o *operation) submit(ctx context.Context) (err error) {
	r := o.requests[0]
	if owner := o.core.owner; owner != nil && owner.alive.Err() != nil {
		return r.fail(ctx, context.Cause(owner.alive))
	}
	name := ""
	if r.ask.Event >= 0 {
		name = o.core.table.Events[r.ask.Event]
	}
	r.onCommit = o.noteAdmitted
	o.submitted = time.Now()
	act := &queue.Action{
		Name: name, Class: o.work.Class, Preempt: o.work.Preempt,
		Admit: o.admit, Run: o.run, Retry: o.turnRetry(), Settle: o.settle,
	}
	var turns []Key // the operation's own object first
	for _, r := range o.requests {
		turns = append(turns, r.key)
	}
	turns = once(append(turns, o.work.Also...))
	pause := queue.Exponential(time.Millisecond, 50*time.Millisecond)
	for attempts := 1; ; attempts++ {
		o.ticket, err = o.core.queue.SubmitAll(ctx, turns, act)
		full, ok := errors.AsType[*queue.RefusedError](err)
		switch {
		case err == nil:
			return nil
		case ok && errors.Is(full.Reason, queue.ErrConflict):
			return full.Err // of admit, and complete
		case !ok || full.Reason != queue.ErrFull || full.Key == nil:
			return r.fail(ctx, err)
		case full.Admitting == 0:
			if culprit, refusal := refused(ctx, o.requests); refusal != nil {
				return culprit.fail(ctx, refusal)
			}
			return r.fail(ctx, err)
		case ctx.Value(admissionKey{}) != nil:
			return r.fail(ctx, err) // an observer of an admission calls, and the commit in front may be that one
		}
		// The commits of the requests in front are under way. Of many requests at the
		// same moment one is admitted, and the object refuses the others.
		if !sleep(ctx, nil, pause(attempts, err)) {
			return r.fail(ctx, err)
		}
	}
}

// once returns every key once, in order of its first place.
func once(keys []Key) (list []Key) {
	for _, k := range keys {
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// admissionKey marks the context of an admission.
type admissionKey struct{}

// admit commits the start of the operation.
func (o *operation) admit(ctx context.Context) error {
	returned := false
	defer func() {
		// An observer has panicked after the commit, and the queue will not do the work.
		// The panic continues in the caller.
		switch {
		case returned:
		case o.task != nil:
			o.settle(ctx, queue.Panicked, errUnsettled)
		default:
			o.noteUnresolved()
		}
	}()
	culprit, err := apply(context.WithValue(ctx, admissionKey{}, true), o.requests, o.require)
	returned = true
	switch {
	case err == nil && o.task == nil:
		return errNoWork
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknownOutcome):
		o.noteUnresolved()
	}
	return culprit.fail(ctx, err)
}

// noteUnresolved notes that the operation may have started: then this process owns it and does
// nothing for it. Sweeps look at it.
func (o *operation) noteUnresolved() {
	for _, r := range o.requests {
		if o.mayOwn(r) {
			t := newTask(r.core, &r.change.To)
			t.expect, t.since = r.change.Expect, time.Now()
			r.core.tasks.addUnresolved(t)
		}
	}
}

// errUnsettled is the reason of an admission that has panicked after its commit.
var errUnsettled = errors.New("lifecycle: the store, an observer, a guard or BeforeCommit panicked")

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
	t.setDeadline(r)
	t.timeout = o.work.Timeout
	o.waits = waits(&r.change.To)
	options, _ := readOptions(&r.change.To) // the plan has written them
	o.failed, o.lastError = options.Failed, options.Error
	for _, other := range o.requests[1:] {
		if o.mayOwn(other) {
			t.with = append(t.with, newTask(other.core, &other.change.To))
			o.waits = o.waits || waits(&other.change.To)
		}
	}
	o.task, o.admitted, o.last = t, r.recordAfter(), r.recordAfter()
	o.core.tasks.add(t)
}

// mayOwn reports whether the commit of a request may have started an operation that this
// process owns. A change of Work.With may continue the operation of another process.
func (o *operation) mayOwn(r *request) bool { return !r.sent.IsZero() && r.starts() }

// run makes one attempt to do the work.
func (o *operation) run(ctx context.Context) error {
	ctx = o.core.carry(ctx, o.work.carrier)
	if err := o.startTurn(ctx); err != nil {
		return err
	}
	if most := o.work.Retries.Attempts; most > 0 && o.failed >= most {
		return fmt.Errorf("lifecycle: the work has no attempt left: all %d have failed; last error: %s", most, o.lastError)
	}
	err := o.runWork(ctx)
	if err != nil {
		_ = err.Error() // a panic in it is one of the work, and not of the outcome
	}
	if err != nil && o.failed+1 < o.work.Retries.Attempts && !permanent(err) && ctx.Err() == nil {
		return o.failAttempt(ctx, err)
	}
	return err
}

// runWork calls the work. Its context ends if the operation is taken away, if the owner
// is lost, or after the work's time-out.
func (o *operation) runWork(ctx context.Context) error {
	ctx, end, err := o.task.begin(ctx)
	defer end()
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
	err = o.core.doWork(ctx, &o.work)
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

// doWork does the work once. Every attempt has arguments of its own.
func (c *core) doWork(ctx context.Context, w *Work) error {
	if w.Run != nil {
		return w.Run(ctx)
	}
	return c.handlers[w.Handler](ctx, bytes.Clone(w.Args))
}
