package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// World is what the clients of a scenario have: processes to ask, and time. The
// harness makes it, for [Scenario].Script. It is safe for concurrent use; its
// methods are for goroutines of the script, not for those of processes.
type World[A any] struct{ w *world }

// Ask has a request done in a process, and waits for the answer: the error that
// f returned, or [ErrCrashed] if the process is gone before it has answered. If
// there is no such process at the moment, Ask waits for the next one of that
// role, and brings it about where the script has killed the last one. To ask, kill
// or stop a process that is none of [Scenario].Processes is a failure.
func (w *World[A]) Ask(role, what string, f func(ctx context.Context, app A) error) error {
	_, err := w.w.ask(role, what, func(ctx context.Context, p *Process) error { return f(ctx, p.app.(A)) })
	return err
}

// Insist is Ask until the error is nil, with a tick in between: a client that
// does not give up. After a hundred times it is a failure.
func (w *World[A]) Insist(role, what string, f func(ctx context.Context, app A) error) error {
	for try := 1; ; try++ {
		err := w.Ask(role, what, f)
		if err == nil || w.w.ctx.Err() != nil {
			return err
		}
		if try == 100 {
			w.w.blame("%s: not even at the hundredth time: %v", what, err)
			return err
		}
		w.Pass(w.w.s.tick)
	}
}

// Pass lets time pass, at least d; the processes beat and sweep meanwhile.
func (w *World[A]) Pass(d time.Duration) { w.w.sleep(d) }

// Kill ends a process without warning. Nobody comes in its place, but for the
// next Ask, and for the end of the scenario if there is no other process.
func (w *World[A]) Kill(role string) { w.w.kill(role) }

// Stop ends a process in good order: its work ends, and then its ownership. The
// next one starts as after Kill.
func (w *World[A]) Stop(role string) error { return w.w.stop(role) }

// Apply is [Process.Apply] for a peer that is no process of the scenario.
func (w *World[A]) Apply(key lifecycle.Key, operation lifecycle.OpID) error {
	return (&Process{w: w.w}).Apply(key, operation)
}

// Faultless reports whether this is the run without a fault, or the fault has
// not happened so far, or is one that nobody is to notice: a [LostRequest] or
// [LostAnswer], after which a manager asks again. A script may then demand more.
func (w *World[A]) Faultless() bool {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	return w.w.unnoticed()
}

// Blame says that something is wrong at this point.
func (w *World[A]) Blame(format string, args ...any) { w.w.blame(format, args...) }

// world is one performance of a scenario.
type world struct {
	t      testing.TB
	h      *Harness
	s      *scenario
	inner  lifecycle.Store
	faults []*point // what is to happen, in this order
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup // goroutines

	// mu guards everything below, and what processes say is guarded. No call of
	// a store runs under it.
	mu        sync.Mutex
	changed   chan struct{} // closed and made anew when something has happened to a process
	processes []*Process    // all there ever were
	roles     map[string]*Process
	wanted    map[string]bool // roles that somebody asks for
	activity  uint64          // grows with whatever happens
	calling   int             // calls of the store that it has not answered
	elapsed   time.Duration
	sleepers  []sleeper
	finished  bool // the script is
	scriptErr error
	done      bool // the writes that follow are not counted

	hits   int            // how many faults have happened
	since  int            // how many writes there were when the last one did
	writes []write        // in order
	times  map[string]int // of every text
	tokens map[lifecycle.Token]bool
	mute   map[lifecycle.Token]bool // commits that are never answered
	keys   map[lifecycle.Key]bool
	learnt []lifecycle.HistoryRow // what processes know to be written
	told   map[string]int         // messages that were committed
	tables map[string]managed

	discarded bool // some messages are

	outside effects
	wrong   []string
}

type sleeper struct {
	until time.Duration
	wake  chan struct{}
}

func newWorld(t testing.TB, h *Harness, s *scenario, inner lifecycle.Store, faults []*point) *world {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &world{
		t: t, h: h, s: s, inner: inner, faults: faults, ctx: ctx, cancel: cancel,
		changed: make(chan struct{}), roles: map[string]*Process{}, wanted: map[string]bool{},
		times: map[string]int{}, tokens: map[lifecycle.Token]bool{}, mute: map[lifecycle.Token]bool{},
		keys: map[lifecycle.Key]bool{}, told: map[string]int{}, tables: map[string]managed{},
		outside: effects{map[effectKey]int{}, map[effectKey]effect{}, map[lifecycle.Key]lifecycle.OpID{}},
	}
}

