// Quickstart moves a few hundred clusters of an edge cloud through the published
// ClusterInst table. A user, a controller and a CRM are three goroutines. The network
// between controller and CRM loses messages, repeats them, and delivers them late. A
// wrong actor, a wrong state and a conflict happen on purpose.
//
// It prints what happens and a final count. It fails if any cluster ends in a wrong
// state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

const clusters = 300

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, clusters); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// manager is what all three sides share: the table, and the records in a store.
type manager = lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]

// run runs the program. It returns when every goroutine has ended.
func run(ctx context.Context, out io.Writer, n int) error {
	ctx, stop := context.WithCancel(ctx)
	changed := make(chan lifecycle.HistoryRow, 64*n) // room for every change, so that the observer does not wait
	mgr := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		Undo:     []edgecloud.Event{edgecloud.Undo},
		Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.HistoryRow) { changed <- row }},
	})
	toCRM, fromCRM := newNetwork[request](1), newNetwork[answer](2)
	c := &controller{mgr: mgr, changed: changed, requests: toCRM, answers: fromCRM}
	m := &crm{requests: toCRM, answers: fromCRM}

	var sides errgroup.Group
	sides.Go(func() error { return c.run(ctx) })
	sides.Go(func() error { return m.run(ctx) })
	u := &user{mgr: mgr, out: out, n: n}
	err := u.run(ctx)
	stop()
	if err := errors.Join(err, sides.Wait()); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nundone by the controller: %d creations, %d updates and %d deletions that have failed\n",
		c.undone[edgecloud.CreateError], c.undone[edgecloud.UpdateError], c.undone[edgecloud.DeleteError])
	a, b := toCRM.count, fromCRM.count
	fmt.Fprintf(out, "messages: %d sent, %d of them lost, %d delivered twice, %d delivered late\n",
		a.sent+b.sent, a.lost+b.lost, a.twice+b.twice, a.late+b.late)
	fmt.Fprintf(out, "reports: %d applied, %d repeated, %d stale, %d refused; only the applied ones changed anything\n",
		c.verdicts[lifecycle.Applied], c.verdicts[lifecycle.Repeated], c.verdicts[lifecycle.Stale], c.verdicts[lifecycle.Refused])
	return u.verify(context.WithoutCancel(ctx))
}

// user creates clusters, changes some and deletes some.
type user struct {
	mgr *manager
	out io.Writer
	n   int
}

func id(i int) string { return fmt.Sprintf("c-%03d", i) }

func (u *user) run(ctx context.Context) error {
	fmt.Fprintf(u.out, "create %d clusters\n", u.n)
	for i := range u.n {
		_, err := u.mgr.Create(ctx, id(i), edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Flavor: "small", Nodes: 1})
		if err != nil {
			return err
		}
	}
	if err := u.settled(ctx); err != nil {
		return err
	}
	if err := u.mistakes(ctx); err != nil {
		return err
	}
	fmt.Fprintln(u.out, "\nupdate every second cluster to three nodes")
	for i := 0; i < u.n; i += 2 {
		if err := u.fire(ctx, i, edgecloud.Update, func(s *edgecloud.ClusterSpec) error { s.Nodes = 3; return nil }); err != nil {
			return err
		}
	}
	if err := u.settled(ctx); err != nil {
		return err
	}
	if err := u.race(ctx); err != nil {
		return err
	}
	fmt.Fprintln(u.out, "\ndelete every third cluster")
	for i := 0; i < u.n; i += 3 {
		if err := u.fire(ctx, i, edgecloud.Delete, nil); err != nil {
			return err
		}
	}
	return u.settled(ctx)
}

// fire requests an event, if the cluster still exists.
func (u *user) fire(ctx context.Context, i int, e edgecloud.Event, edit func(*edgecloud.ClusterSpec) error) error {
	_, err := u.mgr.Fire(ctx, id(i), e, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{Edit: edit})
	if errors.Is(err, lifecycle.ErrNotFound) && fails(edgecloud.CreateRequested, i) {
		return nil // its creation failed and was undone
	}
	return err
}

