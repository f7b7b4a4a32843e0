package tumblebug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// submit submits an action to the queue that advances an MCI. If it has an Admit, that
// commits the start of an operation after the place is reserved: if the queue refuses,
// nothing is changed.
func (s *System) submit(ctx context.Context, id string, act queue.Action) error {
	act.Retry, act.Run = retries, func(ctx context.Context) error { return s.advance(ctx, id) }
	_, err := s.operations.Submit(ctx, id, &act)
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return refused.Err // of Admit
	}
	return err
}

// retries are those of an operation of an MCI. A failure here is one of the store. After
// the last attempt, a sweep continues.
var retries = queue.Retry{Attempts: 5, Backoff: queue.Exponential(time.Second, 10*time.Second)}

// advance continues the operation of an MCI from its recorded state, until the MCI is at
// rest, on hold or in another operation. Several processes may do so at once. It releases
// the resources of an MCI that is Failed, whichever call has moved it: the answer to that
// call may be lost.
//
// The bad schedule without the operation: a process waits for a VM whose provider hangs; the
// MCI is terminated by force; the process requests the VM again, behind the request that hangs.
func (s *System) advance(ctx context.Context, id string) error {
	var operation lifecycle.OpID
	for {
		mci, vms, err := s.follow(ctx, id)
		operation = cmp.Or(operation, mci.Operation)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return nil
		case err != nil:
			return err
		case mci.Operation != operation:
			return nil
		case mci.State == Failed:
			return s.release(ctx, &mci)
		case atRest(mci.State) || onHold(&mci):
			return nil
		case mci.State == Preparing:
			err = s.prepare(ctx, &mci)
		case mci.State == Prepared:
			_, err = s.mcis.Fire(ctx, id, Provision, Tumblebug, &mciChange{Expect: mci.Revision})
		default:
			err = s.request(ctx, &mci, due(&mci, vms))
			if err == nil {
				err = s.awaitRest(ctx, vms)
			}
		}
		if err != nil && !overtaken(err) {
			return err
		}
	}
}

// follow moves an MCI to the state that follows from its VMs, and returns it with them. It
// releases the resources of an MCI that becomes Terminated. It reads both again after it
// has moved the MCI: of several concurrent calls, the last one to write is the last one to
// read.
func (s *System) follow(ctx context.Context, id string) (mciRecord, []vmRecord, error) {
	for {
		mci, err := s.mcis.Get(ctx, id)
		if err != nil {
			return mci, nil, err
		}
		vms, err := s.members(ctx, id)
		if err != nil {
			return mci, nil, err
		}
		event, by, why := next(&mci, vms)
		switch {
		case event == "":
			return mci, vms, nil
		case event == SeeTerminated, event == Succeed && mci.State == Terminating:
			if failed := s.release(ctx, &mci); failed != nil { // no VM uses them any more
				why = storable.Reason(failed.Error())
			}
		}
		_, err = s.mcis.Fire(ctx, id, event, by, &mciChange{Expect: mci.Revision, Force: true, Reason: why})
		switch {
		case errors.Is(err, fsm.ErrNotAllowed):
			return mci, vms, nil // Terminated is final
		case err != nil && !overtaken(err):
			return mci, nil, err
		}
	}
}

// next returns the event that moves an MCI to the state that follows from its VMs, or none.
// An operation ends when the action has been requested for all VMs, and all are at rest.
func next(mci *mciRecord, vms []vmRecord) (event Event, by fsm.Actor, why string) {
	switch {
	case mci.State == Preparing || mci.State == Prepared:
	case atRest(mci.State):
		if now, ok := settled(states(vms)); ok && now != mci.State {
			return observed[now], Observer, ""
		}
	case len(due(mci, vms)) == 0 && !slices.ContainsFunc(vms, restless):
		event, why = outcome(mci, vms)
		return event, Aggregate, why
	}
	return "", "", ""
}

// due returns the VMs for which the action of their MCI is still to be requested: in a
// creation those that do not exist, else those that the matrix admits and that are not in
// the target state already.
func due(mci *mciRecord, vms []vmRecord) (list []vmRecord) {
	action, target := Doing(mci.State)
	if action == ActionCreate {
		return missing(mci, vms)
	}
	force := mci.Payload.Force
	for _, vm := range vms {
		reached := vm.State == target && !force && action != ActionReboot
		if !reached && vm.Payload.Asked != mci.Operation && Allowed(vm.State, action, force) == nil {
			list = append(list, vm)
		}
	}
	return list
}

// missing returns the VMs of an MCI that do not exist.
func missing(mci *mciRecord, vms []vmRecord) (list []vmRecord) {
	exists := map[string]bool{}
	for _, vm := range vms {
		exists[vm.ID] = true
	}
	for name, spec := range planned(mci.Payload.SubGroups) {
		id := mci.ID + "/" + name
		if !exists[id] {
			spec.Life = mci.Payload.Life
			list = append(list, vmRecord{ID: id, Payload: spec})
		}
	}
	return list
}

// request requests the action of an MCI for these VMs, which creates those that do not
// exist. It leaves out those that have moved meanwhile, and ends if the MCI has moved.
func (s *System) request(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	action, _ := Doing(mci.State)
	for i := range vms {
		vm, force := &vms[i], mci.Payload.Force
		_, err := s.vms.Do(ctx, vm.ID, Event(action), User, s.work(&vm.Payload, force), &vmChange{
			Force: force,
			Edit: func(p *VMSpec) error {
				if p.Asked >= mci.Operation {
					return errRequested // by another process
				}
				if action == ActionCreate {
					*p = vm.Payload
				}
				p.Asked, p.Continues = mci.Operation, 0
				return nil
			},
			// Not if the MCI was forced into another action.
			Require: []lifecycle.Precondition{s.mcis.Require(mci.ID, mci.State)},
		})
		moved := errors.Is(err, lifecycle.ErrPrecondition) // the MCI, so the other requests fail too
		if moved || err != nil && !overtaken(err) {
			return err
		}
	}
	return nil
}

// errRequested refuses a request of an operation of an MCI if this operation or a later one
// has requested an action of the same VM.
var errRequested = errors.New("tumblebug: an action of the VM was requested already")

// outcome returns the event that ends the operation of an MCI whose VMs are all at rest, and
// not due. By the document, some VMs in the target state are a success, except for
// Terminate. A VM that is Running at the end of a reboot was requested to reboot: otherwise
// it is due.
func outcome(mci *mciRecord, vms []vmRecord) (event Event, why string) {
	action, target := Doing(mci.State)
	now := states(vms)
	reached := count(now)[target]
	if reached < len(vms) {
		why = fmt.Sprintf("%d of %d VMs are %s", reached, len(vms), target)
	}
	switch end, _ := Conclude(action, now); end {
	case target:
		return Succeed, why
	case Undefined:
		return TimedOut, why
	}
	return Fail, why
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

// overtaken reports whether an object has moved since it was read, so that the table, the
// revision or a precondition does not permit the request any more.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		lifecycle.ErrConflict, lifecycle.ErrPrecondition, lifecycle.ErrNotFound, lifecycle.ErrBusy,
		fsm.ErrNotAllowed, fsm.ErrForcedOnly, errRequested,
	}, func(target error) bool { return errors.Is(err, target) })
}
