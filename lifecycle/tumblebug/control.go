package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// HandleMciAction starts an action on an MCI and returns a text for the user: suspend,
// resume, reboot and terminate go to all of its VMs; refine removes its VMs that are
// Failed or Undefined; continue and withdraw answer a creation on hold. The action may
// be in any case.
//
// The document's matrix admits an action by the state that follows from the VMs, and
// only while no other action is running. Force skips both, but never the history: it
// starts a new operation, and reports of the superseded one are stale. HandleMciAction
// returns as soon as the action is admitted; the status shows how it ends. On an MCI
// without VMs, terminate is the only control action. No action leads out of Terminated:
// a forced terminate is complete there, and every other action is refused. Force refines no
// MCI that is being created, because its creation would make the removed VMs again.
//
// If another writer moves the MCI meanwhile, the action is decided again.
//
// Errors, with the MCI unchanged: [lifecycle.ErrInvalid] for names and actions,
// [lifecycle.ErrNotFound]; [lifecycle.ErrBusy] during an action of the MCI, or while most of
// its VMs are in transition by actions of their own; [fsm.ErrForcedOnly] for what only force
// can do, [fsm.ErrNotAllowed] for what force cannot do either, and for continue and withdraw
// of an MCI that is not on hold;
// [lifecycle.ErrConflict] if other writers were faster again and again;
// [queue.ErrTerminated] after [System.Close]; those of the store. If withdraw
// cannot release a resource, its error is the provider's: the MCI is Failed then, and
// [System.DelMci] releases and removes it.
func (s *System) HandleMciAction(ctx context.Context, nsID, mciID, action string, force bool) (string, error) {
	a, err := ParseAction(action)
	if err == nil {
		err = s.checkRequest("namespace", nsID, "MCI", mciID)
	}
	if err != nil {
		return "", err
	}
	for attempt := 1; ; attempt++ {
		text, err := s.actOnMci(ctx, mciKey(nsID, mciID), a, force)
		moved := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrPrecondition)
		switch {
		case err == nil:
			return text, nil
		case !moved || attempt == decisions:
			return "", err
		}
	}
}

// decisions is how often an action is decided again because the MCI has changed.
const decisions = 16

// actOnMci decides about an action on an MCI once. The text is for an action that is
// admitted.
func (s *System) actOnMci(ctx context.Context, id string, a Action, force bool) (text string, err error) {
	mci, vms, err := s.follow(ctx, id)
	switch {
	case err != nil:
		return "", err
	case a == ActionContinue:
		return "Continue the holding MCI", s.continueHeld(ctx, &mci)
	case a == ActionWithdraw:
		return "Withdraw the holding MCI", s.withdraw(ctx, &mci)
	case a == ActionRefine && len(vms) == 0:
		return "No VM in the MCI", s.refine(ctx, &mci, vms, force)
	case a == ActionRefine:
		return "Refined the MCI", s.refine(ctx, &mci, vms, force)
	case force && a == ActionTerminate && mci.State == Terminated:
		return "The MCI is Terminated", nil
	}
	return fmt.Sprintf("%s the MCI", a.during()), s.controlMci(ctx, &mci, vms, a, force)
}

// controlMci starts a control action on an MCI.
func (s *System) controlMci(ctx context.Context, mci *mciRecord, vms []vmRecord, a Action, force bool) error {
	if err := checkControl(mci, vms, a, force); err != nil {
		return err
	}
	change := &mciChange{Force: force, Edit: func(m *MCISpec) error { m.Force = force; return nil }}
	if len(vms) > 0 { // the commit requires that it still has a VM
		change.Require = []lifecycle.Precondition{s.vms.Require(vms[0].ID, classes...)}
	}
	return s.submit(ctx, mci.ID, queue.Action{Name: string(a), Preempt: preempt(force), Admit: func(ctx context.Context) error {
		_, err := s.mcis.Fire(ctx, mci.ID, Event(a), User, change)
		return err
	}})
}

// checkControl refuses a control action during another one, or because of the VMs of an
// MCI.
func checkControl(mci *mciRecord, vms []vmRecord, a Action, force bool) error {
	if !force {
		if err := checkIdle(mci); err != nil {
			return err
		}
		if now, _, _ := Summarize(states(vms), 0); !atRest(now.State) {
			return busyError("MCI is in transitional state: " + now.String())
		}
	}
	if len(vms) == 0 && a != ActionTerminate && Allowed(mci.State, a, force) == nil {
		return fmt.Errorf("%w: the MCI has no VM to %s", fsm.ErrNotAllowed, strings.ToLower(string(a)))
	}
	return nil
}

