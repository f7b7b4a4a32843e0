package main

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

type (
	manager = lifecycle.Manager[State, Event, VM]
	record  = lifecycle.Record[State, VM]
)

// newManager returns the manager of the VMs.
func newManager(store lifecycle.Store, owner *lifecycle.Owner, work lifecycle.Queue, c config) (*manager, error) {
	cloud := &provider{delay: c.delay}
	handler := func(event Event) lifecycle.Handler {
		return func(ctx context.Context, _ []byte) error { return cloud.do(ctx, event, lifecycle.TaskOf(ctx).ID) }
	}
	config := &lifecycle.Config[Event]{
		WorkerActor: Worker, Done: []Event{Done}, Failed: []Event{Fail},
		Owner: owner, Queue: work, Observer: lifecycle.Log(nil), Switch: c.doSwitch,
		Handlers: map[string]lifecycle.Handler{
			string(Create): func(ctx context.Context, image []byte) error { return create(ctx, cloud, string(image)) },
			string(Start):  handler(Start),
			string(Stop):   handler(Stop),
			string(Delete): handler(Delete),
		},
	}
	table, err := setVersion(c.table, config)
	if err != nil {
		return nil, err
	}
	return lifecycle.New(table, store, config)
}

// create is the work of [Create]. The commit that makes the VM running writes its address.
func create(ctx context.Context, cloud *provider, image string) error {
	address, err := cloud.create(ctx, lifecycle.TaskOf(ctx).ID, image)
	if err != nil {
		return err
	}
	lifecycle.EditOutcome(ctx, func(vm *VM) error { vm.Address = address; return nil })
	return nil
}

// workOf returns the work of an event: by name, so that another replica can do it.
func workOf(event Event, args string) lifecycle.Work {
	work := lifecycle.Named(string(event), []byte(args))
	work.Timeout = time.Minute // of one attempt
	work.Retries = lifecycle.Retries{Attempts: 5}
	return work
}
