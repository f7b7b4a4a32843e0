package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// A machine is deployed and stopped by functions of this process. The state is set
// before the work waits for its turn.
func ExampleManager_Do() {
	ctx := context.Background()
	vms := lifecycle.Must(ovc.VM, lifecycle.NewMemoryStore(), &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
	})
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	deploy, err := vms.Do(ctx, "vm1", ovc.Deploy, ovc.API, lifecycle.Func(func(context.Context) error {
		return nil // call the hypervisor
	}), nil)
	fmt.Println(deploy.Admitted().State, err)
	vm, err := deploy.Wait(ctx)
	fmt.Println(vm.State, err)

	hypervisor := make(chan struct{})
	stop, _ := vms.Do(ctx, "vm1", ovc.Stop, ovc.API, lifecycle.Func(func(context.Context) error {
		<-hypervisor
		return nil
	}), nil)
	_, err = vms.Do(ctx, "vm1", ovc.Stop, ovc.API, lifecycle.Func(func(context.Context) error { return nil }), nil)
	fmt.Println(errors.Is(err, lifecycle.ErrBusy))
	close(hypervisor)
	vm, err = stop.Wait(ctx)
	fmt.Println(vm.State, err)
	// Output:
	// DEPLOYING <nil>
	// RUNNING <nil>
	// true
	// HALTED <nil>
}

// A provider fails once for a reason that may go away, and then for one that stays.
func ExampleRetries() {
	ctx := context.Background()
	vms := lifecycle.Must(ovc.VM, lifecycle.NewMemoryStore(), &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
	})
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	calls := 0
	deploy, _ := vms.Do(ctx, "vm1", ovc.Deploy, ovc.API, lifecycle.Work{
		Run: func(context.Context) error {
			if calls++; calls == 1 {
				return errors.New("the provider is busy")
			}
			return lifecycle.Permanent(errors.New("the image does not exist"))
		},
		Timeout: time.Minute, // of each attempt
		Retries: lifecycle.Retries{Attempts: 5, Delay: time.Millisecond},
	}, nil)
	_, err := deploy.Wait(ctx)
	fmt.Println(calls, "calls:", err)
	// Output:
	// 2 calls: lifecycle: operation 1 of ovc-vm "vm1" failed: the image does not exist
}

// Work by name is kept in the record with its arguments, so that every process
// that has the handler can do it.
func ExampleNamed() {
	ctx := context.Background()
	vms := lifecycle.Must(ovc.VM, lifecycle.NewMemoryStore(), &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
		Handlers: map[string]lifecycle.Handler{
			"deploy": func(ctx context.Context, args []byte) error {
				task := lifecycle.TaskOf(ctx)
				fmt.Printf("operation %d deploys %s: %s\n", task.Operation, task.ID, args)
				return nil
			},
		},
	})
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	ticket, _ := vms.Do(ctx, "vm1", ovc.Deploy, ovc.API, lifecycle.Named("deploy", []byte(`{"image":"debian"}`)), nil)
	vm, err := ticket.Wait(ctx)
	fmt.Println(vm.State, err)
	// Output:
	// operation 1 deploys vm1: {"image":"debian"}
	// RUNNING <nil>
}

// A process dies in the middle of its work and starts again under its name: it
// begins a new epoch, and takes over the operations that the old process has left.
func ExampleManager_Sweep_afterCrash() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	config := lifecycle.Config[ovc.Event]{WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done}}

	config.Owner, _ = lifecycle.Join(ctx, store, "host-1", 0)
	vms := lifecycle.Must(ovc.VM, store, &config)
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	died := make(chan struct{})
	ticket, _ := vms.Do(ctx, "vm1", ovc.Deploy, ovc.API, lifecycle.Func(func(context.Context) error {
		<-died
		return nil
	}), nil)

	config.Owner, _ = lifecycle.Join(ctx, store, "host-1", 0)
	fmt.Println("epoch", config.Owner.Epoch())
	again := lifecycle.Must(ovc.VM, store, &config)
	cases, err := again.Sweep(ctx)
	for _, c := range cases {
		fmt.Println(c)
	}
	fmt.Println(err)

	close(died) // it was not dead at all
	_, err = ticket.Wait(ctx)
	fmt.Println(errors.Is(err, lifecycle.ErrStale))
	vm, _ := again.Get(ctx, "vm1")
	fmt.Println(vm.State)
	// Output:
	// epoch 2
	// ovc-vm "vm1" in DEPLOYING, operation 1: moved to VIRTUAL by stuck, because owner "host-1" of epoch 1 is dead
	// <nil>
	// true
	// VIRTUAL
}

