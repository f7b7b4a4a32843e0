package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// start starts an operation of an MCI. It reserves a place in the queue, and then calls
// admit, which commits the start: if the queue refuses, nothing is changed.
func (s *System) start(
	ctx context.Context, id, name string, preempt queue.Preempt, admit func(context.Context) (mciRecord, error),
) (mci mciRecord, err error) {
	_, err = s.orders.Submit(ctx, id, &queue.Action{
		Name: name, Preempt: preempt, Retry: retries,
		Admit: func(ctx context.Context) (err error) {
			mci, err = admit(ctx)
			return err
		},
		Run: func(ctx context.Context) error { return s.advance(ctx, id, mci.Operation) },
	})
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		err = refused.Err // of admit
	}
	return mci, err
}

// retries are those of an operation of an MCI. A failure here is one of the store. After
// the last attempt, a sweep continues.
var retries = queue.Retry{Attempts: 5, Backoff: queue.Exponential(time.Second, 10*time.Second)}

// order submits an operation of an MCI that has started to the queue, unless a sweep has
// submitted it already.
func (s *System) order(ctx context.Context, id string, operation lifecycle.OpID, at State) error {
	name := fmt.Sprintf("operation %d in %s", operation, at)
	_, err := s.orders.Submit(ctx, id, &queue.Action{
		Name: name, ID: id + " " + name, Retry: retries,
		Run: func(ctx context.Context) error { return s.advance(ctx, id, operation) },
	})
	return err
}

// advance continues an operation of an MCI from its recorded state to its end. Several
// processes may do so at once. It ends early if the MCI is on hold or in another
// operation. It releases the resources of an MCI that is Failed and that no VM uses, whichever call
// has moved it: the answer to that call may be lost.
func (s *System) advance(ctx context.Context, id string, operation lifecycle.OpID) error {
	for {
		mci, err := s.mcis.Get(ctx, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return nil
		case err != nil:
			return err
		case mci.Operation == operation && mci.State == Failed:
			return s.release(ctx, &mci)
		case mci.Operation != operation || atRest(mci.State) || onHold(&mci):
			return nil
		}
		switch mci.State {
		case Preparing:
			err = s.prepare(ctx, &mci)
		case Prepared:
			err = s.report(ctx, &mci, Provision, Tumblebug, "")
		default:
			err = s.act(ctx, &mci)
		}
		if errors.Is(err, lifecycle.ErrPrecondition) || errors.Is(err, lifecycle.ErrConflict) {
			continue // the MCI has moved
		}
		if err != nil {
			return err
		}
	}
}

// report reports a step or the outcome of the operation of an MCI.
func (s *System) report(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor, why string) error {
	_, err := s.mcis.Report(ctx, mci.ID, mci.Operation, e, by, &lifecycle.Change[MCISpec]{Reason: why})
	return err
}

// act performs the operation of an MCI on its VMs: it requests the action for each VM
// once, waits until all VMs are at rest, and reports the outcome. A VM in an action of
// its own is requested after that has ended.
func (s *System) act(ctx context.Context, mci *mciRecord) error {
	if mci.State == Creating {
		if err := s.provision(ctx, mci); err != nil {
			return err
		}
	}
	for {
		vms, err := s.members(ctx, mci.ID)
		if err != nil {
			return err
		}
		missing := unrequested(mci, vms)
		if len(missing) == 0 && !slices.ContainsFunc(vms, restless) {
			return s.conclude(ctx, mci, vms)
		}
		if err := s.request(ctx, mci, missing); err != nil {
			return err
		}
		if err := s.awaitRest(ctx, vms); err != nil {
			return err
		}
	}
}

// unrequested returns the VMs for which the action of their MCI is still to be
// requested. A VM that the matrix excludes is not among them, nor is one that has the
// target state already.
func unrequested(mci *mciRecord, vms []vmRecord) (list []vmRecord) {
	action, target := Doing(mci.State)
	for _, vm := range vms {
		force := mci.Payload.Force
		switch {
		case action == ActionCreate, vm.Payload.Asked == mci.Operation:
		case vm.State == target && !force && action != ActionReboot:
		case Allowed(vm.State, action, force) == nil:
			list = append(list, vm)
		}
	}
	return list
}

// request requests the action of an MCI for these VMs. It leaves out those that have
// moved meanwhile.
func (s *System) request(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	action, _ := Doing(mci.State)
	for i := range vms {
		_, err := s.vms.Do(ctx, vms[i].ID, Event(action), User, s.work(&vms[i].Payload, mci.Payload.Force), &vmChange{
			Force: mci.Payload.Force,
			Edit: func(p *VMSpec) error {
				if p.Asked > mci.Operation {
					return errSuperseded
				}
				p.Asked, p.Continues = mci.Operation, 0
				return nil
			},
			// Not if the MCI was forced into another action.
			Require: []lifecycle.Precondition{s.mcis.Require(mci.ID, mci.State)},
		})
		if err != nil && !refused(err) && !errors.Is(err, lifecycle.ErrBusy) && !errors.Is(err, lifecycle.ErrConflict) {
			return err
		}
	}
	return nil
}

// conclude reports the outcome of the operation of an MCI whose VMs are all at rest. By
// the document, some VMs in the target state are a success, except for Terminate.
func (s *System) conclude(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	action, target := Doing(mci.State)
	reached, now := 0, states(vms)
	for i := range vms {
		switch {
		case now[i] != target:
		case action == ActionReboot && vms[i].Payload.Asked != mci.Operation:
			now[i] = Failed // Running, and was not rebooted
		default:
			reached++
		}
	}
	why := ""
	if reached < len(vms) {
		why = fmt.Sprintf("%d of %d VMs are %s", reached, len(vms), target)
	}
	switch end, _ := Conclude(action, now); end {
	case target:
		if action == ActionTerminate {
			why = reason(s.release(ctx, mci)) // no VM uses them any more
		}
		return s.report(ctx, mci, Succeed, Aggregate, why)
	case Undefined:
		return s.report(ctx, mci, TimedOut, Aggregate, why)
	}
	return s.report(ctx, mci, Fail, Aggregate, why)
}

// finish ends the operation of an MCI whose last VM has just come to rest. So a caller
// that finds all VMs in the target status finds the action complete.
func (s *System) finish(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	switch {
	case mci.State == Preparing || mci.State == Prepared:
		return nil
	case mci.State == Creating && len(vms) < mci.Payload.size():
		return nil
	case len(unrequested(mci, vms)) > 0 || slices.ContainsFunc(vms, restless):
		return nil
	}
	err := s.conclude(ctx, mci, vms)
	if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) {
		return nil // another writer has ended it
	}
	return err
}

// awaitRest waits until these VMs are at rest.
func (s *System) awaitRest(ctx context.Context, vms []vmRecord) error {
	for i := range vms {
		if _, err := lifecycle.Await(ctx, s.vms, vms[i].ID, func(vm vmRecord) bool { return atRest(vm.State) }); err != nil {
			return err
		}
	}
	return nil
}

// refused reports whether the table does not permit a request, or the object is gone.
func refused(err error) bool {
	return errors.Is(err, fsm.ErrNotAllowed) || errors.Is(err, fsm.ErrForcedOnly) || errors.Is(err, lifecycle.ErrNotFound)
}
