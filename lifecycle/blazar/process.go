package blazar

import (
	"cmp"
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
	// IN_PROGRESS if it is not over, or ABSENT if its lease was deleted.
	Status EventState
	Err    error // why it is not DONE
}

// Process executes the events that are due, once: it starts and ends leases, in
// [Batches]. It waits for a batch until [Config].Patience is over; the events of the
// batch continue.
//
// Process leaves an event UNDONE, for the next call, while a method is at work on its
// lease. It leaves a start UNDONE also while the end of another lease on resources of
// the same type is due and not over, except the end of a lease that is deleted before
// its start. It leaves an event UNDONE for another process if this one lacks a plugin. An event
// that can never be executed goes to ERROR.
//
// Several processes may do this on one store: every event is executed once. Process reads
// all events that are UNDONE or IN_PROGRESS. The error is the store's or the context's;
// events that were started until then continue. An event that cannot be read
// ([lifecycle.ErrForeign]) keeps no other one: the error comes with the results.
func (s *Service) Process(ctx context.Context) ([]Handled, error) {
	due, ends, foreign := s.due(ctx)
	if foreign != nil && !errors.Is(foreign, lifecycle.ErrForeign) {
		return nil, foreign
	}
	var all []Handled
	for _, batch := range Batches(due) {
		handled, err := s.batch(ctx, batch, ends)
		all = append(all, handled...)
		if err != nil {
			return all, errors.Join(foreign, err)
		}
	}
	return all, foreign
}

// Run sweeps and processes events until ctx ends, and then returns nil, as
// [lifecycle.Run] does: an interval of 0 is 10 seconds; a negative one is
// [lifecycle.ErrInvalid]. The function report, if it is not nil, receives the results
// of each round. After an error the next round tries again. Run starts no goroutine.
func (s *Service) Run(
	ctx context.Context, every time.Duration, report func(context.Context, []Handled, []lifecycle.SweepResult, error),
) error {
	return lifecycle.Run(ctx, every, nil, round(func(ctx context.Context) ([]lifecycle.SweepResult, error) {
		results, err := s.Sweep(ctx)
		handled, failed := s.Process(ctx)
		err = errors.Join(err, failed)
		if report != nil && ctx.Err() == nil {
			report(ctx, handled, results, err)
		}
		return results, err
	}))
}

// round sweeps and processes events once.
type round func(context.Context) ([]lifecycle.SweepResult, error)

func (r round) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) { return r(ctx) }

// due returns the events that are UNDONE and due, and all ends that are due and not
// over. An error that matches ErrForeign comes with the events that can be read.
func (s *Service) due(ctx context.Context) (due, ends []Due, err error) {
	now := s.config.Now()
	var errs []error
	open := lifecycle.Select[EventState]{States: []EventState{EventUndone, EventInProgress}}
	for e, err := range s.Events.All(ctx, open) {
		if errors.Is(err, lifecycle.ErrForeign) {
			errs = append(errs, err)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		d := Due{e.ID, e.Payload.Lease, e.Payload.Type, e.Payload.Time}
		isDue := e.State == EventUndone && !d.Time.After(now)
		if isDue {
			due = append(due, d)
		}
		if d.Type == EndLease && (isDue || e.State == EventInProgress) {
			ends = append(ends, d)
		}
	}
	return due, ends, errors.Join(errs...)
}

// batch starts all events of a batch, and waits for them until Config.Patience is
// over.
func (s *Service) batch(ctx context.Context, batch, ends []Due) ([]Handled, error) {
	var ending []LeaseDetails
	if batch[0].Type == StartLease {
		var err error
		if ending, err = s.ending(ctx, ends); err != nil {
			return nil, err
		}
	}
	handled := make([]Handled, len(batch))
	outcomes := make([]outcome, len(batch)) // nil: not started
	for i, d := range batch {
		h := &handled[i]
		*h = Handled{Due: d, Status: EventUndone}
		if h.Err = s.checkFree(ctx, d, ending); h.Err == nil {
			outcomes[i], h.Err = s.execute(ctx, d)
		}
		if outcomes[i] == nil {
			s.giveUp(ctx, h)
		}
	}
	patience, stop := context.WithTimeout(ctx, s.config.Patience)
	defer stop()
	for i, wait := range outcomes {
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
			h.Status = s.statusOf(ctx, h, EventError)
		}
	}
	if ctx.Err() != nil {
		return handled, lifecycle.Ended(ctx)
	}
	return handled, nil
}

// execute starts the method of an event.
func (s *Service) execute(ctx context.Context, d Due) (outcome, error) {
	// An update may have postponed the event since it was listed. Its time is in
	// the lease, and is checked in the commit that starts the method.
	now := s.config.Now()
	call := Terminate
	if d.Type == StartLease {
		call = Start
	}
	return s.act(ctx, d.Lease, call, &lifecycle.Change[LeaseSpec]{Edit: func(p *LeaseSpec) error {
		if dueAt(*p, d.Type).After(now) {
			return errNotDue
		}
		return nil
	}})
}

