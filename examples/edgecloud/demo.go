package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// demo is the controller, and the cloudlet berlin. It keeps the first error, and prints
// nothing after it. One goroutine uses it.
type demo struct {
	out        io.Writer
	store      *lifecycle.MemoryStore
	controller *edgecloud.Coordinator
	crm        *edgecloud.ResourceManager
	site       *site
	notify     int64 // of the connection of the CRM
	err        error
}

// newDemo starts the controller, and the CRM, which has no connection.
func newDemo(out io.Writer) *demo {
	d := &demo{out: out, store: lifecycle.NewMemoryStore(), site: &site{present: map[lifecycle.Key]edgecloud.Order{}}}
	d.restart()
	d.startCRM()
	return d
}

func (d *demo) printf(format string, args ...any) {
	if d.err == nil {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

// keep keeps the first error.
func (d *demo) keep(err error) {
	if d.err == nil {
		d.err = err
	}
}

// require keeps an error unless the condition holds.
func (d *demo) require(ok bool, format string, args ...any) {
	if !ok {
		d.keep(fmt.Errorf(format, args...))
	}
}

// refused prints a refusal, which must match a sentinel.
func (d *demo) refused(err, sentinel error) {
	d.require(errors.Is(err, sentinel), "got %v, want %q", err, sentinel)
	d.printf("  %v", err)
}

// requireCluster prints the state of a cluster, which must be this one.
func (d *demo) requireCluster(ctx context.Context, id string, state edgecloud.State, nodes int) {
	rec, err := d.controller.Clusters.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		rec.State, err = edgecloud.NotPresent, nil
	}
	d.keep(err)
	d.require(rec.State == state && rec.Payload.Nodes == nodes, "%s is %s with %d nodes, not %s with %d",
		id, rec.State, rec.Payload.Nodes, state, nodes)
	d.printf("  %s: %s", id, state)
}

// report sends a report about the operation of a cluster, and prints the verdict, which
// must be this one.
func (d *demo) report(ctx context.Context, c cluster, state edgecloud.State, want lifecycle.Verdict) {
	v, err := d.controller.Clusters.Receive(ctx, d.notify, edgecloud.Report{ID: c.ID, Operation: c.Operation, State: state})
	d.keep(err)
	d.require(v == want, "%s %s in operation %d is %v, not %v", c.ID, state, c.Operation, v, want)
	d.printf("  report %s in operation %d: %v", state, c.Operation, v)
}

// restart replaces the controller. All its state is in the store.
func (d *demo) restart() {
	c, err := edgecloud.NewCoordinator(d.store, nil)
	d.keep(err)
	d.controller = c
}

// startCRM replaces the CRM. The new one has no memory of the orders of the old one.
func (d *demo) startCRM() {
	crm, err := edgecloud.NewResourceManager(d.site, d.send)
	d.keep(err)
	d.crm = crm
}

// connect connects the CRM: the controller acknowledges, and the CRM sends its account and
// is Ready.
func (d *demo) connect(ctx context.Context, version string) {
	d.notify++
	_, err := d.controller.Cloudlets.StartUp(ctx, "berlin", d.notify, version)
	d.keep(err)
	d.keep(d.controller.Cloudlets.Acknowledge(ctx, "berlin", d.notify))
	all, err := d.crm.Account(ctx)
	d.keep(err)
	r, err := d.controller.Reconnect(ctx, "berlin", d.notify, all)
	d.keep(err)
	d.keep(d.controller.Cloudlets.Gathered(ctx, "berlin", d.notify))
	d.printf("  berlin: Ready with %s, notify id %d, %d clusters, %d apps, %d orders to send again",
		version, d.notify, len(all.Clusters), len(all.Apps), len(r.Clusters.Resend)+len(r.Apps.Resend))
}

// serve makes the CRM execute its orders.
func (d *demo) serve(ctx context.Context) {
	orders, err := d.controller.Orders(ctx, "berlin")
	d.keep(err)
	for _, o := range orders {
		if err := d.crm.Handle(ctx, o); !errors.Is(err, errLost) {
			d.keep(err)
		}
	}
}

// send sends a report of the CRM to the controller.
func (d *demo) send(ctx context.Context, k lifecycle.Key, r edgecloud.Report) error {
	if d.site.lose > 0 {
		d.site.lose--
		return errLost
	}
	_, err := d.controller.Answer(ctx, d.notify, k, r)
	return err
}
