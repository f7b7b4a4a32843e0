package lifecycle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// workContext is the context of work: that of its turn in the queue, until the
// task is told to end. It becomes a standard context when somebody asks for one,
// because work that is short never does.
type workContext struct {
	context.Context // of the turn
	task            *Task

	// Guarded by task.mu.
	std  context.Context
	end  context.CancelCauseFunc
	over bool // the work has returned, and was not told before
}

func (c *workContext) standard() context.Context {
	for {
		std, cause := c.now()
		if std != nil {
			return std
		}
		std, end := context.WithCancelCause(c.Context)
		if cause != nil {
			end(cause) // before anybody sees it: Err may have said so already
		}
		c.task.mu.Lock()
		if c.std == nil && (c.endedLocked() == nil) == (cause == nil) {
			// From here on, who tells the task or finishes finds the end.
			c.std, c.end = std, end
			c.task.mu.Unlock()
			return std
		}
		c.task.mu.Unlock()
		end(nil) // somebody was faster, or it has ended meanwhile
	}
}

// now returns the standard context, or nil, and why it has to be one that has
// ended, if it has.
func (c *workContext) now() (std context.Context, cause error) {
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	return c.std, c.endedLocked()
}

// REQUIRES: c.task.mu is held.
func (c *workContext) endedLocked() error {
	switch {
	case c.over:
		return context.Canceled
	case c.task.told != nil:
		return &toldError{c.task, Lost, c.task.told}
	}
	return nil
}

// finish ends the context, for what is derived from it and for who asks later.
func (c *workContext) finish() {
	c.task.mu.Lock()
	end := c.end
	c.over = c.task.told == nil
	c.task.mu.Unlock()
	if end != nil {
		end(nil)
	}
}

func (c *workContext) Done() <-chan struct{} { return c.standard().Done() }

func (c *workContext) Err() error {
	std, cause := c.now()
	switch {
	case std != nil:
		return std.Err()
	case cause != nil:
		return context.Canceled
	}
	return c.Context.Err()
}

func (c *workContext) Value(key any) any {
	if key == (taskKey{}) {
		return c.task
	}
	// What package context asks for is in the standard context, if there is one.
	// A context that has ended needs one, to say why.
	switch std, cause := c.now(); {
	case std != nil:
		return std.Value(key)
	case cause != nil:
		return c.standard().Value(key)
	}
	return c.Context.Value(key)
}

// briefContext has the values of another context and an end of its own: soon, but
// not before somebody asks for it. It takes a timer only then, and only then looks
// at the clock.
type briefContext struct {
	context.Context // without its end

	asked atomic.Int32 // how often whether it has ended; maxAsked: std or over tells
	over  bool         // finish was called; guarded, as what follows, by mu
	mu    sync.Mutex
	std   context.Context
	stop  context.CancelFunc
}

// outcomeWithin is how long a store may take to write an outcome, on behalf of
// nobody who waits. Then the object is left to the sweeper: a store that hangs
// must not hold up the queue for good.
const outcomeWithin = 10 * time.Second

func briefly(ctx context.Context) *briefContext { return &briefContext{Context: ctx} }

func (c *briefContext) standard() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standardLocked()
}

// REQUIRES: c.mu is held.
func (c *briefContext) standardLocked() context.Context {
	if c.std == nil {
		c.asked.Store(maxAsked)
		c.std, c.stop = context.WithTimeout(context.WithoutCancel(c.Context), outcomeWithin)
		if c.over {
			c.stop() // nobody's code: it has no children, and its parent no end
		}
	}
	return c.std
}

// finish ends the context, for what is derived from it and for who asks later.
func (c *briefContext) finish() {
	c.mu.Lock()
	stop := c.stop
	c.over = true
	c.asked.Store(maxAsked)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (c *briefContext) Deadline() (time.Time, bool) { return c.standard().Deadline() }

func (c *briefContext) Done() <-chan struct{} { return c.standard().Done() }

// maxAsked is how often a store may ask Err before the time begins. One that asks
// a few times does not wait; one that asks again and again has to be told.
const maxAsked = 4

func (c *briefContext) Err() error {
	if c.asked.Load() < maxAsked && c.asked.Add(1) <= maxAsked {
		return nil // as long as neither std nor over is set
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.std == nil && c.over {
		return context.Canceled
	}
	return c.standardLocked().Err()
}

func (c *briefContext) Value(key any) any {
	c.mu.Lock()
	std := c.std
	c.mu.Unlock()
	if std == nil {
		std = context.WithoutCancel(c.Context)
	}
	return std.Value(key)
}
