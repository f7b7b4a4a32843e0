// Blazar leases hosts and networks by the hour. Three leases follow each other on one
// host and are processed late. The start of a lease fails, an update is refused, a host
// degrades, and a process is killed during a start.
//
// It prints calls of plugins, refusals and statuses. It fails if two leases hold one
// resource at once, or if a lease ends in a wrong status.
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

// run runs the program with two processes. A process that sends no heartbeat within ttl is
// considered dead.
func run(ctx context.Context, out io.Writer, ttl time.Duration) error {
	d := newDemo(out)
	defer d.close()
	alpha, err := d.start(ctx, "alpha", ttl)
	if err != nil {
		return err
	}
	beta, err := d.start(ctx, "beta", ttl)
	if err != nil {
		return err
	}
	d.processLate(ctx, alpha)
	d.failStart(ctx, alpha)
	d.refuseUpdate(ctx, alpha)
	d.crashInStart(ctx, alpha, beta)
	d.verify(ctx, alpha)
	return d.err
}

func (d *demo) processLate(ctx context.Context, p *process) {
	d.printf("lease-1, lease-2 and lease-3 follow each other on one host, and are processed late")
	d.create(ctx, p, "lease-1", 1, 2, "host")
	d.create(ctx, p, "lease-2", 2, 3, "host")
	d.create(ctx, p, "lease-3", 3, 9, "host")
	d.hours.Add(3)
	d.process(ctx, p)
	d.show(ctx, p, "lease-1", "lease-2", "lease-3")
}

func (d *demo) failStart(ctx context.Context, p *process) {
	d.printf("lease-4: the start of the network fails; the lease cannot end, and can be deleted")
	d.create(ctx, p, "lease-4", 4, 8, "rack", "network")
	d.hosts.set("start network", errDown)
	d.hours.Add(1)
	d.process(ctx, p)
	d.show(ctx, p, "lease-4")
	_, err := p.EndLease(ctx, "lease-4")
	d.refused(err, lifecycle.ErrPrecondition)
	d.keep(p.DeleteLease(ctx, "lease-4"))
}

func (d *demo) refuseUpdate(ctx context.Context, p *process) {
	d.printf("lease-3: an update is refused; then resources are missing")
	d.hosts.set("update host", errRefused)
	_, err := p.UpdateLease(ctx, "lease-3", blazar.LeaseUpdate{End: hour(20), Attributes: json.RawMessage(`{"budget":2}`)})
	d.refused(err, blazar.ErrRefused)
	lease, err := p.GetLease(ctx, "lease-3")
	d.keep(err)
	d.printf("  lease-3 keeps its attributes: %s", lease.Spec.Attributes)
	if d.err == nil {
		d.keep(p.Flag(ctx, lease.Reservations[0].ID, blazar.Flags{MissingResources: true}))
	}
	d.show(ctx, p, "lease-3")
}

func (d *demo) crashInStart(ctx context.Context, p, crashes *process) {
	d.printf("lease-5: %s is killed during the start", crashes.name)
	d.create(ctx, p, "lease-5", 5, 8, "rack")
	d.hosts.set("start rack", errHangs)
	d.hours.Add(1)
	d.process(ctx, crashes)
	d.show(ctx, p, "lease-5")
	crashes.kill()
	d.sweep(ctx, p)
	d.show(ctx, p, "lease-5")
	d.keep(p.DeleteLease(ctx, "lease-5"))
	d.hours.Add(4)
	d.process(ctx, p)
	d.show(ctx, p, "lease-3")
}

// verify checks that every lease is TERMINATED, and that every resource had one holder at
// a time and is released.
func (d *demo) verify(ctx context.Context, p *process) {
	leases, err := p.ListLeases(ctx)
	d.keep(err)
	for _, l := range leases {
		if l.Status != blazar.LeaseTerminated {
			d.keep(fmt.Errorf("%s ended in %s, not in TERMINATED", l.ID, l.Status))
		}
	}
	d.keep(d.hosts.verify())
	d.printf("end: %d leases are TERMINATED, the others are deleted, and every resource is released", len(leases))
}
