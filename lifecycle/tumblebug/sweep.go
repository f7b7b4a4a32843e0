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
	err = errors.Join(err, s.givenUp(ctx, more))
	if cases = append(cases, more...); err != nil {
		return cases, err
	}
	if err := s.orphans(ctx); err != nil {
		return cases, err
	}
	for mci, err := range s.mcis.All(ctx, lifecycle.Select[State]{States: moving(MCI), UnchangedFor: unchanged}) {
		if err == nil && !onHold(&mci) {
			err = s.order(ctx, &mci, "go on", queue.NoPreempt)
		}
		if err != nil {
			return cases, err
		}
	}
	return cases, nil
}

// givenUp releases what was prepared for the MCIs that a sweep gave up, which it does
// first: whoever prepares one elsewhere is slow, perhaps, and may be done with it
// until then. What is left behind here, for an error or because this process dies,
// goes when the MCI is deleted.
func (s *System) givenUp(ctx context.Context, cases []lifecycle.Case) (err error) {
	for _, c := range cases {
		if c.Remedy != lifecycle.Moved || c.Event != string(TimedOut) || c.From != string(Preparing) && c.From != string(Prepared) {
			continue
		}
		mci, failed := s.mcis.Get(ctx, c.ID)
		switch {
		case failed == nil && mci.Operation == c.Operation:
			err = errors.Join(err, s.release(ctx, &mci))
		case !errors.Is(failed, lifecycle.ErrNotFound):
			err = errors.Join(err, failed)
		}
	}
	return err
}

// orphans goes on with the VMs that this process was told to do something about
// and does not: its store never said whether it had admitted that.
func (s *System) orphans(ctx context.Context) error {
	if s.owner == nil {
		return nil // nobody knows whose they are
	}
	for vm, err := range s.vms.All(ctx, lifecycle.Select[State]{States: moving(VM), UnchangedFor: patience}) {
		if err != nil {
			return err
		}
		key := lifecycle.Key{Machine: VM.Name(), ID: vm.ID}
		if vm.Owner != s.owner.Name() || vm.Epoch != s.owner.Epoch() || len(s.queue.Inspect(key)) > 0 {
			continue
		}
		// Work leaves the queue after it has written how it ended. So if it has
		// ended since the VM was listed, that is seen now.
		now, err := s.vms.Get(ctx, vm.ID)
		if errors.Is(err, lifecycle.ErrNotFound) || err == nil && (now.Operation != vm.Operation || atRest(now.State)) {
			continue
		}
		if err != nil {
			return err
		}
		e, by, err := s.pursue(ctx, &now, now.Deadline)
		if err == nil && e != "" {
			_, err = s.vms.Report(ctx, now.ID, now.Operation, e, by, "")
		}
		if err != nil && !errors.Is(err, errUnderWay) {
			return err
		}
	}
	return nil
}

// moving are the states of a machine in which somebody owes a move.
func moving[T any](m *fsm.Machine[State, Event, T]) (list []State) {
	for st := range m.States() {
		if m.Kind(st) == fsm.Transitional {
			list = append(list, st)
		}
	}
	return list
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
	return s.pursue(ctx, &vm, stuck.Deadline)
}

// pursue looks at a VM at which nobody is at work, and until its deadline asks
// its provider once more for what it was to do.
func (s *System) pursue(ctx context.Context, vm *vmRecord, deadline time.Time) (Event, fsm.Actor, error) {
	action, _ := Doing(vm.State)
	ref := refOf(vm)
	said, answered := s.ask(ctx, ref, action)
	if ctx.Err() != nil {
		return "", "", lifecycle.Ended(ctx)
	}
	v := s.weigh(vm.ID, vm.Operation, action, said, answered)
	if v == pending && time.Now().Before(deadline) {
		// Who was to ask may never have done so.
		if !s.begun(vm.ID, vm.Operation) {
			if _, stray, err := s.subject(ctx, vm.ID); err != nil {
				return "", "", err
			} else if stray || errors.Is(s.begin(ctx, ref, vm.ID, action), ErrRejected) {
				return Fail, CSP, nil
			}
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
	if withdrawn(&mci) {
		return Withdraw, User, s.release(ctx, &mci)
	}
	return "", "", nil
}
