package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// HandleMciAction does what a user asks of an MCI, and returns what it is at:
// suspend, resume, reboot and terminate go on to all of its VMs; refine removes
// its VMs that are Failed or Undefined; continue and withdraw answer a creation
// that was asked to hold. Actions are named in any case. If what was prepared for
// an MCI that is withdrawn cannot be released, that is the error; sweeps try it
// again, and until then the MCI is there.
//
// An action is admitted by the document's matrix, on the status that the MCI has
// because of its VMs, and not while another one is under way. Force skips that,
// never the history: what it interrupts is over, and reports in vain. It returns
// as soon as the action is admitted; how it ends is in the status. Without VMs there
// is nothing to do an action about, by force either, but for terminate.
//
// Errors: [lifecycle.ErrInvalid] for names and actions, [lifecycle.ErrNotFound];
// [*UnderActionError] and [ErrTransitional], which match [lifecycle.ErrBusy];
// [fsm.ErrForcedOnly] for what the matrix does not allow and force does,
// [fsm.ErrNotAllowed] for what force does not do either; [ErrNotHeld];
// [lifecycle.ErrConflict] if somebody was faster; those of the store. The MCI is
// as it was then.
func (s *System) HandleMciAction(ctx context.Context, nsID, mciID, action string, force bool) (string, error) {
	if err := checkNames(nsID, mciID); err != nil {
		return "", err
	}
	a, err := ParseAction(action)
	if err != nil {
		return "", err
	}
	mci, vms, err := s.follow(ctx, mciKey(nsID, mciID))
	if err != nil {
		return "", err
	}
	switch a {
	case ActionContinue:
		return s.goOn(ctx, &mci)
	case ActionWithdraw:
		return s.withdraw(ctx, &mci)
	}
	if !force {
		if err := idle(&mci); err != nil {
			return "", err
		}
	}
	if a == ActionRefine {
		return s.refineMci(ctx, &mci, vms, force)
	}
	if !force {
		now, _, err := Summarize(states(vms), 0)
		if err != nil {
			return "", err
		}
		if !atRest(now.State) {
			return "", fmt.Errorf("%w: %s", ErrTransitional, now)
		}
	}
	if len(vms) == 0 && a != ActionTerminate && Allowed(mci.State, a, force) == nil {
		// It would be Running, and nothing runs.
		return "", fmt.Errorf("%w: there is no VM in the MCI to %s", fsm.ErrNotAllowed, strings.ToLower(string(a)))
	}
	mci, err = s.mcis.Fire(ctx, mci.ID, Event(a), User, &lifecycle.Change[MCISpec]{
		Force: force, Edit: func(m *MCISpec) error { m.Force = force; return nil },
	})
	if err != nil {
		return "", err
	}
	preempt := queue.NoPreempt
	if force {
		preempt = queue.PreemptRunning // what it interrupts waits for nothing any more
	}
	if err := s.order(ctx, &mci, action, preempt); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s the MCI", a.ing()), nil
}

