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

// World gives the clients of a scenario access to its processes and its time. The
// harness makes it for [Scenario].Script; the zero World is not usable. It is safe
// for concurrent use. Its methods are for goroutines of the script, not for those of
// processes.
type World[A any] struct{ w *world }

// Ask calls f in a process and returns its error, or [ErrCrashed] if the process is
// gone before f has returned. If there is no process of that role at the moment, Ask
// waits for the next one, and has it started if the script has killed the last one.
// A role that is none of [Scenario].Processes is a failure, also for Kill and Stop.
func (w *World[A]) Ask(role, what string, f func(ctx context.Context, app A) error) error {
	_, err := w.w.ask(role, what, func(ctx context.Context, p *Process) error { return f(ctx, p.app.(A)) })
	return err
}

// Insist calls Ask until the error is nil, with a tick in between. After a hundred
// attempts it is a failure.
func (w *World[A]) Insist(role, what string, f func(ctx context.Context, app A) error) error {
	for try := 1; ; try++ {
		err := w.Ask(role, what, f)
		if err == nil || w.w.ctx.Err() != nil {
			return err
		}
		if try == 100 {
			w.w.blame("%s: failed a hundred times: %v", what, err)
			return err
		}
		w.Pass(w.w.s.tick)
	}
}

// Pass lets at least d pass. The processes send heartbeats and sweep meanwhile.
func (w *World[A]) Pass(d time.Duration) { w.w.sleep(d) }

// Kill ends a process without warning. Another one is started for the next Ask, and
// for the end of the scenario if there is no other process.
func (w *World[A]) Kill(role string) { w.w.kill(role) }

// Stop waits for the work of a process and then ends its ownership. The next
// process starts as after Kill. The error is that of the queue, of
// [lifecycle.Owner.Leave], or [ErrCrashed].
func (w *World[A]) Stop(role string) error { return w.w.stop(role) }

// Apply is [Process.Apply] for a peer that is no process of the scenario.
func (w *World[A]) Apply(key lifecycle.Key, operation lifecycle.OpID) error {
	return (&Process{w: w.w}).Apply(key, operation)
}

// Faultless reports whether no fault has happened so far, or only faults that
// clients do not notice: a [LostRequest] or [LostAnswer], after which a manager sends
// the write again. A script may then check more.
func (w *World[A]) Faultless() bool {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	return w.w.unnoticed()
}

// Blame reports a failure at this point, as by fmt.Sprintf.
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

	// mu guards everything below, and the guarded fields of processes. No call of a
	// store runs under it.
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when a process has changed
	processes []*Process    // all of them, in order of their start
	roles     map[string]*Process
	wanted    map[string]bool // roles that a client waits for
	activity  uint64          // grows with every event
	calling   int             // calls that the store has not answered
	elapsed   time.Duration
	sleepers  []sleeper
	finished  bool // the script has returned scriptErr
	scriptErr error
	done      bool // later writes are not counted

	hits   int            // how many faults have happened
	since  int            // how many writes there were when the last one did
	writes []write        // in order
	times  map[string]int // of every text
	tokens map[lifecycle.Token]bool
	mute   map[lifecycle.Token]bool // commits that are never answered
	keys   map[lifecycle.Key]bool
	learnt []lifecycle.HistoryRow // acknowledged to a process
	sent   map[string]int         // messages that were committed
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
		keys: map[lifecycle.Key]bool{}, sent: map[string]int{}, tables: map[string]managed{},
		outside: effects{map[effectKey]int{}, map[effectKey]effect{}, map[lifecycle.Key]lifecycle.OpID{}},
	}
}

// errOver is the cause of all contexts at the end of a point.
var errOver = errors.New("crashtest: the point is over")

// tell wakes goroutines that wait for a process. REQUIRES: w.mu.
func (w *world) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
	w.activity++
}

// unnoticed reports whether clients must get the same answers as without a fault.
// REQUIRES: w.mu.
func (w *world) unnoticed() bool {
	return !slices.ContainsFunc(w.faults[:w.hits], func(p *point) bool { return !p.kind.unnoticed() })
}

// accuse notes a failure, each text once. REQUIRES: w.mu.
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

// await waits for a live process of a role.
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

// ask calls f in a process of a role and returns that process, or nil if there was
// none.
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

// knowsRole refuses a role that the scenario does not have.
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
		return err // another process replaces it
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

// transitional returns the names of the transitional states of a table.
func transitional(t *fsm.Table) (states []string) {
	for _, st := range t.States {
		if st.Kind == fsm.Transitional {
			states = append(states, st.Name)
		}
	}
	return states
}
