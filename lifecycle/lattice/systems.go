package lattice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/outage"
	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/lifecycle"
)

// follows are the events that move a system to the state of its services.
var follows = map[State]Event{
	Stable: ServicesStable, Updating: ServicesUpdating, Scaling: ServicesScaling, Degraded: ServicesDegraded,
}

// live are the states of a system that follow from its services. Deploys and
// teardowns require them.
var live = slices.DeleteFunc(slices.Collect(System.States()), func(s State) bool { return follows[s] == "" })

// SystemTicket is the initialization or the deletion of a system. Its Wait returns
// the outcome.
type SystemTicket = lifecycle.Ticket[State, Content]

// SystemRecord is a system in the store. Its Reason is why it has failed.
type SystemRecord = lifecycle.Record[State, Content]

// CreateSystem creates a system with these attributes, see [Content]. It is pending until
// [Infrastructure].Initialize has returned, and then stable or failed. The records of deploys
// and teardowns of an earlier system of this name are removed, so that their names may be used
// again, and the services that an override of that system has left.
//
// Errors, with nothing changed: [lifecycle.ErrExists], [lifecycle.ErrInvalid] for
// the id and for attributes that are not JSON or too large, and the others of
// [lifecycle.Manager.Do].
func (c *Controller) CreateSystem(ctx context.Context, system SystemID, attributes json.RawMessage) (*SystemTicket, error) {
	content := Content{Attributes: attributes}
	if err := errors.Join(system.check(), lifecycle.Limits{}.CheckPayload(content)); err != nil {
		return nil, err
	}
	return c.systems.Do(ctx, string(system), Create, User, lifecycle.Named("initialize", nil), &lifecycle.Change[Content]{
		Edit: func(now *Content) error { // neither the queue nor the table refuses the request
			*now = content
			return c.forgetEarlier(ctx, system)
		},
	})
}

// check refuses ids that are ambiguous in the ids of records.
func (s SystemID) check() error {
	if s == "" || strings.Contains(string(s), "/") {
		return fmt.Errorf("lattice: %w: a system's id is a segment of a path, not %q", lifecycle.ErrInvalid, string(s))
	}
	return nil
}

// AddSystem takes over a system that exists already, in a state at rest: stable, failed or
// degraded. It is not initialized. Report its services by SetService: a stable or degraded
// system follows them with the next report or sweep. The records of deploys and teardowns
// of an earlier system of this name stay.
//
// Errors, with nothing changed: [lifecycle.ErrExists]; [lifecycle.ErrInvalid] for the id,
// for another state, and for attributes that are not JSON or too large;
// [fsm.ErrUnknownState]; and the others of [lifecycle.Manager.Add].
func (c *Controller) AddSystem(ctx context.Context, system SystemID, state State, attributes json.RawMessage) (SystemRecord, error) {
	if err := system.check(); err != nil {
		return SystemRecord{}, err
	}
	return c.systems.Add(ctx, string(system), state, User, Content{Attributes: attributes}, nil)
}

// DeleteSystem deletes a system in any state. Its deploys and teardowns are canceled
// and fail. An initialization is canceled, and the deletion does not wait for it. When
// [Infrastructure].Remove has returned nil, the records of the system and its services are
// removed. If Remove fails, the system is failed and may be deleted again.
//
// Errors, with nothing changed: [lifecycle.ErrNotFound]; [lifecycle.ErrBusy] if the
// system is being deleted; and the others of [lifecycle.Manager.Do].
func (c *Controller) DeleteSystem(ctx context.Context, system SystemID) (*SystemTicket, error) {
	if err := system.check(); err != nil {
		return nil, err
	}
	var t *SystemTicket
	// A delete is valid in every state, so it is tried again if the services have
	// moved the system meanwhile.
	err := again(func() (err error) {
		t, err = c.systems.Do(ctx, string(system), Delete, User, lifecycle.Named("remove", nil), nil)
		return err
	})
	return t, err
}

// initialize is the work of a system that is pending. It returns when its context ends,
// although [Infrastructure].Initialize may ignore that and go on: a deletion, which
// waits for this work, is not held up. The goroutine ends when Initialize does.
func (c *Controller) initialize(ctx context.Context, _ []byte) error {
	if c.infra.Initialize == nil {
		return nil
	}
	system := SystemID(lifecycle.TaskOf(ctx).ID)
	select {
	case err := <-protect.Start(func() error { return c.infra.Initialize(ctx, system) }):
		return withStack(err)
	case <-ctx.Done():
		return lifecycle.Ended(ctx)
	}
}

// remove is the work of a system that is being deleted. A store that is unavailable delays it.
func (c *Controller) remove(ctx context.Context, _ []byte) error {
	system := SystemID(lifecycle.TaskOf(ctx).ID)
	if err := outage.Continue(ctx, c.systems, func() error { return c.endActions(ctx, system) }); err != nil {
		return err
	}
	if c.infra.Remove != nil {
		if err := c.infra.Remove(ctx, system); err != nil {
			return err
		}
	}
	return outage.Continue(ctx, c.systems, func() error { return c.forgetServices(ctx, system) })
}

// errDeleted is why the actions of a system that is deleted end.
var errDeleted = errors.New("the system is being deleted")

// endActions cancels the deploys and teardowns of a system, and waits for their end.
//
// It misses none that begins later: the store has the system as deleting before
// endActions reads the runs, and a run is registered before it reads the system. So
// either endActions finds the run, or the run finds the system deleting.
func (c *Controller) endActions(ctx context.Context, system SystemID) error {
	for _, r := range c.cancelRuns(system) {
		select {
		case <-r.done:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	// Actions that have not begun, or that a failing store has left, must not
	// continue in another system of this name.
	for _, k := range c.kinds() {
		for rec, err := range k.m.All(ctx, ofSystem[ActionState](system)) {
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

// requireLive is the precondition of the commits of deploys and teardowns: the system
// follows its services.
func (c *Controller) requireLive(system SystemID) lifecycle.Precondition {
	return c.systems.Require(string(system), live...)
}

// noSystem converts the error of a commit that requires a system, if there is none.
func noSystem(err error) error {
	if e, ok := errors.AsType[*lifecycle.PreconditionError](err); ok && !e.Current.Exists() {
		return fmt.Errorf("lattice: %w: there is no system %s", lifecycle.ErrNotFound, e.ID)
	}
	return err
}

func (c *Controller) systemChanged(ctx context.Context, row lifecycle.CommittedChange) {
	system := SystemID(row.ID)
	switch {
	case row.To == string(Deleting):
		// Now: the work that removes the system may wait in the queue behind them.
		c.cancelRuns(system)
	case row.From == string(Pending) && row.To == string(Stable):
		// Its services may have moved meanwhile. After an error the next sweep moves the
		// system.
		_ = c.follow(ctx, system)
	}
}
