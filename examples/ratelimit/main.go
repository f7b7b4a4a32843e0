// Ratelimit starts VMs at a provider that accepts a number of calls per second and
// region. The queue limits how many actions run at once; a limiter of
// golang.org/x/time/rate, in the caller's hands, spaces their calls.
//
//   - Every action waits for the limiter of its region in Run, in front of the call.
//     The wait ends with the action's context.
//   - The provider may refuse a call nevertheless and name a pause. The back-off is
//     that pause. Meanwhile the action holds no share of the limits.
//   - The rate changes at run time, by the limiter's own method.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/interlock-go/interlock/queue"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratelimit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"seoul": {MaxRunning: 1}}})
	p := &provider{out: out, begun: time.Now(), busy: map[string]bool{"vm-3": true}}
	seoul := rate.NewLimiter(rate.Every(100*time.Millisecond), 1) // 10 calls per second
	for _, vm := range []string{"vm-1", "vm-2", "vm-3", "vm-4"} {
		if _, err := q.Submit(ctx, vm, start(p, seoul, vm)); err != nil {
			return err
		}
	}
	return q.Terminate(ctx)
}

// start is the action that starts a VM at the rate of its region.
func start(p *provider, region *rate.Limiter, vm string) *queue.Action {
	return &queue.Action{
		Name: "start", Class: "seoul",
		Run: func(ctx context.Context) error {
			if err := region.Wait(ctx); err != nil {
				return err
			}
			return p.start(vm)
		},
		Retry: queue.Retry{Attempts: 3, Backoff: func(attempts int, err error) time.Duration {
			if busy, ok := errors.AsType[*busyError](err); ok {
				return busy.after
			}
			return queue.Exponential(100*time.Millisecond, time.Second)(attempts, err)
		}},
	}
}

// busyError is the provider's answer to too many calls.
type busyError struct{ after time.Duration }

func (e *busyError) Error() string { return fmt.Sprintf("too many calls: try again after %v", e.after) }

// provider prints the calls that it receives.
type provider struct {
	out   io.Writer
	begun time.Time

	mu   sync.Mutex
	busy map[string]bool // VMs whose next call is refused
}

func (p *provider) start(vm string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Since(p.begun).Truncate(10 * time.Millisecond)
	if p.busy[vm] {
		delete(p.busy, vm)
		err := &busyError{250 * time.Millisecond}
		fmt.Fprintf(p.out, "%v %s: %v\n", at, vm, err)
		return err
	}
	fmt.Fprintf(p.out, "%v %s: started\n", at, vm)
	return nil
}
