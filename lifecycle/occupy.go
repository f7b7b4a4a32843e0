package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/queue"
)

// Occupy does work that keeps the object's state, such as a migration that users do not
// see. The work takes the object's turn in the queue, so that no other work of this queue
// runs for the object meanwhile. It is not an operation. An operation that [Manager.Do]
// admits meanwhile waits behind it with its state set; the table refuses the next one. The
// work is skipped ([queue.Skipped]) if the object is in none of the states when the turn
// comes. If no states are given, the work is skipped if the object does not exist. If the
// store fails when the turn comes, the manager reads the object again, after pauses like
// those of [Manager.Do]. Meanwhile the work keeps its share of the queue's limits. The end of
// the context of [Drain] ends these reads, and the work is skipped.
//
// The record does not show the work, and the work is lost with the process. The
// ticket has its outcome.
//
// Errors: [ErrMisconfigured] for work without a handler or function; [ErrInvalid] for the id,
// for a Class that is not text, and for work with With; [queue.ErrInvalid] for a Class that the
// queue does not have; [fsm.ErrUnknownState]; [ErrNotFound]; [ErrForeign] if the record has an
// unknown version or state; [ErrBusy] if the object is in another state now; [queue.ErrFull],
// [queue.ErrStopping] and [queue.ErrTerminated]; the store's.
// Nothing is written in any case.
func Occupy[S, E comparable, T any](ctx context.Context, m *Manager[S, E, T], id, name string, work Work, while ...S) (*queue.Ticket[Key], error) {
	states, err := m.stateNames(while)
	var ticket *queue.Ticket[Key]
	if err == nil {
		ticket, err = m.core.occupy(ctx, id, name, work, states)
	}
	if err != nil {
		return nil, &Error{Verb: "occupy", Machine: m.core.table.Name, ID: id, Event: name, Err: err}
	}
	return ticket, nil
}

func (c *core) occupy(ctx context.Context, id, name string, work Work, states []string) (*queue.Ticket[Key], error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := c.checkWork(&work); err != nil {
		return nil, err
	}
	if work.With != nil {
		return nil, fmt.Errorf("%w: work that is not an operation has no other objects", ErrInvalid)
	}
	checkRecord := func(now StoredRecord, err error) error {
		switch {
		case err != nil:
			return err
		case !now.Exists():
			return ErrNotFound
		}
		if _, _, err := c.recognize(&now); err != nil {
			return err
		}
		if len(states) > 0 && !slices.Contains(states, now.State) {
			return fmt.Errorf("%w: state is %s", ErrBusy, now.State)
		}
		return nil
	}
	work.Args, work.carrier = bytes.Clone(work.Args), c.carrierOf(ctx)
	if err := c.limits.checkCarrier(work.carrier); err != nil {
		return nil, err
	}
	keys := append([]Key{c.key(id)}, work.Also...)
	ticket, err := c.queue.SubmitAll(ctx, once(keys), &queue.Action{
		Name: name, Class: work.Class, Preempt: work.Preempt, Timeout: work.Timeout,
		Retry: queue.Retry{
			Attempts: work.Retries.Attempts, Backoff: work.Retries.backoff(), If: func(err error) bool { return !permanent(err) },
		},
		Admit: func(ctx context.Context) error { return checkRecord(c.get(ctx, c.key(id))) },
		Guard: func(ctx context.Context) error { return checkRecord(c.getAtTurn(ctx, c.key(id))) },
		Run:   func(ctx context.Context) error { return c.doWork(c.carry(ctx, work.carrier), &work) },
	})
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return nil, refused.Err
	}
	return ticket, err
}

// getAtTurn reads a record when the turn of an action has come. After an error that may go
// away it reads again, until ctx or [Drain] ends that.
func (c *core) getAtTurn(ctx context.Context, key Key) (StoredRecord, error) {
	pause := queue.Exponential(firstPause, longestPause)
	for attempts := 1; ; attempts++ {
		limited, stop := context.WithTimeout(ctx, outcomeWithin) // a store that hangs must not hold the turn
		now, err := c.get(limited, key)
		stop()
		if err == nil || final(err) || !sleep(ctx, c.retries.stop.Done(), pause(attempts, err)) {
			return now, err
		}
	}
}
