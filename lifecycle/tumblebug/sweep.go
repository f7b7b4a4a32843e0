package tumblebug

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// patience is how long an operation of an MCI may not move until a sweep continues it,
// because its process may have died.
const patience = time.Minute

// Why a sweep leaves an object alone.
var (
	errUnderWay = errors.New("tumblebug: it is under way")
	errWaits    = errors.New("tumblebug: it waits for its turn")
	errHeld     = errors.New("tumblebug: it is on hold until continue or withdraw")
)

// Sweep looks once at everything that is stuck. It asks the provider about VMs that
// are past their deadline or whose process has died, and in the latter case requests
// the action again. The provider's answer decides; without a sufficient answer until
// the deadline, the VM is Undefined. Sweep continues the operations of MCIs that have
// not moved for a minute. It returns the results of [lifecycle.Manager.Sweep]; the
// error is the store's or the context's.
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
	if err != nil {
		return results, err
	}
	more, err := s.mcis.Sweep(ctx)
	err = errors.Join(err, s.givenUp(ctx, more))
	if results = append(results, more...); err != nil {
		return results, err
	}
	if err := s.orphans(ctx); err != nil {
		return results, err
	}
	for mci, err := range s.mcis.All(ctx, lifecycle.Select[State]{States: moving(MCI), UnchangedFor: unchanged}) {
		if err == nil && !onHold(&mci) {
			err = s.order(ctx, &mci, "go on", queue.NoPreempt)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// givenUp releases the resources of the MCIs that a sweep has failed. The sweep fails
// them first, because a slow process may still prepare them. Resources that remain
// after an error, or because this process dies, are released with the MCI.
func (s *System) givenUp(ctx context.Context, results []lifecycle.SweepResult) (err error) {
	for _, c := range results {
		if c.Resolution != lifecycle.Moved || c.Event != string(TimedOut) || c.From != string(Preparing) && c.From != string(Prepared) {
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

// orphans continues the operations of VMs that this process owns and does not work
// on: the store has not answered whether it had admitted them.
func (s *System) orphans(ctx context.Context) error {
	if s.owner == nil {
		return nil // the records do not name their process
	}
	for vm, err := range s.vms.All(ctx, lifecycle.Select[State]{States: moving(VM), UnchangedFor: patience}) {
		if err != nil {
			return err
		}
		key := lifecycle.Key{Machine: VM.Name(), ID: vm.ID}
		if vm.Owner != s.owner.Name() || vm.Epoch != s.owner.Epoch() || len(s.queue.Inspect(key)) > 0 {
			continue
		}
		// Work leaves the queue after its outcome is written. So if it has ended
		// since the VM was listed, the record shows it now.
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

// moving returns the transitional states of a machine.
func moving[T any](m *fsm.Machine[State, Event, T]) (list []State) {
	for st := range m.States() {
		if m.Kind(st) == fsm.Transitional {
			list = append(list, st)
		}
	}
	return list
}

// Run sweeps until ctx ends, and then returns nil. The function report, if it is not
// nil, receives the results and the error of each sweep. After an error the next sweep
// tries again. An interval of 0 is 10 seconds; a negative one is
// [lifecycle.ErrInvalid]. Run starts no goroutine. See [lifecycle.Run].
func (s *System) Run(ctx context.Context, every time.Duration, report func([]lifecycle.SweepResult, error)) error {
	return lifecycle.Run(ctx, every, report, s)
}

// observeVM returns the event for a VM that is stuck.
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

// pursue looks at a VM that no process works on, and requests its action from the
// provider again until the deadline.
func (s *System) pursue(ctx context.Context, vm *vmRecord, deadline time.Time) (Event, fsm.Actor, error) {
	action, _ := Doing(vm.State)
	ref := refOf(vm)
	said, answered := s.ask(ctx, ref, action)
	if ctx.Err() != nil {
		return "", "", lifecycle.Ended(ctx)
	}
	v := s.weigh(vm.ID, vm.Operation, action, said, answered)
	if v == pending && time.Now().Before(deadline) {
		// The process that died may not have requested the action.
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
	return "", "", nil // the deadline row of the table: the outcome is unknown
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
		return "", "", errUnderWay
	}
	if withdrawn(&mci) {
		return Withdraw, User, s.release(ctx, &mci)
	}
	return "", "", nil
}
