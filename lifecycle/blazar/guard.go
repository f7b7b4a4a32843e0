package blazar

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/outage"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Method is the work between the two changes of status that [Service.Guard] makes. It
// receives the lease after the first change.
type Method func(ctx context.Context, lease LeaseDetails) error

// Guard is the decorator of the document: it changes the status of a lease before and
// after a method. All methods of a Service run under it:
//
//  1. The commit to the transitional status checks the transition and the combination. If
//     one does not allow it, nothing is written.
//  2. The method runs in the lease's turn.
//  3. The commit to the stable status checks the combination. If it does not allow the
//     status, the method has failed.
//
// The call is [Update], [Start], [Terminate] or [Delete]; Update and Delete are a user's.
// The event start_lease or end_lease that belongs to it is IN_PROGRESS with the
// transitional status, and DONE with the stable one.
//
// An error of a method is fatal: the lease goes to ERROR, and so does the event. It
// is not fatal if it matches [ErrRefused] and the table has a way back. A delete cancels
// the method that is at work, and the result of that method has no effect. The records
// keep the text of an error, shortened if it is long. While the store is unavailable, the
// changes of a method wait for it.
//
// The error is that of [lifecycle.Manager.Do] or of the method. If ctx ends while
// the method is at work, the method continues, and the error matches [queue.ErrPending].
func (s *Service) Guard(ctx context.Context, id string, call Call, method Method) (LeaseDetails, error) {
	if call == Create {
		return LeaseDetails{}, refused("guard", id, call, fmt.Errorf("%w: CreateLease creates a lease", lifecycle.ErrInvalid))
	}
	wait, err := s.begin(ctx, id, call, method, nil)
	return s.ended(ctx, id, call, wait, err)
}

// outcome waits for a method that was started, and returns its error. If ctx ends first, it
// is [queue.ErrPending].
type outcome func(ctx context.Context) error

// ended takes the results of begin: it waits for the method if that has begun, and returns
// the lease after it.
func (s *Service) ended(ctx context.Context, id string, call Call, wait outcome, err error) (LeaseDetails, error) {
	if err == nil {
		err = wait(ctx)
	}
	switch {
	case err != nil:
		return LeaseDetails{}, err
	case call == Delete:
		return LeaseDetails{ID: id, Status: LeaseAbsent}, nil
	}
	return s.GetLease(ctx, id)
}

// begin starts a method.
func (s *Service) begin(
	ctx context.Context, id string, call Call, do Method, change *lifecycle.Change[LeaseSpec],
) (outcome, error) {
	if err := checkID(id); err != nil {
		return nil, refused("do", id, call, err)
	}
	var refusal atomic.Pointer[error] // that was reported; an abandoned method may still report it
	work := lifecycle.Func(func(ctx context.Context) error {
		var lease LeaseDetails
		err := outage.Continue(ctx, s.Leases, func() (err error) {
			lease, err = s.GetLease(ctx, id)
			return err
		})
		if err == nil && do != nil {
			err = do(ctx, lease)
		}
		if !errors.Is(err, ErrRefused) || ctx.Err() != nil {
			return err
		}
		// The table permits Refuse where there is a way back. The report ends the
		// operation, and then the error that the work returns has no effect.
		_ = outage.Outlast(ctx, func() error {
			v, failed := s.Leases.Report(ctx, id, lifecycle.TaskOf(ctx).Operation, Refuse, Manager, &lifecycle.Change[LeaseSpec]{
				Reason: storable.Reason(err.Error()),
			})
			if failed == nil && (v == lifecycle.Applied || v == lifecycle.Repeated) {
				refusal.Store(&err)
			}
			return failed
		})
		return err
	})
	var ticket *lifecycle.Ticket[LeaseState, LeaseSpec]
	start := func() (err error) {
		ticket, err = s.Leases.Do(ctx, id, call, actorOf(call), work, change)
		return err
	}
	var err error
	if call == Delete {
		work.Preempt = queue.PreemptRunning
		err = retry(start) // a delete is allowed in every status of the lease
	} else {
		err = start()
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := ticket.Wait(ctx)
		if why := refusal.Load(); why != nil {
			return *why
		}
		return err
	}, nil
}