// HandleMciVmAction starts an action on one VM and returns a text for the user:
// suspend, resume, reboot or terminate. The document's matrix admits it, and only while
// no action of its MCI is running. Force skips both. For a Terminated VM, a forced
// terminate is complete, and every other action is refused.
//
// Errors, with the VM unchanged: those of [System.HandleMciAction].
func (s *System) HandleMciVmAction(ctx context.Context, nsID, mciID, vmID, action string, force bool) (string, error) {
	a, err := ParseAction(action)
	if err == nil && !a.controls() {
		err = fmt.Errorf("%w: action %q of a VM is not supported", lifecycle.ErrInvalid, action)
	}
	if err == nil {
		err = s.checkRequest("namespace", nsID, "MCI", mciID, "VM", vmID)
	}
	if err != nil {
		return "", err
	}
	mci, err := s.mcis.Get(ctx, mciKey(nsID, mciID))
	if err != nil {
		return "", err
	}
	vm, err := s.vms.Get(ctx, mci.ID+"/"+vmID)
	if err != nil {
		return "", err
	}
	if force && a == ActionTerminate && vm.State == Terminated {
		return "The VM is Terminated", nil
	}
	change := &vmChange{Force: force, Edit: func(p *VMSpec) error { p.Continues = 0; return nil }}
	if !force {
		if err := checkIdle(&mci); err != nil {
			return "", err
		}
		change.Require = []lifecycle.Precondition{s.mcis.Require(mci.ID, resting...)}
	}
	_, err = s.vms.Do(ctx, vm.ID, Event(a), User, s.work(&vm.Payload, force), change)
	if errors.Is(err, lifecycle.ErrPrecondition) {
		err = busyError("MCI has just come under an action, please try later")
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s the VM", a.during()), nil
}

// checkIdle refuses a request while an action of the MCI is running.
func checkIdle(mci *mciRecord) error {
	if running, _ := Doing(mci.State); running != ActionComplete {
		return busyError(fmt.Sprintf("MCI is under %s, please try later", running))
	}
	return nil
}

// busyError is a refusal with the text of the document. It matches [lifecycle.ErrBusy]: repeat
// the request later, or with force.
type busyError string

func (e busyError) Error() string        { return string(e) }
func (e busyError) Is(target error) bool { return target == lifecycle.ErrBusy }

func onHold(mci *mciRecord) bool { return mci.State == Prepared && mci.Payload.Hold }

// answerHeld moves an MCI that is on hold.
func (s *System) answerHeld(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor) (mciRecord, error) {
	if !onHold(mci) {
		return *mci, fmt.Errorf("%w: the MCI is not on hold: its state is %s", fsm.ErrNotAllowed, mci.State)
	}
	return s.mcis.Fire(ctx, mci.ID, e, by, &mciChange{Expect: mci.Revision})
}

// continueHeld is the action continue.
func (s *System) continueHeld(ctx context.Context, mci *mciRecord) error {
	return s.submit(ctx, mci.ID, queue.Action{Name: "continue", Admit: func(ctx context.Context) error {
		_, err := s.answerHeld(ctx, mci, Provision, Tumblebug)
		return err
	}})
}

// withdraw is the action withdraw. The MCI is Failed before its resources are released,
// so that a concurrent continue is refused.
func (s *System) withdraw(ctx context.Context, mci *mciRecord) error {
	now, err := s.answerHeld(ctx, mci, Withdraw, User)
	if err != nil {
		return err
	}
	return s.discard(ctx, &now, nil)
}

// refine removes the VMs that are Failed or Undefined, and still are after another look.
func (s *System) refine(ctx context.Context, mci *mciRecord, vms []vmRecord, force bool) error {
	// A process that continues a creation makes every VM that is missing, also a removed one.
	running, _ := Doing(mci.State)
	if err := checkIdle(mci); err != nil && (!force || running == ActionCreate) {
		return err
	}
	kept := func(vm vmRecord) bool { return vm.State != Failed && vm.State != Undefined }
	vms = slices.DeleteFunc(vms, kept)
	if err := s.refresh(ctx, vms); err != nil {
		return err
	}
	var require []lifecycle.Precondition
	if !force {
		require = append(require, s.mcis.Require(mci.ID, resting...))
	}
	if err := s.remove(ctx, slices.DeleteFunc(vms, kept), Refine, require...); err != nil {
		return err
	}
	_, _, err := s.follow(ctx, mci.ID)
	return err
}

// remove removes the VMs that have not moved since they were read.
func (s *System) remove(ctx context.Context, vms []vmRecord, by Event, require ...lifecycle.Precondition) error {
	for i := range vms {
		_, err := s.vms.Fire(ctx, vms[i].ID, by, User, &vmChange{Force: true, Expect: vms[i].Revision, Require: require})
		if err != nil && !errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
		s.mu.Lock()
		delete(s.doubts, vms[i].ID)
		s.mu.Unlock()
	}
	return nil
}

// DelMci removes an MCI that is Terminated or Failed, with its VMs and resources, so
// that its name can be used again. It refuses an MCI with a VM that is not Terminated:
// terminate it first, or refine the MCI.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrNotFound]; [fsm.ErrNotAllowed] for an
// MCI or a VM in another state; [queue.ErrTerminated] after [System.Close]; those of the
// store and of the provider. The MCI exists then, and the request may be repeated.
func (s *System) DelMci(ctx context.Context, nsID, mciID string) error {
	if err := s.checkRequest("namespace", nsID, "MCI", mciID); err != nil {
		return err
	}
	mci, vms, err := s.follow(ctx, mciKey(nsID, mciID))
	if err != nil {
		return err
	}
	if err := checkIdle(&mci); err != nil {
		return err
	}
	if mci.State != Terminated && mci.State != Failed {
		return fmt.Errorf("%w: the MCI is %s", fsm.ErrNotAllowed, mci.State)
	}
	for _, vm := range vms {
		if vm.State != Terminated {
			return fmt.Errorf("%w: VM %q is %s", fsm.ErrNotAllowed, path.Base(vm.ID), vm.State)
		}
	}
	return s.discard(ctx, &mci, vms)
}

// discard releases the resources of an MCI and removes it and its VMs.
func (s *System) discard(ctx context.Context, mci *mciRecord, vms []vmRecord) error {
	if err := s.release(ctx, mci); err != nil {
		return err
	}
	if err := s.remove(ctx, vms, Remove); err != nil {
		return err
	}
	_, err := s.mcis.Fire(ctx, mci.ID, Remove, User, &mciChange{Expect: mci.Revision, Force: true})
	return err
}
