package edgecloud

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
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
// caller sends them, now or again. A delete that is still being prepared is not an order
// yet. An AppInst whose ClusterInst was removed otherwise than by [Instances.Delete] is
// in no orders, because there is no cluster to carry them out in.
//
// Errors: those of [lifecycle.Manager.List]. A record that cannot be read
// ([lifecycle.ErrForeign]) hides no other one: the error comes with the other orders.
func (c *Coordinator) Orders(ctx context.Context, cloudlet string) ([]Order, error) {
	clusters, err := ordersOf(ctx, c.Clusters, cloudlet, func(o *Order, s ClusterSpec) { o.In, o.Cluster = o.Key.ID, s })
	apps, failed := ordersOf(ctx, c.Apps, cloudlet, func(o *Order, s AppSpec) { o.In, o.App = s.ClusterInst, s })
	return slices.Concat(clusters, apps), errors.Join(err, failed)
}

func ordersOf[T any](ctx context.Context, in *Instances[T], cloudlet string, fill func(*Order, T)) ([]Order, error) {
	var orders []Order
	var errs []error
	for rec, err := range in.on(ctx, cloudlet, ordered) {
		switch {
		case errors.Is(err, lifecycle.ErrForeign):
			errs = append(errs, err)
		case err != nil:
			return orders, errors.Join(append(errs, err)...)
		default:
			o := Order{Key: in.key(rec.ID), Operation: rec.Operation, Verb: verb(rec.State)}
			fill(&o, rec.Payload)
			orders = append(orders, o)
		}
	}
	return orders, errors.Join(errs...)
}

// ordered are the states of objects that a CRM has an order for.
var ordered = slices.DeleteFunc(slices.Clone(transitional), func(s State) bool { return s == DeletePrepare })

// verb returns the request that an object in a transitional state is in.
func verb(s State) Event {
	switch s {
	case CreateRequested, Creating:
		return Create
	case UpdateRequested, Updating:
		return Update
	}
	return Delete
}

// operations are the states that a CRM reports in an operation, and its timeout, by the
// verb.
var operations = map[Event]struct {
	working, done, failed State
	timeout               time.Duration
}{
	Create: {Creating, Ready, CreateError, CreateTimeout},
	Update: {Updating, Ready, UpdateError, UpdateTimeout},
	Delete: {Deleting, NotPresent, DeleteError, DeleteTimeout},
}

// path returns the path that the work locks: a ClusterInst with all AppInsts in it, or
// one AppInst in it.
func (o *Order) path() lock.Path {
	path := "/" + short(o.In)
	if o.Key.Machine != ClusterInst.Name() {
		path += "/" + short(o.Key.ID)
	}
	return lock.MustParse(path)
}
