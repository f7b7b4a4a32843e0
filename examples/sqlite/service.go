package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

const wanted = 24 // clusters

func id(i int) string { return fmt.Sprintf("c-%02d", i) }

// At first all clusters have one node. Finally every fourth has three nodes, and
// every fourth is removed.
func atFirst(int) int   { return 1 }
func finally(i int) int { return []int{1, 3, 0, 1}[i%4] }

// inTheMiddle is the line that the service prints when all calls of the cloudlet hang.
const inTheMiddle = "in the middle"

type manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]

// service is one process, with the manager of the clusters in the file and the
// cloudlet where they run.
type service struct {
	out      io.Writer
	clusters *manager
	cloudlet cloudlet
}

// serve runs a process of the service. With a slow cloudlet it creates all clusters
// before the cloudlet begins to hang.
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
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(heartbeats) }()

	s := &service{out: out, cloudlet: cloudlet{dir: dir}}
	s.clusters = lifecycle.Must(edgecloud.ClusterInst, store, &lifecycle.Config[edgecloud.Event]{
		Owner: owner, WorkerActor: edgecloud.CRM,
		Done: []edgecloud.Event{edgecloud.Done}, Failed: []edgecloud.Event{edgecloud.Fail}, Undo: []edgecloud.Event{edgecloud.Undo},
		Handlers: map[string]lifecycle.Handler{"cloudlet": s.work}, Observe: s.observe,
	})
	err = s.recover(ctx)
	var hangs chan struct{}
	if err == nil && slow {
		err = s.converge(ctx, atFirst, nil)
		hangs = make(chan struct{})
		s.cloudlet.hangs = hangs
	}
	if err == nil {
		err = s.converge(ctx, finally, hangs)
	}
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	return errors.Join(owner.Leave(ctx), store.Close())
}

// recover finds what an earlier process has left. A service that runs for longer
// sweeps again and again, with [lifecycle.Run].
func (s *service) recover(ctx context.Context) error {
	left, err := s.clusters.Sweep(ctx)
	for _, r := range left {
		fmt.Fprintln(s.out, r)
	}
	fmt.Fprintf(s.out, "%d were left by a dead process\n", len(left))
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
// the outcomes. Before that it undoes operations that have failed. With hangs, it
// reports when all operations hang.
func (s *service) converge(ctx context.Context, nodes func(i int) int, hangs <-chan struct{}) error {
	var asked []*lifecycle.Handle[edgecloud.State, edgecloud.ClusterSpec]
	for i := range wanted {
		c, err := s.clusters.Get(ctx, id(i))
		if errors.Is(err, lifecycle.ErrNotFound) {
			c.State, err = edgecloud.NotPresent, nil
		}
		if err == nil && edgecloud.ClusterInst.Kind(c.State) == fsm.Failed {
			c, err = s.clusters.Fire(ctx, id(i), edgecloud.Undo, edgecloud.Controller, nil)
		}
		if err != nil {
			return err
		}
		e, want := edgecloud.Update, nodes(i)
		switch {
		case c.State == edgecloud.NotPresent && want > 0:
			e = edgecloud.Create
		case c.State == edgecloud.NotPresent || c.Payload.Nodes == want:
			continue
		case want == 0:
			e = edgecloud.Delete
		}
		h, err := s.clusters.Do(ctx, id(i), e, edgecloud.User, lifecycle.Named("cloudlet", []byte(strconv.Itoa(want))),
			&lifecycle.Change[edgecloud.ClusterSpec]{Edit: func(c *edgecloud.ClusterSpec) error {
				c.Flavor, c.Nodes = "small", want
				return nil
			}})
		if err != nil {
			return err
		}
		asked = append(asked, h)
	}
	fmt.Fprintf(s.out, "%d operations are under way\n", len(asked))
	if hangs != nil {
		for range asked {
			<-hangs
		}
		fmt.Fprintln(s.out, inTheMiddle)
	}
	for _, h := range asked {
		if _, err := h.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
