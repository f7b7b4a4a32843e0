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

// CreateMci begins to make an MCI: first what its VMs share, then the VMs, or
// with Hold only the first until somebody says continue. It returns as soon as the
// MCI is Preparing.
//
// If something that they share cannot be made, what was made is released, and the
// MCI is Failed. Of VMs that fail, Policy says what becomes of the MCI.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrExists], those of the store.
// Nothing is there then.
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

// prepare makes what the VMs of an MCI share, and says that it is there, or that
// it cannot be made.
//
// Several processes may do so at once, because nobody knows whether one that is
// slow is dead. The bad schedule: one has made everything, and VMs are in it; the
// other one, for which it took too long, fails and releases it. Therefore nothing
// is released before the record says that it will be, and nobody says that all is
// there about another record than the one he began with.
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

// giveUp releases what was prepared of an MCI that cannot be, and says so.
func (s *System) giveUp(ctx context.Context, mci *mciRecord) error {
	why := reason(errors.New(mci.Reason), s.release(ctx, mci))
	_, err := s.mcis.Fire(ctx, mci.ID, Fail, Tumblebug, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Reason: why})
	return s.late(ctx, mci, err)
}

// late is the end of a preparation. If the MCI was moved by somebody else meanwhile,
// by the sweeper or by force, and nobody will make anything of it, what was made last
// is released here: whoever gave it up may have looked before.
func (s *System) late(ctx context.Context, mci *mciRecord, err error) error {
	if err == nil && ctx.Err() == nil {
		return nil
	}
	// Who has interrupted it by force releases what there was then, in this process
	// when its turn comes. If this process stood still, that may be long ago.
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

// moved reports whether a commit failed because somebody else has moved the object.
func moved(err error) bool {
	return (errors.Is(err, lifecycle.ErrConflict) || refused(err)) && !errors.Is(err, lifecycle.ErrUnknownOutcome)
}

// insist asks a few times for what must not be left to others, who may know nothing of
// it: no record tells of what was prepared for an MCI that is gone.
func (s *System) insist(ctx context.Context, f func() error) error {
	err := f()
	for n := 1; n < 5 && err != nil && !moved(err) && s.pause(ctx) == nil; n++ {
		err = f()
	}
	return err
}

// tell reports how a step of an operation ended.
func (s *System) tell(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor, why string) error {
	_, err := s.mcis.Report(ctx, mci.ID, mci.Operation, e, by, why)
	return err
}

// release gives back what the VMs of an MCI share, the last first, and as much of
// it as can be.
func (s *System) release(ctx context.Context, mci *mciRecord) error {
	var errs []error
	for _, r := range slices.Backward(resources(mci)) {
		if err := s.provider.Release(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("left behind: %s in %s %s: %w", r.Kind, r.Provider, r.Region, err))
		}
	}
	return errors.Join(errs...)
}

// reason is what a record says of errors.
func reason(errs ...error) string {
	if err := errors.Join(errs...); err != nil {
		return shortened(err.Error())
	}
	return ""
}

// provision makes the VMs of an MCI that are not there, and waits until all rest.
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
			// Another process that goes on with the MCI may have been faster.
			if err != nil && !refused(err) {
				return err
			}
		}
	}
	return s.awaitRest(ctx, ids)
}

// created says how a creation ended, of which all VMs rest. It returns true if
// there is something left to do first.
func (s *System) created(ctx context.Context, mci *mciRecord, vms []vmRecord) (bool, error) {
	var made, bad, unknown []vmRecord
	for _, vm := range vms {
		switch {
		case vm.State == Failed || vm.State == Terminated:
			bad = append(bad, vm)
		case vm.State == Undefined && vm.Event != string(SeeNothing):
			bad = append(bad, vm)
			unknown = append(unknown, vm)
		default: // also what could not be seen since: that its provider was silent is no failure
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
		// The provider may have answered since: what is there is not forgotten.
		now, err := s.refresh(ctx, unknown)
		if err != nil || slices.ContainsFunc(now, func(vm vmRecord) bool { return vm.State != Undefined }) {
			return true, err
		}
	}
	switch policy := mci.Payload.Policy; {
	case len(bad) > 0 && policy == Rollback:
		return s.rollBack(ctx, mci, append(made, unknown...), bad, why)
	case len(bad) > 0 && policy == RefineFailed && len(made) > 0:
		// Somebody else has terminated one: the document refines no such VMs.
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

// rollBack terminates what may run of a creation, and when that is done removes
// all but what could not be terminated. It returns true if there is something to wait for.
func (s *System) rollBack(ctx context.Context, mci *mciRecord, alive, bad []vmRecord, why string) (bool, error) {
	again := false
	for _, vm := range alive {
		_, err := s.vms.Do(ctx, vm.ID, Terminate, User, s.workOf(&vm), &lifecycle.Change[VMSpec]{
			Force: vm.State == Undefined, Expect: vm.Revision, Reason: "rolled back",
			// What fails from now on is there, and is not forgotten.
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
		// Nothing uses any more what they shared.
		if err := s.release(ctx, mci); err != nil {
			why += "\n" + err.Error()
		}
	} else {
		why += " but for what could not be terminated"
	}
	return false, s.conclude(ctx, mci, Fail, Aggregate, why, gone)
}

// conclude writes how the operation of an MCI ended, and removes these VMs in the
// same commit: whoever sees the one sees the other.
func (s *System) conclude(ctx context.Context, mci *mciRecord, e Event, by fsm.Actor, why string, remove []vmRecord) error {
	if len(remove) == 0 {
		return s.tell(ctx, mci, e, by, why)
	}
	parts := []lifecycle.AnyPart{s.mcis.Firing(mci.ID, e, by, &lifecycle.Change[MCISpec]{Expect: mci.Revision, Reason: shortened(why)})}
	for _, vm := range remove {
		parts = append(parts, s.vms.Firing(vm.ID, removal(&vm), User, &lifecycle.Change[VMSpec]{Expect: vm.Revision, Force: true}))
	}
	err := lifecycle.Together(ctx, parts...)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// The store has no such commit: the MCI first, so that nobody who goes on
	// with the creation makes again what was removed.
	if err = s.tell(ctx, mci, e, by, why); err == nil {
		err = s.remove(ctx, remove)
	}
	return err
}

// removal is the event that removes a VM: the document's, where that has one.
func removal(vm *vmRecord) Event {
	if vm.State == Terminated {
		return Remove
	}
	return Refine
}
