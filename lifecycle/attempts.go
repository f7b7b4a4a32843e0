package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/queue"
)

// Retries repeats work that fails. An attempt fails if it returns an error. Its context ends
// after [Work].Timeout, and an attempt that returns nil after that has succeeded. Work is not
// repeated after a [Permanent] error, after a panic, or if it was ended from outside. The
// effect of [EditOutcome] in an attempt that fails is dropped.
//
// Between two attempts the work keeps the object's turn, and gives back its share of the
// queue's limits, except in a queue of [Shared], where it keeps both. If the operation is
// taken away in the pause, it ends at once. Every attempt, and every pause, extends the
// object's deadline. If the store fails when an attempt has failed, that pause does not extend
// it and takes at most half of the time that is left. A change that continues the operation
// in a pause sets the deadline after the pause. A wait for the queue's limits after a pause
// does not extend it.
//
// The record keeps the number of failed attempts, the error of the last one, and when the
// next one is due; [Manager.Explain] shows them. If the process dies during an attempt,
// that attempt counts as failed. A sweep that does the work again continues the count, and
// after the last attempt the outcome is Failed. Without [Config].Owner the wait for the
// first attempt counts as a part of it.
//
// Retries is a plain value.
type Retries struct {
	// Attempts is the maximum number of attempts, in all processes together. 0: one
	// attempt, and each time that a sweep does the work again one more. 1: one attempt.
	Attempts int
	// Delay is the pause after the first attempt. It doubles with each attempt, up to
	// MaxDelay, and is up to a quarter shorter at random, as by [queue.Exponential]. 0:
	// one second.
	Delay time.Duration
	// MaxDelay is the longest pause. 0: one minute. Less than Delay: Delay.
	MaxDelay time.Duration
}

// backoff returns the pauses.
func (r Retries) backoff() func(attempts int, err error) time.Duration {
	return queue.Exponential(cmp.Or(r.Delay, time.Second), cmp.Or(r.MaxDelay, time.Minute))
}

// Permanent marks an error of work that no further attempt can mend: [Retries] do not
// repeat the work. The result matches err and has its text. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func permanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// attemptError is the error of an attempt that the queue repeats after the pause.
type attemptError struct {
	error
	pause time.Duration
}

func (e *attemptError) Unwrap() error { return e.error }

// failAttempt records that an attempt has failed, and returns the error that makes the
// queue repeat it. If the record cannot be written, the next attempt is made
// nevertheless: the record has the failed one as under way, which counts the same if
// this process dies.
func (o *operation) failAttempt(ctx context.Context, err error) error {
	o.failed, o.lastError = o.failed+1, storable.Text(err.Error(), maxReason)
	pause := o.work.Retries.backoff()(o.failed, err)
	next := time.Now().Add(pause).UTC().Round(0)
	limited, stop := context.WithTimeout(ctx, outcomeWithin)
	defer stop()
	pauses := func(w *workOptions) { w.Next = next }
	lost := o.touch(limited, func(w *workOptions) { w.Failed, w.Error, w.Next = o.failed, o.lastError, next }, pauses)
	if !errors.Is(lost, ErrStale) {
		if lost != nil {
			// The deadline may not be extended. The bad schedule with the whole pause: a sweep ends
			// the operation in it, although the store has failed for a moment only.
			if pause = min(pause, o.task.untilDeadline(math.MaxInt64)/2); pause <= 0 {
				return err
			}
		}
		ticket := queue.Current[Key](ctx)
		lost = o.task.rest(func(cause error) {
			o.task.end(Lost)
			ticket.Cancel(cause)
		})
	}
	if lost != nil {
		o.task.end(Lost)
		return lost
	}
	if retried := o.core.observer.Retried; retried != nil {
		retried(ctx, FailedAttempt{
			Key: o.task.Key, Operation: o.task.Operation, Event: o.admitted.Event, Attempt: o.failed, Err: err, Pause: pause,
		})
	}
	return &attemptError{err, pause}
}

// countLost counts the attempt that a dead process was making, when its work is done
// again.
func (w *workOptions) countLost() {
	if w.Attempts > 0 && !w.Waiting && w.Next.IsZero() {
		w.Failed, w.Error = w.Failed+1, "the attempt was not completed"
	}
	w.Next = time.Time{}
}

// attempts sets what the record has about the attempts of the work.
func (x *Explanation) attempts(r *StoredRecord) {
	options, err := readOptions(r)
	if err != nil || options.Attempts == 0 {
		return
	}
	x.Attempts, x.Attempt, x.LastError = options.Attempts, min(options.Failed+1, options.Attempts), options.Error
	if options.Next.After(time.Now()) {
		x.NextAttempt = options.Next
	}
}

// work describes the work in one line; empty: nothing is known about it.
func (x *Explanation) work() string {
	text := x.Work
	if x.Attempts == 0 {
		return text
	}
	if text != "" {
		text += "; "
	}
	text += fmt.Sprintf("attempt %d of %d", x.Attempt, x.Attempts)
	if !x.NextAttempt.IsZero() {
		text += ", next at " + x.NextAttempt.Format(time.RFC3339)
	}
	if x.LastError != "" {
		text += "; last error: " + x.LastError
	}
	return text
}
