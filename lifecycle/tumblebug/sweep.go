package tumblebug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// patience is how long an operation of an MCI may not move until a sweep continues it,
// because its process may have died.
const patience = time.Minute

// The reasons why a sweep does not move an object.
var (
	errRunning   = errors.New("tumblebug: its action is running")
	errTakenOver = errors.New("tumblebug: this process continues its action")
	errWaits     = errors.New("tumblebug: it waits for its turn")
	errHeld      = errors.New("tumblebug: it is on hold until continue or withdraw")
)

// Sweep looks once at everything that is stuck. It requests the status of VMs that are
// past their deadline or whose process has died. In the latter case the VM waits for a turn
// in this process, under the limits of its provider, in which the action is requested
// again. The provider's answer decides; without a sufficient answer until the deadline,
// the VM is Undefined. Sweep continues the operations of MCIs that have not
// moved for a minute, and releases the resources of those that it moves to Failed. It
// returns the results of [lifecycle.Manager.Sweep]; the error is that of the store or of
// the context. It keeps Sweep from no other object; the next sweep tries again.
// [lifecycle.Run] sweeps at an interval.
func (s *System) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	return s.sweep(ctx, patience)
}

// Recover is for the start of a process: it is [System.Sweep], and continues the
// operations of all MCIs at once. Without an owner it finds the VMs of dead
// processes by their deadlines only.
func (s *System) Recover(ctx context.Context) ([]lifecycle.SweepResult, error) {
	return s.sweep(ctx, 0)
}

// sweep continues the operations of MCIs that have not moved for this long.
func (s *System) sweep(ctx context.Context, unchanged time.Duration) ([]lifecycle.SweepResult, error) {
	results, err := s.vms.Sweep(ctx)
	ended, failed := s.mcis.Sweep(ctx)
	errs := []error{err, failed}
	for _, r := range ended {
		if r.Resolution == lifecycle.Moved { // to Failed; its resources are released
			errs = append(errs, s.submit(ctx, r.ID, queue.Action{Name: "sweep", ID: r.ID}))
		}
	}
	for mci, err := range s.mcis.All(ctx, lifecycle.Select[State]{States: transitional, UnchangedFor: unchanged}) {
		if err == nil && !onHold(&mci) {
			err = s.submit(ctx, mci.ID, queue.Action{Name: "sweep", ID: mci.ID}) // one at a time
		}
		errs = append(errs, err)
	}
	return append(results, ended...), errors.Join(errs...)
}

// observeVM returns the event for a VM that is stuck. Until its deadline this process takes
// it over, because the process that died may not have requested its action.
func (s *System) observeVM(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	vm, err := s.subject(ctx, stuck.ID)
	switch {
	case errors.Is(err, errStray):
		return Fail, CSP, nil
	case err != nil:
		return "", "", err
	case vm.Revision != stuck.Revision: // it has moved meanwhile
		return "", "", errRunning
	case s.hasTurn(&vm):
		return "", "", errWaits
	}
	event, _ := s.look(ctx, &vm, &evidence{})
	switch {
	case event != "":
		return event, CSP, nil
	case vm.Deadline.IsZero() || time.Now().Before(vm.Deadline):
		return "", "", s.takeOver(ctx, &vm)
	}
	return "", "", nil // the deadline row of the table: the outcome is unknown
}

// hasTurn reports whether an operation waits for its turn in this process, or has had it
// for less than its time. It is for a system without an owner: the record shows no wait
// there, and the bad schedule is a sweep that finds it overdue before the commit of the new
// deadline with which its turn begins.
func (s *System) hasTurn(vm *vmRecord) bool {
	timeout, _ := s.vms.Machine().Table().Timeout(VM.StateIndex(vm.State), VM.StateIndex(vm.Origin))
	inTime := func(i queue.Info[lifecycle.Key]) bool {
		return i.State == queue.Waiting || time.Since(i.Started) < timeout
	}
	return s.owner == nil && slices.ContainsFunc(s.queue.Inspect(lifecycle.Key{Machine: VM.Name(), ID: vm.ID}), inTime)
}

// takeOver starts the action of a VM, whose process has died, again in this process. It
// waits for its turn like every action, and its request to the provider is that of the
// operation before it. The error is the reason why the sweep does not move the VM.
func (s *System) takeOver(ctx context.Context, vm *vmRecord) error {
	continues := refOf(vm).Operation
	_, err := s.vms.Do(ctx, vm.ID, TakeOver, Observer, s.work(&vm.Payload, false), &vmChange{
		Reason: fmt.Sprintf("owner %q of epoch %d does not continue operation %d", vm.Owner, vm.Epoch, vm.Operation),
		Expect: vm.Revision, Edit: func(p *VMSpec) error { p.Continues = continues; return nil },
	})
	return cmp.Or(err, errTakenOver)
}

// observeMCI returns the event for an MCI that is past its deadline. An MCI ends by
// its VMs, which have deadlines of their own; only an MCI without VMs fails by its own
// deadline.
func (s *System) observeMCI(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	mci, err := s.mcis.Get(ctx, stuck.ID)
	switch {
	case err != nil:
		return "", "", err
	case onHold(&mci):
		return "", "", errHeld
	case mci.State != Preparing && mci.State != Prepared:
		return "", "", errRunning
	}
	return "", "", nil
}
