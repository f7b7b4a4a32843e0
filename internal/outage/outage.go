// Package outage repeats a step of work while the store is unavailable. The systems whose
// work reads and writes other objects use it.
package outage

import (
	"context"
	"errors"
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
