package blazar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Handled is the result for an event that was due.
type Handled struct {
	Due
	// Status of the event: DONE, ERROR, UNDONE if it stays for the next call,
	// IN_PROGRESS if it is not over, or ABSENT if its lease is gone.
	Status EventState
	Err    error // why it is not DONE
}

// Process executes the events that are due, once: it starts and ends leases, and
// calls the plugins before their end. It executes the events in [Batches]. It waits
// for a batch until [Config].Patience is over; the events of the batch go on.
//
// Process leaves an event UNDONE, for the next call, while a method is at work on its
// lease. It leaves a start UNDONE also while another lease, which is over or is being
// deleted, still has the resources. An event that can never be executed (see [Never])
// goes to ERROR.
//
// Several processes may do this on one store: every event is executed once. The
// number of records that Process reads depends on the number of events that are due.
// The first call of a service, and one in an hour, reads all events that are UNDONE.
// The error is the store's or the context's; what was begun until then goes on.
func (s *Service) Process(ctx context.Context) ([]Handled, error) {
	due, err := s.due(ctx)
	if err != nil {
		return nil, err
	}
	var all []Handled
	for _, batch := range Batches(due) {
		handled, err := s.batch(ctx, batch, due)
		all = append(all, handled...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Run sweeps and processes events at the given interval until ctx ends, and then
// returns nil. An interval of 0 is 10 seconds; a negative one is
// [lifecycle.ErrInvalid]. The function report, if it is not nil, receives the results
// of each round. After an error the next round tries again. Run starts no goroutine.
func (s *Service) Run(ctx context.Context, every time.Duration, report func([]Handled, []lifecycle.SweepResult, error)) error {
	if every < 0 {
		return fmt.Errorf("%w: every %v", lifecycle.ErrInvalid, every)
	}
	if every == 0 {
		every = 10 * time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		results, err := s.Sweep(ctx)
		handled, failed := s.Process(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if report != nil {
			report(handled, results, errors.Join(err, failed))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// batch begins all events of a batch, and waits for them until Config.Patience is
// over. Due are the events of all batches.
func (s *Service) batch(ctx context.Context, batch, due []Due) ([]Handled, error) {
	var taken []LeaseInfo
	if batch[0].Type == StartLease {
		var err error
		if taken, err = s.taken(ctx, due); err != nil {
			return nil, err
		}
	}
	handled := make([]Handled, len(batch))
	waits := make([]func(context.Context) error, len(batch)) // nil: there is nothing to wait for
	for i, d := range batch {
		handled[i] = Handled{Due: d, Status: EventUndone}
		if handled[i].Err = s.inTheWay(ctx, d, taken); handled[i].Err == nil {
			waits[i], handled[i].Err = s.execute(ctx, d)
		}
		if waits[i] == nil {
			s.unbegun(ctx, &handled[i])
		}
	}
	patience, stop := context.WithTimeout(ctx, s.config.Patience)
	defer stop()
	for i, wait := range waits {
		if wait == nil {
			continue
		}
		h := &handled[i]
		switch h.Err = wait(patience); {
		case h.Err == nil:
			h.Status = EventDone
		case errors.Is(h.Err, queue.ErrPending):
			h.Status = EventInProgress
		default:
			h.Status = EventError
			if e, err := s.Events.Get(ctx, h.ID); err == nil {
				h.Status = e.State
			} else if errors.Is(err, lifecycle.ErrNotFound) {
				h.Status = EventAbsent
			}
		}
	}
	if ctx.Err() != nil {
		return handled, lifecycle.Ended(ctx)
	}
	return handled, nil
}

// execute begins what an event is for, and returns how to wait for it.
func (s *Service) execute(ctx context.Context, d Due) (wait func(context.Context) error, err error) {
	// An update may have postponed the event since it was listed. Its time is in
	// the lease, and is checked in the commit that begins the method.
	now := s.config.Now()
	stillDue := &lifecycle.Change[LeaseSpec]{Edit: func(p *LeaseSpec) error {
		if dueAt(*p, d.Type).After(now) {
			return errNotDue
		}
		return nil
	}}
	var m *guarded
	switch d.Type {
	case StartLease:
		m, err = s.begin(ctx, d.Lease, Start, s.handOut, stillDue)
	case EndLease:
		m, err = s.begin(ctx, d.Lease, Terminate, s.takeBack, stillDue)
	case BeforeEndLease:
		return s.beforeEnd(ctx, d, now)
	default:
		return nil, fmt.Errorf("%w: an event of type %q", lifecycle.ErrInvalid, d.Type)
	}
	if err != nil {
		return nil, err
	}
	return m.wait, nil
}

var errNotDue = errors.New("blazar: not due any more")

// beforeEnd begins the calls of the plugins before the end of an active lease. They
// do not change the lease, and their failure is no failure of its reservations.
func (s *Service) beforeEnd(ctx context.Context, d Due, now time.Time) (wait func(context.Context) error, err error) {
	handle, err := s.Events.Do(ctx, d.ID, Start, Manager, lifecycle.Func(func(ctx context.Context) error {
		lease, err := s.GetLease(ctx, d.Lease)
		if err != nil {
			return err
		}
		var failed []error
		for i := range lease.Reservations {
			r := &lease.Reservations[i]
			err := do(ctx, s.config.Plugins[r.Resource].BeforeEnd, lease.allocation(r))
			if err != nil {
				failed = append(failed, fmt.Errorf("reservation %q: %w", r.ID, err))
			}
		}
		return errors.Join(failed...)
	}), &lifecycle.Change[EventSpec]{
		Require: []lifecycle.Precondition{s.Leases.Require(d.Lease, LeaseActive)},
		Edit: func(e *EventSpec) error {
			if e.Time.After(now) {
				return errNotDue
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { _, err := handle.Wait(ctx); return err }, nil
}

// unbegun decides about an event that was not begun: it stays for the next call of
// Process, or goes to ERROR if it can never be executed.
func (s *Service) unbegun(ctx context.Context, h *Handled) {
	lease, err := s.GetLease(ctx, h.Lease)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		h.Status, h.Err = EventAbsent, err
		return
	case err != nil || !lease.Status.IsStable():
		return
	}
	hopeless := false
	switch h.Type {
	case StartLease:
		hopeless = slices.Contains(lease.Never, Start)
	case EndLease:
		hopeless = slices.Contains(lease.Never, Terminate)
	case BeforeEndLease:
		hopeless = lease.Status == LeaseError || lease.Status == LeaseTerminated
	default:
		hopeless = true
	}
	if !hopeless {
		return
	}
	reason := fmt.Sprintf("the lease is %s, and will not take it", lease.Status)
	for _, call := range []Call{Start, Fail} {
		if err := again(func() error {
			_, err := s.Events.Fire(ctx, h.ID, call, Manager, &lifecycle.Change[EventSpec]{Reason: reason})
			return err
		}); err != nil {
			h.Err = errors.Join(h.Err, err)
			return
		}
	}
	h.Status = EventError
}

// StartLease starts a lease that is PENDING, whether it is due or not: its
// resources are handed out one reservation after the other, each of which is
// active then. If one fails, so has the lease: ERROR, like the reservation and the
// event. Errors: those of [Service.Guard].
func (s *Service) StartLease(ctx context.Context, id string) (LeaseInfo, error) {
	return s.guard(ctx, id, Start, s.handOut, nil)
}

// EndLease ends a lease that is ACTIVE, or in ERROR with its start DONE, whether it
// is due or not: its resources are taken back, and its reservations are deleted.
// Errors: those of [Service.Guard].
func (s *Service) EndLease(ctx context.Context, id string) (LeaseInfo, error) {
	return s.guard(ctx, id, Terminate, s.takeBack, nil)
}
