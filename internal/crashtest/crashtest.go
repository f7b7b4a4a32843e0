package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Harness provides the stores and selects the faults. New is required. It may be copied.
type Harness struct {
	// New returns an empty store that shares nothing with a store that it returned
	// before. The store has history and messages. Run calls New for every point, in the
	// bubble of the point. The store may do I/O, as long as no goroutine waits for I/O
	// between its calls. Run closes a store that implements [io.Closer] at the end of
	// its point.
	New func(t testing.TB) lifecycle.Store

	// Age lets d pass on the store's own clock, or moves everything that is stored d
	// into the past. nil: the store uses the clock of this process.
	Age func(t testing.TB, store lifecycle.Store, d time.Duration)

	// Kinds are the faults to try. nil: all of them.
	Kinds []Kind
}

// Scenario is what Run performs at every point. A is the type of what Start returns: a
// [lifecycle.Manager], or a struct with several. It may be copied. Its functions are
// called for one point at a time.
type Scenario[A any] struct {
	// Processes are the names of the processes at the beginning. nil: one process,
	// "alpha".
	Processes []string

	// Start is called in every process that starts. It makes the process an owner
	// ([Process.Join]), if required, and makes its managers ([Manage]). A process whose
	// Start fails is started again.
	Start func(ctx context.Context, p *Process) (A, error)

	// Script is what the clients of these processes do. Clients outlive every process.
	// They do the same in the same order every time, up to the fault. An error is a
	// failure if [Clients.Faultless], and ignored otherwise.
	Script func(ctx context.Context, c *Clients[A]) error

	// Ends are the states that objects may have in the end, whatever the fault; "" means
	// that the object does not exist. An object that is not named may have any state
	// that is not transitional.
	Ends map[lifecycle.Key][]string

	// Check returns what else is wrong in the end. It is called in a live process. nil:
	// nothing.
	Check func(ctx context.Context, app A) error

	// Tick is how often processes send heartbeats and sweep. 0: 10 seconds, a third of
	// [lifecycle.DefaultTTL]. It must be less than the TTL of owners.
	Tick time.Duration
}

// Run performs the scenario once without a fault, and then once for every write and every
// kind of fault. It returns the number of writes without a fault, and logs the coverage. It
// fails the test if not every fault has happened, and for everything that is wrong at the end
// of any point. It must not be called in a bubble.
func Run[A any](t *testing.T, h Harness, s Scenario[A]) (writes int) {
	t.Helper()
	return runPoints(t, &h, s.untyped(), func(try func(t testing.TB)) {
		synctest.Test(t, func(t *testing.T) { try(t) })
	})
}

// untyped returns the scenario without its type parameter, and with its defaults.
func (s Scenario[A]) untyped() *Scenario[any] {
	u := &Scenario[any]{
		Processes: s.Processes, Ends: s.Ends, Tick: cmp.Or(s.Tick, 10*time.Second),
		Start:  func(ctx context.Context, p *Process) (any, error) { return s.Start(ctx, p) },
		Script: func(ctx context.Context, c *Clients[any]) error { return s.Script(ctx, &Clients[A]{c.sim}) },
		Check: func(ctx context.Context, app any) error {
			if s.Check == nil {
				return nil
			}
			return s.Check(ctx, app.(A))
		},
	}
	if len(u.Processes) == 0 {
		u.Processes = []string{"alpha"}
	}
	return u
}

const (
	// maxFailures is the number of failed points at which a run ends.
	maxFailures = 20
	// maxRuns is how often a point is tried whose write is not reached. Where the order
	// of the processes changes the number of heartbeats, about one run in twenty misses.
	maxRuns = 6
	// maxRounds is the number of ticks after which nothing may move any more.
	maxRounds = 1000
)

// runPoints is Run. bubble runs a point in a bubble.
func runPoints(t testing.TB, h *Harness, s *Scenario[any], bubble func(try func(t testing.TB))) (writes int) {
	t.Helper()
	perform := func(p *point) (sim *simulation) {
		bubble(func(t testing.TB) { sim = perform(t, h, s, p) })
		return sim
	}
	first := perform(nil)
	for _, text := range first.problems {
		t.Errorf("without any fault: %s", text)
	}
	if len(first.problems) > 0 {
		return 0
	}
	writes = len(first.writes)
	kinds := h.Kinds
	if kinds == nil {
		kinds = Kinds()
	}
	points, failures := 0, 0
	for n, w := range first.writes {
		for _, kind := range kinds {
			p := &point{write: w, number: n + 1, of: writes, kind: kind}
			sim := perform(p)
			for i := 1; !sim.hit && i < maxRuns; i++ {
				sim = perform(p)
			}
			points++
			for _, text := range sim.problems { // that it is not covered is one
				t.Errorf("%v: %s", p, text)
			}
			if len(sim.problems) == 0 {
				continue
			}
			if failures++; failures == maxFailures {
				t.Errorf("crashtest: failures at %d points of %d tried, no more are tried", failures, points)
				return writes
			}
		}
	}
	t.Logf("crashtest: %d writes, %d points, %d without a failure", writes, points, points-failures)
	if points == 0 {
		t.Errorf("crashtest: there are no points")
	}
	return writes
}

// point is a write and the fault that happens there.
type point struct {
	write      string
	number, of int
	kind       Kind
}

// String returns the name of the point in failures.
func (p *point) String() string {
	return fmt.Sprintf("%s write %d of %d (%s)", p.kind, p.number, p.of, p.write)
}

// perform performs the scenario with a fault, or nil, and checks its end.
func perform(t testing.TB, h *Harness, s *Scenario[any], fault *point) *simulation {
	store, ok := h.New(t).(fullStore)
	if !ok {
		t.Fatal("crashtest: Harness.New has returned no store with history and messages")
	}
	sim := newSimulation(t, h, s, store, fault)
	sim.drive()
	sim.verify()
	sim.end()
	if closer, ok := store.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			sim.report("Close: %v", err)
		}
	}
	return sim
}
