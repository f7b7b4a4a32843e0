package tumblebug

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// CreateMci starts the creation of an MCI: first the resources that its VMs share, then
// the VMs. With Hold, the VMs wait for continue. CreateMci returns as soon as the MCI
// is Preparing.
//
// If a resource cannot be created, all of them are released, and the MCI is Failed. If
// VMs fail, Policy decides about the MCI.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrExists], those of the store.
// Nothing is created then.
func (s *System) CreateMci(ctx context.Context, nsID string, req MciReq) (MciStatus, error) {
	if err := checkName("namespace", nsID); err != nil {
		return MciStatus{}, err
	}
	if err := req.check(); err != nil {
		return MciStatus{}, err
	}
	mci, err := s.mcis.Add(ctx, mciKey(nsID, req.Name), User, MCISpec{
		Name: req.Name, Life: strings.ToLower(rand.Text()), Description: req.Description,
		SubGroups: slices.Clone(req.SubGroups), Policy: req.Policy, Hold: req.Hold,
	})
	if err != nil {
		return MciStatus{}, err
	}
	if err := s.order(ctx, &mci, "create", 0); err != nil {
		return MciStatus{}, err
	}
	return statusOf(&mci, nil)
}

// prepare creates the resources that the VMs of an MCI share, and reports success or
// failure.
//
// Several processes may do so at once, because a slow process may be considered dead.
// The bad schedule: one process has created all resources, and VMs use them; the other
// one fails and releases them. Therefore a process records that it will release
// before it releases, and reports success only about the record that it began with.
func (s *System) prepare(ctx context.Context, mci *mciRecord) error {
	if mci.Payload.GivenUp {
		return s.giveUp(ctx, mci)
	}
	var failed error
	for _, r := range resources(mci) {
		if err := s.provider.Prepare(ctx, r); err != nil {
			failed = fmt.Errorf("%s in %s %s: %w", r.Kind, r.Provider, r.Region, err)
			break
		}
	}
	for _, g := range mci.Payload.SubGroups {
		if failed != nil {
			break
		}
		if err := s.provider.Validate(ctx, g); err != nil {
			failed = fmt.Errorf("SubGroup %s: %w", g.Name, err)
		}
	}
	if failed == nil {
		err := s.insist(ctx, func() error {
			_, err := s.mcis.Fire(ctx, mci.ID, Succeed, Tumblebug, &lifecycle.Change[MCISpec]{Expect: mci.Revision})
			return err
		})
		return s.late(ctx, mci, err)
	}
	if ctx.Err() != nil { // by force
		return s.late(ctx, mci, lifecycle.Ended(ctx))
	}
	var now mciRecord
	err := s.insist(ctx, func() (err error) {
		now, err = s.mcis.Fire(ctx, mci.ID, Release, Tumblebug, &lifecycle.Change[MCISpec]{
			Force: true, Expect: mci.Revision, Reason: reason(failed),
			Edit: func(m *MCISpec) error { m.GivenUp = true; return nil },
		})
		return err
	})
	if err != nil {
		return s.late(ctx, mci, err)
	}
	return s.giveUp(ctx, &now)
}

// giveUp releases the resources of an MCI that cannot be prepared, and reports failure.
func (s *System) giveUp(ctx context.Context, mci *mciRecord) error {
	why := reason(errors.New(mci.Reason), s.release(ctx, mci))
	_, err := s.mcis.Fire(ctx, mci.ID, Fail, Tumblebug, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Reason: why})
	return s.late(ctx, mci, err)
}

// late is the end of a preparation. If the sweeper or a forced action has ended the MCI
// meanwhile, late releases the resources that were created last: the writer that ended
// the MCI may have released before they existed.
func (s *System) late(ctx context.Context, mci *mciRecord, err error) error {
	if err == nil && ctx.Err() == nil {
		return nil
	}
	// The forced action releases the resources of its time, in this process when its
	// turn comes. If this process stalled, that may be long ago.
	after, end := context.WithTimeout(context.WithoutCancel(ctx), MCIPrepareTimeout)
	defer end()
	var now mciRecord
	look := func() (err error) {
		now, err = s.mcis.Get(after, mci.ID)
		return err
	}
	failed := look()
	if failed != nil && ctx.Err() == nil {
		failed = s.insist(ctx, look)
	}
	gone := errors.Is(failed, lifecycle.ErrNotFound) || failed == nil && now.Payload.Life != mci.Payload.Life
	if gone || failed == nil && (now.State == Failed || now.State == Terminating || now.State == Terminated) {
		return s.insist(after, func() error { return s.release(after, mci) })
	}
	return err
}

// moved reports whether a commit failed because another writer has moved the object.
func moved(err error) bool {
	return (errors.Is(err, lifecycle.ErrConflict) || refused(err)) && !errors.Is(err, lifecycle.ErrUnknownOutcome)
}

// insist repeats a call a few times that no other process can make up for: no record
// names the resources of an MCI that is gone.
func (s *System) insist(ctx context.Context, f func() error) error {
	err := f()
	for n := 1; n < 5 && err != nil && !moved(err) && s.pause(ctx) == nil; n++ {
		err = f()
	}
	return err
}

// tell reports the outcome of a step of an operation.
func (s *System) tell(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor, why string) error {
	_, err := s.mcis.Report(ctx, mci.ID, mci.Operation, e, by, why)
	return err
}

// release releases the resources of an MCI, the last one first. After an error it
// continues with the others.
func (s *System) release(ctx context.Context, mci *mciRecord) error {
	var errs []error
	for _, r := range slices.Backward(resources(mci)) {
		if err := s.provider.Release(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("left behind: %s in %s %s: %w", r.Kind, r.Provider, r.Region, err))
		}
	}
	return errors.Join(errs...)
}

