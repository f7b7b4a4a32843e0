package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// demo is the store, the clock, the resources and process alpha. It keeps the first error, and
// prints nothing after it.
type demo struct {
	store      *lifecycle.MemoryStore
	hours      atomic.Int64 // the clock of the leases
	alpha      *blazar.Service
	heartbeats errgroup.Group // of all processes

	mu      sync.Mutex // guards what follows: plugins print in other goroutines
	err     error      // only the goroutine of run sets it, and reads it without the mutex
	out     io.Writer
	holders map[string]string // the lease by resource: one host, one rack and one network
}

func newDemo(out io.Writer) *demo {
	return &demo{out: out, store: lifecycle.NewMemoryStore(), holders: map[string]string{}}
}

// hour returns the time n hours after the start of the clock.
func hour(n int64) time.Time { return time.Date(2030, 1, 1, 8+int(n), 0, 0, 0, time.UTC) }

// start starts a process. It is considered dead if it sends no heartbeat within ttl. Function
// kill ends its heartbeats.
func (d *demo) start(ctx context.Context, name string, ttl time.Duration) (p *blazar.Service, kill func()) {
	owner, err := lifecycle.Join(ctx, d.store, name, ttl)
	if err != nil {
		d.keep(err)
		return nil, nil
	}
	p, err = blazar.New(d.store, &blazar.Config{
		Now:      func() time.Time { return hour(d.hours.Load()) },
		Patience: 50 * time.Millisecond, Owner: owner, Queue: queue.Must(&queue.Config[lifecycle.Key]{Base: ctx}),
		Plugins: map[string]blazar.Plugin{"host": d.plugin("host"), "rack": d.plugin("rack"), "network": d.plugin("network")},
	})
	d.keep(err)
	alive, kill := context.WithCancel(ctx)
	d.heartbeats.Go(func() error { return owner.Run(alive) })
	return p, kill
}

// faults are the calls of plugins that do not succeed.
var faults = map[string]func(context.Context) error{
	"start network for lease-4": func(context.Context) error { return errors.New("the switch is down") },
	"update host for lease-3": func(context.Context) error {
		return fmt.Errorf("%w: reserved by another lease", blazar.ErrRefused)
	},
	"start rack for lease-5": func(ctx context.Context) error {
		<-ctx.Done() // the call hangs
		return context.Cause(ctx)
	},
}

// plugin returns the plugin of a resource, which one lease holds at a time.
func (d *demo) plugin(kind string) blazar.Plugin {
	call := func(verb string) func(context.Context, blazar.Allocation) error {
		return func(ctx context.Context, a blazar.Allocation) error { return d.call(ctx, verb, kind, a.Lease) }
	}
	return blazar.Plugin{Update: call("update"), OnStart: call("start"), OnEnd: call("release")}
}

func (d *demo) call(ctx context.Context, verb, kind, lease string) error {
	call := fmt.Sprintf("%s %s for %s", verb, kind, lease)
	d.printf("  %s", call)
	if fault := faults[call]; fault != nil {
		return fault(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch holder, held := d.holders[kind]; {
	case verb == "start" && held:
		return fmt.Errorf("%s holds the %s", holder, kind)
	case verb == "start":
		d.holders[kind] = lease
	case verb == "release" && holder == lease:
		delete(d.holders, kind)
	}
	return nil
}

func (d *demo) printf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

// keep keeps the first error.
func (d *demo) keep(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

// refused prints a refusal, which must match a sentinel.
func (d *demo) refused(err, sentinel error) {
	if !errors.Is(err, sentinel) {
		d.keep(fmt.Errorf("got %w, want %v", err, sentinel))
	}
	d.printf("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

// create creates a lease between two hours.
func (d *demo) create(ctx context.Context, id string, start, end int64, resources ...string) {
	spec := blazar.LeaseSpec{Name: id, Start: hour(start), End: hour(end), Attributes: json.RawMessage(`{"budget":1}`)}
	for _, r := range resources {
		spec.Reservations = append(spec.Reservations, blazar.Request{Resource: r, Amount: 1})
	}
	_, err := d.alpha.CreateLease(ctx, id, spec)
	d.keep(err)
}

// process processes the events that are due.
func (d *demo) process(ctx context.Context, p *blazar.Service) {
	handled, err := p.Process(ctx)
	d.keep(err)
	for _, h := range handled {
		d.printf("  %s of %s: %s", h.Type, h.Lease, h.Status)
	}
}

// sweep sweeps until an object is found.
func (d *demo) sweep(ctx context.Context) {
	for found := false; !found && d.err == nil; {
		results, err := d.alpha.Sweep(ctx)
		d.keep(err)
		for _, r := range results {
			d.printf("  alpha sweeps %s of %s: %v to %s", r.ID, r.Owner, r.Resolution, r.To)
			found = true
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// show prints the statuses of leases and their reservations.
func (d *demo) show(ctx context.Context, ids ...string) {
	for _, id := range ids {
		l, err := d.alpha.GetLease(ctx, id)
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
