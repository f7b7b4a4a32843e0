package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/queue"
)

// DoHidden does work that keeps the object's state, such as a migration that
// nobody is to see: it takes the object's turn in the queue, so that no other
// work of this queue is done to it meanwhile, and is no operation. What is admitted meanwhile by
// Do waits behind it, with its state set: one request is admitted, and the next
// is refused by the table. The work is skipped, as [queue.Skipped], if the object
// is in none of the states when its turn comes; without states, if there is no
// object.
//
// It is not in the record and is lost with the process. The ticket tells its
// outcome.
//
// Errors: [ErrInvalid] for work that is none; [ErrNotFound], [ErrBusy] if the
// object is in another state now; [queue.ErrFull], [queue.ErrStopping] and
// [queue.ErrTerminated], and the store's. Nothing is written in any case.
func (m *Manager[S, E, T]) DoHidden(ctx context.Context, id, name string, work Work, while ...S) (*queue.Ticket[Key], error) {
	fail := func(err error) (*queue.Ticket[Key], error) {
		return nil, &Error{Verb: "do hidden", Machine: m.table.Name, ID: id, Event: name, Err: err}
	}
	if err := checkID(id); err != nil {
		return fail(err)
	}
	if err := m.checkWork(work); err != nil {
		return fail(err)
	}
	var states []string
	for _, s := range while {
		i := m.machine.StateIndex(s)
		if i < 0 {
			return fail(&fsm.TransitionError{Machine: m.table.Name, From: fmt.Sprint(s), Row: -1, Err: fsm.ErrUnknownState})
		}
		states = append(states, m.table.States[i].Name)
	}
	check := func(ctx context.Context) error {
		now, err := m.store.Get(ctx, m.key(id))
		switch {
		case err != nil:
			return err
		case !now.Exists():
			return ErrNotFound
		case len(states) > 0 && !slices.Contains(states, now.State):
			return fmt.Errorf("%w: it is %s", ErrBusy, now.State)
		}
		return nil
	}
	run := work.Run
	if run == nil {
		handler, args := m.handlers[work.Handler], bytes.Clone(work.Args)
		run = func(ctx context.Context) error { return handler(ctx, args) }
	}
	ticket, err := m.enqueue(ctx, m.key(id), work.Also, &queue.Action{
		Name: name, Class: work.Class, Preempt: work.Preempt, Timeout: work.Timeout, QueueTimeout: work.QueueTimeout,
		Admit: check, Guard: check, Run: run,
	})
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok && errors.Is(refused.Reason, queue.ErrConflict) {
		return fail(refused.Err)
	}
	if err != nil {
		return fail(err)
	}
	return ticket, nil
}
