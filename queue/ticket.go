package queue

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Ticket is an accepted action. It is made by [Queuer.Submit], safe for
// concurrent use and must not be copied. It may be forgotten: the action runs
// all the same.
type Ticket[K comparable] struct {
	q     *Queuer[K]
	act   *Action
	class *class[K]
	entry entry[K] // in the lane of the first key; the others are in rare.more

	// A ready ticket is in the list of its class, a running one in that of the
	// queue; no other one is in a list.
	next, prev *Ticket[K]
	seq        uint64
	turn       uint64

	accepted, started, ended int64

	// missing counts the reasons why the ticket is not ready:
	// lanes where it is not first or that stand still, + 1 while it is being
	// admitted, + 1 while its parent has not ended.
	missing int32
	attempt int32
	state   State
	outcome Outcome
	queued  bool // is in the list of its class
	blocked bool // its submitter waits for room
	holds   bool // counts in its class and is in the list of the running
	halts   bool // its failure brings its lanes to a stand

	err  error
	done chan struct{} // made by who asks for it
	rare *rare[K]

	// context of the present attempt, made by who asks for it, under q.mu.
	context atomic.Pointer[attemptContext]
}

// rare is what most tickets do without.
type rare[K comparable] struct {
	more      []entry[K]
	timer     *time.Timer // of QueueTimeout, then of the back-off
	signal    *EndError   // why it was told to end; the first one counts
	waits     []*Ticket[K]
	submitter *submitter[K] // while it waits for room
	children  []child
	gate      chan struct{} // closed when Admit has answered; for a repeated ID
}

// extra returns the rare part. REQUIRES: q.mu.
func (t *Ticket[K]) extra() *rare[K] {
	if t.rare == nil {
		t.rare = new(rare[K])
	}
	return t.rare
}

// entries calls f with the entry in every lane, in the order of the keys.
func (t *Ticket[K]) entries(yield func(*entry[K]) bool) {
	if !yield(&t.entry) || t.rare == nil {
		return
	}
	for i := range t.rare.more {
		if !yield(&t.rare.more[i]) {
			return
		}
	}
}

// keys copies the keys.
func (t *Ticket[K]) keys() []K {
	n := 1
	if t.rare != nil {
		n += len(t.rare.more)
	}
	keys := make([]K, 0, n)
	for e := range t.entries {
		keys = append(keys, e.key)
	}
	return keys
}

// Seq is the place in the order of acceptance: dense over all keys but for
// refusals, growing, never repeated. It may serve as a fencing token.
func (t *Ticket[K]) Seq() uint64 { return t.seq }

// Done is closed when the action has ended, was settled, and no longer stands in
// the way of later ones.
func (t *Ticket[K]) Done() <-chan struct{} {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.ending()
}

// closedChan is what Done gives after the end; it is never written to.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// ending returns the channel that is closed at the end. REQUIRES: q.mu.
func (t *Ticket[K]) ending() chan struct{} {
	if t.done == nil {
		if t.state == Ended {
			return closedChan
		}
		t.done = make(chan struct{})
	}
	return t.done
}

// Outcome is [Pending] until the action has ended.
func (t *Ticket[K]) Outcome() Outcome {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.state != Ended {
		return Pending
	}
	return t.outcome
}

// Err is nil until the action has ended, and if it ended as [OK]. An action's
// own error is given as it was returned; all others are an [*EndError] or a
// [*PanicError].
func (t *Ticket[K]) Err() error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.state != Ended {
		return nil
	}
	return t.err
}

// Wait waits until the action has ended and returns what [Ticket.Err] does. If
// the context ends first, the error matches [ErrPending] and the context's
// cause, and nothing else happens: the action goes on and can be waited for
// again. Called inside an action, with its context or one made from it, for
// something that could only end after that action, it returns
// [ErrWouldDeadlock] at once.
func (t *Ticket[K]) Wait(ctx context.Context) error {
	self := acting[K](ctx, t.q)
	q := t.q
	q.mu.Lock()
	if t.state == Ended {
		defer q.mu.Unlock()
		return t.err
	}
	if self != nil && self.state == Running {
		if q.deadlock(self, t) {
			q.mu.Unlock()
			return fmt.Errorf("%w: %s", ErrWouldDeadlock, or(t.act.Name, "an action"))
		}
		self.wait(t)
		defer self.waited(t)
	}
	if self == nil && t.state == Running {
		// One turn for an action that is about to end: it saves making a channel
		// and being woken by it.
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if t.state == Ended {
			defer q.mu.Unlock()
			return t.err
		}
	}
	done := t.ending()
	q.mu.Unlock()
	select {
	case <-done:
		// Written before the channel was closed, never after.
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrPending, context.Cause(ctx))
	}
}

// wait and waited note that an action waits for another one.
func (t *Ticket[K]) wait(on *Ticket[K]) { // REQUIRES: q.mu
	r := t.extra()
	r.waits = append(r.waits, on)
}

func (t *Ticket[K]) waited(on *Ticket[K]) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	for i, w := range t.rare.waits {
		if w == on {
			t.rare.waits = append(t.rare.waits[:i], t.rare.waits[i+1:]...)
			return
		}
	}
}

// Cancel withdraws an action that waits, and ends the context of one that runs;
// the first such call counts. The cause is kept in the action's error, it may be
// nil. A running action that returns nil all the same ends as [OK], one that
// returns an error of its own as [Failed].
func (t *Ticket[K]) Cancel(cause error) Cancellation {
	q := t.q
	now := q.now()
	end := &EndError{Outcome: Canceled, Cause: cause}
	q.mu.Lock()
	switch t.state {
	case Running:
		t.signal(end)
		q.mu.Unlock()
		return Signalled
	case Waiting, Retrying:
		end.Err = t.err // of the last attempt
		q.withdrawAlone(t, Canceled, end, now)
		return Withdrawn
	}
	q.mu.Unlock()
	return Late
}

// Info is what is known now.
func (t *Ticket[K]) Info() Info[K] {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.info()
}
