package lattice

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/internal/outage"
	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// run is the execution of a deploy or teardown in this process. Each has at most one.
type run struct {
	system SystemID
	cancel context.CancelCauseFunc // of its work
	done   chan struct{}           // closed at the end of the run
}

// cancelRuns cancels the runs in a system, and returns them.
func (c *Controller) cancelRuns(system SystemID) []*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*run
	for _, r := range c.runs {
		if r.system == system {
			r.cancel(errDeleted)
			found = append(found, r)
		}
	}
	return found
}

// submit starts the run of an action, unless it runs already. With a record, the action
// tries to acquire its lock at once, so that the first one of two conflicting requests gets it.
// The run acquires the lock again, which is idempotent, and releases it at the end. If no
// run starts, no lock is acquired.
func (c *Controller) submit(k *kind, id string, rec *ActionRecord) (*queue.Ticket[lifecycle.Key], error) {
	key := lifecycle.Key{Machine: k.m.Machine().Name(), ID: id}
	// With the id, repeated requests start one run. The run reads its record until
	// the action has ended, so that later requests need no run of their own.
	act := &queue.Action{
		Name: "run", ID: key.Machine + "/" + id,
		Run: func(ctx context.Context) error { return c.run(ctx, k, key) },
	}
	if rec != nil {
		act.Admit = func(context.Context) error {
			_, _ = c.acquire(k, *rec)
			return nil
		}
	}
	return c.queue.Submit(context.Background(), key, act)
}

// ended cancels the work of an action that another writer has ended. Its run releases
// the lock; if there is none, a new run does.
func (c *Controller) ended(k *kind, key lifecycle.Key) {
	c.mu.Lock()
	r := c.runs[key]
	c.mu.Unlock()
	if r != nil {
		r.cancel(errEnded)
		return
	}
	// If the queue refuses the run, the next sweep starts it.
	_, _ = c.submit(k, key.ID, nil)
}

var (
	errEnded   = errors.New("lattice: the action has ended")
	errClosing = errors.New("lattice: the controller is closing")
)

// run performs the steps of a deploy or teardown until its end. It reads the record
// before each step, so that it can continue what another process has started.
//
// It is the only place that releases a lock, and only after it has read that the
// action has ended: the state is stored before another action can have the lock.
func (c *Controller) run(ctx context.Context, k *kind, key lifecycle.Key) error {
	system, id := splitID(key.ID)
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.closed, func() { cancel(errClosing) })
	defer stop()
	r := &run{system: system, cancel: cancel, done: make(chan struct{})}
	c.mu.Lock()
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
			c.locks.release(system, k.name, id)
			return nil
		}
		switch err = c.step(ctx, work, k, rec); {
		case err == nil:
			tries = 0
		case !overtaken(err) && !errors.Is(err, lifecycle.ErrPrecondition) || tries == maxTries:
			return err // the next sweep runs it again
		default:
			tries++
		}
	}
}

// step does the work in the state of an action, and then moves the action. If step
// returns nil, the action is in another state. The context of the work ends earlier than
// that of the run if the action or its system ends.
func (c *Controller) step(ctx, work context.Context, k *kind, rec ActionRecord) error {
	if c.closing(ctx) {
		return errClosing
	}
	next := k.steps[rec.State]
	systemID, id := splitID(rec.ID)
	system, err := c.systems.Get(ctx, string(systemID))
	if errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, lifecycle.ErrInvalid) {
		system.State, err = DoesNotExist, nil // an invalid id has no system either
	}
	if err != nil {
		return err
	}
	if _, ok := follows[system.State]; !ok {
		return c.fail(ctx, k, rec, "system "+string(systemID)+" is "+string(system.State))
	}
	token, err := c.acquire(k, rec)
	if conflict, ok := errors.AsType[*ConflictingLifecycleActionError](err); ok {
		return c.fail(ctx, k, rec, "unable to acquire lifecycle lock: "+conflict.locked())
	}
	if err != nil {
		return c.fail(ctx, k, rec, err.Error())
	}
	if next.work != nil {
		err = withStack(protect.Call(func() error {
			return next.work(work, Running{
				System: systemID, ID: id, Path: pathOf(rec.Payload.Path), Attributes: rec.Payload.Attributes,
				Operation: rec.Operation, Token: token,
			})
		}))
	}
	switch {
	case err != nil && c.closing(ctx):
		return errClosing // the next controller continues the action
	case errors.Is(context.Cause(work), errDeleted):
		return c.fail(ctx, k, rec, errDeleted.Error())
	case err != nil:
		return c.fail(ctx, k, rec, err.Error())
	}
	var change lifecycle.Change[Action]
	if next.then != Succeed {
		change.Require = append(change.Require, c.requireLive(systemID))
	}
	// If the system was deleted meanwhile, the next attempt finds that.
	return c.write(ctx, k, rec.ID, next.then, &change)
}

// closing reports whether a run ends because the controller or the queue does.
func (c *Controller) closing(ctx context.Context) bool {
	return ctx.Err() != nil || c.closed.Err() != nil
}

// withStack adds the stack to the error of a panic, so that the record has it.
func withStack(err error) error {
	if p, ok := err.(*queue.PanicError); ok && !p.Goexit {
		return fmt.Errorf("panic: %v\n%s", p.Value, p.Stack)
	}
	return err
}

// fail ends an action.
func (c *Controller) fail(ctx context.Context, k *kind, rec ActionRecord, reason string) error {
	return c.write(ctx, k, rec.ID, Fail, &lifecycle.Change[Action]{Reason: storable.Reason(reason)})
}

// write moves an action, if the term of this controller lasts. An outage of the store delays
// it, so that the work need not be repeated, until the controller or the queue ends.
func (c *Controller) write(ctx context.Context, k *kind, id string, e ActionEvent, change *lifecycle.Change[Action]) error {
	life, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.closed, end)()
	err := outage.Outlast(life, func() error {
		_, err := k.m.Fire(ctx, id, e, Backend, change)
		return err
	})
	if c.term.over(err) {
		c.end()
		return errStale
	}
	return err
}
