package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/queue"
)

// The pauses between two attempts to write an outcome: the first one, doubled until
// the longest one.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Drain waits for the work of a manager, for a shutdown. With the default queue,
// [Manager.Do] and [Occupy] are refused from now on, for good ([queue.ErrTerminated]), and
// sweeps start no work again. Drain waits for the work that waits, runs, or pauses between
// two attempts. A queue of Config.Queue is the caller's: drain it first, for example by
// [queue.Queuer.Terminate]. In both cases Drain then waits for the outcomes that are still
// being written because the store failed, see [Manager.Do].
//
// If ctx ends first, the error is [queue.ErrNotDrained]. The work continues, and Drain may
// be called again. If ctx has ended when Drain returns, outcomes are not written again, and
// turns whose start failed do not start: also if nothing was left, and Drain returns nil.
// Sweeps of other processes find these objects. Inside work of the default queue,
// Drain returns [queue.ErrWouldDeadlock] and changes nothing. All other methods stay usable
// after Drain. Call [Owner.Leave] after it.
func Drain(ctx context.Context, m AnyManager) error {
	c := m.untyped()
	var err error
	if c.ownQueue != nil {
		err = c.inSteps(ctx, "drain", func(ctx context.Context) (left int, err error) {
			err = c.ownQueue.Terminate(ctx)
			if waits, ok := errors.AsType[*queue.DrainError](err); ok {
				left = waits.Waiting + waits.Running
			}
			return left, err
		})
	}
	if err == nil {
		err = c.inSteps(ctx, "write outcomes of", c.retries.wait)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, queue.ErrNotDrained)) {
		c.retries.end()
	}
	if err != nil {
		return c.failed("drain", "", err)
	}
	return nil
}

// progressPause is the time between two calls of Config.Progress during a drain.
const progressPause = time.Second

// inSteps waits until nothing is left, in steps if there is a Config.Progress, which receives
// what is left after each step. The total is the most that was left before.
func (c *core) inSteps(ctx context.Context, what string, wait func(context.Context) (left int, err error)) error {
	if c.progress == nil {
		_, err := wait(ctx)
		return err
	}
	for total := 0; ; {
		last := ctx.Err() != nil
		step, cancel := context.WithTimeout(ctx, progressPause)
		left, err := wait(step)
		cancel()
		if last || left == 0 {
			return err
		}
		total = max(total, left)
		c.progress(what+" "+c.table.Name, total-left, total)
	}
}

// retries are the outcomes of a manager that are being written again, each by a
// goroutine of its own. [Drain] ends them.
type retries struct {
	stop context.Context // ends when they have to end
	end  context.CancelFunc

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none runs; nil: none has begun
}

func newRetries() *retries {
	stop, end := context.WithCancel(context.Background())
	return &retries{stop: stop, end: end}
}

// begin reports whether a retry may begin. If so, the caller calls done.
func (rs *retries) begin() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stop.Err() != nil {
		return false
	}
	if rs.running == 0 {
		rs.idle = make(chan struct{})
	}
	rs.running++
	return true
}

func (rs *retries) done() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.running--; rs.running == 0 {
		close(rs.idle)
	}
}

// wait waits until no retry runs. If ctx ends first, it returns how many run.
func (rs *retries) wait(ctx context.Context) (running int, err error) {
	for {
		rs.mu.Lock()
		running, idle := rs.running, rs.idle
		rs.mu.Unlock()
		switch {
		case running == 0:
			return 0, nil
		case ctx.Err() != nil:
			return running, fmt.Errorf("%w: %d outcomes are not written: %w", queue.ErrNotDrained, running, context.Cause(ctx))
		}
		select {
		case <-idle: // another retry may have begun since
		case <-ctx.Done():
		}
	}
}

// sleep pauses, and reports whether neither ctx nor stop has ended it.
func sleep(ctx context.Context, stop <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// retry writes an outcome that could not be written at once, until it is written or
// refused, the operation is lost, its deadline has passed, or the manager or the
// queue is shut down. It runs outside the queue: an outage holds no share of a
// limit. The turn of the object is not needed: work of the object that starts
// meanwhile belongs to a later operation, and then this one is lost.
//
// A panic of user code becomes the reason why the outcome is not written.
func (o *operation) retry(ctx context.Context, outcome Outcome, why, err error) {
	defer o.core.retries.done()
	defer func() {
		if v := recover(); v != nil {
			err = o.panicked(outcome, why, v, nil)
		}
		_ = protect.Call(func() error { o.finish(ctx, err); return nil }) // err has a panic
	}()
	pause := queue.Exponential(firstPause, longestPause)
	for attempts := 1; temporary(err) && !o.task.overdue(); attempts++ {
		if !sleep(ctx, o.core.retries.stop.Done(), o.task.untilDeadline(pause(attempts, err))) {
			return
		}
		o.extendInOutage(ctx, err)
		err = o.tryOutcome(ctx, outcome, why)
	}
}

// extendInOutage extends the deadline if an outage is the reason that the outcome is not
// written. Any other error may stay for ever, and must not keep the sweeper from the
// object for ever.
func (o *operation) extendInOutage(ctx context.Context, err error) {
	_, hook := errors.AsType[*hookError](err)
	_, guard := errors.AsType[*guardError](err)
	if hook || guard || !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknownOutcome) {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), outcomeWithin)
	defer stop()
	_ = o.task.Heartbeat(ctx) // if the operation is lost, the next attempt finds that out
}

// temporary reports whether the outcome is not written for a reason that may go
// away.
func temporary(err error) bool {
	failed, ok := errors.AsType[*OutcomeError](err)
	return ok && failed.Unwritten != nil && !final(failed.Unwritten)
}

// final reports whether an error of the store or of user code stays, however often the
// same request is made.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		ErrInvalid, ErrForeign, ErrClosed, ErrStale, ErrPrecondition, ErrMisconfigured, errors.ErrUnsupported,
		fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrForcedOnly, fsm.ErrGuard, queue.ErrPanic,
	}, func(stays error) bool { return errors.Is(err, stays) })
}
