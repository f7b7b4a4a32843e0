package lattice

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// maxTries is how often a change is tried if other writers are faster.
const maxTries = 16

// again repeats a change that was decided on a record which has moved since.
func again(change func() error) (err error) {
	for range maxTries {
		if err = change(); !overtaken(err) {
			return err
		}
	}
	return err
}

// SetService reports the state in which a service of a system was seen, and moves the
// system to the state that follows from its services. [ServiceAbsent] removes the
// service. A system that is pending, failed or deleting keeps its state. The caller
// reports the observations of one service one after the other, the newest last.
//
// Errors, with nothing changed: [fsm.ErrUnknownState] for a state that services do
// not have, and [lifecycle.ErrInvalid] for the system's id and for a path that is
// zero or "/"; for a new service, [lifecycle.ErrNotFound] if there is no system, and
// [lifecycle.ErrPrecondition] if it is being deleted. After an error of the store,
// the service may have changed and the system not: the next sweep moves it.
func (c *Controller) SetService(ctx context.Context, system SystemID, service lock.Path, state ServiceState) error {
	if Service.StateIndex(state) < 0 {
		return fmt.Errorf("lattice: service %s of %s: %w: %q", service, system, fsm.ErrUnknownState, string(state))
	}
	if err := system.check(); err != nil {
		return err
	}
	if !service.Valid() || service == lock.Root() {
		return fmt.Errorf("lattice: %w: the path of a service of %s is below the root, not %q", lifecycle.ErrInvalid, system, service)
	}
	if err := c.saw(ctx, string(system)+service.String(), state); err != nil {
		return err
	}
	return c.follow(ctx, system)
}

// saw moves the record of a service to the observed state.
func (c *Controller) saw(ctx context.Context, id string, state ServiceState) error {
	return noSystem(again(func() error {
		rec, err := c.services.Get(ctx, id)
		absent := errors.Is(err, lifecycle.ErrNotFound)
		switch {
		case err != nil && !absent:
			return err
		case absent && state == ServiceAbsent, !absent && rec.State == state:
			return nil
		case !absent:
			_, err = c.services.Fire(ctx, id, Seen(state), Observer, nil)
			return err
		}
		// The deletion of a system would leave a service that is created now.
		system, _ := splitID(id)
		present := c.systems.Require(string(system), Pending, Failed, Stable, Updating, Scaling, Degraded)
		_, err = c.services.Create(ctx, id, Seen(state), Observer, struct{}{}, &lifecycle.Change[struct{}]{
			Require: []lifecycle.Precondition{present},
		})
		return err
	}))
}

// overtaken reports whether a change was decided on a record that has moved since.
func overtaken(err error) bool {
	return errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrExists) ||
		errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, fsm.ErrNotAllowed)
}

// ofSystem selects the records whose ids begin with a system and a slash.
func ofSystem[S comparable](system SystemID) lifecycle.Select[S] {
	return lifecycle.Select[S]{Prefix: string(system) + "/"}
}

// follow moves a system that follows its services to the state that they give, until it is
// in that state.
//
// It reads the system before it counts the services, and expects the revision that it
// has read. A commit that is based on an older count is a conflict, unless the newer count
// gave the present state and wrote nothing. So every commit is followed by another count.
func (c *Controller) follow(ctx context.Context, system SystemID) error {
	for {
		moved := false
		err := again(func() (err error) {
			moved, err = c.followOnce(ctx, system)
			return err
		})
		if err != nil || !moved {
			return err
		}
	}
}

// followOnce reports whether it has moved the system.
func (c *Controller) followOnce(ctx context.Context, system SystemID) (moved bool, err error) {
	rec, err := c.systems.Get(ctx, string(system))
	if errors.Is(err, lifecycle.ErrNotFound) {
		return false, nil
	}
	if _, ok := follows[rec.State]; err != nil || !ok {
		return false, err
	}
	counts := map[ServiceState]int{}
	for service, err := range c.services.All(ctx, ofSystem[ServiceState](system)) {
		if err != nil {
			return false, err
		}
		counts[service.State]++
	}
	to, err := fromServices.Of(counts)
	if err != nil || rec.State == to.State {
		return false, err
	}
	_, err = c.systems.Fire(ctx, string(system), follows[to.State], Aggregator, &lifecycle.Change[Content]{Expect: rec.Revision})
	return err == nil, err
}

// forgetServices removes the records of the services of a system, under these conditions. It
// leaves records that it cannot read, and then returns [lifecycle.ErrForeign].
func (c *Controller) forgetServices(ctx context.Context, system SystemID, require ...lifecycle.Precondition) (foreign error) {
	for rec, err := range c.services.All(ctx, ofSystem[ServiceState](system)) {
		if err == nil {
			err = again(func() error {
				_, err := c.services.Fire(ctx, rec.ID, Seen(ServiceAbsent), Observer, &lifecycle.Change[struct{}]{Require: require})
				if errors.Is(err, lifecycle.ErrNotFound) {
					return nil
				}
				return err
			})
		}
		switch {
		case errors.Is(err, lifecycle.ErrForeign):
			foreign = err
		case err != nil:
			return err
		}
	}
	return foreign
}
