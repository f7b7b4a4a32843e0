package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The program creates this many clusters, each with this number of nodes.
const (
	wanted = 12
	nodes  = 3
)

func id(i int) string { return fmt.Sprintf("c-%02d", i) }

// waiting is the line that the service prints when all calls of the cloudlet hang.
const waiting = "all calls of the cloudlet hang"

type (
	manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]
	ticket  = lifecycle.Ticket[edgecloud.State, edgecloud.ClusterSpec]
)

// service is one process, with the manager of the clusters in the file and the
// cloudlet where they run.
type service struct {
	out      io.Writer
	clusters *manager
	cloudlet cloudlet
}

// serve runs a process of the service: it sweeps, and creates the missing clusters. The
// calls of a slow cloudlet do not return.
func serve(ctx context.Context, out io.Writer, dir string, slow bool) error {
	db, store, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer db.Close()
	owner, err := lifecycle.Join(ctx, store, "service", 0)
	if err != nil {
		return err
	}
	heartbeats, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return owner.Run(heartbeats) })

	s := &service{out: out, cloudlet: cloudlet{dir: dir}}
	if slow {
		s.cloudlet.hangs = make(chan struct{})
	}
	s.clusters = lifecycle.Must(edgecloud.ClusterInst, store, &lifecycle.Config[edgecloud.Event]{
		Owner: owner, WorkerActor: edgecloud.CRM,
		Done: []edgecloud.Event{edgecloud.Done}, Failed: []edgecloud.Event{edgecloud.Fail}, Undo: []edgecloud.Event{edgecloud.Undo},
		Handlers: map[string]lifecycle.Handler{"cloudlet": s.work}, Observe: s.observe,
	})
	err = s.recover(ctx)
	if err == nil {
		err = s.createAll(ctx)
	}
	stop()
	if err = errors.Join(err, group.Wait()); err != nil {
		return err
	}
	return errors.Join(owner.Leave(ctx), store.Close())
}

// recover sweeps the operations of an earlier process. A service that runs for longer
// calls [lifecycle.Run], which sweeps at an interval.
func (s *service) recover(ctx context.Context) error {
	left, err := s.clusters.Sweep(ctx)
	for _, r := range left {
		fmt.Fprintln(s.out, r)
	}
	fmt.Fprintf(s.out, "%d operations of a dead process were swept\n", len(left))
	return err
}

// observe checks whether the cloudlet has executed the operation of a stuck cluster.
func (s *service) observe(_ context.Context, stuck lifecycle.StoredRecord) (edgecloud.Event, fsm.Actor, error) {
	executed, err := s.cloudlet.executed(stuck.ID)
	if err != nil || !slices.Contains(executed, fmt.Sprintf("operation %d", stuck.Operation)) {
		return "", "", err // the deadline row fires
	}
	return edgecloud.Done, edgecloud.CRM, nil
}

// work is the handler that executes an operation at the cloudlet.
func (s *service) work(ctx context.Context, _ []byte) error {
	t := lifecycle.TaskOf(ctx)
	if _, err := s.clusters.Report(ctx, t.ID, t.Operation, edgecloud.Working, edgecloud.CRM, nil); err != nil {
		return err
	}
	return s.cloudlet.do(ctx, t.ID, t.Operation)
}

// createAll creates the missing clusters, and waits until they are Ready. If the calls of
// the cloudlet hang, it prints a line after the last call.
func (s *service) createAll(ctx context.Context) error {
	var tickets []*ticket
	for i := range wanted {
		t, err := s.create(ctx, id(i))
		if err != nil {
			return err
		}
		if t != nil {
			tickets = append(tickets, t)
		}
	}
	fmt.Fprintf(s.out, "%d operations have started\n", len(tickets))
	if s.cloudlet.hangs != nil {
		for range tickets {
			<-s.cloudlet.hangs
		}
		fmt.Fprintln(s.out, waiting)
	}
	for _, t := range tickets {
		if _, err := t.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// create starts the operation that creates a cluster. It undoes a failed creation first.
// It returns nil if the cluster is Ready.
func (s *service) create(ctx context.Context, id string) (*ticket, error) {
	c, err := s.clusters.Get(ctx, id)
	switch {
	case err == nil && c.State == edgecloud.Ready:
		return nil, nil
	case err == nil && c.State == edgecloud.CreateError:
		_, err = s.clusters.Fire(ctx, id, edgecloud.Undo, edgecloud.Controller, nil)
	case errors.Is(err, lifecycle.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return s.clusters.Do(ctx, id, edgecloud.Create, edgecloud.User, lifecycle.Named("cloudlet", nil),
		&lifecycle.Change[edgecloud.ClusterSpec]{Edit: func(c *edgecloud.ClusterSpec) error {
			c.Flavor, c.Nodes = "small", nodes
			return nil
		}})
}
