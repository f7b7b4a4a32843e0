package lattice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// ActionRecord is a deploy or a teardown as it is stored. Its reason says why it
// has failed.
type ActionRecord = lifecycle.Record[ActionState, Action]

// kind is deploys or teardowns: what differs between them.
type kind struct {
	m      *lifecycle.Manager[ActionState, ActionEvent, Action]
	action func(id string) action
	// next has the events that lead to success, and what is done before each.
	next map[ActionState]step
}

// step is what is done in one state of an action.
type step struct {
	work func(context.Context, Running) error // nil: nothing
	then ActionEvent
}

func (c *Controller) deployKind(store lifecycle.Store, m *fsm.Machine[ActionState, ActionEvent, Action]) *kind {
	k := &kind{
		action: func(id string) action { return action{id: id} },
		next: map[ActionState]step{
			ActionPending:    {nil, Accept},
			ActionAccepted:   {c.infra.Build, Begin},
			ActionInProgress: {c.infra.Deploy, Succeed},
		},
	}
	k.m = c.manage(store, m, k)
	return k
}

func (c *Controller) teardownKind(store lifecycle.Store, m *fsm.Machine[ActionState, ActionEvent, Action]) *kind {
	k := &kind{
		action: func(id string) action { return action{teardown: true, id: id} },
		next: map[ActionState]step{
			ActionPending:    {nil, Begin},
			ActionInProgress: {c.infra.Teardown, Succeed},
		},
	}
	k.m = c.manage(store, m, k)
	return k
}

func (c *Controller) manage(store lifecycle.Store, m *fsm.Machine[ActionState, ActionEvent, Action], k *kind) *lifecycle.Manager[ActionState, ActionEvent, Action] {
	return lifecycle.New(m, store, &lifecycle.Config[ActionEvent]{
		Observer: lifecycle.Observer{Changed: func(row lifecycle.HistoryRow) {
			c.tell(row)
			if ActionState(row.To).ended() {
				c.ended(k, row.Key)
			}
		}},
		Locks: func(ctx context.Context, r lifecycle.StoredRecord) ([]lock.Holder, error) {
			rec, err := k.m.Get(ctx, r.ID)
			if err != nil {
				return nil, err
			}
			return c.locks.Holders(ctx, systemOf(r.ID), pathOf(rec.Payload))
		},
	})
}

// ended reports whether nothing is done in a state any more. A record that does
// not exist has none.
func (s ActionState) ended() bool {
	return s == ActionSucceeded || s == ActionFailed || s == ""
}

// Deploy asks for a deploy of a part of a system, at and below a path; the zero
// path is the whole system. It is pending when Deploy returns, and stored. Then it
// takes its lock, and is accepted; or somebody else holds a part of what it needs,
// and it fails, with who it is as its reason. It never waits for them. Of two that
// are asked for one after the other, the first comes first.
//
// Errors, with nothing changed: [lifecycle.ErrNotFound] for a system that does not
// exist, and [lifecycle.ErrPrecondition] for one that is pending, failed or
// deleting; [lifecycle.ErrExists] if the system had a deploy of that name;
// [lifecycle.ErrInvalid] for the names; and the store's.
func (c *Controller) Deploy(ctx context.Context, system SystemID, deploy DeployID, path lock.Path) (ActionRecord, error) {
	return c.ask(ctx, c.deploys, system, string(deploy), Action{System: system, Path: pathOf(Action{Path: path})})
}

// Teardown asks for a teardown of a system. It is as Deploy, but that a teardown
// which has its lock is in progress at once.
func (c *Controller) Teardown(ctx context.Context, system SystemID, teardown TeardownID) (ActionRecord, error) {
	return c.ask(ctx, c.teardowns, system, string(teardown), Action{System: system, Path: lock.Root()})
}

// WaitDeploy waits until a deploy has succeeded or failed, and given back its
// lock. Errors: [lifecycle.ErrNotFound], the store's, and the context's; inside
// [Infrastructure], for what would wait for itself, [queue.ErrWouldDeadlock].
func (c *Controller) WaitDeploy(ctx context.Context, system SystemID, deploy DeployID) (ActionRecord, error) {
	return c.wait(ctx, c.deploys, string(system)+"/"+string(deploy))
}

// WaitTeardown is as WaitDeploy.
func (c *Controller) WaitTeardown(ctx context.Context, system SystemID, teardown TeardownID) (ActionRecord, error) {
	return c.wait(ctx, c.teardowns, string(system)+"/"+string(teardown))
}

