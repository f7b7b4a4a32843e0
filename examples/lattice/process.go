package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

// process is one process: a controller and its simulated infrastructure. Work ends at
// once, except for held jobs, which end after their answer.
type process struct {
	*lattice.Controller

	out  io.Writer
	jobs map[string]*job // by name, such as "deploy shop/d1"; does not change
}

// job is work that is held.
type job struct {
	started chan struct{} // closed when it starts
	once    sync.Once
	answer  chan error
}

// start starts a process that holds these jobs.
func start(ctx context.Context, out io.Writer, store lifecycle.Store, hold ...string) (*process, error) {
	p := &process{out: out, jobs: map[string]*job{}}
	for _, name := range hold {
		p.jobs[name] = &job{started: make(chan struct{}), answer: make(chan error, 1)}
	}
	action := func(verb string) func(context.Context, lattice.Running) error {
		return func(ctx context.Context, r lattice.Running) error {
			return p.perform(ctx, verb+" "+string(r.System)+"/"+r.ID)
		}
	}
	var err error
	p.Controller, err = lattice.Start(ctx, store, lattice.Infrastructure{
		Initialize: func(_ context.Context, s lattice.SystemID) error {
			if s == "park" {
				return errors.New("the definition is invalid")
			}
			return nil
		},
		Build: action("build"), Deploy: action("deploy"), Teardown: action("teardown"),
	}, nil)
	return p, err
}

func (p *process) printf(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *process) perform(ctx context.Context, name string) error {
	j := p.jobs[name]
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
func (p *process) await(ctx context.Context, names ...string) error {
	for _, name := range names {
		select {
		case <-p.jobs[name].started:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	return nil
}

// answer ends a held job.
func (p *process) answer(ctx context.Context, name string, result error) error {
	if err := p.await(ctx, name); err != nil {
		return err
	}
	p.jobs[name].answer <- result
	return nil
}
