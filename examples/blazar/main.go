// Blazar leases hosts and networks by the hour. Three leases follow each other on one
// host and are processed late. The start of a lease fails, an update is refused, a host
// degrades, and a process is killed during a start.
//
// It prints calls of plugins, refusals and statuses. A resource refuses a second holder. The
// program fails if a lease ends in a wrong status, or if a resource is not released.
package main

import (
	"context"
	"encoding/json"
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

// run runs the program with two processes, alpha and beta. A process that sends no heartbeat
// within ttl is considered dead.
func run(ctx context.Context, out io.Writer, ttl time.Duration) error {
	d := newDemo(out)
	ctx, stop := context.WithCancel(ctx)
	defer d.heartbeats.Wait() // an error means that a process was declared dead
	defer stop()
	d.alpha, _ = d.start(ctx, "alpha", ttl)
	beta, kill := d.start(ctx, "beta", ttl)
	if d.err != nil {
		return d.err
	}
	d.processLate(ctx)
	d.failStart(ctx)
	d.refuseUpdate(ctx)
	d.crashInStart(ctx, beta, kill)
	d.verify(ctx)
	return d.err
}

func (d *demo) processLate(ctx context.Context) {
	d.printf("lease-1, lease-2 and lease-3 follow each other on one host, and are processed late")
	d.create(ctx, "lease-1", 1, 2, "host")
	d.create(ctx, "lease-2", 2, 3, "host")
	d.create(ctx, "lease-3", 3, 9, "host")
	d.hours.Store(3)
	d.process(ctx, d.alpha)
	d.show(ctx, "lease-1", "lease-2", "lease-3")
}

func (d *demo) failStart(ctx context.Context) {
	d.printf("lease-4: the start of the network fails; the lease cannot end, and can be deleted")
	d.create(ctx, "lease-4", 4, 8, "rack", "network")
	d.hours.Store(4)
	d.process(ctx, d.alpha)
	d.show(ctx, "lease-4")
	_, err := d.alpha.EndLease(ctx, "lease-4")
	d.refused(err, lifecycle.ErrPrecondition)
	d.keep(d.alpha.DeleteLease(ctx, "lease-4"))
}

func (d *demo) refuseUpdate(ctx context.Context) {
	d.printf("lease-3: an update is refused; then resources are missing")
	_, err := d.alpha.UpdateLease(ctx, "lease-3", blazar.LeaseUpdate{End: hour(20), Attributes: json.RawMessage(`{"budget":2}`)})
	d.refused(err, blazar.ErrRefused)
	lease, err := d.alpha.GetLease(ctx, "lease-3")
	d.keep(err)
	d.printf("  lease-3 keeps its attributes: %s", lease.Spec.Attributes)
	for _, r := range lease.Reservations {
		d.keep(d.alpha.Flag(ctx, r.ID, blazar.Flags{MissingResources: true}))
	}
	d.show(ctx, "lease-3")
}

func (d *demo) crashInStart(ctx context.Context, beta *blazar.Service, kill func()) {
	d.printf("lease-5: beta is killed during the start")
	d.create(ctx, "lease-5", 5, 8, "rack")
	d.hours.Store(5)
	d.process(ctx, beta)
	d.show(ctx, "lease-5")
	kill()
	d.sweep(ctx)
	d.show(ctx, "lease-5")
	d.keep(d.alpha.DeleteLease(ctx, "lease-5"))
	d.hours.Store(9)
	d.process(ctx, d.alpha)
	d.show(ctx, "lease-3")
}

// verify checks that every lease is TERMINATED, and that every resource is released.
func (d *demo) verify(ctx context.Context) {
	leases, err := d.alpha.ListLeases(ctx)
	d.keep(err)
	for _, l := range leases {
		if l.Status != blazar.LeaseTerminated {
			d.keep(fmt.Errorf("%s ended in %s, not in TERMINATED", l.ID, l.Status))
		}
	}
	for kind, lease := range d.holders {
		d.keep(fmt.Errorf("%s still holds the %s", lease, kind))
	}
	d.printf("end: %d leases are TERMINATED, the others are deleted, and every resource is released", len(leases))
}
