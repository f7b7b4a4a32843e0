package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Harness provides the stores and selects the faults. New is required; the zero
// value of every other field is a default. It is a value and may be copied.
type Harness struct {
	// New returns an empty store that shares nothing with any that it returned
	// before. Run calls it once for every point. A store that implements
	// [io.Closer] is closed when its point is done.
	New func(t testing.TB) lifecycle.Store

	// Synctest runs every point in a bubble of testing/synctest, New included. The
	// store may do I/O there, also by a driver and a server, as long as none of
	// its goroutines waits for I/O between its calls: the kit proceeds when all
	// goroutines wait for something else.
	Synctest bool

	// Age lets d pass on the store's own clock, or moves everything that is stored
	// d into the past. It is required without Synctest. With Synctest, nil is for
	// a store that uses the clock of this process, which is that of the bubble.
	Age func(t testing.TB, store lifecycle.Store, d time.Duration)

	// Calm is used without Synctest: if the store gets no call for this long, the
	// kit concludes that all goroutines wait. 0: 30 milliseconds.
	Calm time.Duration

	// wait is how long a goroutine may run after its context ended. 0: a minute.
	wait time.Duration

	// Kinds are the faults to try. nil: all of them.
	Kinds []Kind

	// Twice adds a second fault after the first one: of every kind, at every write
	// that followed it until the script had ended. So faults hit the process that
	// takes over, too. The number of runs is about the square of the points.
	Twice bool

	// Only selects the points whose names contain it, to repeat a failure. Empty:
	// all.
	Only string
}

func (h *Harness) patience() time.Duration { return cmp.Or(h.wait, time.Minute) }

// Scenario is what Run performs, again for every point. A is the type of what Start
// returns: a [lifecycle.Manager], or a struct with several. It is a value and may
// be copied; its functions are called for one point at a time.
type Scenario[A any] struct {
	// Processes are the names of the processes at the beginning. nil: one process,
	// "alpha".
	Processes []string

	// Start is called in every process that starts. It makes the process an owner
	// ([Process.Join]), if required, and makes its managers ([Manage]). A process
	// whose Start fails is started again.
	Start func(ctx context.Context, p *Process) (A, error)

	// Script is what the clients of these processes do. Clients outlive every
	// process. They do the same things in the same order every time, up to the
	// fault: if a run with a fault does not reach its write, that is a failure.
	// An error of Script is a failure if [World.Faultless], and ignored otherwise.
	Script func(ctx context.Context, w *World[A]) error

	// Ends are the states that objects may have in the end, whatever the fault;
	// "" means that the object does not exist. An object that is not named may
	// have any state that is not transitional.
	Ends map[lifecycle.Key][]string

	// Check returns what else is wrong in the end. It is called in a live process.
	// nil: nothing.
	Check func(ctx context.Context, app A) error

	// Tick is how often processes send heartbeats and sweep. 0: 10 seconds, a
	// third of [lifecycle.DefaultTTL]. It must be less than the TTL of owners.
	Tick time.Duration

	// Rounds is after how many ticks nothing may move any more. 0: 1000.
	Rounds int
}

// Coverage is what a run has tried.
type Coverage struct {
	Writes  int // durable writes of the run without a fault
	Found   int // points: writes by kinds of fault
	Covered int // those at which the fault happened, or both
	Missed  int // those of Twice where only the first fault happened, because the order differed
}

// String returns the numbers as one line.
func (c Coverage) String() string {
	text := fmt.Sprintf("%d writes, %d points found, %d covered", c.Writes, c.Found, c.Covered)
	if c.Missed > 0 {
		text += fmt.Sprintf(", %d missed", c.Missed)
	}
	return text
}

// Run performs the scenario once without a fault, and then once for every write
// that it has found and every kind of fault. It logs the coverage. It fails the
// test if the coverage is not complete, and for everything that is wrong at the end
// of any point. It panics without Harness.New, without Harness.Synctest and
// Harness.Age, and without Scenario.Start or Scenario.Script. It must not be called
// inside a bubble.
func Run[A any](t *testing.T, h Harness, s Scenario[A]) Coverage {
	t.Helper()
	switch {
	case h.New == nil:
		panic("crashtest: Run needs a Harness with New")
	case !h.Synctest && h.Age == nil:
		panic("crashtest: Run needs a Harness with Synctest or Age")
	case s.Start == nil || s.Script == nil:
		panic("crashtest: Run needs a Scenario with Start and Script")
	}
	return explore(t, &h, s.plain(), func(try func(t testing.TB)) {
		if h.Synctest {
			synctest.Test(t, func(t *testing.T) { try(t) })
		} else {
			try(t)
		}
	})
}

