package crashtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Process is one process of a scenario, from its start to its end; the next one
// of the same name is another Process. The harness makes them; the zero Process is
// not usable. It is safe for concurrent use and must not be copied.
type Process struct {
	w     *world
	role  string
	name  string
	heir  bool // it replaces another one
	store *store
	queue *queue.Queuer[lifecycle.Key]

	// Set by Start, in one goroutine, before the process is ready.
	owner    *lifecycle.Owner
	alive    lifecycle.StoredRecord // the owner's record after Join
	managers []managed
	daemons  []func(ctx context.Context) error
	app      any

	// Guarded by w.mu.
	state   mode
	gate    chan struct{} // closed when a process that does not run continues, or the point is over
	ready   bool          // Start has succeeded
	failed  error         // of Start
	lost    bool          // its ownership is
	forGood bool          // no process of its name starts again
	left    bool          // World.Stop has ended it
	heeded  bool          // supervise has noticed that it ended or stalls
	ticking bool
	pending map[*request]struct{}
}

// mode is whether a process makes progress.
type mode uint8

const (
	runs   mode = iota
	paused      // stalls
	gone        // nothing happens in it any more
	over        // gone, and the point is over: its goroutines end
)

// managed is a manager without its type parameters.
type managed struct {
	table  *fsm.Table
	worker fsm.Actor
	done   []string // the events that report that work was done
	sweep  func(context.Context) error
}

// request is a request that a process has not answered.
type request struct{ what string }

// Role returns the name that the scenario has for the process.
func (p *Process) Role() string { return p.role }

// Name returns the name of the process as an owner: that of its role, or another
// one if no process of the earlier name starts again.
func (p *Process) Name() string { return p.name }

// Store returns the store as this process sees it.
func (p *Process) Store() lifecycle.Store { return p.store }

// Queue returns the queue of this process. The managers that [Manage] makes share
// it.
func (p *Process) Queue() *queue.Queuer[lifecycle.Key] { return p.queue }

// Join makes the process an owner with this TTL, see [lifecycle.Join]. From then on
// the process sends a heartbeat at every tick. Join is for [Scenario].Start, before
// [Manage].
func (p *Process) Join(ctx context.Context, ttl time.Duration) error {
	owner, err := lifecycle.Join(ctx, p.store, p.name, ttl)
	if err != nil {
		return err
	}
	rec, err := p.store.Get(ctx, lifecycle.Key{Machine: ownersMachine, ID: p.name})
	if err == nil && uint64(rec.Operation) != owner.Epoch() {
		err = fmt.Errorf("%w: %s joined twice", lifecycle.ErrConflict, p.name)
	}
	if err != nil {
		return err
	}
	p.owner, p.alive = owner, rec
	return nil
}

// ownersMachine is the machine of the records of owners.
const ownersMachine = "interlock.owner"

// Owner returns what Join has made, or nil.
func (p *Process) Owner() *lifecycle.Owner { return p.owner }

// Every registers a function that is called at every tick, after the sweeps. Its
// error is ignored. Every is for [Scenario].Start.
func (p *Process) Every(f func(ctx context.Context) error) { p.daemons = append(p.daemons, f) }

// Manage makes a manager of this process. The defaults of the configuration are the
// Owner that [Process.Join] made and the Queue of the process. Manage is for
// [Scenario].Start. The manager sweeps at every tick; in a process that replaces
// another one it also sweeps at the start.
func Manage[S, E comparable, T any](p *Process, m *fsm.Machine[S, E, T], config *lifecycle.Config[E]) *lifecycle.Manager[S, E, T] {
	var c lifecycle.Config[E]
	if config != nil {
		c = *config
	}
	if c.Owner == nil {
		c.Owner = p.owner
	}
	if c.Queue == nil {
		c.Queue = p.queue
	}
	mgr := lifecycle.Must(m, p.store, &c)
	kept := managed{
		table: m.Table(), worker: c.WorkerActor,
		sweep: func(ctx context.Context) error { _, err := mgr.Sweep(ctx); return err },
	}
	for _, e := range c.Done {
		kept.done = append(kept.done, m.Table().Events[m.EventIndex(e)])
	}
	p.managers = append(p.managers, kept)
	p.w.knows(kept)
	return mgr
}

// enter waits while the process stalls or is gone. The error is [ErrCrashed] when
// the point is over.
func (p *Process) enter() error {
	for {
		p.w.mu.Lock()
		p.w.activity++
		state, gate := p.state, p.gate
		p.w.mu.Unlock()
		switch state {
		case runs:
			return nil
		case over:
			return ErrCrashed
		case paused, gone:
			<-gate
		}
	}
}

// stop ends or pauses a process that runs.
func (p *Process) stop(to mode) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.state == runs {
		p.state, p.gate = to, make(chan struct{})
		p.w.tell()
	}
}

// goOn releases the calls that wait at the gate.
func (p *Process) goOn(to mode) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.state = to
	close(p.gate)
	p.w.tell()
}

// run calls f in the process, in a goroutine of its own, and answer with its
// result. A process that is gone gives no answer before the point is over.
func (p *Process) run(what string, f func(ctx context.Context) error, answer func(error)) {
	r := &request{what}
	p.w.mu.Lock()
	p.pending[r] = struct{}{}
	p.w.mu.Unlock()
	p.w.all.Go(func() {
		err := f(p.w.ctx)
		_ = p.enter()
		p.w.mu.Lock()
		delete(p.pending, r)
		p.w.mu.Unlock()
		answer(err)
	})
}

// start calls [Scenario].Start, and sweeps in a process that replaces another one.
func (p *Process) start() {
	p.run("start", func(ctx context.Context) error {
		app, err := p.w.s.start(ctx, p)
		if err != nil {
			return err
		}
		p.app = app
		if p.heir {
			for _, m := range p.managers {
				// After an error the next sweep tries again.
				_ = m.sweep(ctx)
			}
		}
		return nil
	}, func(err error) {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.ready, p.failed = err == nil, err
		p.w.tell()
	})
}

// tick sends the heartbeat, sweeps, and calls the functions of Every.
func (p *Process) tick() {
	p.w.mu.Lock()
	p.ticking = true
	p.w.mu.Unlock()
	p.run("heartbeat and sweep", func(ctx context.Context) error {
		if p.owner != nil {
			if err := p.owner.Heartbeat(ctx); errors.Is(err, lifecycle.ErrStale) {
				p.w.mu.Lock()
				p.lost = true
				p.w.mu.Unlock()
				return nil
			}
		}
		for _, m := range p.managers {
			_ = m.sweep(ctx)
		}
		for _, f := range p.daemons {
			_ = f(ctx)
		}
		return nil
	}, func(error) {
		p.w.mu.Lock()
		p.ticking = false
		p.w.mu.Unlock()
	})
}

// lives reports whether the process takes requests. REQUIRES: w.mu.
func (p *Process) lives() bool { return p.state == runs && p.ready && !p.lost && !p.left }
