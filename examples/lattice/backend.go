package main

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

// backend is one process: a controller and its simulated infrastructure. Work ends at
// once, except for held jobs, which end after their answer.
type backend struct {
	*lattice.Controller

	jobs map[string]*job // by name, such as "deploy shop/d1"; does not change
}

// job is work that is held.
type job struct {
	started chan struct{} // closed when it starts
	once    sync.Once
	answer  chan error
}

// newBackend starts a process that holds these jobs.
func newBackend(ctx context.Context, store lifecycle.Store, hold ...string) (*backend, error) {
	b := &backend{jobs: map[string]*job{}}
	for _, name := range hold {
		b.jobs[name] = &job{started: make(chan struct{}), answer: make(chan error, 1)}
	}
	action := func(verb string) func(context.Context, lattice.Running) error {
		return func(ctx context.Context, r lattice.Running) error {
			return b.perform(ctx, verb+" "+string(r.System)+"/"+r.ID)
		}
	}
	var err error
	b.Controller, err = lattice.Start(ctx, store, lattice.Infrastructure{
		Initialize: func(_ context.Context, s lattice.SystemID) error {
			if s == "park" {
				return errors.New("the definition is invalid")
			}
			return nil
		},
		Build: action("build"), Deploy: action("deploy"), Teardown: action("teardown"),
	}, nil)
	return b, err
}

func (b *backend) perform(ctx context.Context, name string) error {
	j := b.jobs[name]
	if j == nil {
		return nil
	}
	j.once.Do(func() { close(j.started) })
	select {
	case err := <-j.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits until held jobs have started.
func (b *backend) await(ctx context.Context, names ...string) error {
	for _, name := range names {
		select {
		case <-b.jobs[name].started:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	return nil
}

// answer ends a held job.
func (b *backend) answer(ctx context.Context, name string, result error) error {
	if err := b.await(ctx, name); err != nil {
		return err
	}
	b.jobs[name].answer <- result
	return nil
}
