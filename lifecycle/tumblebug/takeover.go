package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// takeOver submits the operation of a VM, whose process has died, to the queue of this
// process, unless a sweep has submitted it already. The error is the reason why the sweep
// does not move the VM. The VM fails if its provider rejects the action, or panics.
func (s *System) takeOver(ctx context.Context, vm *vmRecord) error {
	id, operation := vm.ID, vm.Operation
	name := fmt.Sprintf("take over operation %d", operation)
	_, err := s.shared.Submit(ctx, lifecycle.Key{Machine: VM.Name(), ID: id}, &queue.Action{
		Name: name, ID: id + " " + name, Class: s.class(&vm.Payload), Timeout: s.timeout(vm),
		Run: func(ctx context.Context) error { return s.continueVM(ctx, id, operation) },
		Settle: func(ctx context.Context, outcome queue.Outcome, err error) {
			if outcome == queue.Panicked || errors.Is(err, ErrRejected) {
				// If the report fails, the next sweep takes the VM over again.
				_, _ = s.vms.Report(ctx, id, operation, Fail, CSP, &lifecycle.Change[VMSpec]{Reason: reason(err)})
			} else if outcome == queue.Failed || outcome == queue.TimedOut {
				return // the operation goes on, and so does its time
			}
			s.forget(id, operation)
			s.endTurn(id, operation)
		},
	})
	if err != nil {
		return err
	}
	return errTakenOver
}

// continueVM is the turn of a VM that was taken over. It requests the action until the
// provider has accepted it, and then the status until the VM has moved. After an error
// of the store, the next sweep takes the VM over again.
func (s *System) continueVM(ctx context.Context, id string, operation lifecycle.OpID) error {
	for {
		vm, err := s.subject(ctx, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return nil
		case err != nil:
			return err
		case vm.Operation != operation || !restless(vm):
			return nil
		}
		s.noteTurn(id, operation)
		if !s.begun(&vm) {
			if err := s.begin(ctx, &vm); errors.Is(err, ErrRejected) {
				return err
			}
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
		if _, err := s.update(ctx, &vm); err != nil {
			return err
		}
	}
}

// overdue reports whether the deadline of a VM has passed. The VM of a process that has
// died before its turn has no deadline until its turn in this process begins.
func (s *System) overdue(vm *vmRecord, deadline time.Time) bool {
	if deadline.IsZero() {
		s.mu.Lock()
		turn := s.turns[vm.ID]
		s.mu.Unlock()
		if turn.operation != vm.Operation {
			return false
		}
		deadline = turn.began.Add(s.timeout(vm))
	}
	return !time.Now().Before(deadline)
}

// timeout returns the time that the present action of a VM may take.
func (s *System) timeout(vm *vmRecord) time.Duration {
	timeout, _ := s.machine.Table().Deadline(VM.StateIndex(vm.State), VM.StateIndex(vm.Origin))
	return timeout
}