// Any process takes over the operations that others have left.
func ExampleManager_Sweep() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	owner, _ := lifecycle.Join(ctx, store, "host-1", 0)
	vms := lifecycle.Must(ovc.VM, store, &lifecycle.Config[ovc.Event]{
		WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done}, Owner: owner,
	})
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	ticket, _ := vms.Do(ctx, "vm1", ovc.Deploy, ovc.API, lifecycle.Func(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}), nil)
	fmt.Println(owner.Leave(ctx)) // with work to do
	_, err := ticket.Wait(ctx)
	fmt.Println(errors.Is(err, lifecycle.ErrStale))

	cases, err := lifecycle.Must(ovc.VM, store, nil).Sweep(ctx)
	fmt.Println(cases, err)
	// Output:
	// <nil>
	// true
	// [ovc-vm "vm1" in DEPLOYING, operation 1: moved to VIRTUAL by stuck, because owner "host-1" of epoch 1 is dead] <nil>
}

// The manager of a cluster has lost its memory; an engineer has looked at the
// cluster and overrides its state. Late reports of the manager change nothing.
func ExampleManager_Override() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	c, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)

	now, err := clusters.Override(ctx, "c1", edgecloud.Ready, "ann", "ticket 7: it is up", nil)
	fmt.Println(now.State, "operation", now.Operation, err)
	v, _ := clusters.Report(ctx, "c1", c.Operation, edgecloud.Fail, edgecloud.CRM, &lifecycle.Change[edgecloud.ClusterSpec]{Reason: "no idea"})
	fmt.Println(v)
	rows, _ := clusters.History(ctx, "c1", 1, 0)
	fmt.Println(rows[0])
	// Output:
	// Ready operation 2 <nil>
	// stale
	// clusterinst "c1" #2 operation 2: CreateRequested -(override)-> Ready by ann: ticket 7: it is up
}

// Work writes its result into the payload, in the commit of its outcome.
func ExampleEditOutcome() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		WorkerActor: edgecloud.CRM, Done: []edgecloud.Event{edgecloud.Done},
	})
	ticket, err := clusters.Do(ctx, "c1", edgecloud.Create, edgecloud.User, lifecycle.Func(func(ctx context.Context) error {
		lifecycle.EditOutcome(ctx, func(spec *edgecloud.ClusterSpec) error {
			spec.Nodes = 5 // as many as there were
			return nil
		})
		return nil
	}), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := ticket.Wait(ctx)
	fmt.Println(c.State, c.Payload.Nodes, err)
	// Output:
	// Ready 5 <nil>
}

// A machine is being stopped, and a user wonders why it cannot be rebooted.
func ExampleManager_Explain() {
	ctx := context.Background()
	vms := lifecycle.Must(ovc.VM, lifecycle.NewMemoryStore(), nil)
	_, _ = vms.Add(ctx, "vm1", ovc.Virtual, ovc.API, struct{}{}, nil)
	_, _ = vms.Override(ctx, "vm1", ovc.Running, "ann", "it was always there", nil)
	_, _ = vms.Fire(ctx, "vm1", ovc.Stop, ovc.API, nil)

	x, err := vms.Explain(ctx, "vm1") // x as text or as JSON has all of it
	fmt.Println(x.State, "from", x.Origin, err)
	fmt.Println("the next move is owed by", x.NextMove)
	fmt.Println(x.Then)
	for _, a := range x.Actors {
		for _, e := range a.Events {
			switch {
			case a.Actor == ovc.API && e.Event == string(ovc.Reboot):
				fmt.Println("a user cannot", e.Event+":", e.Why)
			case a.Actor == ovc.Worker && e.Possible:
				fmt.Println("a worker can report", e.Event, "which leads to", e.To)
			}
		}
	}
	// Output:
	// STOPPING from RUNNING <nil>
	// the next move is owed by worker or observer
	// after 30m0s the sweeper fires stuck: the object returns to RUNNING
	// a user cannot reboot: only in RUNNING, PAUSED
	// a worker can report done which leads to HALTED
}