// settled waits until no cluster is in transition and every failure is undone.
func (u *user) settled(ctx context.Context) error {
	var busy []edgecloud.State
	for s := range edgecloud.ClusterInst.States() {
		if k := edgecloud.ClusterInst.Kind(s); k == fsm.Transitional || k == fsm.Failed {
			busy = append(busy, s)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left, err := u.mgr.List(ctx, lifecycle.Select[edgecloud.State]{States: busy, Limit: 1})
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is still %s: %w", left[0].ID, left[0].State, context.Cause(ctx))
		}
	}
}

// mistakes are requests that are refused. They change nothing.
func (u *user) mistakes(ctx context.Context) error {
	before, err := u.mgr.Get(ctx, id(0))
	if err != nil {
		return err
	}
	_, again := u.mgr.Create(ctx, id(0), edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{})
	_, wrongActor := u.mgr.Fire(ctx, id(0), edgecloud.Delete, edgecloud.CRM, nil)
	_, wrongState := u.mgr.Fire(ctx, id(0), edgecloud.Prepared, edgecloud.Controller, nil)
	after, err := u.mgr.Get(ctx, id(0))
	switch {
	case err != nil:
		return err
	case after.Revision != before.Revision:
		return errors.New("a refused request changed something")
	case !errors.Is(again, lifecycle.ErrExists), !errors.Is(wrongActor, fsm.ErrWrongActor), !errors.Is(wrongState, fsm.ErrNotAllowed):
		return fmt.Errorf("a mistake was not refused as such: %w", errors.Join(again, wrongActor, wrongState))
	}
	fmt.Fprintf(u.out, "refused requests change nothing:\n  %v\n  %v\n  %v\n", again, wrongActor, wrongState)
	return nil
}

// race lets two users change one cluster at once: the second request begins while
// the first one edits the payload.
func (u *user) race(ctx context.Context) error {
	const i = 2
	_, err := u.mgr.Fire(ctx, id(i), edgecloud.Update, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{
		Edit: func(s *edgecloud.ClusterSpec) error {
			s.Nodes = 100
			_, err := u.mgr.Fire(ctx, id(i), edgecloud.Update, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{
				Edit: func(s *edgecloud.ClusterSpec) error { s.Nodes = 5; return nil },
			})
			return err
		},
	})
	winner, ok := u.mgr.Current(err)
	if !errors.Is(err, lifecycle.ErrConflict) || !ok {
		return fmt.Errorf("the slower of two requests was not refused: %w", err)
	}
	fmt.Fprintf(u.out, "\ntwo concurrent updates of %s: one commits %d nodes, the other gets a conflict:\n  %v\n",
		id(i), winner.Payload.Nodes, err)
	return u.settled(ctx)
}

// verify compares every cluster with the expected one.
func (u *user) verify(ctx context.Context) error {
	ready, gone := 0, 0
	for i := range u.n {
		want := edgecloud.ClusterSpec{Flavor: "small", Nodes: 1}
		if i%2 == 0 && !fails(edgecloud.UpdateRequested, i) {
			want.Nodes = 3
		}
		if i == 2 {
			want.Nodes = 5
		}
		deleted := i%3 == 0 && !fails(edgecloud.DeleteRequested, i) || fails(edgecloud.CreateRequested, i)
		c, err := u.mgr.Get(ctx, id(i))
		switch {
		case deleted && errors.Is(err, lifecycle.ErrNotFound):
			gone++
		case err != nil:
			return err
		case deleted || c.State != edgecloud.Ready || c.Payload != want:
			return fmt.Errorf("%s ended in %s with %+v; it should be %+v, gone: %v", c.ID, c.State, c.Payload, want, deleted)
		default:
			ready++
		}
	}
	fmt.Fprintf(u.out, "end: %d of %d clusters are Ready, %d are gone\n", ready, u.n, gone)
	return nil
}
