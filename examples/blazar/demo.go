package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// demo is the store, the clock and the processes. It keeps the first error, and prints
// nothing after it.
type demo struct {
	out       io.Writer
	store     *lifecycle.MemoryStore
	hosts     *hosts
	processes []*process
	group     errgroup.Group // the heartbeats of the processes
	hours     atomic.Int64   // the clock of the leases
	err       error
}

func newDemo(out io.Writer) *demo {
	return &demo{out: out, store: lifecycle.NewMemoryStore(), hosts: newHosts()}
}

// hour returns the time n hours after the start of the clock.
func hour(n int64) time.Time { return time.Date(2030, 1, 1, 8+int(n), 0, 0, 0, time.UTC) }

// process is one process of the service.
type process struct {
	*blazar.Service
	name string
	kill context.CancelFunc // ends the heartbeats
}

// start starts a process. It is considered dead if it sends no heartbeat within ttl.
func (d *demo) start(ctx context.Context, name string, ttl time.Duration) (*process, error) {
	owner, err := lifecycle.Join(ctx, d.store, name, ttl)
	if err != nil {
		return nil, err
	}
	service, err := blazar.New(d.store, &blazar.Config{
		Now:      func() time.Time { return hour(d.hours.Load()) },
		Patience: 50 * time.Millisecond, Owner: owner, Queue: queue.Must[lifecycle.Key](nil), Plugins: d.hosts.plugins(),
	})
	if err != nil {
		return nil, err
	}
	alive, kill := context.WithCancel(ctx)
	d.group.Go(func() error { return owner.Run(alive) })
	p := &process{service, name, kill}
	d.processes = append(d.processes, p)
	return p, nil
}

// close ends the processes and the calls of plugins that hang.
func (d *demo) close() {
	close(d.hosts.wake)
	for _, p := range d.processes {
		p.kill()
	}
	_ = d.group.Wait() // an error means that a process was declared dead
}

func (d *demo) printf(format string, args ...any) {
	if d.err == nil {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

// keep keeps the first error, and prints the calls of plugins.
func (d *demo) keep(err error) {
	if d.err == nil {
		d.err = err
	}
	for _, call := range d.hosts.take() {
		d.printf("  %s", call)
	}
}

// refused prints a refusal, which must match a sentinel.
func (d *demo) refused(err, sentinel error) {
	if !errors.Is(err, sentinel) {
		d.keep(fmt.Errorf("got %w, want %v", err, sentinel))
	}
	d.keep(nil)
	d.printf("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

// create creates a lease between two hours.
func (d *demo) create(ctx context.Context, p *process, id string, start, end int64, resources ...string) {
	spec := blazar.LeaseSpec{Name: id, Start: hour(start), End: hour(end), Attributes: json.RawMessage(`{"budget":1}`)}
	for _, r := range resources {
		spec.Reservations = append(spec.Reservations, blazar.Request{Resource: r, Amount: 1})
	}
	_, err := p.CreateLease(ctx, id, spec)
	d.keep(err)
}

// process processes the events that are due.
func (d *demo) process(ctx context.Context, p *process) {
	handled, err := p.Process(ctx)
	d.keep(err)
	for _, h := range handled {
		d.printf("  %s of %s: %s", h.Type, h.Lease, h.Status)
	}
}

// sweep sweeps until an object is found.
func (d *demo) sweep(ctx context.Context, p *process) {
	for d.err == nil {
		results, err := p.Sweep(ctx)
		d.keep(err)
		for _, r := range results {
			d.printf("  %s sweeps %s of %s: %v to %s", p.name, r.ID, r.Owner, r.Resolution, r.To)
		}
		if len(results) > 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			d.keep(lifecycle.Ended(ctx))
		}
	}
}

// show prints the statuses of leases and their reservations.
func (d *demo) show(ctx context.Context, p *process, ids ...string) {
	for _, id := range ids {
		l, err := p.GetLease(ctx, id)
		d.keep(err)
		text := fmt.Sprintf("  %s: %s", id, l.Status)
		if l.Degraded {
			text += ", degraded"
		}
		for _, r := range l.Reservations {
			text += fmt.Sprintf(", %s %s", r.Resource, r.Status)
		}
		d.printf("%s", text)
	}
}
