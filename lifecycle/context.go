package lifecycle

import (
	"context"
	"sync"
	"time"
)

// workContext is the context of work: that of its turn in the queue, until the
// task is told to end. It becomes a standard context when somebody asks for one,
// because work that is short never does.
type workContext struct {
	context.Context // of the turn
	task            *Task

	// Guarded by task.mu.
	std context.Context
	end context.CancelCauseFunc
}

func (c *workContext) standard() context.Context {
	std, told := c.now()
	if std != nil {
		return std
	}
	std, end := context.WithCancelCause(c.Context)
	c.task.mu.Lock()
	if c.std != nil { // somebody was faster
		std = c.std
		c.task.mu.Unlock()
		end(nil)
		return std
	}
	c.std, c.end, told = std, end, c.task.told
	c.task.mu.Unlock()
	// Told before: nobody else ends it. Told after: tell has found the end.
	if told != nil {
		end(&toldError{c.task, Lost, told})
	}
	return std
}

// now returns the standard context, or nil, and what the task was told.
func (c *workContext) now() (std context.Context, told error) {
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	return c.std, c.task.told
}

// finish ends what is derived from the context.
func (c *workContext) finish() {
	c.task.mu.Lock()
	end := c.end
	c.task.mu.Unlock()
	if end != nil {
		end(nil)
	}
}

func (c *workContext) Done() <-chan struct{} { return c.standard().Done() }

func (c *workContext) Err() error {
	std, told := c.now()
	switch {
	case std != nil:
		return std.Err()
	case told != nil:
		return context.Canceled
	}
	return c.Context.Err()
}

func (c *workContext) Value(key any) any {
	if key == (taskKey{}) {
		return c.task
	}
	// What package context asks for is in the standard context, if there is one.
	// A context that was told to end needs one, to say why.
	switch std, told := c.now(); {
	case std != nil:
		return std.Value(key)
	case told != nil:
		return c.standard().Value(key)
	}
	return c.Context.Value(key)
}

// briefContext has the values of another context and an end of its own. It takes
// a timer only if somebody waits for the end.
type briefContext struct {
	context.Context // without its end
	until           time.Time

	mu   sync.Mutex
	std  context.Context
	stop context.CancelFunc
}

func briefly(ctx context.Context, limit time.Duration) *briefContext {
	return &briefContext{Context: context.WithoutCancel(ctx), until: time.Now().Add(limit)}
}

func (c *briefContext) standard() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.std == nil {
		c.std, c.stop = context.WithDeadline(c.Context, c.until)
	}
	return c.std
}

// finish ends what is derived from the context.
func (c *briefContext) finish() {
	c.mu.Lock()
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (c *briefContext) Deadline() (time.Time, bool) { return c.until, true }

func (c *briefContext) Done() <-chan struct{} { return c.standard().Done() }

func (c *briefContext) Err() error {
	c.mu.Lock()
	std := c.std
	c.mu.Unlock()
	switch {
	case std != nil:
		return std.Err()
	case !time.Now().Before(c.until):
		return context.DeadlineExceeded
	}
	return nil
}

func (c *briefContext) Value(key any) any {
	c.mu.Lock()
	std := c.std
	c.mu.Unlock()
	if std != nil {
		return std.Value(key)
	}
	return c.Context.Value(key)
}
