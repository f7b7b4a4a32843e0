package crashtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Process is one process of a scenario, from its start to its end; the next one of the
// same name is another Process. Run makes them; the zero Process is not usable. It is safe
// for concurrent use and must not be copied.
type Process struct {
	sim       *simulation
	role      string
	name      string // as an owner: its role, or another one if no process of the earlier name starts again
	successor bool   // it replaces another process
	store     *simulatedStore
	queue     *queue.Queuer[lifecycle.Key]

	// Set by Start, in one goroutine, before the process is ready.
	owner    *lifecycle.Owner
	managers []manager
	every    []func(ctx context.Context) error
	app      any
	ticking  bool // written where no other goroutine runs in between

	// Guarded by sim.mu.
	state    processState
	ready    bool // Start has succeeded
	failed   bool // Start has failed, or its ownership is lost
	left     bool // Clients.Stop has ended it
	hit      bool // the fault has happened in it
	replaced bool
	pending  map[*string]bool // requests that are not answered
}

// processState is whether a process makes progress.
type processState uint8

const (
	running processState = iota
	paused               // it stalls
	gone                 // nothing happens in it any more
	over                 // gone, and the point is over: its goroutines end
)

// manager is a [lifecycle.Manager] without its type parameters.
type manager struct {
	table  *fsm.Table
	worker fsm.Actor
	done   []string // the events that report that work was done
	sweep  func(context.Context) error
}

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
	if err == nil {
		p.owner = owner
	}
	return err
}

// Owner returns what Join has made, or nil.
func (p *Process) Owner() *lifecycle.Owner { return p.owner }

// Every registers a function that is called at every tick, after the sweeps. Its error is
// ignored. Every is for [Scenario].Start.
func (p *Process) Every(f func(ctx context.Context) error) { p.every = append(p.every, f) }

// Manage makes a manager of this process. The defaults of the configuration are the
// Owner that [Process.Join] made and the Queue of the process. Manage is for
// [Scenario].Start. The manager sweeps at every tick; in a process that replaces
// another one it also sweeps at the start.
func Manage[S, E comparable, T any](
	p *Process, m *fsm.Machine[S, E, T], config *lifecycle.Config[E],
) *lifecycle.Manager[S, E, T] {
	c := *cmp.Or(config, new(lifecycle.Config[E]))
	if c.Owner == nil {
		c.Owner = p.owner
	}
	if c.Queue == nil {
		c.Queue = p.queue
	}
	mgr := lifecycle.Must(m, p.store, &c)
	kept := manager{
		table: m.Table(), worker: c.WorkerActor,
		sweep: func(ctx context.Context) error { _, err := mgr.Sweep(ctx); return err },
	}
	for _, e := range c.Done {
		kept.done = append(kept.done, m.Table().Events[m.EventIndex(e)])
	}
	p.managers = append(p.managers, kept)
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	if before, ok := p.sim.managers[kept.table.Name]; !ok || before.worker == "" {
		p.sim.managers[kept.table.Name] = kept
	}
	return mgr
}

// enter waits while the process stalls or is gone. The error is errCrashed when the
// point is over.
func (p *Process) enter() error {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	for p.state == paused || p.state == gone {
		p.sim.changed.Wait()
	}
	if p.state == over {
		return errCrashed
	}
	return nil
}

// become ends or pauses a process that runs, or releases the calls that wait in enter. A process
// that was paused finds at its next heartbeat that its ownership is lost.
func (p *Process) become(state processState) {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	if p.state == running || state == running || state == over {
		p.state = state
		p.sim.changed.Broadcast()
	}
}

// run calls f in the process, in a goroutine of its own, and answer with its result, under
// sim.mu. A process that is gone gives no answer before the point is over.
func (p *Process) run(what string, f func(ctx context.Context) error, answer func(error)) {
	request := &what
	p.sim.mu.Lock()
	p.pending[request] = true
	p.sim.mu.Unlock()
	p.sim.all.Go(func() {
		err := f(p.sim.ctx)
		_ = p.enter()
		p.sim.mu.Lock()
		defer p.sim.mu.Unlock()
		delete(p.pending, request)
		answer(err)
		p.sim.changed.Broadcast()
	})
}

// start calls [Scenario].Start, and sweeps in a process that replaces another one.
func (p *Process) start() {
	p.run("start", func(ctx context.Context) error {
		app, err := p.sim.scenario.Start(ctx, p)
		if err != nil {
			return err
		}
		p.app = app
		if p.successor {
			for _, m := range p.managers {
				_ = m.sweep(ctx) // the next sweep tries again
			}
		}
		return nil
	}, func(err error) { p.ready, p.failed = err == nil, err != nil })
}

// tick sends the heartbeat, sweeps, and calls the functions of Every.
func (p *Process) tick() {
	p.ticking = true
	p.run("heartbeat and sweep", func(ctx context.Context) error {
		if p.owner != nil {
			if err := p.owner.Heartbeat(ctx); errors.Is(err, lifecycle.ErrStale) {
				p.sim.mu.Lock()
				p.failed = true
				p.sim.mu.Unlock()
				return nil
			}
		}
		for _, m := range p.managers {
			_ = m.sweep(ctx)
		}
		for _, f := range p.every {
			_ = f(ctx)
		}
		return nil
	}, func(error) { p.ticking = false })
}

// lives reports whether the process takes requests. REQUIRES: sim.mu, or that all goroutines
// wait.
func (p *Process) lives() bool { return p.state == running && p.ready && !p.failed && !p.left }

// waiting returns the requests and the work that the process has not ended. REQUIRES:
// sim.mu, or that all goroutines wait.
func (p *Process) waiting() (list []string) {
	for request := range p.pending {
		list = append(list, "no answer of "+p.name+": "+*request)
	}
	if s := p.queue.Stats(); s.Running+s.Waiting+s.Blocked > 0 {
		list = append(list, "work waits or runs in "+p.name)
	}
	slices.Sort(list)
	return list
}
