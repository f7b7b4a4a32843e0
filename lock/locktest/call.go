package locktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lock"
)

// call is a Lock or LockAll that runs in a goroutine of its own, which ends with
// the trial at the latest.
type call struct {
	owner  string
	rs     []lock.Request
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has returned; what follows is written before
	held   *lock.Held
	err    error
	panics any
}

// errGivenUp is the cause with which waits are cancelled.
var errGivenUp = errors.New("locktest: given up")

// begin makes a call that may wait.
func (t *trial) begin(ctx context.Context, l lock.Locker, rs []lock.Request, o *lock.Options) *call {
	c := &call{rs: rs, done: make(chan struct{})}
	if o != nil {
		c.owner = o.Owner
	}
	t.goes(ctx, c, func(ctx context.Context) { c.held, c.err = waitFor(ctx, l, rs, o) })
	return c
}

// asks makes a call that is to be answered at once, waiting or not.
func (t *trial) asks(ctx context.Context, wait bool, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	t.Helper()
	if !wait {
		return tryFor(ctx, t.l, rs, o)
	}
	c := t.begin(ctx, t.l, rs, o)
	if fault := t.back(c); fault != "" {
		t.Fatal(fault)
	}
	if c.panics != nil {
		t.Fatalf("a Lock of %s panics: %v", rs, c.panics)
	}
	return c.held, c.err
}

// run makes a call of any form, in which the owner's request is to wait.
func (t *trial) run(owner string, do func(ctx context.Context)) *call {
	c := &call{owner: owner, done: make(chan struct{})}
	t.goes(t.Context(), c, do)
	return c
}

func (t *trial) goes(ctx context.Context, c *call, do func(ctx context.Context)) {
	ctx, c.cancel = context.WithCancelCause(ctx)
	t.calls = append(t.calls, c)
	go func() {
		defer close(c.done)
		defer func() { c.panics = recover() }()
		do(ctx)
	}()
}

// end gives up what still waits.
func (t *trial) end() {
	for _, c := range t.calls {
		c.cancel(errGivenUp)
	}
	for _, c := range t.calls {
		if fault := t.back(c); fault != "" {
			t.Errorf("the context of the call has ended: %s", fault)
		}
	}
	t.calls = nil
}

func (c *call) returned() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// back waits until the call has returned, and says so if it does not.
func (t *trial) back(c *call) string {
	return t.eventually(func() string {
		if !c.returned() {
			return fmt.Sprintf("the wait of %q for %s does not end", c.owner, c.rs)
		}
		return ""
	})
}

// queued waits until the call is seen waiting, and says so if it is not.
func (t *trial) queued(ctx context.Context, l lock.Locker, c *call) string {
	return t.eventually(func() string {
		if c.returned() {
			return "" // there is nothing to wait for: the caller finds out
		}
		s, err := l.Snapshot(ctx)
		if err != nil {
			return fmt.Sprintf("Snapshot: %v", err)
		}
		for _, h := range s.Holders {
			if h.Waiting && h.Owner == c.owner {
				return ""
			}
		}
		return fmt.Sprintf("%q waits for %s, but Snapshot has it not as waiting: %v", c.owner, c.rs, s.Holders)
	})
}

// waits makes a call that has to wait, and returns when it does. Owners of calls
// of one trial differ.
func (t *trial) waits(owner string, rs ...lock.Request) *call {
	t.Helper()
	return t.waitsAs(by(owner), rs...)
}

func (t *trial) waitsAs(o *lock.Options, rs ...lock.Request) *call {
	t.Helper()
	c := t.begin(t.Context(), t.l, rs, o)
	if fault := t.queued(t.Context(), t.l, c); fault != "" {
		t.Fatal(fault)
	}
	if c.returned() {
		t.Fatalf("%q is to wait for %s, but the call has returned: %v", c.owner, c.rs, c.err)
	}
	return c
}

// stillWaits demands that calls have not returned, and wait for all to see.
func (t *trial) stillWaits(calls ...*call) {
	t.Helper()
	for _, c := range calls {
		fault := t.queued(t.Context(), t.l, c)
		if fault == "" && c.returned() {
			fault = fmt.Sprintf("%q is to wait for %s still, but the call has returned: %v", c.owner, c.rs, c.err)
		}
		if fault != "" {
			t.Fatal(fault)
		}
	}
}

// granted waits until a call that nobody is in the way of any more has its grant.
func (t *trial) granted(c *call) *lock.Held {
	t.Helper()
	fault := t.back(c)
	switch {
	case fault != "":
		t.Fatalf("%s, though nobody is in its way", fault)
	case c.panics != nil:
		t.Fatalf("the wait of %q for %s panics: %v", c.owner, c.rs, c.panics)
	case c.err != nil:
		t.Fatalf("the wait of %q for %s: %v", c.owner, c.rs, c.err)
	}
	return t.sound(c.held, c.rs)
}

// givenUp cancels a call that waits and returns its error.
func (t *trial) givenUp(c *call) *lock.ConflictError {
	t.Helper()
	c.cancel(errGivenUp)
	if fault := t.back(c); fault != "" {
		t.Fatalf("after its context was cancelled: %s", fault)
	}
	what := fmt.Sprintf("the wait of %q for %s, after its context was cancelled,", c.owner, c.rs)
	if !errors.Is(c.err, errGivenUp) && c.err != nil {
		t.Errorf("%s does not say the cause of the cancellation: %v", what, c.err)
	}
	return t.conflict(what, c.held, c.err, context.Canceled)
}
