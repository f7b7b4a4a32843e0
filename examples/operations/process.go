package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// process is one process of the service: its link to the store, its owner, its queue
// and its manager. The program can kill and pause it.
type process struct {
	link *link
	vms  *lifecycle.Manager[ovc.State, ovc.Event, struct{}]
	die  context.CancelFunc
	dead <-chan struct{} // closed when the process is killed

	mu     sync.Mutex
	holdUp chan struct{} // if not nil, the hypervisor answers after it is closed
}

// start starts a process. Its heartbeats are a goroutine of the group.
func start(ctx context.Context, store *lifecycle.MemoryStore, group *errgroup.Group, name string, ttl time.Duration) (*process, error) {
	p := &process{link: &link{MemoryStore: store}}
	owner, err := lifecycle.Join(ctx, p.link, name, ttl)
	if err != nil {
		return nil, err
	}
	ctx, p.die = context.WithCancel(ctx)
	p.dead = ctx.Done()
	p.vms = lifecycle.Must(ovc.VM, p.link, &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
		Handlers: map[string]lifecycle.Handler{"hypervisor": p.hypervisor},
		Owner:    owner,
		Queue:    queue.Must(&queue.Config[lifecycle.Key]{Base: ctx}),
	})
	group.Go(func() error {
		_ = owner.Run(ctx) // until the process dies, or finds that it was declared dead
		return nil
	})
	return p, nil
}

// begin starts an operation whose work is in the record.
func (p *process) begin(ctx context.Context, id string, e ovc.Event) (*lifecycle.Handle[ovc.State, struct{}], error) {
	return p.vms.Do(ctx, id, e, ovc.API, lifecycle.Named("hypervisor", nil), nil)
}

// complete starts an operation and waits until it has succeeded.
func (p *process) complete(ctx context.Context, id string, e ovc.Event) error {
	h, err := p.begin(ctx, id, e)
	if err != nil {
		return err
	}
	_, err = h.Wait(ctx)
	return err
}

// hypervisor does the work of an operation. Like many clients of remote services it
// ignores its context, unless the process dies.
func (p *process) hypervisor(context.Context, []byte) error {
	p.mu.Lock()
	answer := p.holdUp
	p.mu.Unlock()
	if answer == nil {
		return nil
	}
	select {
	case <-answer:
		return nil
	case <-p.dead:
		return errDead
	}
}

// hold delays the answers of the hypervisor.
func (p *process) hold() {
	p.mu.Lock()
	p.holdUp = make(chan struct{})
	p.mu.Unlock()
}

// kill ends the process. Its calls do not reach the store any more.
func (p *process) kill() {
	p.link.set(true, nil)
	p.die()
}

// pause stops the process at its next call of the store.
func (p *process) pause() { p.link.set(false, make(chan struct{})) }

// resume ends the pause and the delay of the hypervisor.
func (p *process) resume() {
	p.link.set(false, nil)
	p.mu.Lock()
	close(p.holdUp)
	p.holdUp = nil
	p.mu.Unlock()
}

// link is the connection of a process to the store.
type link struct {
	*lifecycle.MemoryStore

	mu     sync.Mutex
	dead   bool
	paused chan struct{} // closed when the pause is over; nil: no pause
}

var errDead = errors.New("the process is dead")

func (l *link) set(dead bool, paused chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused != nil {
		close(l.paused)
	}
	l.dead, l.paused = dead, paused
}

// pass waits until a call may reach the store.
func (l *link) pass() error {
	for {
		l.mu.Lock()
		dead, paused := l.dead, l.paused
		l.mu.Unlock()
		if dead {
			return errDead
		}
		if paused == nil {
			return nil
		}
		<-paused
	}
}

// Get implements [lifecycle.Store].
func (l *link) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := l.pass(); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	return l.MemoryStore.Get(ctx, k)
}

// Commit implements [lifecycle.Store].
func (l *link) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := l.pass(); err != nil {
		return err
	}
	return l.MemoryStore.Commit(ctx, c)
}

// List implements [lifecycle.Store].
func (l *link) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.MemoryStore.List(ctx, q)
}
