package lattice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// maxTries is how often a change that somebody else was faster with is decided
// anew.
const maxTries = 16

// SetService says in which state a service of a system was seen, the first time
// or again, and moves the system to what its services come to now. A system that
// is pending, failed or deleting stays so. Observations of one service are given
// one after the other, the newest last.
//
// Errors: [fsm.ErrUnknownState] for a state that services do not have,
// [lifecycle.ErrInvalid] for the system's id and for a path that is zero or "/";
// for a new service, [lifecycle.ErrNotFound] if there is no system, and
// [lifecycle.ErrPrecondition] if it is being deleted; nothing is changed then. After an error of the store the service
// may be changed and the system not: the next sweep moves it.
func (c *Controller) SetService(ctx context.Context, system SystemID, service lock.Path, state ServiceState) error {
	if _, ok := seen[state]; !ok {
		return fmt.Errorf("lattice: service %s of %s: %w: %q", service, system, fsm.ErrUnknownState, string(state))
	}
	return c.observe(ctx, system, service, state)
}

// RemoveService says that a service of a system is gone, and moves the system as
// SetService does. A service that was not there is no error.
func (c *Controller) RemoveService(ctx context.Context, system SystemID, service lock.Path) error {
	return c.observe(ctx, system, service, ServiceAbsent)
}

func (c *Controller) observe(ctx context.Context, system SystemID, service lock.Path, state ServiceState) error {
	if err := system.check(); err != nil {
		return err
	}
	if !service.Valid() || service.IsRoot() {
		return fmt.Errorf("lattice: %w: a service of %s is below the root, not at %q", lifecycle.ErrInvalid, system, service)
	}
	there, err := c.saw(ctx, string(system)+service.String(), state)
	if err != nil || !there {
		return err
	}
	return c.follow(ctx, system)
}

// saw brings the record of a service to what was seen. It reports whether there is
// one, or was.
func (c *Controller) saw(ctx context.Context, id string, state ServiceState) (there bool, err error) {
	for range maxTries {
		var rec lifecycle.Record[ServiceState, struct{}]
		rec, err = c.services.Get(ctx, id)
		absent := errors.Is(err, lifecycle.ErrNotFound)
		switch {
		case absent && state == ServiceAbsent:
			return false, nil
		case err == nil && rec.State == state:
			return true, nil
		case absent:
			// Not of a system that is being deleted: it would be left over.
			part := c.services.Creating(id, seen[state], Observer, struct{}{}, &lifecycle.Change[struct{}]{
				Require: []lifecycle.Precondition{c.systems.Require(string(systemOf(id)), Pending, Failed, Stable, Updating, Scaling, Degraded)},
			})
			if err = lifecycle.Together(ctx, part); errors.Is(err, lifecycle.ErrPrecondition) {
				return false, noSystem(err)
			}
		case err != nil:
			return false, err
		case state == ServiceAbsent:
			_, err = c.services.Fire(ctx, id, SeenGone, Observer, nil)
		default:
			_, err = c.services.Fire(ctx, id, seen[state], Observer, nil)
		}
		if !overtaken(err) {
			return err == nil, err
		}
	}
	return false, err
}

// overtaken reports whether a change was decided on what is not so any more.
func overtaken(err error) bool {
	return errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrExists) ||
		errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, fsm.ErrNotAllowed)
}

// roster is what is known of the services of one system.
type roster struct {
	*lifecycle.Roster[ServiceState, State]
	counted atomic.Bool // it has seen all that were there when it was made
}

func (c *Controller) serviceChanged(row lifecycle.HistoryRow) {
	c.mu.Lock()
	r := c.rosters[systemOf(row.ID)]
	c.mu.Unlock()
	if r != nil {
		// Its errors are about rows of other machines and tables.
		_, _ = r.Apply(row)
	}
	c.tell(row)
}

// rosterOf returns the roster of a system, with all its services in it.
//
// It is known to serviceChanged before the services are listed: a change that the
// list has missed is applied. Who comes while another one lists does so too,
// instead of waiting for it, and to count twice changes nothing.
func (c *Controller) rosterOf(ctx context.Context, system SystemID) (*roster, error) {
	c.mu.Lock()
	r := c.rosters[system]
	if r == nil {
		r = &roster{Roster: lifecycle.NewRoster(fromServices)}
		c.rosters[system] = r
	}
	c.mu.Unlock()
	if r.counted.Load() {
		return r, nil
	}
	if err := lifecycle.Recount(r.Roster, c.servicesOf(ctx, system)); err != nil {
		return nil, err
	}
	r.counted.Store(true)
	return r, nil
}

// servicesOf yields the services of a system.
func (c *Controller) servicesOf(ctx context.Context, system SystemID) iter.Seq2[lifecycle.Record[ServiceState, struct{}], error] {
	return recordsOf(ctx, c.services, system)
}

// recordsOf yields the records whose ids begin with a system and a slash. They
// stand together, because lists are in order of ids.
func recordsOf[S, E comparable, T any](ctx context.Context, m *lifecycle.Manager[S, E, T], system SystemID) iter.Seq2[lifecycle.Record[S, T], error] {
	return func(yield func(lifecycle.Record[S, T], error) bool) {
		prefix := string(system) + "/"
		for rec, err := range m.All(ctx, lifecycle.Select[S]{After: prefix}) {
			if err == nil && !strings.HasPrefix(rec.ID, prefix) || !yield(rec, err) {
				return
			}
		}
	}
}

// follow moves a system to what its services come to.
func (c *Controller) follow(ctx context.Context, system SystemID) error {
	r, err := c.rosterOf(ctx, system)
	if err != nil {
		return err
	}
	return r.Settle(func(lifecycle.Aggregated[State]) error { return c.bring(ctx, system, r) })
}

// bring moves a system that follows its services to what they come to.
//
// What they come to is asked after the system is read, and written on what was
// read: who has seen less never writes over who has seen more, for whose commit it
// would have found, or for whose it is refused.
func (c *Controller) bring(ctx context.Context, system SystemID, r *roster) (err error) {
	for range maxTries {
		var rec lifecycle.Record[State, struct{}]
		rec, err = c.systems.Get(ctx, string(system))
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		to := r.Now().State
		if _, ok := follows[rec.State]; err != nil || !ok || rec.State == to {
			return err
		}
		_, err = c.systems.Fire(ctx, string(system), follows[to], Aggregator, &lifecycle.Change[struct{}]{Expect: rec.Revision})
		if !overtaken(err) {
			return err
		}
	}
	return err
}

// forgetServices removes what is known of the services of a system.
func (c *Controller) forgetServices(ctx context.Context, system SystemID) error {
	for rec, err := range c.servicesOf(ctx, system) {
		if err == nil {
			_, err = c.saw(ctx, rec.ID, ServiceAbsent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
