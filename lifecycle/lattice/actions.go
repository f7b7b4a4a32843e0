package lattice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// ActionRecord is a deploy or a teardown in the store. Its Reason is why it has
// failed.
type ActionRecord = lifecycle.Record[ActionState, Action]

// kind is deploys or teardowns.
type kind struct {
	name  string // deployKind or teardownKind
	m     *lifecycle.Manager[ActionState, ActionEvent, Action]
	steps map[ActionState]step // by the state before the step
}

// step is the work in one state of an action, and the event that ends it.
type step struct {
	work func(context.Context, Running) error // nil: none
	then ActionEvent
}

// newKind returns the deploys or the teardowns of the term of the controller, which has begun.
func (c *Controller) newKind(
	store lifecycle.Store, m *fsm.Machine[ActionState, ActionEvent, Action], name string, steps map[ActionState]step,
) *kind {
	k := &kind{name: name, steps: steps}
	k.m = lifecycle.Must(m, store, &lifecycle.Config[ActionEvent]{
		Observer: lifecycle.Tee(c.observer, lifecycle.Observer{
			Changed: func(_ context.Context, row lifecycle.CommittedChange) {
				if ActionState(row.To).ended() && !ActionState(row.From).ended() {
					c.ended(k, row.Key)
				}
			},
		}),
		BeforeCommit: c.term.require,
	})
	return k
}

// kinds returns deploys and teardowns.
func (c *Controller) kinds() []*kind { return []*kind{c.deploys, c.teardowns} }

// ended reports whether an action in this state has ended. The empty state is that of a
// record that does not exist. A teardown has the states of a deploy.
func (s ActionState) ended() bool { return Deploy.Kind(s).Resting() }

// Deploy requests a deploy of a part of a system, at and below a path; the zero
// path is the whole system. It has these attributes, see [Action]. When Deploy returns,
// the deploy is stored as pending. Then it takes its lock and is accepted. If another
// action holds a part of the path, it fails, and its reason names the holders. It never
// waits for a lock. Of two conflicting requests, the first one gets the lock.
//
// Errors, with nothing changed: [lifecycle.ErrNotFound] for a system that does not
// exist, and [lifecycle.ErrPrecondition] for one that is pending, failed or
// deleting; [lifecycle.ErrExists] if the system had a deploy of that name;
// [lifecycle.ErrInvalid] for the names, and for attributes that are not JSON or too large;
// and the store's.
func (c *Controller) Deploy(
	ctx context.Context, system SystemID, deploy DeployID, path lock.Path, attributes json.RawMessage,
) (ActionRecord, error) {
	a := Action{System: system, Path: pathOf(path), Attributes: attributes}
	return c.request(ctx, c.deploys, system, string(deploy), a)
}

// Teardown requests a teardown of a system. It is like Deploy, except that a
// teardown that has its lock is in progress at once.
func (c *Controller) Teardown(
	ctx context.Context, system SystemID, teardown TeardownID, attributes json.RawMessage,
) (ActionRecord, error) {
	a := Action{System: system, Path: lock.Root(), Attributes: attributes}
	return c.request(ctx, c.teardowns, system, string(teardown), a)
}

// WaitDeploy waits until a deploy has succeeded or failed, and has released its
// lock. Errors: [lifecycle.ErrNotFound], the store's, and the context's;
// [queue.ErrWouldDeadlock] if a function of [Infrastructure] would wait for itself.
func (c *Controller) WaitDeploy(ctx context.Context, system SystemID, deploy DeployID) (ActionRecord, error) {
	return c.wait(ctx, c.deploys, recordID(system, deploy))
}

// WaitTeardown is WaitDeploy for a teardown.
func (c *Controller) WaitTeardown(ctx context.Context, system SystemID, teardown TeardownID) (ActionRecord, error) {
	return c.wait(ctx, c.teardowns, recordID(system, teardown))
}

// RemoveDeploy removes the record of a deploy that has succeeded or failed, once its
// lock is released. The system may then have another deploy of that name.
//
// Errors, with nothing changed: [lifecycle.ErrNotFound]; [lifecycle.ErrBusy] if the
// deploy has not ended; [queue.ErrWouldDeadlock] as for WaitDeploy; the store's, and the
// context's.
func (c *Controller) RemoveDeploy(ctx context.Context, system SystemID, deploy DeployID) error {
	return c.forget(ctx, c.deploys, recordID(system, deploy))
}

// RemoveTeardown is RemoveDeploy for a teardown.
func (c *Controller) RemoveTeardown(ctx context.Context, system SystemID, teardown TeardownID) error {
	return c.forget(ctx, c.teardowns, recordID(system, teardown))
}

// forget removes the record of an action that has ended. The bad schedule without the
// wait: the run of the action has not released the lock yet; another action of the same
// name takes the lock, because acquiring is idempotent, and loses it to that run.
func (c *Controller) forget(ctx context.Context, k *kind, id string, require ...lifecycle.Precondition) error {
	rec, err := k.m.Get(ctx, id)
	if err == nil && rec.State.ended() {
		rec, err = c.wait(ctx, k, id)
	}
	if err == nil {
		_, err = k.m.Fire(ctx, id, Forget, User, &lifecycle.Change[Action]{Expect: rec.Revision, Force: true, Require: require})
	}
	return err
}

