package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// order has an MCI brought forward, unless somebody here is at it already.
func (s *System) order(ctx context.Context, mci *mciRecord, what string, preempt queue.Preempt) error {
	id, operation := mci.ID, mci.Operation
	_, err := s.orders.Submit(ctx, id, &queue.Action{
		Name: what, ID: fmt.Sprintf("%s#%d %s", id, operation, what), Preempt: preempt,
		Run: func(ctx context.Context) error { return s.advance(ctx, id, operation) },
		// What fails here is the store. After the last attempt, a sweep goes on.
		Retry: queue.Retry{Attempts: 5, Backoff: []time.Duration{time.Second, 10 * time.Second}},
	})
	return err
}

// advance brings an operation of an MCI to its end, from wherever its record says
// that it is: several processes may do so at once, and one that takes over begins
// where the other has stopped. It ends early where the MCI is on hold, or the
// operation is not its own any more.
func (s *System) advance(ctx context.Context, id string, operation lifecycle.OpID) error {
	for {
		mci, err := s.mcis.Get(ctx, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return nil
		case err != nil:
			return err
		case mci.Operation != operation || atRest(mci.State) || onHold(&mci):
			return nil
		}
		switch mci.State {
		case Preparing:
			err = s.prepare(ctx, &mci)
		case Prepared:
			if withdrawn(&mci) {
				return s.takeBack(ctx, &mci)
			}
			err = s.tell(ctx, &mci, Provision, Tumblebug, "")
		default:
			err = s.act(ctx, &mci)
		}
		if errors.Is(err, lifecycle.ErrPrecondition) || errors.Is(err, lifecycle.ErrConflict) {
			continue // the MCI or a VM has moved on: look where it is
		}
		if err != nil {
			return err
		}
	}
}

func onHold(mci *mciRecord) bool {
	return mci.State == Prepared && mci.Payload.Hold && !mci.Payload.Withdrawn
}

func withdrawn(mci *mciRecord) bool { return mci.State == Prepared && mci.Payload.Withdrawn }

// act does what the state of an MCI says to its VMs, waits for them, and says how
// that ended.
func (s *System) act(ctx context.Context, mci *mciRecord) error {
	var err error
	if mci.State == Creating {
		err = s.provision(ctx, mci)
	} else {
		err = s.propagate(ctx, mci)
	}
	for again := true; err == nil && again; {
		var vms []vmRecord
		if vms, err = s.members(ctx, mci.ID); err != nil {
			return err
		}
		var ids []string
		var strays []vmRecord
		for _, vm := range vms {
			if !atRest(vm.State) {
				ids = append(ids, vm.ID)
			}
			if vm.Payload.Life != mci.Payload.Life {
				strays = append(strays, vm)
			}
		}
		switch {
		case len(ids) > 0: // by force, while the others were waited for
			err = s.awaitRest(ctx, ids)
		case mci.State == Creating && len(strays) > 0:
			if err = s.remove(ctx, strays); err == nil {
				err = s.provision(ctx, mci) // they may have had the names of others
			}
		case mci.State == Creating:
			again, err = s.created(ctx, mci, vms)
		default:
			again, err = false, s.controlled(ctx, mci, vms)
		}
	}
	return err
}

// propagate asks every VM of an MCI for the action of the MCI, once, and waits
// until all rest. A VM that does something of its own is asked when that has
// ended; one that the matrix does not allow it is left out.
func (s *System) propagate(ctx context.Context, mci *mciRecord) error {
	action, target := Doing(mci.State)
	for {
		vms, err := s.members(ctx, mci.ID)
		if err != nil {
			return err
		}
		later := false
		var ids []string
		for i := range vms {
			vm := &vms[i]
			ids = append(ids, vm.ID)
			if asked(mci, vm, action, target) {
				continue
			}
			_, err := s.vms.Do(ctx, vm.ID, Event(action), User, s.workOf(vm), &lifecycle.Change[VMSpec]{
				Force: mci.Payload.Force,
				Edit: func(p *VMSpec) error {
					if p.Asked > mci.Operation {
						return errOver
					}
					p.Asked = mci.Operation
					return nil
				},
				// Not if somebody has forced the MCI to something else.
				Require: []lifecycle.Precondition{s.mcis.Require(mci.ID, mci.State)},
			})
			switch {
			case errors.Is(err, lifecycle.ErrBusy), errors.Is(err, lifecycle.ErrConflict):
				later = true
			case err != nil && !refused(err):
				return err
			}
		}
		if err := s.awaitRest(ctx, ids); err != nil || !later {
			return err
		}
	}
}

