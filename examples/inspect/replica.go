package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
	"github.com/interlock-go/interlock/queue"
)

// replica is one process of the service: an owner, a queue, and the managers of both
// machines. Both replicas of this program share the store and nothing else.
type replica struct {
	*world
	owner *lifecycle.Owner
	queue *queue.Queuer[lifecycle.Key]
	vms   *lifecycle.Manager[string, string, VM]
	disks *lifecycle.Manager[string, string, Disk]
	hung  atomic.Bool // no call of the provider returns
}

// errKilled is the cause with which work ends when its replica does.
var errKilled = errors.New("the replica was killed")

// start starts a replica. An earlier one of the same name is dead from then on.
func (w *world) start(ctx context.Context, name string) (*replica, error) {
	owner, err := lifecycle.Join(context.WithoutCancel(ctx), w.store, name, ttl)
	if err != nil {
		return nil, err
	}
	r := &replica{world: w, owner: owner}
	r.queue = queue.Must(&queue.Config[lifecycle.Key]{
		MaxWaiting: maxWaiting,
		Observer:   metrics.QueueObserver[lifecycle.Key](w.metrics, name),
		Classes: map[string]queue.Limit{
			"region":   {MaxRunning: 3, Fair: true},
			"region/*": {MaxRunning: 2},
		},
	})
	r.vms = lifecycle.Must(vmTable, w.store, &lifecycle.Config[string]{
		WorkerActor: Worker, Done: []string{"done"}, Failed: []string{"fail"},
		Owner: owner, Queue: r.queue, Observer: w.metrics.Observer(vmTable.Table()),
		Handlers: map[string]lifecycle.Handler{"provider": r.provider},
	})
	r.disks = lifecycle.Must(diskTable, w.store, &lifecycle.Config[string]{
		Queue: r.queue, Observer: w.metrics.Observer(diskTable.Table()),
	})
	return r, nil
}

// kill ends the work of the replica, and waits for it.
func (r *replica) kill() error {
	r.queue.Abort(errKilled)
	return r.queue.Terminate(context.Background())
}

// provider is the work of all operations of VMs: a call of the cloud, simulated. One of
// eight calls fails, and one of sixteen gets no answer.
func (r *replica) provider(ctx context.Context, _ []byte) error {
	fault := rand.IntN(16)
	answers := pause(ctx, between(300*time.Millisecond, 1800*time.Millisecond))
	switch {
	case !answers || fault == 0 || r.hung.Load():
		<-ctx.Done()
		return context.Cause(ctx)
	case fault <= 2:
		return errors.New("the provider has no room")
	}
	return nil
}

// requests sends a request of a user twenty times in a second, until ctx ends. Table,
// preconditions and queue refuse many of them.
func (r *replica) requests(ctx context.Context) error {
	for pause(ctx, 50*time.Millisecond) {
		err := r.request(ctx, rand.IntN(fleet))
		if ctx.Err() == nil && lifecycle.HTTPStatus(err) == http.StatusInternalServerError {
			return err
		}
	}
	return nil
}

// events are those of users. A request is for each of them with the same probability.
var events = []string{"create", "create", "start", "stop", "resize", "delete", "attach", "detach"}

// request sends a random request for a VM or its disk.
func (r *replica) request(ctx context.Context, number int) error {
	vm, disk := fmt.Sprintf("vm-%02d", number), fmt.Sprintf("disk-%02d", number)
	event := events[rand.IntN(len(events))]
	change := &lifecycle.Change[VM]{}
	switch event {
	case "attach":
		running := []lifecycle.Precondition{r.vms.Require(vm, "running")}
		_, err := r.disks.Fire(ctx, disk, event, User, &lifecycle.Change[Disk]{Require: running})
		return err
	case "detach":
		_, err := r.disks.Fire(ctx, disk, event, User, nil)
		return err
	case "resize":
		change.Edit = func(vm *VM) error { vm.CPUs++; return nil }
		_, err := r.vms.Fire(ctx, vm, event, User, change)
		return err
	case "create":
		change.Edit = func(vm *VM) error { vm.CPUs, vm.Password = 2, "secret"; return nil }
	case "stop", "delete":
		change.Require = []lifecycle.Precondition{r.disks.Require(disk, "detached")}
	}
	work := lifecycle.Named("provider", nil)
	work.Timeout = 3 * time.Second // of one attempt
	work.Retries = lifecycle.Retries{Attempts: 3}
	work.Class = "region/" + regions[number%len(regions)]
	_, err := r.vms.Do(ctx, vm, event, User, work, change)
	return err
}

// agent reports what happened to the disks, until ctx ends. Every fourth operation of a disk
// gets no report.
func (r *replica) agent(ctx context.Context) error {
	moving := lifecycle.Select[string]{States: []string{"attaching", "detaching"}, UnchangedFor: time.Second}
	for pause(ctx, 500*time.Millisecond) {
		disks, err := r.disks.List(ctx, moving)
		for _, disk := range disks {
			if disk.Operation%4 != 0 && err == nil {
				_, err = r.disks.Report(ctx, disk.ID, disk.Operation, "done", Agent, nil)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
