package queue

import (
	"context"
	"time"
)

// attemptContext is the context of one attempt. It is made when somebody asks
// for it first: most actions never look.
type attemptContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// over is the context of an attempt that ended before anybody asked.
var over = func() *attemptContext {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(nil)
	return &attemptContext{ctx, cancel}
}()

// attemptLocked returns the context and makes it if need be. REQUIRES: q.mu.
func (t *Ticket[K]) attemptLocked() *attemptContext {
	if a := t.context.Load(); a != nil {
		return a
	}
	ctx, stop := t.q.base, context.CancelFunc(nil)
	if t.act.Timeout > 0 {
		// The cancel function is called below, with that of the child.
		ctx, stop = context.WithTimeoutCause(ctx, t.act.Timeout, &EndError{Outcome: TimedOut})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attemptContext{ctx, cancel}
	if stop != nil {
		a.cancel = func(cause error) { cancel(cause); stop() }
	}
	t.context.Store(a)
	return a
}

// signal tells a running action to end; the first time counts. Cancelling is
// done under the lock: a context of the standard library runs nobody's code when
// it ends. REQUIRES: q.mu.
func (t *Ticket[K]) signal(end *EndError) {
	r := t.extra()
	if r.signal != nil {
		return
	}
	r.signal = end
	t.attemptLocked().cancel(end)
}

// closeContext ends the context of an attempt that is over, so that nothing that
// hangs on it stays. REQUIRES: q.mu.
func (t *Ticket[K]) closeContext() {
	if a := t.context.Load(); a != nil {
		a.cancel(nil)
		return
	}
	t.context.Store(over)
}

// lazyContext is a ticket seen as the context of its only attempt. It becomes a
// context of the standard library as soon as somebody wants more than values, so
// that children of it cost no goroutine and context.Cause works.
type lazyContext[K comparable] Ticket[K]

func (c *lazyContext[K]) standard() *attemptContext {
	if a := c.context.Load(); a != nil {
		return a
	}
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	return (*Ticket[K])(c).attemptLocked()
}

func (c *lazyContext[K]) Deadline() (time.Time, bool) { return c.q.base.Deadline() }

func (c *lazyContext[K]) Done() <-chan struct{} { return c.standard().Done() }

func (c *lazyContext[K]) Err() error {
	if a := c.context.Load(); a != nil {
		return a.Err()
	}
	return c.q.base.Err()
}

func (c *lazyContext[K]) Value(key any) any {
	if key == (ticketKey{}) {
		return (*Ticket[K])(c)
	}
	if a := c.context.Load(); a != nil && a != over {
		return a.Value(key)
	}
	return c.q.base.Value(key)
}

// eagerContext is the context of an attempt with a deadline, or of one that may
// not be the only one: what is left behind by the first attempt must not come
// alive again with the second.
type eagerContext[K comparable] struct {
	*attemptContext
	ticket *Ticket[K]
}

func (c *eagerContext[K]) Value(key any) any {
	if key == (ticketKey{}) {
		return c.ticket
	}
	return c.attemptContext.Value(key)
}

// newContext returns what Guard and Run of the present attempt get.
func (t *Ticket[K]) newContext() context.Context {
	if t.act.Timeout == 0 && t.act.Retry.Attempts < 2 {
		return (*lazyContext[K])(t)
	}
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return &eagerContext[K]{t.attemptLocked(), t}
}

type ticketKey struct{}

// Current returns the action that the context belongs to, or nil if it belongs to
// none, or to one with another type of keys. An action finds its own number of
// attempts and its sequence number by it.
func Current[K comparable](ctx context.Context) *Ticket[K] {
	t, _ := ctx.Value(ticketKey{}).(*Ticket[K])
	return t
}

// acting returns the action of this queue that the context belongs to and that
// still runs, or nil.
func acting[K comparable](ctx context.Context, q *Queuer[K]) *Ticket[K] {
	t := Current[K](ctx)
	if t == nil || t.q != q {
		return nil
	}
	return t
}
