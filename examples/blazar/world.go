package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// world is the store, the clock and the processes. Its methods do nothing after the first
// error.
type world struct {
	out       io.Writer
	store     *lifecycle.MemoryStore
	hosts     *hosts
	processes []*process
	err       error

	mu  sync.Mutex
	now time.Time // the clock of the leases
}

func newWorld(out io.Writer) *world {
	return &world{out: out, store: &lifecycle.MemoryStore{KeepHistory: -1}, hosts: newHosts(), now: hour(0)}
}

// hour returns the time so many hours after the begin.
func hour(n int) time.Time { return time.Date(2030, 1, 1, 8+n, 0, 0, 0, time.UTC) }

// advance advances the clock by hours.
func (w *world) advance(hours int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Duration(hours) * time.Hour)
}

// process is one process of the service.
type process struct {
	*blazar.Service
	name  string
	die   context.CancelFunc
	ended chan struct{} // closed after its last heartbeat
}

// start starts a process. It is considered dead if it sends no heartbeat within ttl.
func (w *world) start(ctx context.Context, name string, ttl time.Duration) (*process, error) {
	owner, err := lifecycle.Join(ctx, w.store, name, ttl)
	if err != nil {
		return nil, err
	}
	service, err := blazar.New(w.store, &blazar.Config{
		Now:      func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Patience: 50 * time.Millisecond, Owner: owner, Queue: queue.Must[lifecycle.Key](nil), Plugins: w.hosts.plugins(),
	})
	if err != nil {
		return nil, err
	}
	life, die := context.WithCancel(ctx)
	p := &process{Service: service, name: name, die: die, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = owner.Run(life) // until the process dies
	}()
	w.processes = append(w.processes, p)
	return p, nil
}

// kill ends a process: it sends no heartbeat any more.
func (w *world) kill(p *process) {
	p.die()
	<-p.ended
	w.printf("  %s is killed", p.name)
}

// close ends the processes and the calls of plugins that hang.
func (w *world) close() {
	close(w.hosts.wake)
	for _, p := range w.processes {
		p.die()
		<-p.ended
	}
}

func (w *world) printf(format string, args ...any) {
	if w.err == nil {
		fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// note keeps the first error, and prints the calls of plugins.
func (w *world) note(err error) {
	if w.err == nil {
		w.err = err
	}
	for _, call := range w.hosts.take() {
		w.printf("  %s", call)
	}
}

// refused prints a refusal, which must match a sentinel.
func (w *world) refused(err, sentinel error) {
	if !errors.Is(err, sentinel) {
		w.note(fmt.Errorf("got %w, want %v", err, sentinel))
	}
	w.note(nil)
	w.printf("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

// create creates a lease between two hours.
func (w *world) create(ctx context.Context, p *process, id string, start, end int, resources ...string) {
	spec := blazar.LeaseSpec{Name: id, Start: hour(start), End: hour(end)}
	for _, r := range resources {
		spec.Reservations = append(spec.Reservations, blazar.Request{Resource: r, Amount: 1})
	}
	_, err := p.CreateLease(ctx, id, spec)
	w.note(err)
}

// process executes the events that are due.
func (w *world) process(ctx context.Context, p *process) {
	handled, err := p.Process(ctx)
	w.note(err)
	for _, h := range handled {
		w.printf("  %s of %s: %s", h.Type, h.Lease, h.Status)
	}
}

// sweep sweeps until an object is found.
func (w *world) sweep(ctx context.Context, p *process) {
	for w.err == nil {
		results, err := p.Sweep(ctx)
		w.note(err)
		for _, r := range results {
			w.printf("  %s sweeps %s of %s: %v to %s", p.name, r.ID, r.Owner, r.Resolution, r.To)
		}
		if len(results) > 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			w.note(lifecycle.Ended(ctx))
		}
	}
}

// show prints leases.
func (w *world) show(ctx context.Context, p *process, ids ...string) {
	for _, id := range ids {
		l, err := p.GetLease(ctx, id)
		w.note(err)
		text := fmt.Sprintf("  %s: %s", id, l.Status)
		if l.Degraded {
			text += ", degraded"
		}
		for _, r := range l.Reservations {
			text += fmt.Sprintf(", %s %s", r.Resource, r.Status)
		}
		w.printf("%s", text)
	}
}
