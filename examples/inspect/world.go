package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
	"github.com/interlock-go/interlock/lock"
)

const (
	fleet = 60              // VMs, and as many disks
	ttl   = 9 * time.Second // a replica without heartbeats for so long is dead

	maxWaiting = 12 // operations of a replica; further ones are refused
)

var regions = []string{"osaka", "paris", "seoul"}

// world is everything that the page shows. Replica alpha lives as long as the program and
// sweeps. Replica beta hangs now and then.
type world struct {
	store   *lifecycle.MemoryStore
	racks   *lock.Tree
	metrics *metrics.Collector
	alpha   *replica
	log     *log.Logger
}

// newWorld makes the world, with its disks. The disk disk-00 is damaged.
func newWorld(ctx context.Context, out io.Writer) (*world, error) {
	w := &world{store: lifecycle.NewMemoryStore(), metrics: metrics.New(), log: log.New(out, "", 0)}
	w.racks = lock.Must(&lock.Config{Observer: w.metrics.LockObserver("racks")})
	var err error
	if w.alpha, err = w.start(ctx, "alpha"); err != nil {
		return nil, err
	}
	w.metrics.AddManager("vm", w.alpha.vms)
	w.metrics.AddManager("disk", w.alpha.disks)
	w.metrics.AddQueue("alpha", w.alpha.queue)
	w.metrics.AddLocks("racks", w.racks)
	for i := range fleet {
		if _, err := w.alpha.disks.Add(ctx, fmt.Sprintf("disk-%02d", i), "detached", Operator, Disk{GB: 10}, nil); err != nil {
			return nil, err
		}
	}
	_, err = w.alpha.disks.Fire(ctx, "disk-00", "damage", Agent, &lifecycle.Change[Disk]{Reason: "checksum error in block 4711"})
	return w, err
}

// run runs the world until ctx ends.
func (w *world) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.alpha.owner.Run(ctx) })
	group.Go(func() error { return lifecycle.Run(ctx, ttl/3, w.report, w.alpha.vms, w.alpha.disks) })
	group.Go(func() error { return w.alpha.requests(ctx) })
	group.Go(func() error { return w.alpha.agent(ctx) })
	group.Go(func() error { return w.beta(ctx) })
	for _, region := range regions {
		group.Go(func() error { return w.maintain(ctx, "upgrade", "/"+region+"/rack-1", lock.X) })
		group.Go(func() error { return w.maintain(ctx, "cabling", "/"+region+"/rack-1", lock.X) })
		group.Go(func() error { return w.maintain(ctx, "inventory", "/"+region, lock.S) })
	}
	err := group.Wait()
	return errors.Join(err, w.alpha.kill(), w.alpha.owner.Leave(context.WithoutCancel(ctx)))
}

// beta runs a replica that works for a while, hangs, and is started again under the same
// name, until ctx ends. If it hangs long enough, a sweep of alpha has declared it dead
// before. In both cases the operations of the hanging replica are stuck, and alpha takes
// them over.
func (w *world) beta(ctx context.Context) error {
	var hanging *replica
	for {
		r, err := w.start(ctx, "beta")
		if hanging != nil {
			err = errors.Join(err, hanging.kill())
		}
		if err != nil {
			return err
		}
		w.log.Printf("beta: epoch %d has started", r.owner.Epoch())
		err = r.live(ctx, between(8*time.Second, 16*time.Second))
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, r.kill())
		}
		w.log.Printf("beta: epoch %d hangs, and sends no heartbeats", r.owner.Epoch())
		pause(ctx, between(2*time.Second, 24*time.Second))
		hanging = r
	}
}

// live sends heartbeats and requests for a while. After that the replica hangs.
func (r *replica) live(ctx context.Context, d time.Duration) error {
	defer r.hung.Store(true)
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.owner.Run(ctx) })
	group.Go(func() error { return r.requests(ctx) })
	return group.Wait()
}

// maintain locks a part of the racks for some seconds, again and again, until ctx ends.
func (w *world) maintain(ctx context.Context, reason, path string, mode lock.Mode) error {
	request := lock.Request{Path: lock.MustParse(path), Mode: mode}
	for pause(ctx, between(time.Second, 4*time.Second)) {
		// An error means that ctx has ended, or that an operator has broken the grant.
		_ = lock.Do(ctx, w.racks, request, &lock.Options{Owner: "technician", Reason: reason}, func(ctx context.Context, _ *lock.Grant) error {
			pause(ctx, between(2*time.Second, 6*time.Second))
			return nil
		})
	}
	return nil
}

// report prints what a sweep has found, without objects that wait for the operator.
func (w *world) report(results []lifecycle.SweepResult, err error) {
	for _, r := range results {
		if r.Resolution != lifecycle.NeedsOperator {
			w.log.Printf("sweep: %v", r)
		}
	}
	if err != nil {
		w.log.Printf("sweep: %v", err)
	}
}

// between returns a random duration.
func between(low, high time.Duration) time.Duration { return low + rand.N(high-low) }

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
