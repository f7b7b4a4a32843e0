// Package outage repeats a step of work while the store is unavailable. The systems whose
// work reads and writes records use it.
package outage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Outlast repeats a step until the store answers it or the context ends. A commit of unknown
// outcome may have been written, so the step must be one that may be repeated. Outlast
// returns the last error of the step.
func Outlast(ctx context.Context, step func() error) error {
	pause := queue.Exponential(50*time.Millisecond, 5*time.Second)
	for attempt := 1; ; attempt++ {
		err := step()
		if !errors.Is(err, lifecycle.ErrUnavailable) && !errors.Is(err, lifecycle.ErrUnknownOutcome) {
			return err
		}
		select {
		case <-time.After(pause(attempt, err)):
		case <-ctx.Done():
			return err
		}
	}
}

// Continue is Outlast for a step of the work of an operation. It repeats the step only while
// the operation goes on, and otherwise returns [lifecycle.ErrStale]. The bad schedule without
// that: another process ends the operation at its deadline, and its next operation on the
// object does the same as this work, which continues after the outage. Continue extends no
// deadline, so that a store which refuses one object does not keep the operation for ever.
func Continue[S, E comparable, T any](ctx context.Context, m *lifecycle.Manager[S, E, T], step func() error) error {
	repeats := false
	return Outlast(ctx, func() error {
		if repeats {
			if err := goesOn(ctx, m); err != nil {
				return err
			}
		}
		repeats = true
		return step()
	})
}

// goesOn returns [lifecycle.ErrStale] if the operation of the work is over, or the error of the
// store.
func goesOn[S, E comparable, T any](ctx context.Context, m *lifecycle.Manager[S, E, T]) error {
	task := lifecycle.TaskOf(ctx)
	now, err := m.Get(ctx, task.ID)
	if err == nil && (now.Operation != task.Operation || m.Machine().Kind(now.State).Resting()) {
		err = fmt.Errorf("%w: it is %v in operation %d", lifecycle.ErrStale, now.State, now.Operation)
	}
	return err
}
