package queue

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"
)

// wait lets an accepted ticket wait in its lanes. REQUIRES: q.mu.
func (q *Queuer[K]) wait(t *Ticket[K]) {
	t.state = Waiting
	if d := t.act.QueueTimeout; d > 0 {
		t.timer = time.AfterFunc(d, t.expire)
	}
	q.enqueue(t)
}

// enqueue gives the ticket a turn if it is ready: accepted, next in all its lanes,
// and not in a class already. REQUIRES: q.mu.
func (q *Queuer[K]) enqueue(t *Ticket[K]) {
	if t.state != Waiting || t.turn != 0 || !t.isNext() {
		return
	}
	q.turn++
	t.turn = q.turn
	c := t.class
	c.ready = append(c.ready, t)
	c.peak = max(c.peak, len(c.ready))
}

// dequeue takes the ticket out of its class. REQUIRES: q.mu.
func (t *Ticket[K]) dequeue() {
	if t.turn == 0 {
		return
	}
	t.turn = 0
	c := t.class
	c.ready = remove(c.ready, slices.Index(c.ready, t))
	if len(c.ready) == 0 && c.peak > keep {
		c.ready, c.peak = nil, 0
	}
}

// pump starts every action that may start, makes sure that each has a worker, and
// gives room to blocked submitters. REQUIRES: q.mu.
func (q *Queuer[K]) pump(now time.Duration) {
	for t := q.next(); t != nil; t = q.next() {
		t.dequeue()
		t.stopTimer()
		if t.holds {
			q.kept = remove(q.kept, slices.Index(q.kept, t))
		} else {
			q.starts++
			t.class.take(q.starts)
			t.holds = true
		}
		t.state = Running
		t.started, t.ended = now, 0
		t.attempt++
		q.started = append(q.started, t)
	}
	q.staff()
	q.grant()
}

// next returns the ticket that starts next, or nil. A ticket that has kept its share of the
// limits precedes all others, because it needs no turn. REQUIRES: q.mu.
func (q *Queuer[K]) next() *Ticket[K] {
	i := slices.IndexFunc(q.kept, func(t *Ticket[K]) bool { return t.turn != 0 && !t.class.paused() })
	if i >= 0 {
		return q.kept[i]
	}
	return q.root.next()
}

// result is what an attempt returned.
type result struct {
	panicked *PanicError
	goexit   bool          // it called runtime.Goexit
	unbegun  bool          // the base had ended before the attempt, with cause
	skipped  bool          // by the guard, with err
	retry    bool          // err is worth another attempt
	pause    time.Duration // before that attempt
	err      error
	cause    error     // of the end of the context; nil if it has not ended
	end      *EndError // err, if it is of the end of the context; otherwise nil
}

// attemptContext returns the context of one attempt. What the first attempt leaves behind
// must not come alive with the second, so each of several has a context of its own.
func attemptContext(parent context.Context, act *Action) (context.Context, context.CancelFunc) {
	switch {
	case act.Timeout > 0:
		return context.WithTimeoutCause(parent, act.Timeout, &EndError{Outcome: TimedOut})
	case act.Retry.Attempts > 1:
		return context.WithCancel(parent)
	}
	return parent, func() {}
}

