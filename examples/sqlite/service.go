package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

const wanted = 24 // clusters

func id(i int) string { return fmt.Sprintf("c-%02d", i) }

// firstNodes returns the number of nodes that a cluster has at first.
func firstNodes(int) int { return 1 }

// finalNodes returns the number of nodes that a cluster has at the end. 0 removes it.
func finalNodes(i int) int { return []int{1, 3, 0, 1}[i%4] }

// waiting is the line that the service prints when all calls of the cloudlet hang.
const waiting = "all calls of the cloudlet hang"

type (
	manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]
	handle  = lifecycle.Handle[edgecloud.State, edgecloud.ClusterSpec]
)

// service is one process, with the manager of the clusters in the file and the
// cloudlet where they run.
type service struct {
	out      io.Writer
	clusters *manager
	cloudlet cloudlet
}

// serve runs a process of the service. With a slow cloudlet it creates all clusters
// before the calls of the cloudlet hang.
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
	s.clusters = lifecycle.Must(edgecloud.ClusterInst, store, &lifecycle.Config[edgecloud.Event]{
		Owner: owner, WorkerActor: edgecloud.CRM,
		Done: []edgecloud.Event{edgecloud.Done}, Failed: []edgecloud.Event{edgecloud.Fail}, Undo: []edgecloud.Event{edgecloud.Undo},
		Handlers: map[string]lifecycle.Handler{"cloudlet": s.work}, Observe: s.observe,
	})
	err = s.recover(ctx)
	var hangs chan struct{}
	if err == nil && slow {
		err = s.converge(ctx, firstNodes, nil)
		hangs = make(chan struct{})
		s.cloudlet.hangs = hangs
	}
	if err == nil {
		err = s.converge(ctx, finalNodes, hangs)
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
	done, err := s.cloudlet.done(stuck.ID, stuck.Operation)
	if err != nil || !done {
		return "", "", err // the deadline row fires
	}
	return edgecloud.Done, edgecloud.CRM, nil
}

// work is the handler that executes an operation at the cloudlet.
func (s *service) work(ctx context.Context, args []byte) error {
	t := lifecycle.TaskOf(ctx)
	nodes, err := strconv.Atoi(string(args))
	if err != nil {
		return err
	}
	if nodes == 0 { // no application uses the cluster
		if _, err := s.clusters.Report(ctx, t.ID, t.Operation, edgecloud.Prepared, edgecloud.Controller, ""); err != nil {
			return err
		}
	}
	if _, err := s.clusters.Report(ctx, t.ID, t.Operation, edgecloud.Working, edgecloud.CRM, ""); err != nil {
		return err
	}
	return s.cloudlet.do(ctx, t.ID, t.Operation, nodes)
}

// converge starts the operations that give all clusters their nodes, and waits for
// the outcomes. If hangs is not nil, it prints a line when all operations hang.
func (s *service) converge(ctx context.Context, nodes func(i int) int, hangs <-chan struct{}) error {
	var handles []*handle
	for i := range wanted {
		h, err := s.request(ctx, id(i), nodes(i))
		if err != nil {
			return err
		}
		if h != nil {
			handles = append(handles, h)
		}
	}
	fmt.Fprintf(s.out, "%d operations have started\n", len(handles))
	if hangs != nil {
		for range handles {
			<-hangs
		}
		fmt.Fprintln(s.out, waiting)
	}
	for _, h := range handles {
		if _, err := h.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// request starts the operation that gives a cluster a number of nodes. It undoes a failed
// operation first. It returns nil if the cluster has the nodes already.
func (s *service) request(ctx context.Context, id string, nodes int) (*handle, error) {
	c, err := s.clusters.Get(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		c.State, err = edgecloud.NotPresent, nil
	case err == nil && edgecloud.ClusterInst.Kind(c.State) == fsm.Failed:
		c, err = s.clusters.Fire(ctx, id, edgecloud.Undo, edgecloud.Controller, nil)
	}
	if err != nil {
		return nil, err
	}
	e := edgecloud.Update
	switch {
	case c.State == edgecloud.NotPresent && nodes > 0:
		e = edgecloud.Create
	case c.State == edgecloud.NotPresent || c.Payload.Nodes == nodes:
		return nil, nil
	case nodes == 0:
		e = edgecloud.Delete
	}
	return s.clusters.Do(ctx, id, e, edgecloud.User, lifecycle.Named("cloudlet", []byte(strconv.Itoa(nodes))),
		&lifecycle.Change[edgecloud.ClusterSpec]{Edit: func(c *edgecloud.ClusterSpec) error {
			c.Flavor, c.Nodes = "small", nodes
			return nil
		}})
}
