package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// world is the controller and its cloudlets. Its methods do nothing after the first
// error.
type world struct {
	out    io.Writer
	store  *lifecycle.MemoryStore
	c      *edgecloud.Coordinator
	sites  map[string]*site
	notify int64 // the greatest notify id
	err    error
}

func (w *world) printf(format string, args ...any) {
	if w.err == nil {
		fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// note keeps the first error.
func (w *world) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// require keeps an error unless the condition holds.
func (w *world) require(ok bool, format string, args ...any) {
	if !ok {
		w.note(fmt.Errorf(format, args...))
	}
}

// refused prints a refusal, which must match a sentinel.
func (w *world) refused(err, sentinel error) {
	w.require(errors.Is(err, sentinel), "got %v, want %q", err, sentinel)
	w.printf("  %v", err)
}

// requireCluster prints the state of a cluster, which must be this one.
func (w *world) requireCluster(ctx context.Context, id string, state edgecloud.State, nodes int) {
	rec, err := w.c.Clusters.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		rec.State, err = edgecloud.NotPresent, nil
	}
	w.note(err)
	w.require(rec.State == state && rec.Payload.Nodes == nodes, "%s is %s with %d nodes, not %s with %d",
		id, rec.State, rec.Payload.Nodes, state, nodes)
	w.printf("  %s: %s", id, state)
}

// report sends a report about a cluster, and prints the verdict, which must be this one.
func (w *world) report(ctx context.Context, id string, op lifecycle.OpID, state edgecloud.State, want lifecycle.Verdict) {
	v, err := w.c.Clusters.Receive(ctx, edgecloud.Report{ID: id, Operation: op, State: state})
	w.note(err)
	w.require(v == want, "%s %s in operation %d is %v, not %v", id, state, op, v, want)
	w.printf("  report %s in operation %d: %v", state, op, v)
}

// restart replaces the controller. All its state is in the store.
func (w *world) restart() {
	c, err := edgecloud.NewCoordinator(w.store, nil)
	w.note(err)
	w.c = c
}

// connect starts a CRM or connects it again: the controller acknowledges, and the CRM
// sends its account and is Ready.
func (w *world) connect(ctx context.Context, cloudlet, version string) {
	if w.err != nil {
		return
	}
	s := w.sites[cloudlet]
	if s == nil {
		s = &site{present: map[lifecycle.Key]edgecloud.Order{}, world: w}
		w.sites[cloudlet] = s
		w.note(s.crash())
	}
	w.notify++
	s.notify = w.notify
	_, err := w.c.Cloudlets.StartUp(ctx, cloudlet, s.notify, version)
	w.note(err)
	w.note(w.c.Cloudlets.Acknowledge(ctx, cloudlet, s.notify))
	all, err := s.crm.Account(ctx)
	w.note(err)
	r, err := w.c.Reconnect(ctx, cloudlet, s.notify, all)
	w.note(err)
	w.note(w.c.Cloudlets.Gathered(ctx, cloudlet, s.notify))
	w.printf("  %s: Ready with %s, notify id %d, %d clusters, %d apps, %d orders to send again",
		cloudlet, version, s.notify, len(all.Clusters), len(all.Apps), len(r.Clusters.Resend)+len(r.Apps.Resend))
}

// serve makes the CRM of a cloudlet carry out its orders.
func (w *world) serve(ctx context.Context, cloudlet string) {
	if w.err != nil {
		return
	}
	orders, err := w.c.Orders(ctx, cloudlet)
	w.note(err)
	for _, o := range orders {
		if err := w.sites[cloudlet].crm.Handle(ctx, o); !errors.Is(err, errLost) {
			w.note(err)
		}
	}
}

func setNodes(n int) func(*edgecloud.ClusterSpec) error {
	return func(c *edgecloud.ClusterSpec) error { c.Nodes = n; return nil }
}

func appKey(id string) lifecycle.Key {
	return lifecycle.Key{Machine: edgecloud.AppInst.Name(), ID: id}
}
