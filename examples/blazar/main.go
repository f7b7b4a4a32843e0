// Blazar leases hosts and networks by the hour. Three leases follow each other on one
// host and are processed late. A start fails, another one hangs and its lease is deleted,
// an update is refused, a host degrades, and a process dies during a start.
//
// It prints calls of plugins, refusals and statuses. It fails if a host has two leases, if
// statuses of lease, reservations and events do not match, or if a lease ends in a wrong
// status.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "blazar:", err)
		os.Exit(1)
	}
}

// run runs the program with two processes. A process that sends no heartbeat within ttl is
// considered dead.
func run(ctx context.Context, out io.Writer, ttl time.Duration) error {
	w := newWorld(out)
	defer w.close()
	alpha, err := w.start(ctx, "alpha", ttl)
	if err != nil {
		return err
	}
	beta, err := w.start(ctx, "beta", ttl)
	if err != nil {
		return err
	}
	for _, part := range []func(){
		func() { w.processLate(ctx, alpha) },
		func() { w.failStart(ctx, alpha) },
		func() { w.hangStart(ctx, alpha) },
		func() { w.refuseUpdate(ctx, alpha) },
		func() { w.dieInStart(ctx, alpha, beta) },
	} {
		if part(); w.err != nil {
			return w.err
		}
	}
	return w.verify(ctx, alpha)
}

func (w *world) processLate(ctx context.Context, p *process) {
	w.printf("lease-1, lease-2 and lease-3 follow each other on one host, and are processed late")
	w.create(ctx, p, "lease-1", 1, 2, "host")
	w.create(ctx, p, "lease-2", 2, 3, "host")
	w.create(ctx, p, "lease-3", 3, 9, "host")
	w.advance(3)
	w.process(ctx, p)
	w.show(ctx, p, "lease-1", "lease-2", "lease-3")
}

func (w *world) failStart(ctx context.Context, p *process) {
	w.printf("lease-4: the start of the network fails; the lease cannot end, and can be deleted")
	w.create(ctx, p, "lease-4", 4, 8, "rack", "network")
	w.hosts.set("start network", "fails")
	w.advance(1)
	w.process(ctx, p)
	w.show(ctx, p, "lease-4")
	_, err := p.EndLease(ctx, "lease-4")
	w.refused(err, lifecycle.ErrPrecondition)
	w.note(p.DeleteLease(ctx, "lease-4"))
}

func (w *world) hangStart(ctx context.Context, p *process) {
	w.printf("lease-5: the start hangs, and the lease is deleted")
	w.create(ctx, p, "lease-5", 5, 8, "rack")
	w.hosts.set("start rack", "hangs")
	w.advance(1)
	w.process(ctx, p)
	w.show(ctx, p, "lease-5")
	w.note(p.DeleteLease(ctx, "lease-5"))
	_, err := p.GetLease(ctx, "lease-5")
	w.refused(err, lifecycle.ErrNotFound)
}

func (w *world) refuseUpdate(ctx context.Context, p *process) {
	w.printf("lease-3: an update is refused; then resources are missing")
	w.hosts.set("update host", "refuses")
	_, err := p.UpdateLease(ctx, "lease-3", blazar.LeaseUpdate{End: hour(20)})
	w.refused(err, blazar.ErrRefused)
	lease, err := p.GetLease(ctx, "lease-3")
	w.note(err)
	if w.err == nil {
		w.note(p.Flag(ctx, lease.Reservations[0].ID, blazar.Flags{MissingResources: true}))
	}
	w.show(ctx, p, "lease-3")
}

func (w *world) dieInStart(ctx context.Context, p, dies *process) {
	w.printf("lease-6: %s dies during the start", dies.name)
	w.create(ctx, p, "lease-6", 6, 8, "rack")
	w.hosts.set("start rack", "hangs")
	w.advance(1)
	w.process(ctx, dies)
	w.show(ctx, p, "lease-6")
	w.kill(dies)
	w.sweep(ctx, p)
	w.show(ctx, p, "lease-6")
	w.note(p.DeleteLease(ctx, "lease-6"))
	w.advance(4)
	w.process(ctx, p)
	w.show(ctx, p, "lease-3")
}

// verify returns an error if a lease is in a wrong status, if statuses do not match, or if a
// lease has a host.
func (w *world) verify(ctx context.Context, p *process) error {
	leases, err := p.ListLeases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		var reservations []blazar.ReservationState
		for _, r := range l.Reservations {
			reservations = append(reservations, r.Status)
		}
		events := map[string]blazar.EventState{}
		for _, e := range l.Events {
			events[e.Type] = e.Status
		}
		derived := blazar.DeriveStatus(reservations, events[blazar.StartLease], events[blazar.EndLease])
		if l.Status != blazar.LeaseTerminated || derived != l.Status {
			return fmt.Errorf("%s is %s; by its reservations and events it is %s", l.ID, l.Status, derived)
		}
	}
	if err := w.hosts.verify(); err != nil {
		return err
	}
	w.printf("end: %d leases are TERMINATED, the others are deleted, and every host is free", len(leases))
	return nil
}
