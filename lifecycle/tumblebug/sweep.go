package tumblebug

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
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
// moved for a minute. It returns the results of [lifecycle.Manager.Sweep]; the error is
// that of the store, of the context, or of a resource that is not released. It keeps
// Sweep from no other object; the next sweep tries again.
func (s *System) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	return s.sweep(ctx, patience)
}

// Recover is for the start of a process: it is [System.Sweep], and continues the
// operations of all MCIs at once. Without an owner it finds the VMs of dead
// processes by their deadlines only.
func (s *System) Recover(ctx context.Context) ([]lifecycle.SweepResult, error) {
	return s.sweep(ctx, 0)
}

// Run sweeps until ctx ends, and then returns nil. The function report, if it is not
// nil, receives the results and the error of each sweep. After an error the next sweep
// tries again. An interval of 0 is 10 seconds; a negative one is
// [lifecycle.ErrInvalid]. Run starts no goroutine. See [lifecycle.Run].
func (s *System) Run(ctx context.Context, every time.Duration, report func([]lifecycle.SweepResult, error)) error {
	return lifecycle.Run(ctx, every, report, s)
}

// sweep continues the operations of MCIs that have not moved for this long.
func (s *System) sweep(ctx context.Context, unchanged time.Duration) ([]lifecycle.SweepResult, error) {
	results, err := s.vms.Sweep(ctx)
	ended, failed := s.mcis.Sweep(ctx)
	results = append(results, ended...)
	errs := []error{err, failed, s.releaseFailed(ctx, ended), s.adopt(ctx)}
	waiting := lifecycle.Select[State]{States: transitional(MCI.StateIndex), UnchangedFor: unchanged}
	for mci, err := range s.mcis.All(ctx, waiting) {
		if err == nil && !onHold(&mci) {
			err = s.order(ctx, &mci)
		}
		errs = append(errs, err)
	}
	return results, errors.Join(errs...)
}

// releaseFailed releases the resources of the MCIs that a sweep has moved to Failed. The
// sweep moves them first, because a slow process may still prepare them. Resources that
// remain after an error are released with the MCI, see [System.DelMci].
func (s *System) releaseFailed(ctx context.Context, results []lifecycle.SweepResult) (err error) {
	for _, r := range results {
		if r.Resolution != lifecycle.Moved || r.To != string(Failed) {
			continue
		}
		mci, failed := s.mcis.Get(ctx, r.ID)
		if failed == nil && mci.Operation == r.Operation {
			failed = s.release(ctx, &mci)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// adopt observes the VMs of this process that have no work in its queue: the store has
// not answered whether it had admitted their operations.
func (s *System) adopt(ctx context.Context) error {
	if s.owner == nil {
		return nil // the records do not name their process
	}
	var errs []error
	for vm, err := range s.vms.All(ctx, lifecycle.Select[State]{States: transitional(VM.StateIndex), UnchangedFor: patience}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		work := s.queue.Inspect(lifecycle.Key{Machine: VM.Name(), ID: vm.ID})
		if vm.Owner != s.owner.Name() || vm.Epoch != s.owner.Epoch() || len(work) > 0 {
			continue
		}
		e, by, err := s.observe(ctx, vm.ID, vm.Operation, vm.Deadline)
		if err == nil && e != "" {
			_, err = s.vms.Report(ctx, vm.ID, vm.Operation, e, by, nil)
		}
		if err != nil && !errors.Is(err, errRunning) && !errors.Is(err, errTakenOver) && !errors.Is(err, lifecycle.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// observeVM returns the event for a VM that is stuck.
func (s *System) observeVM(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	if s.waits(stuck.Key, stuck.Operation) {
		return "", "", errWaits
	}
	return s.observe(ctx, stuck.ID, stuck.Operation, stuck.Deadline)
}

// observe looks at a VM without work. Until the deadline it takes the VM over, because
// the process that died may not have requested its action.
func (s *System) observe(
	ctx context.Context, id string, operation lifecycle.OpID, deadline time.Time,
) (Event, fsm.Actor, error) {
	vm, err := s.subject(ctx, id)
	switch {
	case errors.Is(err, errStray):
		return Fail, CSP, nil
	case err != nil:
		return "", "", err
	case vm.Operation != operation || !restless(vm):
		return "", "", errRunning // it has moved meanwhile
	}
	v, _ := s.look(ctx, &vm)
	if ctx.Err() != nil {
		return "", "", lifecycle.Ended(ctx)
	}
	if v == pending && !s.overdue(&vm, deadline) {
		return "", "", s.takeOver(ctx, &vm)
	}
	s.forget(vm.ID, vm.Operation)
	s.endTurn(vm.ID, vm.Operation)
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
		return "", "", errRunning
	}
	return "", "", nil
}
