package queue

import (
	"context"
	"slices"
	"time"
)

// worker is a goroutine that runs started actions until there are none.
type worker[K comparable] struct {
	q *Queuer[K]

	// The context of the present action, without the ticket. made is the start of the
	// first action that used it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	made   time.Duration
}

// contextAge is the time for which a worker uses one context for its actions. An action
// that takes longer has the context for itself or is the last one with it, and the
// context ends when the action has ended. A new context for each no-op action makes it
// cost 1.4 times as much.
const contextAge = time.Millisecond

// hasWorker reports whether a worker runs or settles the ticket. Calls such as Cancel, and
// timers, settle tickets without a worker. REQUIRES: q.mu.
func (t *Ticket[K]) hasWorker() bool { return t.hasShare && !slices.Contains(t.q.kept, t) }

// startWorkers starts the workers that are missing. A worker that is about to exit calls
// startWorkers again. REQUIRES: q.mu.
func (q *Queuer[K]) startWorkers() {
	for q.workers < q.running() {
		q.workers++
		go (&worker[K]{q: q}).work()
	}
}

// strayReturned counts a goroutine of an abandoned action that has returned. REQUIRES: q.mu.
func (q *Queuer[K]) strayReturned(worker bool) {
	q.strays--
	if worker {
		q.workers++
	}
}

func (w *worker[K]) work() {
	defer w.exit() // also after runtime.Goexit
	w.q.mu.Lock()
	t := w.take(0)
	w.q.mu.Unlock()
	for t != nil {
		t = w.run(t)
	}
}

func (w *worker[K]) exit() {
	if w.cancel != nil {
		w.cancel(nil)
	}
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	w.q.workers--
	w.q.startWorkers()
}

// take returns the next untaken ticket, or nil, and makes sure that the context has not
// ended. It is given the end of the last action: the next one may have started before that,
// because a new worker did not run in time. REQUIRES: q.mu.
func (w *worker[K]) take(lastEnded time.Duration) *Ticket[K] {
	q := w.q
	t := q.nextUntaken()
	if t == nil {
		return nil
	}
	// The context has ended if the last action was cancelled. That action cannot cancel
	// it any more: its ticket has lost the function, see releaseShare.
	if w.ctx == nil || w.ctx.Err() != nil || lastEnded-w.made >= contextAge {
		if w.cancel != nil {
			w.cancel(nil)
		}
		w.ctx, w.cancel = context.WithCancelCause(q.config.Base)
		w.made = t.started
	}
	t.cancel = w.cancel
	if t.signal != nil { // it was cancelled after its start
		t.cancel(t.signal)
	}
	return t
}

// nextUntaken returns the next running ticket that no worker has taken, or nil. REQUIRES: q.mu.
func (q *Queuer[K]) nextUntaken() *Ticket[K] {
	for len(q.untaken) > 0 {
		t := q.untaken[0]
		q.untaken = remove(q.untaken, 0)
		if t.state == Running {
			return t
		}
		q.strayReturned(true) // it was abandoned before its attempt, and this worker counts again
	}
	return nil
}

// run makes one attempt and concludes it. It returns the next ticket. An attempt that
// calls runtime.Goexit is concluded, too, and then the worker exits.
func (w *worker[K]) run(t *Ticket[K]) *Ticket[K] {
	q, base := w.q, w.q.config.Base
	goexit := true
	defer func() {
		if goexit {
			baseEnded := base.Err() != nil
			q.mu.Lock()
			defer q.mu.Unlock()
			q.conclude(t, result{outcome: Panicked, err: &PanicError{Goexit: true}, baseEnded: baseEnded})
		}
	}()
	var r result
	if base.Err() != nil {
		r = result{unbegun: true, cause: context.Cause(base)}
	} else {
		r = t.try(w.ctx)
		r.baseEnded = base.Err() != nil
	}
	goexit = false
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conclude(t, r)
	return w.take(max(t.started, t.ended)) // an attempt that begins again at once has no end
}