// try calls Guard and Run, and what may call methods of their errors. A panic becomes the
// result.
func (t *Ticket[K]) try(parent context.Context) (r result) {
	defer func() {
		if v := recover(); v != nil {
			r = result{panicked: &PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	act := t.act
	parent = context.WithValue(parent, ticketKey{}, t)
	if act.Guard != nil {
		if r.err = act.Guard(parent); r.err != nil {
			r.skipped = true
			if r.cause = context.Cause(parent); r.cause != nil {
				r.end = endOf(r.cause, r.err, t.q.base)
			}
			return r
		}
	}
	ctx, stop := attemptContext(parent, act)
	defer stop()
	if t.q.observer.Started != nil {
		t.q.observer.Started(ctx, Started[K]{t.Info()})
	}
	if r.err = act.Run(ctx); r.err == nil {
		return r
	}
	if r.cause = context.Cause(ctx); r.cause != nil {
		r.end = endOf(r.cause, r.err, t.q.base)
	}
	r.retry = int(t.attempt) < act.Retry.Attempts && (act.Retry.If == nil || act.Retry.If(r.err))
	if r.retry && act.Retry.Backoff != nil {
		r.pause = max(0, act.Retry.Backoff(int(t.attempt), r.err))
	}
	if r.retry && t.q.observer.Retried != nil {
		t.reportRetry(ctx, r)
	}
	return r
}

// endOf returns the error of an action whose context ended with the cause, or nil if the
// action failed for another reason. It may call methods of err and of the base's cause. The
// cause of the base may be an EndError too: of another queue, whose action has this context.
func endOf(cause, err error, base context.Context) *EndError {
	end, own := cause.(*EndError)
	if !own || error(end) == context.Cause(base) {
		end = &EndError{Outcome: Canceled, Cause: cause}
	}
	switch {
	case errors.Is(err, error(end)):
		return end
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		end.Cause != nil && errors.Is(err, end.Cause):
		return &EndError{end.Outcome, end.Cause, err}
	}
	return nil
}

// reportRetry calls the observer.
func (t *Ticket[K]) reportRetry(ctx context.Context, r result) {
	t.q.mu.Lock()
	outcome, err := t.judge(r)
	retries := t.retries(outcome)
	e := Retried[K]{t.info(), outcome, err, r.pause}
	t.q.mu.Unlock()
	if retries {
		t.q.observer.Retried(ctx, e)
	}
}

// conclude retries the action or ends it. REQUIRES: q.mu.
func (q *Queuer[K]) conclude(t *Ticket[K], r result) {
	outcome, err := t.judge(r)
	if r.unbegun {
		t.attempt--
		t.started = 0
	}
	if r.retry && r.cause == nil && t.signal != nil {
		// It was cancelled after the attempt, while the observer received the retry.
		outcome, err = t.signal.Outcome, &EndError{t.signal.Outcome, t.signal.Cause, err}
	}
	if t.state != Running {
		// It was abandoned, and everything that it held is given away.
		q.found(true)
		return
	}
	if r.retry && t.retries(outcome) {
		q.suspend(t, err, r.pause)
		q.pump(t.ended)
		return
	}
	t.halts = q.haltOnFailure && outcome.failure() && t.signal == nil
	if t.halts { // already now, so that Settle and the observer may call Resume
		for _, p := range t.places {
			p.lane.halted = true
		}
	}
	t.decide(outcome, err)
	q.retire(t, true)
}

// retries reports whether an attempt with this outcome may be repeated. REQUIRES:
// q.mu.
func (t *Ticket[K]) retries(o Outcome) bool {
	return (o == Failed || o == TimedOut) && t.signal == nil && t.q.base.Err() == nil
}

// judge turns the result of an attempt into an outcome. An action that was signalled to
// end and returns the error of its context ended for that reason. One that returns
// nil succeeded, and one that returns another error failed. REQUIRES: q.mu.
func (t *Ticket[K]) judge(r result) (Outcome, error) {
	switch {
	case r.goexit:
		return Panicked, &PanicError{Goexit: true}
	case r.panicked != nil:
		return Panicked, r.panicked
	case r.unbegun:
		end := cmp.Or(t.signal, &EndError{Outcome: Canceled, Cause: r.cause})
		return end.Outcome, &EndError{end.Outcome, end.Cause, t.err}
	case r.err == nil:
		return OK, nil
	case r.skipped && t.signal != nil:
		// A pre-empted action must not look skipped: its Settle would restore a state
		// that belongs to the successor.
		return t.signal.Outcome, &EndError{t.signal.Outcome, t.signal.Cause, r.err}
	case r.skipped && r.end == nil:
		return Skipped, &EndError{Outcome: Skipped, Err: r.err}
	case r.end == nil:
		return Failed, r.err
	case t.signal != nil && r.cause != error(t.signal): // it came after the end of the context
		return t.signal.Outcome, &EndError{t.signal.Outcome, t.signal.Cause, r.err}
	}
	return r.end.Outcome, r.end
}

// suspend starts the back-off of a running action. The action keeps its places and
// gives back its share of the limits, unless Retry.Keep is set. REQUIRES: q.mu.
func (q *Queuer[K]) suspend(t *Ticket[K], err error, pause time.Duration) {
	t.cancel = nil // the context now belongs to the next action of the worker
	if t.act.Retry.Keep {
		q.kept = append(q.kept, t)
	} else {
		t.yield()
	}
	t.ended = q.now()
	t.err = err
	if pause > 0 {
		t.state = Retrying
		t.timer = time.AfterFunc(pause, t.again)
		return
	}
	t.state = Waiting
	q.enqueue(t)
}

// again ends the back-off. The ticket waits for a new turn. One that has kept its share of
// the limits starts now, or when its class is not paused.
func (t *Ticket[K]) again() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	// The timer may be late: the action may have been cancelled.
	if t.state == Retrying {
		t.state = Waiting
		q.enqueue(t)
		q.pump(q.now())
	}
}

// expire ends an action that waited too long for its first attempt.
func (t *Ticket[K]) expire() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	// The bad schedule: the timer fires, the action starts and goes into its back-off
	// before expire has the lock. Therefore it checks the number of attempts.
	if t.state != Waiting || t.attempt > 0 {
		return
	}
	t.decide(Expired, &EndError{Outcome: Expired})
	q.retire(t, true)
}
