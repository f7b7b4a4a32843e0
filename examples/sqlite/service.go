package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

const wanted = 24 // clusters

func id(i int) string { return fmt.Sprintf("c-%02d", i) }

// at first all clusters have one node; finally every fourth has three, and every
// fourth is gone.
func atFirst(int) int   { return 1 }
func finally(i int) int { return []int{1, 3, 0, 1}[i%4] }

// inTheMiddle is what the service says when all that it has begun is under way.
const inTheMiddle = "in the middle"

type manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]

// service is one process: a manager of the clusters in the file, and the
// cloudlet where they run.
type service struct {
	out      io.Writer
	clusters *manager
	cloudlet cloudlet
}

// serve is what a process of the service does, from its start to its end. With a
// slow cloudlet it makes all clusters before that begins to hang.
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
	beating, stop := context.WithCancel(ctx)
	still := make(chan error, 1)
	go func() { still <- owner.Run(beating) }()

	s := &service{out: out, cloudlet: cloudlet{dir: dir}}
	s.clusters = lifecycle.New(edgecloud.ClusterInst, store, &lifecycle.Config[edgecloud.Event]{
		Owner: owner, Worker: edgecloud.CRM,
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
	if err = errors.Join(err, <-still); err != nil {
		return err
	}
	return errors.Join(owner.Leave(ctx), store.Close())
}

// recover looks after what an earlier process has left. A service that goes on
// for longer sweeps again and again, with [lifecycle.Manager.Run].
func (s *service) recover(ctx context.Context) error {
	left, err := s.clusters.Recover(ctx)
	if err != nil {
		return err
	}
	late, err := s.clusters.Sweep(ctx)
	for _, c := range slices.Concat(left, late) {
		fmt.Fprintln(s.out, c)
	}
	fmt.Fprintf(s.out, "%d were left by a dead process, %d are too late\n", len(left), len(late))
	return err
}

// observe looks at the cloudlet before an operation is given up: it may be done.
func (s *service) observe(_ context.Context, stuck lifecycle.StoredRecord) (edgecloud.Event, fsm.Actor, error) {
	done, err := s.cloudlet.done(stuck.ID, stuck.Operation)
	if err != nil || !done {
		return "", "", err // what the table says
	}
	return edgecloud.Done, edgecloud.CRM, nil
}

// work has the cloudlet do an operation: its handler by name, which the next
// process has too.
func (s *service) work(ctx context.Context, args []byte) error {
	t := lifecycle.TaskOf(ctx)
	nodes, err := strconv.Atoi(string(args))
	if err != nil {
		return err
	}
	if nodes == 0 { // nothing needs the cluster any more
		if _, err := s.clusters.Report(ctx, t.ID, t.Operation, edgecloud.Prepared, edgecloud.Controller, ""); err != nil {
			return err
		}
	}
	if _, err := s.clusters.Report(ctx, t.ID, t.Operation, edgecloud.Working, edgecloud.CRM, ""); err != nil {
		return err
	}
	return s.cloudlet.do(ctx, t.ID, t.Operation, nodes)
}

// converge asks for what the clusters lack, all at once, and waits for it. What
// has failed is undone before. A cloudlet that hangs does so in all of it.
func (s *service) converge(ctx context.Context, nodes func(i int) int, hangs <-chan struct{}) error {
	var asked []*lifecycle.Handle[edgecloud.State, edgecloud.ClusterSpec]
	for i := range wanted {
		c, err := s.clusters.Get(ctx, id(i))
		if errors.Is(err, lifecycle.ErrNotFound) {
			c.State, err = edgecloud.NotPresent, nil
		}
		if err == nil && s.clusters.Machine().Kind(c.State) == fsm.Failed {
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
