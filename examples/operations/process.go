package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

type ticket = lifecycle.Ticket[ovc.State, struct{}]

// process is one process of the service: its owner, its queue and its manager. One
// goroutine uses it.
type process struct {
	vms        *lifecycle.Manager[ovc.State, ovc.Event, struct{}]
	queue      *queue.Queuer[lifecycle.Key]
	heartbeats errgroup.Group
	die        context.CancelFunc // ends the heartbeats
	kill       context.CancelFunc // ends the work
	answer     chan struct{}      // if not nil, the hypervisor answers after it is closed
	begun      chan struct{}      // receives when work begins that waits for the answer
}

// start starts a process. It is considered dead if it sends no heartbeat within ttl.
func start(ctx context.Context, store lifecycle.Store, name string, ttl time.Duration) (*process, error) {
	owner, err := lifecycle.Join(ctx, store, name, ttl)
	if err != nil {
		return nil, err
	}
	work, kill := context.WithCancel(ctx)
	alive, die := context.WithCancel(ctx)
	p := &process{kill: kill, die: die}
	p.queue = queue.Must(&queue.Config[lifecycle.Key]{Base: work})
	p.vms = lifecycle.Must(ovc.VM, store, &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
		Handlers: map[string]lifecycle.Handler{"hypervisor": p.hypervisor},
		Owner:    owner,
		Queue:    p.queue,
	})
	p.heartbeats.Go(func() error { return owner.Run(alive) })
	return p, nil
}

// close ends the heartbeats and the work of the process.
func (p *process) close(ctx context.Context) {
	p.die()
	p.kill()
	_ = p.heartbeats.Wait()                           // an error means that the process was declared dead
	_ = p.queue.Terminate(context.WithoutCancel(ctx)) // it waits for all work
}

// do starts an operation whose work is in the record.
func (p *process) do(ctx context.Context, id string, e ovc.Event) (*ticket, error) {
	return p.vms.Do(ctx, id, e, ovc.API, lifecycle.Named("hypervisor", nil), nil)
}

// begin starts an operation and waits until its work has begun.
func (p *process) begin(ctx context.Context, id string, e ovc.Event) (*ticket, error) {
	t, err := p.do(ctx, id, e)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.begun:
		return t, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// complete starts an operation and waits until it has succeeded.
func (p *process) complete(ctx context.Context, id string, e ovc.Event) error {
	t, err := p.do(ctx, id, e)
	if err != nil {
		return err
	}
	_, err = t.Wait(ctx)
	return err
}

// hypervisor does the work of an operation.
func (p *process) hypervisor(ctx context.Context, _ []byte) error {
	if p.answer == nil {
		return nil
	}
	select {
	case p.begun <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-p.answer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold delays the answers of the hypervisor to later operations.
func (p *process) hold() { p.answer, p.begun = make(chan struct{}), make(chan struct{}) }

// release ends the delay.
func (p *process) release() { close(p.answer) }