var errNotDue = errors.New("blazar: the event was postponed")

// giveUp moves an event that was not started to ERROR if it can never be executed: the
// lease is at rest, and no status that permits the start or the end can follow.
// Otherwise the event stays for the next call of Process.
func (s *Service) giveUp(ctx context.Context, h *Handled) {
	if h.Status = s.statusOf(ctx, h, EventUndone); h.Status != EventUndone {
		if h.Status == EventDone { // another process has executed it
			h.Err = nil
		}
		return
	}
	lease, err := s.GetLease(ctx, h.Lease)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound): // it was deleted with its events after the event was read
		h.Status, h.Err = EventAbsent, err
		return
	case err != nil || !lease.Status.IsStable():
		return
	case h.Type == StartLease && lease.Status == LeasePending:
		return
	case h.Type == EndLease && (lease.Status != LeaseError || lease.event(StartLease).Status == EventDone):
		return
	}
	// One commit: an end that is IN_PROGRESS keeps other leases from their start.
	change := &lifecycle.Change[EventSpec]{Force: true, Reason: fmt.Sprintf("the lease is %s", lease.Status)}
	if err := retry(func() error { _, err := s.Events.Fire(ctx, h.ID, Fail, Manager, change); return err }); err != nil {
		h.Err = errors.Join(h.Err, err)
		return
	}
	h.Status = EventError
}

// statusOf returns the status of an event in the store, or another one if it cannot be read.
func (s *Service) statusOf(ctx context.Context, h *Handled, unread EventState) EventState {
	e, err := s.Events.Get(ctx, h.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return EventAbsent
	case err != nil:
		return unread
	}
	return e.State
}

// ending returns the leases of ends that are still not over and may have resources, without
// those that cannot be read.
func (s *Service) ending(ctx context.Context, ends []Due) ([]LeaseDetails, error) {
	var list []LeaseDetails
	for _, d := range ends {
		lease, err := s.GetLease(ctx, d.Lease)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrForeign):
		case err != nil:
			return nil, err
		case lease.Status == LeaseDeleting && lease.event(StartLease).Status == EventUndone: // it has never had its resources
		case lease.event(EndLease).Status == EventUndone || lease.event(EndLease).Status == EventInProgress:
			list = append(list, lease)
		}
	}
	return list, nil
}

// checkFree returns an error if a lease that ends not later than the start of another one
// still has resources of the same type.
func (s *Service) checkFree(ctx context.Context, d Due, ending []LeaseDetails) error {
	if len(ending) == 0 {
		return nil
	}
	lease, err := s.GetLease(ctx, d.Lease)
	if err != nil {
		return err
	}
	types := map[string]bool{}
	for _, r := range lease.Reservations {
		types[r.Resource] = true
	}
	for _, other := range ending {
		if other.ID == lease.ID || other.Spec.End.After(d.Time) {
			continue
		}
		for _, r := range other.Reservations {
			if types[r.Resource] && (r.Status == ReservationActive || r.Status == ReservationPending) {
				return fmt.Errorf("%w: lease %q is %s and has resources of type %q", lifecycle.ErrBusy, other.ID, other.Status, r.Resource)
			}
		}
	}
	return nil
}

// StartLease starts a lease that is PENDING, whether it is due or not: OnStart is called
// for one reservation after the other, each of which is active then. If one fails, the
// lease goes to ERROR, like the reservation and the event. Errors:
// [lifecycle.ErrMisconfigured] if this process lacks a plugin of the lease, with nothing
// changed, and those of [Service.Guard].
func (s *Service) StartLease(ctx context.Context, id string) (LeaseDetails, error) {
	wait, err := s.act(ctx, id, Start, nil)
	return s.ended(ctx, id, Start, wait, err)
}

// EndLease ends a lease that is ACTIVE, or in ERROR with its start DONE, whether it
// is due or not: its resources are released, and its reservations are deleted.
// Errors: those of [Service.StartLease].
func (s *Service) EndLease(ctx context.Context, id string) (LeaseDetails, error) {
	wait, err := s.act(ctx, id, Terminate, nil)
	return s.ended(ctx, id, Terminate, wait, err)
}

// Due is an event that is due. It is a plain value.
type Due struct {
	ID    string
	Lease string
	Type  string
	Time  time.Time // of the event
}

// Batches orders events that are due together, for example after an outage of the
// service. The events of a batch are of one type, in the order of time, and may be
// executed at the same time; a batch is executed after the one before it:
//
//   - A start comes after every end that is not later than itself, so that resources are
//     released before another lease gets them.
//   - A lease ends after it has started, because its end is later than its start.
func Batches(due []Due) [][]Due {
	sorted := slices.SortedStableFunc(slices.Values(due), func(a, b Due) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Type, b.Type)) // end_lease before start_lease
	})
	var batches [][]Due
	for i, d := range sorted {
		if i == 0 || sorted[i-1].Type != d.Type {
			batches = append(batches, nil)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], d)
	}
	return batches
}