func (c *Controller) ask(ctx context.Context, k *kind, system SystemID, id string, a Action) (ActionRecord, error) {
	if err := system.check(); err != nil {
		return ActionRecord{}, err
	}
	if err := k.action(id).check(system); err != nil {
		return ActionRecord{}, fmt.Errorf("%w: %w", lifecycle.ErrInvalid, err)
	}
	part := k.m.Adding(string(system)+"/"+id, Backend, a, &lifecycle.Change[Action]{Require: c.requireLive(system)})
	if err := lifecycle.Together(ctx, part); err != nil {
		return ActionRecord{}, noSystem(err)
	}
	rec := part.Record()
	// It is stored: what the queue refuses now is run by the next sweep, or by the
	// next process.
	_, _ = c.submitFirst(k, rec.ID, &rec)
	return rec, nil
}

// wait waits for the run, which gives the lock back after the end was stored, and
// not for the end alone. Where the queue takes no runs any more, or a store that
// fails has ended one, the end is all there is to wait for.
func (c *Controller) wait(ctx context.Context, k *kind, id string) (ActionRecord, error) {
	for {
		rec, err := k.m.Get(ctx, id)
		if err != nil {
			return rec, err
		}
		run, err := c.submit(k, id)
		if err == nil {
			err = run.Wait(ctx)
		}
		switch {
		case errors.Is(err, queue.ErrPending) || errors.Is(err, queue.ErrWouldDeadlock):
			return rec, err
		case rec.State.ended():
			return rec, nil
		case err != nil:
			rec, err = k.m.Await(ctx, id, func(r ActionRecord) bool { return r.State.ended() })
			if err != nil {
				return rec, err
			}
		}
	}
}

// unended returns the states in which something is still to be done.
func (k *kind) unended() []ActionState { return slices.Collect(maps.Keys(k.next)) }

// relock takes the locks of what another process has left accepted or in progress,
// before anything runs: nothing that is pending may be faster. What is in progress
// has changed something already, and comes first, if there are two that exclude
// each other: no controller leaves that behind, but a person may.
func (c *Controller) relock(ctx context.Context) error {
	for _, state := range []ActionState{ActionInProgress, ActionAccepted} {
		for _, k := range []*kind{c.deploys, c.teardowns} {
			if _, ok := k.next[state]; !ok {
				continue
			}
			for rec, err := range k.m.All(ctx, lifecycle.Select[ActionState]{States: []ActionState{state}}) {
				if err != nil {
					return err
				}
				// A conflict is found once more by its run, which fails it for that.
				_, _ = c.acquire(k, rec)
			}
		}
	}
	return nil
}

// resume runs what has not ended and is not running, in the order in which it was
// asked for, and what has ended and still has its lock, and moves every system to
// what its services come to, which are counted anew. What is as it should be is left
// alone.
func (c *Controller) resume(ctx context.Context) error {
	type asked struct {
		*kind
		ActionRecord
	}
	var all []asked
	for _, k := range []*kind{c.deploys, c.teardowns} {
		for rec, err := range k.m.All(ctx, lifecycle.Select[ActionState]{States: k.unended()}) {
			if err != nil {
				return err
			}
			all = append(all, asked{k, rec})
		}
	}
	slices.SortStableFunc(all, func(a, b asked) int { return a.ChangedAt.Compare(b.ChangedAt) })
	for _, a := range all {
		var pending *ActionRecord
		if a.State == ActionPending {
			pending = &a.ActionRecord
		}
		if _, err := c.submitFirst(a.kind, a.ID, pending); err != nil {
			return err
		}
	}
	for system := range c.locks.Systems() {
		deploys, teardown := c.locks.InProgressActions(system)
		for _, id := range deploys {
			if _, err := c.submit(c.deploys, string(system)+"/"+string(id)); err != nil {
				return err
			}
		}
		if teardown != "" {
			if _, err := c.submit(c.teardowns, string(system)+"/"+string(teardown)); err != nil {
				return err
			}
		}
	}
	for rec, err := range c.systems.All(ctx, lifecycle.Select[State]{States: live}) {
		if err == nil {
			err = c.refollow(ctx, SystemID(rec.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refollow is follow with services that are counted anew.
func (c *Controller) refollow(ctx context.Context, system SystemID) error {
	c.mu.Lock()
	r := c.rosters[system]
	c.mu.Unlock()
	if r != nil {
		r.counted.Store(false)
	}
	return c.follow(ctx, system)
}

func (c *Controller) acquire(k *kind, rec ActionRecord) (lock.Token, error) {
	_, id := splitID(rec.ID)
	return c.locks.acquire(systemOf(rec.ID), pathOf(rec.Payload), k.action(id))
}

// splitID returns the system of an action's record, and the name of the action.
func splitID(id string) (SystemID, string) {
	system := systemOf(id)
	return system, id[min(len(id), len(system)+1):]
}
