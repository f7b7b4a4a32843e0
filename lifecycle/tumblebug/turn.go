package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// handler is the name of the work of VMs.
const handler = "provider"

// perform is the work of an operation of a VM: it requests the action from the provider
// and then the status, until the action has ended. It ends with its context, at the
// deadline of the VM.
func (s *System) perform(ctx context.Context, _ []byte) error {
	t := lifecycle.TaskOf(ctx)
	vm, err := s.beginTurn(ctx, t)
	for ; err != nil; vm, err = s.beginTurn(ctx, t) {
		if errors.Is(err, lifecycle.ErrStale) || errors.Is(err, errStray) {
			return err
		}
		// The store is out of reach. Without a request to the provider nothing has failed.
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
	accepted := s.requestAction(ctx, &vm)
	if errors.Is(accepted, ErrRejected) {
		return accepted
	}
	action, _ := Doing(vm.State)
	seen := evidence{accepted: accepted == nil}
	for {
		switch event, shown := s.look(ctx, &vm, &seen); event {
		case Succeed:
			return nil
		case Fail:
			return errors.Join(fmt.Errorf("tumblebug: %s failed: the provider shows the VM as %s", action, shown), accepted)
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// beginTurn returns the VM of an operation whose turn has come.
func (s *System) beginTurn(ctx context.Context, t *lifecycle.Task) (vmRecord, error) {
	if s.owner == nil { // with one, the manager sets the deadline before the work begins
		if err := t.Heartbeat(ctx); err != nil {
			return vmRecord{}, err
		}
	}
	vm, err := s.subject(ctx, t.ID)
	if err == nil && vm.Operation != t.Operation {
		err = lifecycle.ErrStale
	}
	return vm, err
}

// subject returns a VM for a request to its provider. The error is errStray for a VM
// that must not be created.
//
// The bad schedule: a process that creates the VMs of an MCI stalls; the MCI is
// terminated and deleted, and another one of its name is created; the process continues
// while that one is Creating too.
func (s *System) subject(ctx context.Context, id string) (vmRecord, error) {
	vm, err := s.vms.Get(ctx, id)
	if err != nil || vm.State != Creating {
		return vm, err
	}
	mci, err := s.mcis.Get(ctx, path.Dir(id))
	if errors.Is(err, lifecycle.ErrNotFound) || err == nil && mci.Payload.Life != vm.Payload.Life {
		return vm, errStray
	}
	return vm, err
}

// errStray is the outcome of a VM whose MCI is gone.
var errStray = errors.New("tumblebug: its MCI is gone")

// pause waits for the time of the next look.
func (s *System) pause(ctx context.Context) error {
	select {
	case <-time.After(s.poll):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// requestAction requests the action of a VM from its provider. A provider that has no such VM
// counts as one that accepts: otherwise a VM that is gone stays in its action until the
// deadline.
func (s *System) requestAction(ctx context.Context, vm *vmRecord) error {
	action, _ := Doing(vm.State)
	if action == ActionCreate {
		return s.provider.Create(ctx, refOf(vm))
	}
	err := s.provider.Control(ctx, refOf(vm), action)
	if errors.Is(err, ErrNoVM) {
		return nil
	}
	return err
}
