package lattice

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// run is a deploy or teardown that this process is at. There is at most one for
// each.
type run struct {
	system SystemID
	work   context.Context
	cancel context.CancelCauseFunc // tells the work to end
	done   chan struct{}           // closed when nothing is done any more
}

// running returns the runs that are selected. REQUIRES: c.mu.
func (c *Controller) running(of func(*run) bool) []*run {
	var found []*run
	for _, r := range c.runs {
		if of(r) {
			found = append(found, r)
		}
	}
	return found
}

// submit has an action run, if it is not running already.
func (c *Controller) submit(k *kind, id string) (*queue.Ticket[lifecycle.Key], error) {
	return c.submitFirst(k, id, nil)
}

// submitFirst has an action run that is pending, and tries to take its lock at
// once, so that of two that are asked for one after the other the first comes
// first. What comes of it, the run finds out; and gives it back, if the action has
// ended. Without a run of its own nothing is taken.
func (c *Controller) submitFirst(k *kind, id string, pending *ActionRecord) (*queue.Ticket[lifecycle.Key], error) {
	key := lifecycle.Key{Machine: k.m.Machine().Table().Name, ID: id}
	// The id makes it one run, however often it is asked for. A run looks at its
	// record until that has ended, so that nobody who asks meanwhile is needed.
	act := &queue.Action{
		Name: "run", ID: key.Machine + "/" + id,
		Run: func(ctx context.Context) error { return c.run(ctx, k, key) },
	}
	if pending != nil {
		act.Admit = func(context.Context) error {
			_, _ = c.acquire(k, *pending)
			return nil
		}
	}
	return c.queue.Submit(context.Background(), key, act)
}

// ended tells the work of an action that has ended without it to end too, and has
// its lock given back: by the run that is at it, or by another one.
func (c *Controller) ended(k *kind, key lifecycle.Key) {
	c.mu.Lock()
	r := c.runs[key]
	c.mu.Unlock()
	if r != nil {
		r.cancel(errEnded)
		return
	}
	// What the queue refuses is found by the next sweep.
	_, _ = c.submit(k, key.ID)
}

var errEnded = errors.New("lattice: it has ended")

// run brings a deploy or teardown to its end, by one step after the other. It
// looks at the record before each, so that it can begin anywhere, and go on with
// what another process has begun.
//
// It is the only place where a lock is given back, and does so after it has read
// that the action has ended: the state is stored before anybody else can have the
// lock.
func (c *Controller) run(ctx context.Context, k *kind, key lifecycle.Key) error {
	work, cancel := context.WithCancelCause(ctx)
	r := &run{system: systemOf(key.ID), work: work, cancel: cancel, done: make(chan struct{})}
	defer r.cancel(nil)
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return errClosing
	}
	c.runs[key] = r
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.runs, key)
		c.mu.Unlock()
		close(r.done)
	}()
	for tries := 0; ; {
		rec, err := k.m.Get(ctx, key.ID)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
		if rec.State.ended() {
			_, id := splitID(key.ID)
			c.locks.release(r.system, k.action(id))
			return nil
		}
		switch err = c.step(ctx, k, r, rec); {
		case err == nil:
			tries = 0
		case !overtaken(err) && !errors.Is(err, lifecycle.ErrPrecondition) || tries == maxTries:
			return err // the next sweep runs it again
		default:
			tries++
		}
	}
}

// step does what is to be done in the state of an action, and moves it on. After
// nil it is in another state.
func (c *Controller) step(ctx context.Context, k *kind, r *run, rec ActionRecord) error {
	if closing(ctx, r) {
		return errClosing
	}
	next, ok := k.next[rec.State]
	if !ok {
		return fmt.Errorf("lattice: %s: %w: %s", rec.ID, fsm.ErrUnknownState, rec.State)
	}
	system, err := c.systems.Get(ctx, string(r.system))
	if errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, lifecycle.ErrInvalid) {
		system.State, err = DoesNotExist, nil // and none can, of a name that is none
	}
	if err != nil {
		return err
	}
	if _, ok := follows[system.State]; !ok {
		return c.fail(ctx, k, rec, "system "+string(r.system)+" is "+string(system.State))
	}
	token, err := c.acquire(k, rec)
	if conflict, ok := errors.AsType[*ConflictingLifecycleActionError](err); ok {
		return c.fail(ctx, k, rec, "unable to acquire lifecycle lock: "+conflict.locked())
	}
	if err != nil {
		return c.fail(ctx, k, rec, err.Error())
	}
	if next.work != nil {
		err = c.work(ctx, k, next.work, r, rec, token)
	}
	switch {
	case err != nil && closing(ctx, r):
		return errClosing // it stays as it is, for who comes next
	case errors.Is(context.Cause(r.work), errDeleted):
		return c.fail(ctx, k, rec, errDeleted.Error())
	case err != nil:
		return c.fail(ctx, k, rec, err.Error())
	}
	var change lifecycle.Change[Action]
	if next.then != Succeed {
		change.Require = c.requireLive(r.system)
	}
	// A system that was deleted meanwhile is found when this is tried again.
	return c.write(ctx, k, rec.ID, next.then, &change)
}

// closing reports whether a run was told to end because the controller does.
func closing(ctx context.Context, r *run) bool {
	return ctx.Err() != nil || errors.Is(context.Cause(r.work), errClosing)
}

// work calls a function of the user. A panic is a failure like any other, and so is
// runtime.Goexit, which ends this run too: the next one gives the lock back.
func (c *Controller) work(ctx context.Context, k *kind, f func(context.Context, Running) error, r *run, rec ActionRecord, token lock.Token) (err error) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else if !returned {
			_ = c.fail(ctx, k, rec, "the work called runtime.Goexit")
		}
	}()
	_, id := splitID(rec.ID)
	err = f(r.work, Running{System: r.system, ID: id, Path: pathOf(rec.Payload), Operation: rec.Operation, Token: token})
	returned = true
	return err
}

// fail ends an action.
func (c *Controller) fail(ctx context.Context, k *kind, rec ActionRecord, reason string) error {
	return c.write(ctx, k, rec.ID, Fail, &lifecycle.Change[Action]{Reason: storable(reason)})
}

// mayPass reports whether an error may be another one the next time.
func mayPass(err error) bool {
	for _, lasts := range []error{lifecycle.ErrPrecondition, lifecycle.ErrInvalid, lifecycle.ErrForeign, lifecycle.ErrClosed, errors.ErrUnsupported} {
		if errors.Is(err, lasts) {
			return false
		}
	}
	return true
}

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 4 << 10

// storable makes a text of which every store can keep all: an error may hold
// anything, and must not keep its action from failing.
func storable(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), maxReason)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}

// write moves an action on. A store that fails is asked again, so that what was
// done need not be done again; the error is that of the table, of the system, or of
// the end of this controller.
func (c *Controller) write(ctx context.Context, k *kind, id string, e ActionEvent, change *lifecycle.Change[Action]) error {
	change.Require = append(change.Require, c.term.require())
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		_, err := k.m.Fire(ctx, id, e, Backend, change)
		if c.term.over(err) {
			c.end()
			return c.term.stale()
		}
		if err == nil || overtaken(err) || !mayPass(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-c.closed:
			return errClosing
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
}