// forgetEarlier removes the records of the services and actions of an earlier system of this
// name, unless the system exists. Only a system that an override has removed leaves services.
func (c *Controller) forgetEarlier(ctx context.Context, system SystemID) error {
	absent := c.systems.Require(string(system))
	switch err := c.forgetServices(ctx, system, absent); {
	case errors.Is(err, lifecycle.ErrPrecondition):
		return nil
	case err != nil && !errors.Is(err, lifecycle.ErrForeign): // a later program has written the record, and reads it
		return err
	}
	for _, k := range c.kinds() {
		for rec, err := range k.m.All(ctx, ofSystem[ActionState](system)) {
			if err == nil && rec.State.ended() {
				err = c.forget(ctx, k, rec.ID, absent)
			}
			if errors.Is(err, lifecycle.ErrPrecondition) {
				return nil
			}
			if err != nil && !overtaken(err) && !errors.Is(err, lifecycle.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}

// request stores an action as pending and starts its run.
func (c *Controller) request(ctx context.Context, k *kind, system SystemID, id string, a Action) (ActionRecord, error) {
	if err := system.check(); err != nil {
		return ActionRecord{}, err
	}
	if err := checkNames(system, k.name, id); err != nil {
		return ActionRecord{}, fmt.Errorf("%w: %w", lifecycle.ErrInvalid, err)
	}
	rec, err := k.m.Add(ctx, recordID(system, id), ActionPending, Backend, a, &lifecycle.Change[Action]{
		Require: []lifecycle.Precondition{c.requireLive(system)},
	})
	if err != nil {
		return ActionRecord{}, noSystem(err)
	}
	// The action is stored: if the queue refuses it now, the next sweep or the next
	// process runs it.
	_, _ = c.submit(k, rec.ID, &rec)
	return rec, nil
}

// wait waits for the run, because the run releases the lock after the end is stored.
// If the queue accepts no runs any more, or a failing store has ended the run, wait
// waits for the stored end only.
func (c *Controller) wait(ctx context.Context, k *kind, id string) (ActionRecord, error) {
	if rec, err := k.m.Get(ctx, id); err != nil {
		return rec, err
	}
	run, err := c.submit(k, id, nil)
	if err == nil {
		err = run.Wait(ctx)
	}
	if errors.Is(err, queue.ErrPending) || errors.Is(err, queue.ErrWouldDeadlock) {
		return ActionRecord{}, err
	}
	return lifecycle.Await(ctx, k.m, id, func(r ActionRecord) bool { return r.State.ended() })
}

// resume runs the actions that have not ended, and those that have ended and still have a
// lock. It moves every system to the state that follows from its services. It changes
// nothing else. Records that cannot be read are left out: the error names them if there is
// no other one.
//
// The actions that another process has left take their locks again before a pending action
// can have them, those in progress first, because they have changed something already. Two
// that exclude each other are left by an override only, not by a controller: the run of
// the second one meets the conflict again and fails the action. Pending actions follow in
// the order of their requests.
func (c *Controller) resume(ctx context.Context) error {
	var foreign []error
	type action struct {
		*kind
		ActionRecord
	}
	for _, state := range []ActionState{ActionInProgress, ActionAccepted, ActionPending} {
		var all []action
		for _, k := range c.kinds() {
			if _, ok := k.steps[state]; !ok {
				continue
			}
			for rec, err := range k.m.All(ctx, lifecycle.Select[ActionState]{States: []ActionState{state}}) {
				switch {
				case err == nil:
					all = append(all, action{k, rec})
				case !errors.Is(err, lifecycle.ErrForeign):
					return err
				default:
					foreign = append(foreign, err)
					if state != ActionPending { // it has no path: it locks the whole system
						_, _ = c.acquire(k, rec)
					}
				}
			}
		}
		slices.SortStableFunc(all, func(a, b action) int { return a.ChangedAt.Compare(b.ChangedAt) })
		for _, a := range all {
			if _, err := c.submit(a.kind, a.ID, &a.ActionRecord); err != nil {
				return err
			}
		}
	}
	for system := range c.locks.Systems() {
		deploys, teardown := c.locks.InProgressActions(system)
		for _, id := range deploys {
			if _, err := c.submit(c.deploys, recordID(system, id), nil); err != nil {
				return err
			}
		}
		if teardown != "" {
			if _, err := c.submit(c.teardowns, recordID(system, teardown), nil); err != nil {
				return err
			}
		}
	}
	for rec, err := range c.systems.All(ctx, lifecycle.Select[State]{States: live}) {
		if err == nil {
			err = c.follow(ctx, SystemID(rec.ID))
		}
		if errors.Is(err, lifecycle.ErrForeign) {
			foreign = append(foreign, err)
		} else if err != nil {
			return err
		}
	}
	return errors.Join(foreign...)
}

func (c *Controller) acquire(k *kind, rec ActionRecord) (lock.Token, error) {
	system, id := splitID(rec.ID)
	return c.locks.acquire(system, k.name, id, pathOf(rec.Payload.Path))
}

// splitID returns the system of a record, and the name of an action.
func splitID(id string) (SystemID, string) {
	system, name, _ := strings.Cut(id, "/")
	return SystemID(system), name
}

// recordID returns the id of the record of an action.
func recordID[ID ~string](system SystemID, id ID) string { return string(system) + "/" + string(id) }

// pathOf returns the path that an action locks: the zero path is the whole system.
func pathOf(path lock.Path) lock.Path {
	if !path.Valid() {
		return lock.Root()
	}
	return path
}