// controlled says how an action of an MCI ended, of which all VMs rest: the
// document is content with some of them, but for Terminate.
func (s *System) controlled(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	action, target := Doing(mci.State)
	done, now := 0, states(vms)
	for i := range vms {
		switch {
		case now[i] != target:
		case action == ActionReboot && vms[i].Payload.Asked != mci.Operation:
			now[i] = Failed // it runs, but was not rebooted
		default:
			done++
		}
	}
	why := ""
	if done < len(vms) {
		why = fmt.Sprintf("%d of %d VMs are %s", done, len(vms), target)
	}
	switch end, _ := Conclude(action, now); end {
	case target:
		if action == ActionTerminate {
			why = reason(s.release(ctx, mci)) // nothing uses any more what they shared
		}
		return s.tell(ctx, mci, Succeed, Aggregate, why)
	case Undefined:
		return s.tell(ctx, mci, TimedOut, fsm.Sweeper, why)
	}
	return s.tell(ctx, mci, Fail, Aggregate, why)
}

// finish ends the action of an MCI of which all VMs have come to rest, so that who sees
// the last of them there does not see the MCI still on its way: whoever waits for the
// VMs may not have woken up.
func (s *System) finish(ctx context.Context, id string) error {
	mci, err := s.mcis.Get(ctx, id)
	if err == nil && !atRest(mci.State) {
		var vms []vmRecord
		vms, err = s.members(ctx, id)
		switch {
		case err != nil || !finished(&mci, vms):
		case mci.State == Creating:
			_, err = s.created(ctx, &mci, vms)
		default:
			err = s.controlled(ctx, &mci, vms)
		}
	}
	// Else somebody else has ended it.
	if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, lifecycle.ErrPrecondition) {
		return nil
	}
	return err
}

// finished reports whether nothing is left to do about the VMs of an MCI but to say
// how it ended.
func finished(mci *mciRecord, vms []vmRecord) bool {
	action, target := Doing(mci.State)
	if mci.State == Preparing || mci.State == Prepared || mci.State == Creating && len(vms) != mci.Payload.size() {
		return false
	}
	for i := range vms {
		vm := &vms[i]
		switch {
		case !atRest(vm.State) || vm.Payload.Life != mci.Payload.Life:
			return false
		case mci.State == Creating, asked(mci, vm, action, target):
		case Allowed(vm.State, action, mci.Payload.Force) == nil:
			return false
		}
	}
	return true
}

// asked reports whether a VM need not be asked for the action of its MCI: it has been,
// or is there already.
func asked(mci *mciRecord, vm *vmRecord, action Action, target State) bool {
	return vm.Payload.Asked == mci.Operation || !mci.Payload.Force && vm.State == target && action != ActionReboot
}

// awaitRest waits until these VMs rest.
func (s *System) awaitRest(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if _, err := s.vms.Await(ctx, id, func(vm vmRecord) bool { return atRest(vm.State) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *System) workOf(vm *vmRecord) lifecycle.Work {
	return lifecycle.Work{Handler: handler, Class: s.class(&vm.Payload)}
}

// refused reports whether the table does not allow a VM what it was asked for.
func refused(err error) bool {
	return errors.Is(err, fsm.ErrNotAllowed) || errors.Is(err, fsm.ErrForcedOnly) || errors.Is(err, lifecycle.ErrNotFound)
}

// maxReason is how much of a text is kept as a reason, in bytes.
const maxReason = 500

func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	end := maxReason
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
