package main

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

// backend is what one process does to the world. It does everything at once, but
// for the jobs that are held: those take until the story answers.
type backend struct {
	*lattice.Controller

	mu   sync.Mutex
	jobs map[string]*job // by what is done, such as "deploy shop/d1"
}

// job is something that the backend is at, or will be.
type job struct {
	begun  chan struct{} // closed when it is
	once   sync.Once
	answer chan error
}

var errNoDefinition = errors.New("there is no such definition")

// start begins a process, which holds these jobs.
func start(ctx context.Context, store lifecycle.Store, hold ...string) (*backend, error) {
	b := &backend{jobs: map[string]*job{}}
	b.hold(hold...)
	action := func(verb string) func(context.Context, lattice.Running) error {
		return func(ctx context.Context, r lattice.Running) error {
			return b.do(ctx, verb+" "+string(r.System)+"/"+r.ID)
		}
	}
	var err error
	b.Controller, err = lattice.Start(ctx, store, lattice.Infrastructure{
		Initialize: func(_ context.Context, s lattice.SystemID) error {
			if s == "park" {
				return errNoDefinition
			}
			return nil
		},
		Build: action("build"), Deploy: action("deploy"), Teardown: action("teardown"),
	}, nil)
	return b, err
}

// hold makes jobs take until they are answered.
func (b *backend) hold(jobs ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, what := range jobs {
		b.jobs[what] = &job{begun: make(chan struct{}), answer: make(chan error, 1)}
	}
}

func (b *backend) job(what string) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jobs[what]
}

// do is the work itself.
func (b *backend) do(ctx context.Context, what string) error {
	j := b.job(what)
	if j == nil {
		return nil
	}
	j.once.Do(func() { close(j.begun) })
	select {
	case err := <-j.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begun waits until the backend is at held jobs.
func (b *backend) begun(ctx context.Context, jobs ...string) error {
	for _, what := range jobs {
		select {
		case <-b.job(what).begun:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	return nil
}
