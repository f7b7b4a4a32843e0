package pgqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// ending is how an attempt ended, until it is written.
type ending struct {
	outcome   queue.Outcome // Pending: the action is put back
	err       error
	pause     time.Duration // of Pending
	uncounted int           // of Pending: 1 if the attempt does not count
}

// work makes one attempt and writes how it ended. While the database fails, it writes again,
// and the lease is renewed meanwhile.
func (w *Worker) work(life context.Context, l *lease) {
	defer w.drop(l)
	e := w.attempt(life, l)
	for pause := 10 * time.Millisecond; e != nil && life.Err() == nil; pause = min(2*pause, time.Second) {
		done, err := w.write(life, l, e)
		if err == nil {
			w.reportEnd(life, l, e, done)
			return
		}
		w.failed(life, fmt.Errorf("%w: at the end of action %d, %q of %q", err, l.ID, l.Name, l.Keys))
		select {
		case <-time.After(pause):
		case <-life.Done():
		}
	}
}

// attempt runs the handler. The result is nil if the worker no longer waits for it.
func (w *Worker) attempt(life context.Context, l *lease) *ending {
	handler, found := w.handlers[l.Name]
	attempts := l.Retries.Attempts
	switch {
	case l.ctx.Err() != nil:
		// The handler has not begun. This is first: a claim that was under way at the stop may
		// get an action again that was put back because of the stop, and must not end it as
		// interrupted.
		return &ending{err: context.Cause(l.ctx), uncounted: 1}
	case !found:
		err := fmt.Errorf("%w: %q in worker %s", ErrNoHandler, l.Name, w.config.Owner)
		return &ending{err: err, pause: w.config.Lease, uncounted: 1}
	case attempts > 0 && l.Attempt > attempts:
		return &ending{outcome: queue.Failed, err: fmt.Errorf("%w; the last error: %q", ErrInterrupted, l.lastError)}
	}
	report(l.ctx, w.config.Observer.Started, Started{&l.Task})
	return call(life, l, handler)
}

// call runs the handler, and its RetryIf, in a goroutine of their own, because they may ignore
// that the worker stops: the result is then nil, and the goroutine ends with the handler.
func call(life context.Context, l *lease, handler Handler) *ending {
	ctx, stop := l.ctx, context.CancelFunc(func() {})
	if l.Timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, l.Timeout, &queue.EndError{Outcome: queue.TimedOut})
	}
	defer stop()
	var e *ending
	returned := guarded(func() error {
		e = judge(ctx, l, handler.Run(ctx, &l.Task))
		failed := e.outcome == queue.Failed || e.outcome == queue.TimedOut
		if failed && l.Attempt < l.Retries.Attempts && (handler.RetryIf == nil || handler.RetryIf(e.err)) {
			e = &ending{err: e.err, pause: l.Retries.pause(l.Attempt)}
		}
		return nil
	})
	select {
	case err := <-returned:
		if err != nil {
			return &ending{outcome: queue.Panicked, err: err}
		}
		return e
	case <-life.Done():
		return nil
	}
}

// judge turns what a handler returned into an ending. It panics if a method of the error does.
func judge(ctx context.Context, l *lease, err error) *ending {
	if err == nil {
		return &ending{outcome: queue.OK}
	}
	// If Error panics, it does so here. The bad schedule otherwise: it panics when the text is
	// needed, that ends the process, and then each process that claims the action again.
	_ = err.Error()
	switch {
	case l.ctx.Err() != nil:
		// The attempt ended with its worker. The error may have any text.
		return &ending{err: &queue.EndError{Outcome: queue.Canceled, Cause: context.Cause(l.ctx), Err: err}}
	case ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, queue.ErrTimeout)):
		return &ending{outcome: queue.TimedOut, err: &queue.EndError{Outcome: queue.TimedOut, Err: err}}
	}
	return &ending{outcome: queue.Failed, err: err}
}

// write writes an ending, with Settle in the same transaction. It reports whether the action
// had the token.
func (w *Worker) write(ctx context.Context, l *lease, e *ending) (done bool, err error) {
	ctx, stop := context.WithTimeout(ctx, w.config.Lease)
	defer stop()
	settle := w.handlers[l.Name].Settle
	switch {
	case e.outcome == queue.Pending || settle == nil && !w.remove(ctx, l):
		return w.release(ctx, w.db, l, e)
	case settle == nil:
		return true, nil
	}
	err = transact(ctx, w.db, func(tx *sql.Tx) error {
		if err := queryRow(ctx, tx, limitSilence, []any{w.config.Lease.Microseconds()}, new(string)); err != nil {
			return err
		}
		if err := <-guarded(func() error { return settle(ctx, tx, &l.Task, e.outcome, e.err) }); err != nil {
			return fmt.Errorf("pgqueue: settle: %w", err)
		}
		// The lanes are locked last, like by producers that change an object and then enqueue.
		if done, err = w.release(ctx, tx, l, e); err == nil && !done {
			err = errUndo
		}
		return err
	})
	if err == errUndo {
		err = nil
	}
	return done, err
}

// errUndo makes a transaction roll back what Settle has written, because the action does not
// have the token.
var errUndo = errors.New("pgqueue: undo")

// guarded calls f in a goroutine of its own, and sends its error. A panic, and runtime.Goexit,
// become the error.
func guarded(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		var err error = &queue.PanicError{Goexit: true}
		defer func() {
			if v := recover(); v != nil {
				err = &queue.PanicError{Value: v, Stack: debug.Stack()}
			}
			ended <- err
		}()
		err = f()
	}()
	return ended
}

// release puts an action back, or removes it. It reports whether the action had the token.
func (w *Worker) release(ctx context.Context, on Tx, l *lease, e *ending) (done bool, err error) {
	text, args := leave, []any{l.ID, l.Token}
	if e.outcome == queue.Pending {
		// fmt recovers if Error panics, as that of the cause of Run's context may.
		reason := strings.ToValidUTF8(strings.ReplaceAll(fmt.Sprint(e.err), "\x00", ""), "?") // what the table can keep
		text, args = putBack, append(args, reason, e.uncounted, e.pause.Microseconds())
	}
	err = queryRow(ctx, on, text, args, &done)
	return done, err
}

func (w *Worker) reportEnd(ctx context.Context, l *lease, e *ending, done bool) {
	switch o := &w.config.Observer; {
	case !done:
		report(ctx, o.Lost, Lost{&l.Task, e.outcome, e.err})
	case e.outcome == queue.Pending:
		report(ctx, o.Retried, FailedAttempt{&l.Task, e.err, e.pause})
	default:
		report(ctx, o.Finished, Finished{&l.Task, e.outcome, e.err})
	}
}