// errOver is why everything ends.
var errOver = errors.New("crashtest: the point is over")

// tell wakes who waits for a process. REQUIRES: w.mu.
func (w *world) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
	w.activity++
}

// unnoticed reports whether clients are to get the same answers as without a
// fault. REQUIRES: w.mu.
func (w *world) unnoticed() bool {
	return !slices.ContainsFunc(w.faults[:w.hits], func(p *point) bool { return !p.kind.unnoticed() })
}

// accuse notes what is wrong, each once. REQUIRES: w.mu.
func (w *world) accuse(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, before := range w.wrong {
		if before == text {
			return
		}
	}
	w.wrong = append(w.wrong, text)
}

func (w *world) blame(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accuse(format, args...)
}

func (w *world) knows(m managed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.tables[m.table.Name]; !ok || before.worker == "" {
		w.tables[m.table.Name] = m
	}
}

// await returns the process that plays a role, once there is one.
func (w *world) await(role string) (*Process, error) {
	if err := w.knowsRole(role); err != nil {
		return nil, err
	}
	for {
		w.mu.Lock()
		p, changed := w.roles[role], w.changed
		if p != nil && p.lives() {
			w.mu.Unlock()
			return p, nil
		}
		w.wanted[role] = true
		w.mu.Unlock()
		select {
		case <-changed:
		case <-w.ctx.Done():
			return nil, context.Cause(w.ctx)
		}
	}
}

// ask returns the process that was asked, nil if there was none.
func (w *world) ask(role, what string, f func(context.Context, *Process) error) (*Process, error) {
	p, err := w.await(role)
	if err != nil {
		return nil, err
	}
	answer := make(chan error, 1)
	p.run(what, func(ctx context.Context) error { return f(ctx, p) }, func(err error) { answer <- err })
	for {
		w.mu.Lock()
		changed, lost := w.changed, p.state == gone || p.state == over
		w.mu.Unlock()
		if lost {
			return p, ErrCrashed
		}
		select {
		case err := <-answer:
			return p, err
		case <-changed:
		case <-w.ctx.Done():
			return p, context.Cause(w.ctx)
		}
	}
}

func (w *world) sleep(d time.Duration) {
	s := sleeper{wake: make(chan struct{})}
	w.mu.Lock()
	s.until = w.elapsed + d
	w.sleepers = append(w.sleepers, s)
	w.activity++
	w.mu.Unlock()
	select {
	case <-s.wake:
	case <-w.ctx.Done():
	}
}

// knowsRole refuses a role that nobody will ever play.
func (w *world) knowsRole(role string) error {
	if slices.Contains(w.s.processes, role) {
		return nil
	}
	err := fmt.Errorf("crashtest: the scenario has no process %q", role)
	w.blame("%v", err)
	return err
}

func (w *world) kill(role string) {
	if w.knowsRole(role) != nil {
		return
	}
	w.mu.Lock()
	p := w.roles[role]
	w.roles[role] = nil
	w.mu.Unlock()
	if p == nil {
		return
	}
	p.stop(gone)
}

func (w *world) stop(role string) error {
	p, err := w.ask(role, "stop", func(ctx context.Context, p *Process) error {
		if err := p.queue.Terminate(ctx); err != nil {
			return err
		}
		if p.owner == nil {
			return nil
		}
		return p.owner.Leave(ctx)
	})
	if p == nil || errors.Is(err, ErrCrashed) {
		return err // another one comes, or has come
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.left = true
	if w.roles[role] == p {
		w.roles[role] = nil
	}
	w.tell()
	return err
}

// launch starts a process in a role.
func (w *world) launch(role, name string, heir bool) {
	p := &Process{
		w: w, role: role, name: name, heir: heir, queue: queue.Must[lifecycle.Key](nil),
		pending: map[*request]struct{}{},
	}
	p.store = &store{p: p, inner: w.inner}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.roles[role] = p
	delete(w.wanted, role)
	w.tell()
	w.mu.Unlock()
	p.start()
}

// transitional returns the names of the states of a table that somebody owes a
// move in.
func transitional(t *fsm.Table) (states []string) {
	for _, st := range t.States {
		if st.Kind == fsm.Transitional {
			states = append(states, st.Name)
		}
	}
	return states
}
