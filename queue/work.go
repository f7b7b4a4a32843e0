package queue

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
)

// worker is the goroutine of a running action. Before it ends it takes over the
// next action that may start; it ends when there is none, after a moment.
type worker[K comparable] struct {
	q *Queuer[K]
	t *Ticket[K] // nil: its outcome is decided; written under q.mu while it lingers
}

func (q *Queuer[K]) work(t *Ticket[K]) {
	w := &worker[K]{q, t}
	defer w.exit()
	for w.t != nil {
		if w.t = w.conclude(w.call()); w.t == nil {
			w.linger()
		}
	}
}

// linger gives way once before the goroutine ends, and takes over what was
// submitted meanwhile: who waited for an action often submits the next one, and a
// new goroutine's small stack would have to grow again.
func (w *worker[K]) linger() {
	q := w.q
	q.mu.Lock()
	if q.idle != nil {
		q.mu.Unlock()
		return // one is enough
	}
	q.idle = w
	q.mu.Unlock()
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == w {
		q.idle = nil // nobody wants it
	}
}

// exit ends an action that called runtime.Goexit: the goroutine is lost, the
// action is not.
func (w *worker[K]) exit() {
	if w.t == nil {
		return
	}
	if next := w.conclude(result{panicked: &PanicError{Goexit: true}}); next != nil {
		go w.q.work(next)
	}
}

// result is what came out of an attempt.
type result struct {
	panicked *PanicError
	skipped  bool // by the guard, with err
	failed   bool // with err
	retry    bool // worth another attempt
	err      error
}

// call does one attempt. If the action calls Goexit it does not return.
func (w *worker[K]) call() (r result) {
	t := w.t
	returned := false
	defer func() {
		if returned {
			return
		}
		// In Goexit there is nothing to recover.
		if v := recover(); v != nil {
			r = result{panicked: &PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	act := t.act
	ctx := t.newContext()
	if act.Guard != nil {
		if err := act.Guard(ctx); err != nil {
			returned = true
			return result{err: err, skipped: true}
		}
	}
	if w.q.observer.Started != nil {
		w.q.tellStarted(t)
	}
	if act.Run != nil {
		r.err = act.Run(ctx)
	} else {
		r.err = w.q.handlers[act.Handler](ctx, act.Payload)
	}
	r.failed = r.err != nil
	if r.failed && int(t.attempt) < act.Retry.Attempts {
		r.retry = act.Retry.If == nil || act.Retry.If(r.err)
	}
	returned = true
	return r
}

// conclude decides what becomes of an attempt and returns what this goroutine
// does next, or nil. What is rare stands apart: a new goroutine has little stack,
// and to make it grow takes longer than all of this.
func (w *worker[K]) conclude(r result) *Ticket[K] {
	q, t := w.q, w.t
	var now int64 // of the end, unless Settle comes before it
	if t.act.Settle == nil {
		now = q.now()
	}
	q.mu.Lock()
	if t.state != Running {
		return q.late(w)
	}
	outcome, err := OK, error(nil)
	if r.failed || r.skipped || r.panicked != nil {
		outcome, err = t.judge(&r)
		if r.retry && t.retries(outcome) {
			return w.retry(outcome, err)
		}
	}
	return w.finish(outcome, err, now)
}

// finish ends the action. REQUIRES: q.mu, and unlocks it.
func (w *worker[K]) finish(outcome Outcome, err error, now int64) *Ticket[K] {
	q, t := w.q, w.t
	t.outcome, t.err = outcome, err
	t.halts = outcome.failure() && q.policy(t) == Halt && (t.rare == nil || t.rare.signal == nil)
	w.t = nil
	if !q.quiet(t) {
		t.state = Ending
		q.mu.Unlock()
		return q.retireOne(t)
	}
	next := q.end(t, now)
	q.mu.Unlock()
	return t.tellChildren(next)
}

// retry sends the action into its back-off. REQUIRES: q.mu, and unlocks it.
func (w *worker[K]) retry(outcome Outcome, err error) *Ticket[K] {
	q, t := w.q, w.t
	now := q.now()
	if f := q.observer.Retried; f != nil {
		e := Retried[K]{t.info(), outcome, err, t.act.Retry.pause(t.attempt)}
		q.mu.Unlock()
		f(e)
		q.mu.Lock()
		if t.state != Running {
			return q.late(w)
		}
		if !t.retries(outcome) {
			// It was told to end meanwhile.
			end := &EndError{Outcome: Canceled, Cause: context.Cause(q.base)}
			if t.rare != nil && t.rare.signal != nil {
				end = t.rare.signal
			}
			return w.finish(end.Outcome, &EndError{end.Outcome, end.Cause, err}, now)
		}
	}
	q.suspend(t, err, now)
	next := q.pump(now)
	q.mu.Unlock()
	return next
}

// late is the end of a goroutine whose action was abandoned: everything it held
// was given away. REQUIRES: q.mu, and unlocks it.
func (q *Queuer[K]) late(w *worker[K]) *Ticket[K] {
	w.t = nil
	q.stray--
	q.mu.Unlock()
	return nil
}

func (q *Queuer[K]) policy(t *Ticket[K]) Policy {
	if t.act.OnFailure != 0 {
		return t.act.OnFailure
	}
	return q.onFailure
}

// retries reports whether there is another attempt. REQUIRES: q.mu.
func (t *Ticket[K]) retries(o Outcome) bool {
	return (o == Failed || o == TimedOut) && t.q.base.Err() == nil && (t.rare == nil || t.rare.signal == nil)
}

// judge turns what came out of an attempt into an outcome. Who was told to end
// and says so has ended by that; who returns nil has done what was asked; who
// returns something else has failed by itself. REQUIRES: q.mu.
func (t *Ticket[K]) judge(r *result) (Outcome, error) {
	switch {
	case r.panicked != nil:
		return Panicked, r.panicked
	case r.skipped && t.rare != nil && t.rare.signal != nil:
		// Told to end while its guard was asked: by that, and not by the guard.
		return t.rare.signal.Outcome, &EndError{t.rare.signal.Outcome, t.rare.signal.Cause, r.err}
	case r.skipped:
		return Skipped, &EndError{Outcome: Skipped, Err: r.err}
	}
	a := t.context.Load()
	if a == nil && t.q.base.Err() == nil {
		return Failed, r.err
	}
	var end *EndError
	if t.rare != nil && t.rare.signal != nil {
		end = t.rare.signal
	} else if a != nil && a.Err() != nil {
		// The attempt's own deadline, or that of the base.
		if cause := context.Cause(a); !errors.As(cause, &end) {
			end = &EndError{Outcome: Canceled, Cause: cause}
		}
	} else if t.q.base.Err() != nil {
		end = &EndError{Outcome: Canceled, Cause: context.Cause(t.q.base)}
	}
	if end == nil {
		return Failed, r.err
	}
	if errors.Is(r.err, error(end)) {
		return end.Outcome, end
	}
	if errors.Is(r.err, context.Canceled) || errors.Is(r.err, context.DeadlineExceeded) ||
		end.Cause != nil && errors.Is(r.err, end.Cause) {
		return end.Outcome, &EndError{end.Outcome, end.Cause, r.err}
	}
	return Failed, r.err
}
