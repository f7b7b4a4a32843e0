package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// story tells steps until one goes wrong.
type story struct {
	ctx    context.Context // of one run, which is one call
	out    io.Writer
	store  *lifecycle.MemoryStore
	c      *edgecloud.Coordinator
	sites  map[string]*site
	notify int64 // the last notify id that a connection got
	err    error
}

func (s *story) say(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// note keeps the first error.
func (s *story) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// must fails the story if something is not so.
func (s *story) must(ok bool, format string, args ...any) {
	if !ok {
		s.note(fmt.Errorf(format, args...))
	}
}

// refused fails the story unless something was refused for that reason.
func (s *story) refused(err, reason error) {
	if !errors.Is(err, reason) {
		s.note(fmt.Errorf("it was to be refused as %q, and is: %w", reason, err))
		return
	}
	s.say("  %v", err)
}

// is fails the story unless a cluster is in a state, with so many nodes.
func (s *story) is(id string, state edgecloud.State, nodes int) {
	rec, err := s.c.Clusters.Get(s.ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		rec.State, err = edgecloud.NotPresent, nil
	}
	s.note(err)
	s.must(rec.State == state && rec.Payload.Nodes == nodes, "%s is %s with %d nodes, not %s with %d",
		id, rec.State, rec.Payload.Nodes, state, nodes)
	s.say("  %s is %s", id, state)
}

// report is a message of a CRM about a cluster, and what it should be.
func (s *story) report(id string, op lifecycle.OpID, state edgecloud.State, want lifecycle.Verdict) {
	v, err := s.c.Clusters.Receive(s.ctx, edgecloud.Info{ID: id, Operation: op, State: state})
	s.note(err)
	s.must(v == want, "%s %s in operation %d is %v, not %v", id, state, op, v, want)
	s.say("  %s in operation %d: %v", state, op, v)
}

// restart is a controller that has crashed, and is started again: all that it
// knows is in the store.
func (s *story) restart() { s.c = edgecloud.NewCoordinator(s.store, nil) }

// connect is a CRM that starts, or comes back: the controller answers, it says
// what it has, and is Ready.
func (s *story) connect(cloudlet, version string) {
	if s.err != nil {
		return
	}
	at := s.sites[cloudlet]
	if at == nil {
		at = newSite(s)
		s.sites[cloudlet] = at
	}
	s.notify++
	at.notify = s.notify
	_, err := s.c.Cloudlets.StartUp(s.ctx, cloudlet, at.notify, version)
	s.note(err)
	s.note(s.c.Cloudlets.Acknowledge(s.ctx, cloudlet, at.notify))
	all, err := at.crm.Account(s.ctx)
	s.note(err)
	r, err := s.c.Reconnect(s.ctx, cloudlet, at.notify, all)
	s.note(err)
	s.note(s.c.Cloudlets.Gathered(s.ctx, cloudlet, at.notify))
	s.say("  %s is Ready with %s under notify id %d: %d clusters and %d apps, %d to be asked for again",
		cloudlet, version, at.notify, len(all.Clusters), len(all.Apps), len(r.Clusters.Resend)+len(r.Apps.Resend))
}

// drop is a connection that is gone.
func (s *story) drop(cloudlet string) {
	moved, err := s.c.Cloudlets.Disconnected(s.ctx, cloudlet, s.sites[cloudlet].notify)
	s.note(err)
	s.must(moved, "%s is not offline", cloudlet)
}

// serve has the CRM of a cloudlet do what it is asked for.
func (s *story) serve(cloudlet string) {
	if s.err != nil {
		return
	}
	orders, err := s.c.Orders(s.ctx, cloudlet)
	s.note(err)
	for _, o := range orders {
		if err := s.sites[cloudlet].crm.Handle(s.ctx, o); err != nil && !errors.Is(err, errLost) {
			s.note(err)
		}
	}
}

func grow(nodes int) func(*edgecloud.ClusterSpec) error {
	return func(c *edgecloud.ClusterSpec) error { c.Nodes = nodes; return nil }
}

func appKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "appinst", ID: id} }