// actorOf returns the actor that calls a method.
func actorOf(call Call) fsm.Actor {
	switch call {
	case Create, Update, Delete:
		return User
	}
	return Manager
}

// refused returns an error about a lease, in the form of its manager.
func refused(verb, id string, call Call, err error) error {
	return &lifecycle.Error{Verb: verb, Machine: Lease.Name(), ID: id, Event: string(call), Actor: actorOf(call), Err: err}
}

// becomes has the status of a reservation after a call.
var becomes = map[Call]ReservationState{Start: ReservationActive, Delete: ReservationDeleted}

// startOrEndAll calls the plugins of the reservations of a lease for their start or their end, which
// is [Delete] for them, one after the other. It writes the result of each: the status that
// the call leads to, or an error. After a failure it continues with the other reservations;
// when the context ends, it stops.
func (s *Service) startOrEndAll(ctx context.Context, lease *LeaseDetails, call Call) error {
	to := becomes[call]
	var failed []error
	for i := range lease.Reservations {
		r := &lease.Reservations[i]
		if r.Status == to {
			continue
		}
		var err error
		if r.Status.IsValidTransition(to) {
			err = s.startOrEnd(ctx, call, lease.allocation(r))
		} else {
			err = fmt.Errorf("it is %s and cannot become %s", r.Status, to)
		}
		if ctx.Err() != nil {
			// Another operation has the lease. It undoes the work of the plugin, and
			// this one may write nothing.
			return context.Cause(ctx)
		}
		change, event := &lifecycle.Change[ReservationSpec]{}, call
		if err != nil {
			failed = append(failed, fmt.Errorf("reservation %q: %w", r.ID, err))
			if !r.Status.IsValidTransition(ReservationError) {
				continue // it has failed or ended before
			}
			change.Reason, event = storable.Reason(err.Error()), Fail
		}
		if err := s.mark(ctx, lease, r.ID, event, change); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// startOrEnd calls the plugin of a reservation.
func (s *Service) startOrEnd(ctx context.Context, call Call, a Allocation) error {
	p, err := s.plugin(a.Resource)
	if err != nil {
		return err
	}
	if call == Start {
		return perform(ctx, p.OnStart, a)
	}
	return perform(ctx, p.OnEnd, a)
}

// mark moves a reservation of a lease whose method is at work. It is refused after the
// lease has got another status.
//
// The method of an earlier operation passes if the lease has its status again. The bad
// schedule: a delete hangs, and the sweeper ends it; the next delete releases the
// reservation, and the late method marks it before that delete does. What that delete
// wants to write is done then, and it continues. A failure that cannot be marked stops no
// method, because the method's error has it.
func (s *Service) mark(
	ctx context.Context, lease *LeaseDetails, id string, call Call, change *lifecycle.Change[ReservationSpec],
) error {
	change.Require = []lifecycle.Precondition{s.Leases.Require(lease.ID, lease.Status)}
	err := outage.Continue(ctx, s.Leases, func() error {
		return retry(func() error {
			_, err := s.Reservations.Fire(ctx, id, call, Manager, change)
			return err
		})
	})
	if errors.Is(err, fsm.ErrNotAllowed) {
		now, failed := s.Reservations.Get(ctx, id)
		if failed == nil && (now.State == becomes[call] || call == Fail) {
			return nil
		}
	}
	return err
}

// retry repeats a change after a conflict, for example with an observer that has
// changed the flags. It is for requests that are valid in every state of the object.
func retry(change func() error) (err error) {
	for range 16 {
		if err = change(); !errors.Is(err, lifecycle.ErrConflict) {
			return err
		}
	}
	return err
}