// scenario is a Scenario without its type parameter.
type scenario struct {
	processes []string
	start     func(ctx context.Context, p *Process) (any, error)
	script    func(ctx context.Context, w *world) error
	ends      map[lifecycle.Key][]string
	check     func(ctx context.Context, app any) error
	tick      time.Duration
	rounds    int
}

func (s Scenario[A]) plain() *scenario {
	plain := &scenario{
		processes: s.Processes, ends: s.Ends, tick: cmp.Or(s.Tick, 10*time.Second), rounds: cmp.Or(s.Rounds, 1000),
		start:  func(ctx context.Context, p *Process) (any, error) { return s.Start(ctx, p) },
		script: func(ctx context.Context, w *world) error { return s.Script(ctx, &World[A]{w}) },
		check:  func(context.Context, any) error { return nil },
	}
	if len(plain.processes) == 0 {
		plain.processes = []string{"alpha"}
	}
	if s.Check != nil {
		plain.check = func(ctx context.Context, app any) error { return s.Check(ctx, app.(A)) }
	}
	return plain
}

// maxFailures is at how many failed points a run ends: they mostly have one cause.
const maxFailures = 20

// maxRuns is how often a run is tried whose write is not reached. Where the order of
// the processes changes the number of heartbeats, about one run in twenty misses.
const maxRuns = 6

// explore is Run; inTime runs a try, in a bubble if the harness has Synctest.
func explore(t testing.TB, h *Harness, s *scenario, inTime func(try func(t testing.TB))) Coverage {
	t.Helper()
	play := func(faults ...*point) (w *world) {
		inTime(func(t testing.TB) { w = perform(t, h, s, faults) })
		return w
	}
	first := play()
	for _, text := range first.wrong {
		t.Errorf("without any fault: %s", text)
	}
	if len(first.wrong) > 0 {
		return Coverage{}
	}
	kinds := h.Kinds
	if kinds == nil {
		kinds = Kinds()
	}
	c := Coverage{Writes: len(first.writes)}
	tried, failures := 0, 0
	// try performs one run, if it is selected or leads to others.
	try := func(faults ...*point) (w *world) {
		c.Found++
		name := nameOfRun(faults)
		selected := strings.Contains(name, h.Only)
		if failures == maxFailures || !selected && (!h.Twice || len(faults) > 1) {
			return nil
		}
		// After the script has ended, the processes act at the same time, and which of
		// them moves an object first decides how many heartbeats follow. A run that does
		// not reach its write for that reason is repeated.
		for range maxRuns {
			if w = play(faults...); w.hits > 0 || len(faults) == 0 {
				break
			}
		}
		if !selected {
			return w
		}
		tried++
		switch {
		case w.hits == len(faults):
			c.Covered++
		case w.hits > 0:
			c.Missed++
		}
		for _, text := range w.wrong {
			t.Errorf("%s: %s", name, text)
		}
		if len(w.wrong) == 0 {
			return w
		}
		if failures++; failures == maxFailures {
			t.Errorf("crashtest: failures at %d points of %d tried, no more are tried", failures, tried)
		}
		return nil
	}
	for _, p := range points(first.writes, 0, kinds) {
		w := try(p)
		if w == nil || !h.Twice {
			continue
		}
		for _, then := range points(w.writes, w.since, kinds) {
			if p.kind == Paused && then.write == p.write {
				continue // the paused write itself, which no other fault can hit
			}
			try(p, then)
		}
	}
	if failures == maxFailures {
		return c
	}
	t.Logf("crashtest: %v", c)
	if c.Covered+c.Missed != tried || h.Only == "" && tried != c.Found || tried == 0 {
		t.Errorf("crashtest: %v, %d tried", c, tried)
	}
	return c
}

// point is a write and what happens there.
type point struct {
	write
	number, of int
	kind       Kind
}

// points are all faults at the writes from a number on.
func points(writes []write, from int, kinds []Kind) (list []*point) {
	for n := from; n < len(writes); n++ {
		for _, k := range kinds {
			list = append(list, &point{write: writes[n], number: n + 1, of: len(writes), kind: k})
		}
	}
	return list
}

func (p *point) String() string {
	return fmt.Sprintf("%v write %d of %d (%v)", p.kind, p.number, p.of, p.write)
}

func nameOfRun(faults []*point) string {
	if len(faults) == 0 {
		return "without any fault"
	}
	var names []string
	for _, p := range faults {
		names = append(names, p.String())
	}
	return strings.Join(names, ", then ")
}

// perform performs the scenario with these faults and checks its end.
func perform(t testing.TB, h *Harness, s *scenario, faults []*point) *world {
	store := h.New(t)
	if store == nil {
		t.Fatal("crashtest: New of the harness returned no store")
	}
	w := newWorld(t, h, s, store, faults)
	w.drive()
	w.verify()
	w.end()
	if closer, ok := store.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			w.blame("Close: %v", err)
		}
	}
	return w
}
