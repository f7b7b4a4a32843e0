package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrInUse: another object needs the object, or is in transition in it. Delete the other
// object, or wait until it is at rest. The text of the error names it. ErrInUse matches
// [lifecycle.ErrPrecondition].
var ErrInUse error = inUse{}

type inUse struct{}

func (inUse) Error() string { return "edgecloud: in use" }

func (inUse) Is(target error) bool { return target == lifecycle.ErrPrecondition }

// usedBy returns the error of a change of an object that an instance prevents.
func usedBy(object lifecycle.Key, verb string, by lifecycle.Key, is State) error {
	return fmt.Errorf("%w: %s %q: %s: %s %q is %s", ErrInUse, object.Machine, object.ID, verb, by.Machine, by.ID, is)
}

// checkAtRest refuses an upgrade of a cloudlet while an instance there is in transition.
func (in *Instances[T]) checkAtRest(ctx context.Context, cloudlet string) error {
	for rec, err := range in.on(ctx, cloudlet, transitional) {
		if err != nil {
			return err
		}
		return usedBy(upgradeKey(cloudlet), string(Upgrade), in.key(rec.ID), rec.State)
	}
	return nil
}

// checkAppsAtRest refuses an update of a ClusterInst while an AppInst in it is in
// transition.
func (c *Coordinator) checkAppsAtRest(ctx context.Context, cluster string) error {
	for app, err := range c.Apps.m.All(ctx, lifecycle.Select[State]{States: transitional}) {
		if err != nil {
			return err
		}
		if app.Payload.ClusterInst == cluster {
			return usedBy(c.Clusters.key(cluster), string(Update), c.Apps.key(app.ID), app.State)
		}
	}
	return nil
}

// checkNoApps refuses a delete of a ClusterInst while an AppInst is in it.
func (c *Coordinator) checkNoApps(ctx context.Context, cluster string) error {
	for n, err := range c.notes.All(ctx, lifecycle.Select[string]{Prefix: appNotes(cluster), Limit: 1}) {
		if err != nil {
			return err
		}
		app, err := c.Apps.m.Get(ctx, n.Payload.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
		case err != nil:
			return err
		case app.Payload.ClusterInst == cluster:
			return usedBy(c.Clusters.key(cluster), string(Delete), c.Apps.key(app.ID), app.State)
		}
	}
	return nil
}

var transitional = slices.DeleteFunc(slices.Collect(ClusterInst.States()), func(s State) bool { return !inTransition(s) })

// here reports whether an instance is on a cloudlet.
func (in *Instances[T]) here(ctx context.Context, spec *T, cloudlet string) (bool, error) {
	at, err := in.place(ctx, spec)
	return err == nil && at.cloudlet == cloudlet, err
}

// on yields the instances on a cloudlet in some states. A record comes with an error if it
// cannot be read, or if it is not known whether it is on the cloudlet.
func (in *Instances[T]) on(ctx context.Context, cloudlet string, states []State) iter.Seq2[Record[T], error] {
	return func(yield func(Record[T], error) bool) {
		for rec, err := range in.m.All(ctx, lifecycle.Select[State]{States: states}) {
			here := false
			if err == nil {
				here, err = in.here(ctx, &rec.Payload, cloudlet)
			}
			if (here || err != nil) && !yield(rec, err) {
				return
			}
		}
	}
}
