package queue

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"
)

// startWaiting lets an accepted ticket wait in its lanes. REQUIRES: q.mu.
func (q *Queuer[K]) startWaiting(t *Ticket[K]) {
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
	if len(c.ready) == 0 && c.peak > shrinkAbove {
		c.ready, c.peak = nil, 0
	}
}

// pump starts every action that may start, makes sure that each has a worker, and
// gives room to blocked submitters. REQUIRES: q.mu.
func (q *Queuer[K]) pump(now time.Duration) {
	for t := q.next(); t != nil; t = q.next() {
		t.dequeue()
		t.stopTimer()
		if t.hasShare {
			q.kept = remove(q.kept, slices.Index(q.kept, t))
		} else {
			q.starts++
			t.class.recordStart(q.starts)
			t.hasShare = true
		}
		t.state = Running
		t.started, t.ended = now, 0
		t.attempt++
		q.untaken = append(q.untaken, t)
	}
	q.startWorkers()
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

// result is how an attempt ended, as far as it can be judged without q.mu.
type result struct {
	outcome   Outcome
	err       error         // of the outcome
	returned  error         // what Guard or Run returned
	cause     error         // of the end of the context, if err is of that
	unbegun   bool          // the base had ended before the attempt, with cause
	baseEnded bool          // the base had ended when the attempt ended
	retry     bool          // err is worth another attempt
	pause     time.Duration // before that attempt
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
			r = result{outcome: Panicked, err: &PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	act, observer := t.act, &t.q.config.Observer
	parent = context.WithValue(parent, ticketKey{}, t)
	if act.Guard != nil {
		if err := act.Guard(parent); err != nil {
			return t.judge(parent, err, result{outcome: Skipped, err: &EndError{Outcome: Skipped, Err: err}})
		}
	}
	ctx, stop := attemptContext(parent, act)
	defer stop()
	if observer.Started != nil {
		observer.Started(ctx, Started[K]{t.Info()})
	}
	err := act.Run(ctx)
	if err == nil {
		return result{outcome: OK}
	}
	r = t.judge(ctx, err, result{outcome: Failed, err: err})
	r.retry = (r.outcome == Failed || r.outcome == TimedOut) && int(t.attempt) < act.Retry.Attempts &&
		!t.signalled() && t.q.config.Base.Err() == nil && (act.Retry.If == nil || act.Retry.If(err))
	if r.retry && act.Retry.Backoff != nil {
		r.pause = max(0, act.Retry.Backoff(int(t.attempt), err))
	}
	if r.retry && observer.Retried != nil {
		observer.Retried(ctx, FailedAttempt[K]{t.Info(), r.outcome, r.err, r.pause})
	}
	return r
}

// signalled reports whether the action has to end.
func (t *Ticket[K]) signalled() bool {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.signal != nil
}

// judge returns the result of an attempt that returned err. An error of the end of the
// context belongs to what ended the context, and any other one is the action's own.
func (t *Ticket[K]) judge(ctx context.Context, err error, own result) result {
	own.returned = err
	cause := context.Cause(ctx)
	if cause == nil {
		return own
	}
	end := endOf(cause, err, t.q.config.Base)
	if end == nil {
		return own
	}
	return result{outcome: end.Outcome, err: end, returned: err, cause: cause}
}

// endOf returns the error of an action whose context ended with the cause, or nil if the
// action failed for another reason. It may call methods of err and of the base's cause. The
// cause of the base may be an EndError too: of another queue, whose action has this context.
func endOf(cause, err error, base context.Context) *EndError {
	end, ok := cause.(*EndError)
	if !ok || error(end) == context.Cause(base) {
		end = &EndError{Outcome: Canceled, Cause: cause}
	}
	switch {
	case errors.Is(err, error(end)):
		return end
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, end.Cause):
		return &EndError{end.Outcome, end.Cause, err}
	}
	return nil
}

// conclude retries the action or ends it. REQUIRES: q.mu.
func (q *Queuer[K]) conclude(t *Ticket[K], r result) {
	if t.state != Running {
		// It was abandoned, and everything that it held is given away.
		q.strayReturned(true)
		return
	}
	if r.unbegun {
		r.outcome, r.err, r.returned = Canceled, &EndError{Canceled, r.cause, t.err}, t.err
		t.attempt--
		t.started = 0
	}
	// An action that was signalled to end and returns the error of its context ended for that
	// reason, and so did one that would be retried or that its guard skipped: Settle of a
	// pre-empted action must not restore a state that belongs to the successor.
	ended := r.retry || r.outcome == Skipped || r.cause != nil && r.cause != error(t.signal)
	if t.signal != nil && ended {
		r = result{outcome: t.signal.Outcome, err: &EndError{t.signal.Outcome, t.signal.Cause, r.returned}}
	}
	if r.retry {
		q.suspend(t, r.err, r.pause)
		q.pump(t.ended)
		return
	}
	t.halts = q.config.HaltOnFailure && r.outcome.failure() && t.signal == nil && !r.baseEnded
	if t.halts { // already now, so that Settle and the observer may call Resume
		for _, p := range t.places {
			p.lane.halted = true
		}
	}
	t.decide(r.outcome, r.err)
	q.retire(t, true)
}

// suspend starts the back-off of a running action. The action keeps its places and
// gives back its share of the limits, unless Retry.Keep is set. REQUIRES: q.mu.
func (q *Queuer[K]) suspend(t *Ticket[K], err error, pause time.Duration) {
	t.cancel = nil // the context now belongs to the next action of the worker
	if t.act.Retry.Keep {
		q.kept = append(q.kept, t)
	} else {
		t.releaseShare()
	}
	t.ended = q.now()
	t.err = err
	if pause > 0 {
		t.state = Retrying
		t.timer = time.AfterFunc(pause, t.endBackoff)
		return
	}
	t.state = Waiting
	q.enqueue(t)
}

// endBackoff lets the ticket wait for a new turn. One that has kept its share of the limits
// starts now, or when its class is not paused.
func (t *Ticket[K]) endBackoff() {
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
