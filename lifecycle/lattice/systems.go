package lattice

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// live are the states of a system that follow from its services, in which it can
// be deployed to and torn down.
var live = []State{Stable, Updating, Scaling, Degraded}

// follows are the events that bring a system to what its services come to.
var follows = map[State]Event{
	Stable: ServicesStable, Updating: ServicesUpdating, Scaling: ServicesScaling, Degraded: ServicesDegraded,
}

// SystemHandle is the initialization or the deletion of a system: Wait tells what
// became of it.
type SystemHandle = lifecycle.Handle[State, struct{}]

// CreateSystem makes a system, which is pending until [Infrastructure].Initialize
// has returned, and then stable, or failed.
//
// Errors, with nothing changed: [lifecycle.ErrExists], [lifecycle.ErrInvalid] for
// the id, and the others of [lifecycle.Manager.Do].
func (c *Controller) CreateSystem(ctx context.Context, system SystemID) (*SystemHandle, error) {
	if err := system.check(); err != nil {
		return nil, err
	}
	h, err := c.systems.Do(ctx, string(system), Create, User, lifecycle.Named("initialize", nil), nil)
	if e, ok := errors.AsType[*lifecycle.Error](err); ok && e.From != "" && errors.Is(err, fsm.ErrNotAllowed) {
		// Creating is allowed where there is no system, and nowhere else.
		return nil, fmt.Errorf("lattice: %w: system %s is %s", lifecycle.ErrExists, system, e.From)
	}
	return h, err
}

// DeleteSystem deletes a system, whatever state it is in: its deploys and
// teardowns are told to end and fail, what was being initialized is given up, and
// when [Infrastructure].Remove has returned, system and services are no more. If
// that fails, the system is failed, and may be deleted again.
//
// Errors, with nothing changed: [lifecycle.ErrNotFound]; [lifecycle.ErrBusy] if it
// is being deleted; and the others of [lifecycle.Manager.Do].
func (c *Controller) DeleteSystem(ctx context.Context, system SystemID) (*SystemHandle, error) {
	if err := system.check(); err != nil {
		return nil, err
	}
	var h *SystemHandle
	var err error
	// A delete is right in whatever state the system is now: it does not lose against
	// services that move it.
	for range maxTries {
		h, err = c.systems.Do(ctx, string(system), Delete, User, lifecycle.Named("remove", nil), nil)
		if !errors.Is(err, lifecycle.ErrConflict) {
			break
		}
	}
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil, fmt.Errorf("lattice: %w: there is no system %s", lifecycle.ErrNotFound, system)
	}
	return h, err
}

// Settled waits until the services of a system are at rest, and returns the state
// that they come to: stable or degraded. It is what a deploy waits for. If the
// system is in any other state that its services do not lead out of, or is gone,
// that is returned at once.
//
// The error is the store's, or the context's.
func (c *Controller) Settled(ctx context.Context, system SystemID) (State, error) {
	rec, err := c.systems.Await(ctx, string(system), func(r lifecycle.Record[State, struct{}]) bool {
		return r.State != Updating && r.State != Scaling
	})
	if err == nil && rec.State == "" {
		rec.State = DoesNotExist
	}
	return rec.State, err
}

// initialize is the work of a system that is pending.
func (c *Controller) initialize(ctx context.Context, _ []byte) error {
	if c.infra.Initialize == nil {
		return nil
	}
	return c.infra.Initialize(ctx, SystemID(lifecycle.TaskOf(ctx).ID))
}

// remove is the work of a system that is being deleted.
func (c *Controller) remove(ctx context.Context, _ []byte) error {
	system := SystemID(lifecycle.TaskOf(ctx).ID)
	if err := c.endActions(ctx, system); err != nil {
		return err
	}
	if c.infra.Remove != nil {
		if err := c.infra.Remove(ctx, system); err != nil {
			return err
		}
	}
	return c.forgetServices(ctx, system)
}

// errDeleted is why an action of a system that goes away is told to end.
var errDeleted = errors.New("the system is being deleted")

// endActions tells the deploys and teardowns of a system to end, and waits until
// they have.
//
// None that begins later is missed: the system is deleting in the store before
// this looks at what runs, and what runs is known here before it looks at the
// system in the store. So either this finds it, or it finds the system deleting.
func (c *Controller) endActions(ctx context.Context, system SystemID) error {
	for _, r := range c.cancelActions(system) {
		select {
		case <-r.done:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	// What has not begun, or was left by a store that failed, must not go on in
	// another system of this name.
	for _, k := range []*kind{c.deploys, c.teardowns} {
		for rec, err := range recordsOf(ctx, k.m, system) {
			if err == nil && !rec.State.ended() {
				err = c.fail(ctx, k, rec, errDeleted.Error())
			}
			if err != nil && !overtaken(err) {
				return err
			}
		}
	}
	return nil
}

// cancelActions tells what runs in a system to end, and returns it.
func (c *Controller) cancelActions(system SystemID) []*run {
	c.mu.Lock()
	runs := c.running(func(r *run) bool { return r.system == system })
	c.mu.Unlock()
	for _, r := range runs {
		r.cancel(errDeleted)
	}
	return runs
}

// requireLive is the condition of a commit that a system can be deployed to and
// torn down.
func (c *Controller) requireLive(system SystemID) []lifecycle.Precondition {
	return []lifecycle.Precondition{c.systems.Require(string(system), live...)}
}

// noSystem is the error of a commit that requires a system, where there is none.
func noSystem(err error) error {
	if e, ok := errors.AsType[*lifecycle.PreconditionError](err); ok && !e.Current.Exists() {
		return fmt.Errorf("lattice: %w: there is no system %s", lifecycle.ErrNotFound, e.ID)
	}
	return err
}

func (c *Controller) systemChanged(row lifecycle.HistoryRow) {
	c.tell(row)
	system := SystemID(row.ID)
	switch {
	case row.To == string(Deleting):
		// At once: the work that removes it may wait for what these hold in the queue.
		c.cancelActions(system)
	case row.To == string(DoesNotExist):
		c.mu.Lock()
		delete(c.rosters, system)
		c.mu.Unlock()
	case row.From == string(Pending) && row.To == string(Stable):
		// Its services may have come to something else by now. What the queue
		// refuses is found by the next sweep.
		_, _ = c.queue.Submit(context.Background(), lifecycle.Key{Machine: "lattice-follow", ID: row.ID}, &queue.Action{
			Name: "follow the services", Run: func(ctx context.Context) error { return c.follow(ctx, system) },
		})
	}
}

func (c *Controller) tell(row lifecycle.HistoryRow) {
	if c.changed != nil {
		c.changed(row)
	}
}

// pathOf returns what an action is about.
func pathOf(a Action) lock.Path {
	if !a.Path.Valid() {
		return lock.Root()
	}
	return a.Path
}
