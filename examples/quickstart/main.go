// Quickstart moves a few hundred clusters of an edge cloud through the published
// ClusterInst table. A user, a controller and a CRM are three goroutines. The network
// between controller and CRM loses messages, repeats them, and delivers them late.
//
// It prints counts of messages and of reports. It fails if a cluster ends in a wrong
// state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/terminal"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, 300); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// manager is the table, and the records in a store. The user and the controller share it.
type manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]

// run runs the program with n clusters. It returns when every goroutine has ended.
func run(ctx context.Context, out io.Writer, n int) error {
	changed := make(chan lifecycle.HistoryRow, 64*n) // room for every change: the observer does not wait
	mgr := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		Undo:     []edgecloud.Event{edgecloud.Undo},
		Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) { changed <- row.HistoryRow }},
	})
	requests, answers := newNetwork[request](1), newNetwork[answer](2)
	c := &controller{mgr: mgr, changed: changed, requests: requests, answers: answers}
	u := &user{mgr: mgr, out: out, n: n}
	u.show, u.clear = terminal.Progress(out)

	group, groupCtx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(groupCtx)
	group.Go(func() error { return c.run(serving) })
	group.Go(func() error { return runCRM(serving, requests, answers) })
	group.Go(func() error {
		defer stop()
		return u.run(groupCtx)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "undone by the controller: %d creations, %d updates and %d deletions that failed\n",
		c.undone[edgecloud.CreateError], c.undone[edgecloud.UpdateError], c.undone[edgecloud.DeleteError])
	fmt.Fprintf(out, "requests: %v\n", requests.count)
	fmt.Fprintf(out, "answers: %v\n", answers.count)
	fmt.Fprintf(out, "reports: %d applied, %d repeated, %d stale, %d refused; only the applied ones changed a cluster\n",
		c.verdicts[lifecycle.Applied], c.verdicts[lifecycle.Repeated], c.verdicts[lifecycle.Stale], c.verdicts[lifecycle.Refused])
	return u.verify(ctx)
}

// user creates clusters, updates some and deletes some.
type user struct {
	mgr *manager
	out io.Writer
	n   int
	// show shows how many clusters are Ready or deleted. Nil: out is not a terminal.
	show  func(what string, done, total int)
	clear func()
}

func (u *user) run(ctx context.Context) error {
	fmt.Fprintf(u.out, "create %d clusters\n", u.n)
	for i := range u.n {
		_, err := u.mgr.Create(ctx, id(i), edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Flavor: "small", Nodes: 1}, nil)
		if err != nil {
			return err
		}
	}
	if err := u.settled(ctx); err != nil {
		return err
	}
	fmt.Fprintln(u.out, "update every second cluster to three nodes")
	setNodes := func(s *edgecloud.ClusterSpec) error { s.Nodes = 3; return nil }
	if err := u.every(ctx, 2, edgecloud.Update, &lifecycle.Change[edgecloud.ClusterSpec]{Edit: setNodes}); err != nil {
		return err
	}
	fmt.Fprintln(u.out, "delete every third cluster")
	return u.every(ctx, 3, edgecloud.Delete, nil)
}

// every requests an event for the clusters 0, step, 2*step and so on, and waits until the
// operations have ended. A cluster whose creation failed does not exist.
func (u *user) every(ctx context.Context, step int, e edgecloud.Event, change *lifecycle.Change[edgecloud.ClusterSpec]) error {
	for i := 0; i < u.n; i += step {
		_, err := u.mgr.Fire(ctx, id(i), e, edgecloud.User, change)
		if err != nil && !(errors.Is(err, lifecycle.ErrNotFound) && fails(edgecloud.CreateRequested, id(i))) {
			return err
		}
	}
	return u.settled(ctx)
}

// settled waits until every cluster is Ready: none is in transition, and every failure is undone.
func (u *user) settled(ctx context.Context) error {
	defer u.clear()
	busy := slices.Collect(edgecloud.ClusterInst.States())
	busy = slices.DeleteFunc(busy, func(s edgecloud.State) bool { return s == edgecloud.Ready })
	for {
		left, err := u.mgr.List(ctx, lifecycle.Select[edgecloud.State]{States: busy, WithoutPayload: true})
		if u.show != nil {
			u.show("clusters", u.n-len(left), u.n)
		}
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s is still %s: %w", left[0].ID, left[0].State, context.Cause(ctx))
		}
	}
}

// verify compares every cluster with the expected one.
func (u *user) verify(ctx context.Context) error {
	ready, deleted := 0, 0
	for i := range u.n {
		want := edgecloud.ClusterSpec{Flavor: "small", Nodes: 1}
		if i%2 == 0 && !fails(edgecloud.UpdateRequested, id(i)) {
			want.Nodes = 3
		}
		exists := (i%3 != 0 || fails(edgecloud.DeleteRequested, id(i))) && !fails(edgecloud.CreateRequested, id(i))
		c, err := u.mgr.Get(ctx, id(i))
		switch {
		case !exists && errors.Is(err, lifecycle.ErrNotFound):
			deleted++
		case err != nil:
			return err
		case !exists || c.State != edgecloud.Ready || c.Payload.Flavor != want.Flavor || c.Payload.Nodes != want.Nodes:
			return fmt.Errorf("%s ended in %s with %+v, want %+v, exists: %t", c.ID, c.State, c.Payload, want, exists)
		default:
			ready++
		}
	}
	fmt.Fprintf(u.out, "end: %d of %d clusters are Ready, %d do not exist\n", ready, u.n, deleted)
	return nil
}

func id(i int) string { return fmt.Sprintf("c-%03d", i) }
