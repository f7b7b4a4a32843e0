package edgecloud

import (
	"context"

	"github.com/interlock-go/interlock/lifecycle"
)

// Order is a request to a CRM about one instance. It is a plain value.
type Order struct {
	Key       lifecycle.Key
	Operation lifecycle.OpID
	Verb      Event       // Create, Update or Delete
	In        string      // id of the ClusterInst, its own or that of the AppInst
	Cluster   ClusterSpec // of a ClusterInst
	App       AppSpec     // of an AppInst
}

// Orders returns the orders for the CRM of a cloudlet that it has not answered: the
// caller sends them, now or again. A delete that is still being prepared is no order
// yet. An AppInst whose ClusterInst was removed otherwise than by [Instances.Delete] is
// in no orders, because its cloudlet is unknown.
//
// Errors: those of [lifecycle.Manager.List].
func (c *Coordinator) Orders(ctx context.Context, cloudlet string) ([]Order, error) {
	var orders []Order
	asked := lifecycle.Select[State]{States: []State{
		CreateRequested, Creating, UpdateRequested, Updating, DeleteRequested, Deleting,
	}}
	for rec, err := range c.Clusters.m.All(ctx, asked) {
		if err != nil {
			return nil, err
		}
		if rec.Payload.Cloudlet == cloudlet {
			orders = append(orders, Order{
				Key: c.Clusters.key(rec.ID), Operation: rec.Operation, Verb: verb(rec.State), In: rec.ID, Cluster: rec.Payload,
			})
		}
	}
	for rec, err := range c.Apps.m.All(ctx, asked) {
		if err != nil {
			return nil, err
		}
		at, err := c.placeOfApp(ctx, &rec.Payload)
		if err != nil {
			return nil, err
		}
		if at.cloudlet == cloudlet {
			orders = append(orders, Order{
				Key: c.Apps.key(rec.ID), Operation: rec.Operation, Verb: verb(rec.State), In: at.cluster, App: rec.Payload,
			})
		}
	}
	return orders, nil
}

// Answer takes a message of a CRM about an instance of either kind, see
// [Instances.Receive]. The error is [lifecycle.ErrInvalid] for a key of another
// machine.
func (c *Coordinator) Answer(ctx context.Context, key lifecycle.Key, info Info) (lifecycle.Verdict, error) {
	info.ID = key.ID
	switch key.Machine {
	case c.Clusters.key("").Machine:
		return c.Clusters.Receive(ctx, info)
	case c.Apps.key("").Machine:
		return c.Apps.Receive(ctx, info)
	}
	return lifecycle.Refused, &lifecycle.Error{
		Verb: "report", Machine: key.Machine, ID: key.ID, Actor: CRM, Err: lifecycle.ErrInvalid,
	}
}

// verb returns the request that an object in a state is in.
func verb(s State) Event {
	switch s {
	case CreateRequested, Creating:
		return Create
	case UpdateRequested, Updating:
		return Update
	}
	return Delete
}

// working, done and failed return the states that the CRM reports about an order.
func (o *Order) working() State {
	return map[Event]State{Create: Creating, Update: Updating, Delete: Deleting}[o.Verb]
}

func (o *Order) done() State {
	if o.Verb == Delete {
		return NotPresent
	}
	return Ready
}

func (o *Order) failed() State {
	return map[Event]State{Create: CreateError, Update: UpdateError, Delete: DeleteError}[o.Verb]
}