// HandleMciVmAction does what a user asks of one VM: suspend, resume, reboot or
// terminate. It is admitted by the document's matrix, and not while an action of
// its MCI is under way; with force it always is, unless the VM is Terminated.
//
// Errors: those of [System.HandleMciAction]; [lifecycle.ErrBusy] while an action
// of the VM itself is under way. The VM is as it was then.
func (s *System) HandleMciVmAction(ctx context.Context, nsID, mciID, vmID, action string, force bool) (string, error) {
	if err := checkNames(nsID, mciID, vmID); err != nil {
		return "", err
	}
	a, err := ParseAction(action)
	if err == nil && !a.controls() {
		err = fmt.Errorf("%w: action %q of a VM is not supported", lifecycle.ErrInvalid, action)
	}
	if err != nil {
		return "", err
	}
	mci, err := s.mcis.Get(ctx, mciKey(nsID, mciID))
	if err != nil {
		return "", err
	}
	vm, err := s.vms.Get(ctx, vmKey(nsID, mciID, vmID))
	if err != nil {
		return "", err
	}
	change := &lifecycle.Change[VMSpec]{Force: force}
	if !force {
		if err := idle(&mci); err != nil {
			return "", err
		}
		// And at the moment of the commit.
		change.Require = []lifecycle.Precondition{s.mcis.Require(mci.ID, resting...)}
	}
	_, err = s.vms.Do(ctx, vm.ID, Event(a), User, s.workOf(&vm), change)
	if !force && (errors.Is(err, lifecycle.ErrPrecondition) || errors.Is(err, lifecycle.ErrBusy) || errors.Is(err, lifecycle.ErrConflict)) {
		// Maybe because the MCI was asked at the same moment, and that says more.
		if now, again := s.mcis.Get(ctx, mci.ID); again == nil && idle(&now) != nil {
			err = idle(&now)
		}
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s the VM", a.ing()), nil
}

// idle refuses what has to wait for the action of an MCI.
func idle(mci *mciRecord) error {
	if under, _ := Doing(mci.State); under != ActionComplete {
		return &UnderActionError{last(mci.ID), under}
	}
	return nil
}

func notHeld(mci *mciRecord) error {
	if withdrawn(mci) {
		return fmt.Errorf("%w: it is being withdrawn", ErrNotHeld)
	}
	return fmt.Errorf("%w: it is %s", ErrNotHeld, mci.State)
}

// goOn is continue.
func (s *System) goOn(ctx context.Context, mci *mciRecord) (string, error) {
	if !onHold(mci) {
		return "", notHeld(mci)
	}
	now, err := s.mcis.Fire(ctx, mci.ID, Provision, Tumblebug, &lifecycle.Change[MCISpec]{Expect: mci.Revision})
	if err != nil {
		return "", err
	}
	if err := s.order(ctx, &now, "continue", queue.NoPreempt); err != nil {
		return "", err
	}
	return "Continue the holding MCI", nil
}

// withdraw takes a creation back. First of all it says so, so that nobody can say
// continue while what was prepared goes, and so that who finds the MCI half
// withdrawn goes on.
func (s *System) withdraw(ctx context.Context, mci *mciRecord) (string, error) {
	const done = "Withdraw the holding MCI"
	now := *mci
	if !withdrawn(mci) {
		if !onHold(mci) {
			return "", notHeld(mci)
		}
		var err error
		if now, err = s.mcis.Fire(ctx, mci.ID, Release, User, &lifecycle.Change[MCISpec]{
			Force: true, Expect: mci.Revision, Edit: func(m *MCISpec) error { m.Withdrawn = true; return nil },
		}); err != nil {
			return "", err
		}
	}
	if err := s.takeBack(ctx, &now); err != nil {
		return done, fmt.Errorf("tumblebug: the MCI is withdrawn, but %w", err)
	}
	return done, nil
}

// takeBack is the rest of withdraw, which several processes may do at once.
func (s *System) takeBack(ctx context.Context, mci *mciRecord) error {
	if err := s.release(ctx, mci); err != nil {
		return err // it is tried again, until the MCI is over its deadline
	}
	_, err := s.mcis.Fire(ctx, mci.ID, Withdraw, User, &lifecycle.Change[MCISpec]{Expect: mci.Revision})
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	return err
}

// refineMci removes the VMs that are Failed or Undefined, after a look at those
// of which nobody knew. What only this look could not see is not removed: whoever
// asked for it has not seen that.
func (s *System) refineMci(ctx context.Context, mci *mciRecord, vms []vmRecord, force bool) (string, error) {
	if len(vms) == 0 {
		return "No VM in the MCI", nil
	}
	asked := map[string]bool{}
	for i := range vms {
		asked[vms[i].ID] = refinable(vms[i].State)
	}
	vms, err := s.refresh(ctx, vms)
	if err != nil {
		return "", err
	}
	var require []lifecycle.Precondition
	if !force {
		require = append(require, s.mcis.Require(mci.ID, resting...))
	}
	vms = slices.DeleteFunc(vms, func(vm vmRecord) bool { return !asked[vm.ID] || !refinable(vm.State) })
	if err = s.remove(ctx, vms, require...); err != nil {
		return "", err
	}
	if _, _, err := s.follow(ctx, mci.ID); err != nil {
		return "", err
	}
	return "Refined the MCI", nil
}

// refinable reports whether the document's refine removes a VM in this status.
func refinable(s State) bool { return s == Failed || s == Undefined }

// remove removes VMs, as far as they are still what they were.
func (s *System) remove(ctx context.Context, vms []vmRecord, require ...lifecycle.Precondition) error {
	for _, vm := range vms {
		_, err := s.vms.Fire(ctx, vm.ID, removal(&vm), User, &lifecycle.Change[VMSpec]{
			Force: true, Expect: vm.Revision, Require: require,
		})
		// Else somebody does something about it, or has removed it.
		if err != nil && !errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
	}
	return nil
}

// DelMci removes an MCI that is Terminated or Failed, with its VMs and what they
// shared, so that its name is free again. VMs that may still run at a provider
// keep it from that: terminate them first, or refine the MCI.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrNotFound]; [fsm.ErrNotAllowed] for
// an MCI or a VM in another state; those of the store and of the provider. The MCI
// is still there then, and the request may be repeated.
func (s *System) DelMci(ctx context.Context, nsID, mciID string) error {
	if err := checkNames(nsID, mciID); err != nil {
		return err
	}
	mci, vms, err := s.follow(ctx, mciKey(nsID, mciID))
	if err != nil {
		return err
	}
	if err := idle(&mci); err != nil {
		return err
	}
	if mci.State != Terminated && mci.State != Failed {
		return fmt.Errorf("%w: the MCI is %s", fsm.ErrNotAllowed, mci.State)
	}
	for _, vm := range vms {
		if vm.State != Terminated {
			return fmt.Errorf("%w: VM %s is %s", fsm.ErrNotAllowed, last(vm.ID), vm.State)
		}
	}
	if err := s.release(ctx, &mci); err != nil {
		return err
	}
	if err := s.remove(ctx, vms); err != nil {
		return err
	}
	_, err = s.mcis.Fire(ctx, mci.ID, Remove, User, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Force: true})
	return err
}

// follow brings an MCI at rest to the status that it has because of its VMs, and
// returns it with them. It looks again after it has written: of several who
// follow at once, the last to write is the last to look.
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
		now, ok := settled(states(vms))
		if !ok || now == mci.State || !atRest(mci.State) {
			return mci, vms, nil
		}
		_, err = s.mcis.Fire(ctx, id, seen[now], Observer, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Force: true})
		switch {
		case errors.Is(err, fsm.ErrNotAllowed):
			return mci, vms, nil // what is Terminated stays so
		case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrNotFound):
		case err != nil:
			return mci, nil, err
		}
	}
}
