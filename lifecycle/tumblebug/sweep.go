package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// patience is how long an operation of an MCI may do nothing until a sweep goes
// on with it: who does it may have died.
const patience = time.Minute

// Why a sweep leaves an object alone.
var (
	errUnderWay = errors.New("tumblebug: it is under way")
	errWaits    = errors.New("tumblebug: it waits for its turn")
	errHeld     = errors.New("tumblebug: it is on hold, until somebody says continue or withdraw")
)

// Sweep looks once after what is stuck. The provider is asked about VMs that are
// over their deadline, or whose process died; in that case it is asked for the
// action once more. What it says decides, and if it does not say enough until the
// deadline, the VM is Undefined. MCIs whose
// operation does nothing are gone on with. It returns the cases of
// [lifecycle.Manager.Sweep]; the error is the store's or the context's.
func (s *System) Sweep(ctx context.Context) ([]lifecycle.Case, error) {
	return s.care(ctx, s.vms.Sweep, s.mcis.Sweep, patience)
}

// Recover is for the start of a process: it does at once what [System.Sweep] does
// about what dead processes have left, and goes on with every MCI. Without an
// owner it cannot tell who is dead, and VMs are left to their deadlines.
func (s *System) Recover(ctx context.Context) ([]lifecycle.Case, error) {
	vms := s.vms.Recover
	if s.owner == nil {
		vms = s.vms.Sweep
	}
	return s.care(ctx, vms, s.mcis.Sweep, 0)
}

type sweep = func(context.Context) ([]lifecycle.Case, error)

func (s *System) care(ctx context.Context, vms, mcis sweep, unchanged time.Duration) ([]lifecycle.Case, error) {
	cases, err := vms(ctx)
	if err != nil {
		return cases, err
	}
	more, err := mcis(ctx)
	if cases = append(cases, more...); err != nil {
		return cases, err
	}
	var moving []State
	for st := range MCI.States() {
		if MCI.Kind(st) == fsm.Transitional {
			moving = append(moving, st)
		}
	}
	for mci, err := range s.mcis.All(ctx, lifecycle.Select[State]{States: moving, UnchangedFor: unchanged}) {
		if err == nil && !onHold(&mci) {
			err = s.order(ctx, &mci, "go on", queue.NoPreempt)
		}
		if err != nil {
			return cases, err
		}
	}
	return cases, nil
}

// Run sweeps until ctx ends, which is no error, once in every interval; 0 is 10
// seconds. It starts no goroutine. Tell gets what each sweep found, if it is not
// nil; a sweep that fails is tried again at the next time.
func (s *System) Run(ctx context.Context, every time.Duration, tell func([]lifecycle.Case, error)) error {
	if every < 0 {
		return fmt.Errorf("%w: every %v", lifecycle.ErrInvalid, every)
	}
	ticker := time.NewTicker(orDefault(every, 10*time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if cases, err := s.Sweep(ctx); tell != nil && ctx.Err() == nil {
			tell(cases, err)
		}
	}
}

// observeVM is asked about a VM that is stuck.
func (s *System) observeVM(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	// Its deadline begins when its turn comes: large MCIs wait for long under
	// the limits of their providers.
	for _, work := range s.queue.Inspect(stuck.Key) {
		if work.State != queue.Running {
			return "", "", errWaits
		}
	}
	vm, err := s.vms.Get(ctx, stuck.ID)
	if err != nil {
		return "", "", err
	}
	action, _ := Doing(vm.State)
	ref := refOf(&vm)
	said := s.ask(ctx, ref)
	if ctx.Err() != nil {
		return "", "", lifecycle.Ended(ctx)
	}
	v := s.weigh(vm.ID, vm.Operation, action, said)
	if v == pending && time.Now().Before(stuck.Deadline) {
		// Its process is dead, and may never have asked.
		if !s.begun(vm.ID, vm.Operation) && errors.Is(s.begin(ctx, ref, vm.ID, action), ErrRejected) {
			return Fail, CSP, nil
		}
		return "", "", errUnderWay
	}
	s.forget(vm.ID, vm.Operation)
	switch v {
	case succeeded:
		return Succeed, CSP, nil
	case failed:
		return Fail, CSP, nil
	case pending:
	}
	return "", "", nil // the row of the table: nobody knows
}

// observeMCI is asked about an MCI that is over its deadline. An MCI ends by its
// VMs, and these have deadlines of their own; only what has none yet is given up.
func (s *System) observeMCI(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	mci, err := s.mcis.Get(ctx, stuck.ID)
	switch {
	case err != nil:
		return "", "", err
	case onHold(&mci):
		return "", "", errHeld
	case mci.State != Preparing && mci.State != Prepared:
		return "", "", errUnderWay
	}
	// Who prepares it here releases what was made when told that it is over.
	if len(s.orders.Inspect(mci.ID)) == 0 {
		return "", "", s.release(ctx, &mci)
	}
	return "", "", nil
}