// reason returns the text of errors for a record.
func reason(errs ...error) string {
	if err := errors.Join(errs...); err != nil {
		return shortened(err.Error())
	}
	return ""
}

// provision creates the missing VMs of an MCI, and waits until all are at rest.
func (s *System) provision(ctx context.Context, mci *mciRecord) error {
	vms, err := s.members(ctx, mci.ID)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, vm := range vms {
		there[vm.ID] = true
	}
	var ids []string
	for i := range mci.Payload.SubGroups {
		g := &mci.Payload.SubGroups[i]
		for _, name := range g.vms() {
			id := mci.ID + "/" + name
			ids = append(ids, id)
			if there[id] {
				continue
			}
			spec := g.spec(mci)
			spec.Asked = mci.Operation
			_, err := s.vms.Do(ctx, id, Create, User, lifecycle.Work{Handler: handler, Class: s.class(&spec)}, &lifecycle.Change[VMSpec]{
				Edit:    func(p *VMSpec) error { *p = spec; return nil },
				Require: []lifecycle.Precondition{s.mcis.Require(mci.ID, Creating)},
			})
			// Another process that continues the MCI may have been faster.
			if err != nil && !refused(err) {
				return err
			}
		}
	}
	return s.awaitRest(ctx, ids)
}

// created reports the outcome of a creation whose VMs are all at rest. It returns true
// if something is left to do first.
func (s *System) created(ctx context.Context, mci *mciRecord, vms []vmRecord) (bool, error) {
	var made, bad, unknown []vmRecord
	for _, vm := range vms {
		switch {
		case vm.State == Failed || vm.State == Terminated:
			bad = append(bad, vm)
		case vm.State == Undefined && vm.Event != string(SeeNothing):
			bad = append(bad, vm)
			unknown = append(unknown, vm)
		default: // also a VM that was created and whose provider has been silent since
			made = append(made, vm)
		}
	}
	why := ""
	if len(bad) > 0 {
		n := 0 // without those that were rolled back
		for _, vm := range bad {
			if vm.State != Terminated {
				n++
			}
		}
		why = fmt.Sprintf("%d of %d VMs failed", n, len(vms))
	}
	var refined []vmRecord
	if len(unknown) > 0 && mci.Payload.Policy == RefineFailed {
		// The provider may answer now: a VM that exists is not refined.
		now, err := s.refresh(ctx, unknown)
		if err != nil || slices.ContainsFunc(now, func(vm vmRecord) bool { return vm.State != Undefined }) {
			return true, err
		}
	}
	switch policy := mci.Payload.Policy; {
	case len(bad) > 0 && policy == Rollback:
		return s.rollBack(ctx, mci, append(made, unknown...), bad, why)
	case len(bad) > 0 && policy == RefineFailed && len(made) > 0:
		// The document does not refine VMs that a user has terminated meanwhile.
		refined = slices.DeleteFunc(bad, func(vm vmRecord) bool { return vm.State == Terminated })
		vms, why = made, why+", and are refined away"
	}
	e, by := Fail, Aggregate
	switch end, _ := Conclude(ActionCreate, states(vms)); end {
	case Running:
		e = Succeed
	case Undefined:
		e, by = TimedOut, fsm.Sweeper
	}
	return false, s.conclude(ctx, mci, e, by, why, refined)
}

// rollBack terminates the VMs of a creation that may run. After that it removes all
// VMs except those that could not be terminated. It returns true if there is something
// to wait for.
func (s *System) rollBack(ctx context.Context, mci *mciRecord, alive, bad []vmRecord, why string) (bool, error) {
	again := false
	for _, vm := range alive {
		_, err := s.vms.Do(ctx, vm.ID, Terminate, User, s.workOf(&vm), &lifecycle.Change[VMSpec]{
			Force: vm.State == Undefined, Expect: vm.Revision, Reason: "rolled back",
			// A VM whose termination fails exists, and is not removed.
			Edit:    func(p *VMSpec) error { p.Asked = 0; return nil },
			Require: []lifecycle.Precondition{s.mcis.Require(mci.ID, Creating)},
		})
		if err != nil && !refused(err) {
			return false, err
		}
		again = true
	}
	if again {
		return true, nil
	}
	gone := slices.DeleteFunc(slices.Clone(bad), func(vm vmRecord) bool {
		return vm.State != Terminated && vm.Payload.Asked != mci.Operation
	})
	if why += ", and the creation is rolled back"; len(gone) == len(bad) {
		// No VM uses the shared resources any more.
		if err := s.release(ctx, mci); err != nil {
			why += "\n" + err.Error()
		}
	} else {
		why += " but for what could not be terminated"
	}
	return false, s.conclude(ctx, mci, Fail, Aggregate, why, gone)
}

// conclude writes the outcome of an operation of an MCI and removes these VMs, in one
// commit if the store supports that.
func (s *System) conclude(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor, why string, remove []vmRecord) error {
	if len(remove) == 0 {
		return s.tell(ctx, mci, e, by, why)
	}
	var tx lifecycle.Tx
	s.mcis.In(&tx).Fire(mci.ID, e, by, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Reason: shortened(why)})
	for _, vm := range remove {
		s.vms.In(&tx).Fire(vm.ID, removal(&vm), User, &lifecycle.Change[VMSpec]{Expect: vm.Revision, Force: true})
	}
	err := tx.Commit(ctx)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// The store has no such commit. The MCI moves first, so that no process that
	// continues the creation creates the removed VMs again.
	if err = s.tell(ctx, mci, e, by, why); err == nil {
		err = s.remove(ctx, remove)
	}
	return err
}

// removal is the event that removes a VM: that of the document, if it has one.
func removal(vm *vmRecord) Event {
	if vm.State == Terminated {
		return Remove
	}
	return Refine
}
