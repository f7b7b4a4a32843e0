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
// of the same name is another Process. The harness makes them. It is safe for
// concurrent use.
type Process struct {
	w     *world
	role  string
	name  string
	heir  bool // it comes after another one
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
	gate    chan struct{} // closed when a process that does not run does so again, or the point is over
	ready   bool          // Start has succeeded
	failed  error         // Start has not
	lost    bool          // its ownership is
	forGood bool          // nobody of its name comes back
	left    bool          // in good order
	heeded  bool          // its end, or its standing still, was taken notice of
	ticking bool
	pending map[*request]struct{}
}

// mode is whether a process gets on.
type mode uint8

const (
	runs   mode = iota
	paused      // stands still
	gone        // nothing happens in it any more
	over        // gone, and the point is over: what is left of it is to end
)

// managed is a manager without its type parameters.
type managed struct {
	table   *fsm.Table
	worker  fsm.Actor
	done    []string // the events by which work says that it was done
	sweep   func(context.Context) error
	recover func(context.Context) error
}

// request is something that a process is asked for, and has not answered.
type request struct{ what string }

// Role returns the name that the scenario has for the process.
func (p *Process) Role() string { return p.role }

// Name returns the name of the process as an owner: that of its role, or another
// one where the process before was to stay dead.
func (p *Process) Name() string { return p.name }

// Store returns the store as this process sees it.
func (p *Process) Store() lifecycle.Store { return p.store }

// Queue returns the queue of this process, which the managers share that
// [Manage] makes.
func (p *Process) Queue() *queue.Queuer[lifecycle.Key] { return p.queue }

// Join makes the process an owner with this time to live, see
// [lifecycle.Join]. It beats from then on at every tick. It is for Start, before
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

// Every has a function called at every tick, after the sweeps: for what a
// service does by itself. Its error says nothing. It is for Start.
func (p *Process) Every(f func(ctx context.Context) error) { p.daemons = append(p.daemons, f) }

// Manage makes a manager of this process. Where the configuration says nothing,
// Owner is what [Process.Join] made and Queue that of the process. It is for
// Start. The manager sweeps at every tick; in a process that comes after another
// one it recovers first.
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
	mgr := lifecycle.New(m, p.store, &c)
	kept := managed{
		table: m.Table(), worker: c.Worker,
		sweep: func(ctx context.Context) error { _, err := mgr.Sweep(ctx); return err },
	}
	kept.recover = kept.sweep
	if c.Owner != nil {
		kept.recover = func(ctx context.Context) error { _, err := mgr.Recover(ctx); return err }
	}
	for _, e := range c.Done {
		kept.done = append(kept.done, m.Table().Events[m.EventIndex(e)])
	}
	p.managers = append(p.managers, kept)
	p.w.knows(kept)
	return mgr
}

// enter waits while the process stands still. The error is [ErrCrashed] once the
// point is over for a process that is gone; until then nobody comes out.
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

// stop takes a process out of the running.
func (p *Process) stop(to mode) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.state == runs {
		p.state, p.gate = to, make(chan struct{})
		p.w.tell()
	}
}

// goOn lets what waits at the gate go on.
func (p *Process) goOn(to mode) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.state = to
	close(p.gate)
	p.w.tell()
}

// run has something done in the process, in a goroutine of its own. Who is told
// the answer is not told it by a process that is gone.
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

// start is what a process begins with.
func (p *Process) start() {
	p.run("start", func(ctx context.Context) error {
		app, err := p.w.s.start(ctx, p)
		if err != nil {
			return err
		}
		p.app = app
		if p.heir {
			for _, m := range p.managers {
				// What fails here is found by the next sweep.
				_ = m.recover(ctx)
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

// tick is what a process does by itself.
func (p *Process) tick() {
	p.w.mu.Lock()
	p.ticking = true
	p.w.mu.Unlock()
	p.run("beat and sweep", func(ctx context.Context) error {
		if p.owner != nil {
			if err := p.owner.Beat(ctx); errors.Is(err, lifecycle.ErrStale) {
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
