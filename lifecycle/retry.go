package lifecycle

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/queue"
)

// The pauses between two attempts to write an outcome: the first one, doubled until
// the longest one.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// retries are the outcomes that are being written again, each by a goroutine of its
// own. [Manager.Drain] stops and waits for them.
type retries struct {
	mu      sync.Mutex
	running sync.WaitGroup
	stopped bool
	stop    chan struct{} // closed by halt; nil until begin or halt needs it
}

// begin reports whether a retry may begin. If so, the caller calls running.Done at
// its end.
func (rs *retries) begin() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stop == nil {
		rs.stop = make(chan struct{})
	}
	if rs.stopped {
		return false
	}
	rs.running.Add(1)
	return true
}

// halt ends the retries, and refuses later ones.
func (rs *retries) halt() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stop == nil {
		rs.stop = make(chan struct{})
	}
	if !rs.stopped {
		rs.stopped = true
		close(rs.stop)
	}
}

// pause waits, and reports whether the retry goes on.
func (rs *retries) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-rs.stop:
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
	defer o.core.retries.running.Done()
	defer func() {
		if v := recover(); v != nil {
			err = o.failed(outcome, why, &queue.PanicError{Value: v, Stack: debug.Stack()})
		}
		o.finish(err)
	}()
	for pause := firstPause; temporary(err) && !o.task.overdue(); pause = min(2*pause, longestPause) {
		pause -= rand.N(pause / 4) // all operations of the process have met the same outage
		if !o.core.retries.pause(ctx, o.task.untilDeadline(pause)) {
			return
		}
		o.keep(ctx, err)
		err = o.attempt(ctx, outcome, why)
	}
}

// keep extends the deadline if the store was the reason that the outcome is not
// written. An error of BeforeCommit may stay for ever, and must not keep the sweeper
// from the object for ever.
func (o *operation) keep(ctx context.Context, err error) {
	if _, hook := errors.AsType[*hookError](err); hook {
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
	if !ok || failed.Unwritten == nil {
		return false
	}
	for _, final := range []error{
		errUnsettled, ErrInvalid, ErrForeign, ErrClosed, ErrStale, ErrPrecondition, errors.ErrUnsupported,
		fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrForcedOnly, fsm.ErrGuard, queue.ErrPanic,
	} {
		if errors.Is(failed.Unwritten, final) {
			return false
		}
	}
	return true
}
