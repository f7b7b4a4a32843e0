package queue

import (
	"runtime/debug"
	"slices"

	"github.com/interlock-go/interlock/internal/tee"
)

// An action ends in two steps. First its outcome is decided under the lock and its
// state is Ending. Then Settle and the observer run without the lock, and the action
// gives up its places. No action behind it starts before that.

// decide fixes the outcome. From here on no other goroutine can. REQUIRES: q.mu.
func (t *Ticket[K]) decide(o Outcome, err error) {
	t.dequeue()
	t.stopTimer()
	t.state = Ending
	t.outcome, t.err = o, err
}

// claim decides the outcome of those tickets of the list that wait, before any of
// them gives up its place, so that none of them starts in between. It returns them
// for retireAll. REQUIRES: q.mu.
func (q *Queuer[K]) claim(list []*Ticket[K], end *EndError) (claimed []*Ticket[K]) {
	for _, t := range list {
		if t.state == Delayed || t.state == Waiting || t.state == Retrying {
			t.decide(end.Outcome, &EndError{end.Outcome, end.Cause, t.err})
			claimed = append(claimed, t)
		}
	}
	return claimed
}

// retireAll ends claimed tickets in the order of the list, in the goroutine of the
// caller. If an observer panics or calls runtime.Goexit, the others are retired before
// the caller goes on with that.
func (q *Queuer[K]) retireAll(claimed []*Ticket[K]) {
	tee.Each(claimed, func(t *Ticket[K]) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.retire(t, false)
	})
}

// interruptAll ends actions: the contexts of running ones end, and those that wait by now
// end with the other outcome.
func (q *Queuer[K]) interruptAll(list []*Ticket[K], end *EndError, waiting Outcome) {
	q.mu.Lock()
	for _, t := range list {
		if t.state == Running {
			t.interrupt(end)
		}
	}
	claimed := q.claim(list, &EndError{Outcome: waiting, Cause: end.Cause})
	q.mu.Unlock()
	q.retireAll(claimed)
}

// interrupt makes an action end. The first reason counts. A context of the standard
// library runs no user code when it is cancelled. REQUIRES: q.mu.
func (t *Ticket[K]) interrupt(end *EndError) {
	if t.signal == nil {
		t.signal = end
		if t.cancel != nil {
			t.cancel(end)
		}
	}
}

// retire settles a ticket whose outcome is decided, reports it, and gives up its
// places. A panic of the observer goes on, or becomes the outcome if this is a
// goroutine of the queue (ours). REQUIRES: q.mu, which it releases for Settle and the
// observer.
func (q *Queuer[K]) retire(t *Ticket[K], ours bool) {
	defer q.endSettled(t, t.hasWorker()) // also if Settle or the observer does not return
	if t.act.Settle == nil && q.config.Observer.Finished == nil && q.config.Observer.Halted == nil {
		return // to release q.mu and acquire it again costs the most frequent actions some per cent
	}
	q.mu.Unlock()
	defer q.mu.Lock()
	defer q.reportEnd(t, ours)
	if t.act.Settle != nil {
		q.catchPanic(t, func() { t.act.Settle(q.config.Base, t.outcome, t.err) })
	}
}

// endSettled ends a settled ticket. An abandoned one has ended: before its turn in retireAll,
// or while its Settle or the observer ran. worker reports whether a worker settled it.
// REQUIRES: q.mu.
func (q *Queuer[K]) endSettled(t *Ticket[K], worker bool) {
	if t.state == Ended {
		q.strayReturned(worker)
		return
	}
	q.end(t)
}

// catchPanic calls f. A panic or runtime.Goexit in it becomes the outcome.
func (q *Queuer[K]) catchPanic(t *Ticket[K], f func()) {
	panicked := &PanicError{Goexit: true}
	defer func() {
		if v := recover(); v != nil {
			panicked = &PanicError{Value: v, Stack: debug.Stack()}
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if panicked != nil && t.state != Ended {
			t.outcome, t.err = Panicked, panicked
		}
	}()
	f()
	panicked = nil
}

// reportEnd calls the functions of the observer, all of them also if one panics.
func (q *Queuer[K]) reportEnd(t *Ticket[K], ours bool) {
	if q.config.Observer.Finished == nil && q.config.Observer.Halted == nil {
		return
	}
	info := t.Info()
	info.Ended = q.at(q.now())
	var calls []func()
	if q.config.Observer.Finished != nil {
		calls = append(calls, func() { q.config.Observer.Finished(q.config.Base, Finished[K]{info}) })
	}
	if q.config.Observer.Halted != nil && t.halts {
		for _, k := range info.Keys {
			calls = append(calls, func() { q.config.Observer.Halted(q.config.Base, Halted[K]{k, info}) })
		}
	}
	tee.Each(calls, func(call func()) {
		if ours {
			q.catchPanic(t, call)
		} else {
			call()
		}
	})
}

// end takes the ticket out of everything, publishes its outcome, and starts what may
// start now. It also removes the places of a ticket that was not admitted. REQUIRES:
// q.mu.
func (q *Queuer[K]) end(t *Ticket[K]) {
	if t.state == Admitting {
		if t.admitted != nil {
			close(t.admitted)
		}
		q.removeSubmitter(t)
	}
	t.releaseShare()
	q.leaveClass(t.class)
	q.total--
	t.state = Ended
	t.ended = q.now()
	if t.act.ID != "" && q.ids[t.act.ID] == t {
		delete(q.ids, t.act.ID)
		if len(q.ids) == 0 {
			q.ids = nil // maps never shrink
		}
	}
	for _, p := range t.places {
		p.lane.drop(t)
	}
	// Only now, so that the tickets behind become ready in the order of the keys.
	for _, p := range t.places {
		if len(p.lane.queue) > 0 {
			q.enqueue(p.lane.queue[0])
		}
	}
	if t.done != nil {
		close(t.done)
	}
	q.pump(t.ended)
	for _, p := range t.places {
		q.tidy(p.lane)
	}
	if q.total == 0 && q.closed {
		q.finishDrain()
	}
}

// releaseShare gives back the share of the limits, if the ticket has one. The context now
// belongs to the next action of the worker. REQUIRES: q.mu.
func (t *Ticket[K]) releaseShare() {
	if !t.hasShare {
		return
	}
	t.hasShare = false
	t.cancel = nil
	t.class.count(-1)
	if i := slices.Index(t.q.kept, t); i >= 0 {
		t.q.kept = remove(t.q.kept, i)
	}
}

func (t *Ticket[K]) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
