package lifecycle

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// An operation with an owner waits for its turn without a deadline: as long as the
// owner is alive, the wait in its queue is not a failure. Its record is marked as
// waiting. The commit that starts the turn removes the mark and sets the deadline,
// before the work runs. If the owner dies, the sweep finds the operation as its
// orphan. Without an owner the deadline is set at the admission, and also bounds the
// wait.

// waits reports whether the operation of a record waits for its turn.
func waits(r *StoredRecord) bool {
	options, err := readOptions(r)
	return err == nil && options.Waiting && r.Owner != ""
}

// turnError is an error of the store at the start of a turn. The queue retries it, without a
// share of its limits, except in a queue of Shared.
type turnError struct{ error }

func (e *turnError) Unwrap() error { return e.error }

// turnRetry is how the queue retries the start of a turn: as long as the operation
// is not overdue, the manager is not shut down and the error may go away. It also
// retries the work, see attempts.go.
func (o *operation) turnRetry() queue.Retry {
	backoff := queue.Exponential(firstPause, longestPause)
	return queue.Retry{
		Attempts: math.MaxInt32,
		If: func(err error) bool {
			if _, ok := err.(*attemptError); ok {
				return true
			}
			turn, ok := err.(*turnError)
			return ok && !final(turn.error) && !o.task.overdue() && o.core.retries.stop.Err() == nil
		},
		Backoff: func(attempts int, err error) time.Duration {
			if failed, ok := err.(*attemptError); ok {
				return failed.pause
			}
			return backoff(attempts, err)
		},
	}
}

// startTurn runs when the object's turn has come. The operation may have been taken
// away while it waited. The error is a *turnError, or [ErrStale]. A store that hangs
// must not hold the object's turn: after outcomeWithin the start is tried again.
func (o *operation) startTurn(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, outcomeWithin)
	defer stop()
	var err error
	if o.waits || o.failed > 0 {
		begins := func(w *workOptions) { w.Waiting, w.Next = false, time.Time{} }
		err = o.touch(ctx, func(w *workOptions) {
			begins(w)
			w.Failed, w.Error = o.failed, o.lastError // the pause before may not be in the record
		}, begins)
	} else {
		var now StoredRecord
		if now, err = o.core.get(ctx, o.task.Key); err == nil && !o.task.owns(&now) {
			err = stale(&now, now.Version)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrStale):
		o.task.end(Lost)
		return err
	}
	return &turnError{err}
}

// touch is [Task.touch], and notes the record that the operation has left.
func (o *operation) touch(ctx context.Context, own, others func(*workOptions)) error {
	r, err := o.task.touch(ctx, own, others)
	if err == nil && r.written() {
		o.setLast(r.recordAfter())
	}
	return err
}

// overdue reports whether the deadline has passed by the clock of this process.
func (t *Task) overdue() bool {
	return t.untilDeadline(math.MaxInt64) <= 0
}

// untilDeadline returns d, or the time until the deadline if that is shorter.
func (t *Task) untilDeadline(d time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deadline.IsZero() {
		return d
	}
	return min(d, time.Until(t.deadline))
}

// setDeadline notes the deadline that a written request has set or cleared. It is counted from
// before the commit by the clock of this process, so it comes no later than the
// deadline in the record.
func (t *Task) setDeadline(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.change.Timeout > 0:
		t.deadline = r.sent.Add(r.change.Timeout)
		t.recorded, t.sequence = r.change.To.Deadline, r.change.To.Sequence
	case !r.change.MetadataOnly:
		t.deadline, t.recorded, t.sequence = time.Time{}, time.Time{}, r.change.To.Sequence
	}
}

// seeDeadline notes the deadline of a record that was read. The bad schedule without it: another
// process applies a report, which extends the deadline, and the outcome of the work is not
// written again after the deadline that this process has set.
//
// The answer may be late: an older record, or an earlier deadline of the same one, does not count.
func (t *Task) seeDeadline(now *StoredRecord) {
	if !t.owns(now) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch later := now.Deadline.After(t.recorded); {
	case now.Sequence < t.sequence, now.Sequence == t.sequence && !later:
		return
	case now.Deadline.IsZero():
		t.deadline = time.Time{}
	case !t.deadline.IsZero():
		t.deadline = t.deadline.Add(now.Deadline.Sub(t.recorded))
	}
	t.recorded, t.sequence = now.Deadline, now.Sequence
}
