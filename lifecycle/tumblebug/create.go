package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// CreateMci starts the creation of an MCI: first the resources that its VMs share, then
// the VMs. With Hold, the VMs wait for continue. CreateMci returns as soon as the MCI
// is Preparing.
//
// If a resource cannot be created, the MCI is Failed, and all of them are released. The
// MCI is Running if some of its VMs are, and Failed if all have failed.
//
// Errors: [lifecycle.ErrInvalid], also for Attributes that are not JSON;
// [lifecycle.ErrExists]; [queue.ErrTerminated] after [System.Close]; those of the store.
// Nothing is created then.
func (s *System) CreateMci(ctx context.Context, nsID string, req MciReq) (MciStatus, error) {
	if err := req.check(); err != nil {
		return MciStatus{}, err
	}
	if err := s.checkRequest("namespace", nsID); err != nil {
		return MciStatus{}, err
	}
	id := mciKey(nsID, req.Name)
	var mci mciRecord
	err := s.submit(ctx, id, queue.Action{Name: "create", Admit: func(ctx context.Context) (err error) {
		mci, err = s.mcis.Add(ctx, id, Preparing, User, MCISpec{MciReq: req, Life: newLife()}, nil)
		return err
	}})
	if err != nil {
		return MciStatus{}, err
	}
	return statusOf(&mci, nil), nil
}

// releaseWithin is how long the store and the provider may take to release the resources of
// an MCI that ended during its preparation. The next action of the MCI waits for it, and
// cannot end it: the context of the preparation may have ended before.
const releaseWithin = time.Minute

// prepare creates the resources that the VMs of an MCI share, and reports success or
// failure. After a failure, [System.advance] releases the resources.
//
// Several processes may prepare at once, because a slow process may be considered dead.
// The bad schedule: one process has created all resources, and VMs use them; the other
// one fails and releases them. Therefore a process releases only after it has read that
// the MCI is Failed without VMs, or has ended otherwise.
func (s *System) prepare(ctx context.Context, mci *mciRecord) error {
	event, why := Succeed, ""
	// A panic of the provider is its failure, as in the work of a VM: nothing else receives it.
	if failed := protect.Call(func() error { return s.prepareAll(ctx, mci) }); failed != nil {
		event, why = Fail, storable.Reason(failed.Error())
	}
	// The store refuses this if the context has ended, which a forced action does.
	_, err := s.mcis.Fire(ctx, mci.ID, event, Tumblebug, &mciChange{Expect: mci.Revision, Reason: why})
	if err != nil && (overtaken(err) || ctx.Err() != nil) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer stop()
		return errors.Join(err, s.releaseEnded(ctx, mci))
	}
	return err
}

// prepareAll creates all resources and validates all groups.
func (s *System) prepareAll(ctx context.Context, mci *mciRecord) error {
	for _, r := range resources(mci) {
		if err := s.provider.Prepare(ctx, r); err != nil {
			return fmt.Errorf("create %s in %s %s: %w", r.Kind, r.Provider, r.Region, err)
		}
	}
	for _, g := range mci.Payload.SubGroups {
		if err := s.provider.Validate(ctx, g); err != nil {
			return fmt.Errorf("validate SubGroup %s: %w", g.Name, err)
		}
	}
	return nil
}

// releaseEnded releases the resources of an MCI that another writer has ended: that writer
// may have released before the last ones were created. A forced action is such a writer.
func (s *System) releaseEnded(ctx context.Context, mci *mciRecord) error {
	now, err := s.mcis.Get(ctx, mci.ID)
	gone := errors.Is(err, lifecycle.ErrNotFound) || err == nil && now.Payload.Life != mci.Payload.Life
	if gone || err == nil && slices.Contains([]State{Failed, Terminating, Terminated}, now.State) {
		return s.release(ctx, mci)
	}
	return err
}

// release releases the resources of an MCI that gets no VM any more, the last one first. If
// VMs use them, their end releases them. After an error release continues with the others.
func (s *System) release(ctx context.Context, mci *mciRecord) error {
	vms, err := s.members(ctx, mci.ID)
	used := func(vm vmRecord) bool { return vm.Payload.Life == mci.Payload.Life && vm.State != Terminated }
	if err != nil || slices.ContainsFunc(vms, used) {
		return err
	}
	var errs []error
	for _, r := range slices.Backward(resources(mci)) {
		if err := protect.Call(func() error { return s.provider.Release(ctx, r) }); err != nil {
			errs = append(errs, fmt.Errorf("release %s in %s %s: %w", r.Kind, r.Provider, r.Region, err))
		}
	}
	return errors.Join(errs...)
}
