package lifecycle

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Sweeper is a [Manager] of any machine.
type Sweeper interface {
	Sweep(ctx context.Context) ([]SweepResult, error)
}

// Run sweeps the objects of all managers until ctx ends, and then returns nil: at
// random times around every, up to a fifth earlier or later, so that several
// processes do not sweep at the same moment. The function report, if it is not nil,
// receives the results and the error of each manager's sweep. After an error the
// next sweep tries again. An interval of 0 is 10 seconds, a third of [DefaultTTL]; a
// negative one is [ErrInvalid]. With an interval above a third of an owner's TTL, a dead
// owner is found after four sweeps, see [Manager.Sweep]. Run starts no goroutine.
func Run(ctx context.Context, every time.Duration, report func([]SweepResult, error), managers ...Sweeper) error {
	if every < 0 {
		return fmt.Errorf("%w: sweeping every %v", ErrInvalid, every)
	}
	if every == 0 {
		every = 10 * time.Second
	}
	every = min(every, math.MaxInt64/2) // with its jitter
	for {
		pause := time.NewTimer(every - every/5 + rand.N(every/5*2+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		for _, m := range managers {
			results, err := m.Sweep(ctx)
			if report != nil && (ctx.Err() == nil || len(results) > 0) {
				report(results, err)
			}
		}
	}
}
