package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrInUse: another object needs the object, or is in transition in it. Delete that one,
// or wait until it is at rest. [InUseError] names it.
var ErrInUse = errors.New("edgecloud: in use")

// InUseError has an instance that prevents the change of an object. It matches
// [ErrInUse] and [lifecycle.ErrPrecondition]. It is a plain value.
type InUseError struct {
	Key   lifecycle.Key // of the object
	Verb  string        // Update, Delete or Upgrade
	By    lifecycle.Key // of the instance
	State State         // of the instance
}

// Error returns one line.
func (e *InUseError) Error() string {
	return fmt.Sprintf("%v: %s %q: %s: %s %q is %s", ErrInUse, e.Key.Machine, e.Key.ID, e.Verb, e.By.Machine, e.By.ID, e.State)
}

// Unwrap returns [ErrInUse] and [lifecycle.ErrPrecondition].
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, lifecycle.ErrPrecondition} }

// checkCloudletAtRest refuses an upgrade of a cloudlet while an instance there is in
// transition.
func (c *Coordinator) checkCloudletAtRest(ctx context.Context, cloudlet string) error {
	key := lifecycle.Key{Machine: CloudletUpgrade.Name(), ID: cloudlet}
	if err := c.Clusters.checkAtRest(ctx, key, string(Upgrade), c.Clusters.on(ctx, cloudlet)); err != nil {
		return err
	}
	return c.Apps.checkAtRest(ctx, key, string(Upgrade), c.Apps.on(ctx, cloudlet))
}

// checkAppsAtRest refuses an update of a ClusterInst while an AppInst in it is in
// transition.
func (c *Coordinator) checkAppsAtRest(ctx context.Context, cluster string) error {
	return c.Apps.checkAtRest(ctx, c.Clusters.key(cluster), string(Update), func(s *AppSpec) (bool, error) {
		return s.ClusterInst == cluster, nil
	})
}

// checkAtRest refuses the change of an object while an instance that matches is in
// transition.
func (in *Instances[T]) checkAtRest(ctx context.Context, key lifecycle.Key, verb string, match func(*T) (bool, error)) error {
	for rec, err := range in.m.All(ctx, lifecycle.Select[State]{States: transitional}) {
		if err != nil {
			return err
		}
		if matches, err := match(&rec.Payload); err != nil {
			return err
		} else if matches {
			return &InUseError{key, verb, in.key(rec.ID), rec.State}
		}
	}
	return nil
}

// checkNoApps refuses a delete of a ClusterInst while an AppInst is in it.
func (c *Coordinator) checkNoApps(ctx context.Context, cluster string) error {
	prefix := entryID(cluster, "")
	for entry, err := range c.Apps.entries.All(ctx, lifecycle.Select[noteState]{After: prefix, Limit: 1}) {
		if entry.ID != "" && !strings.HasPrefix(entry.ID, prefix) {
			break // also if it cannot be read
		}
		if err != nil {
			return err
		}
		app, err := c.Apps.m.Get(ctx, entry.Payload.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
		case err != nil:
			return err
		case app.Payload.ClusterInst == cluster:
			return &InUseError{c.Clusters.key(cluster), string(Delete), c.Apps.key(app.ID), app.State}
		}
	}
	return nil
}

var transitional = slices.DeleteFunc(slices.Collect(ClusterInst.States()), func(s State) bool { return !inTransition(s) })

// on returns a function that reports whether an instance is on a cloudlet. It reads the
// place of each parent once.
func (in *Instances[T]) on(ctx context.Context, cloudlet string) func(*T) (bool, error) {
	places := map[string]bool{} // by parent
	return func(spec *T) (bool, error) {
		parent := in.parent(spec)
		if here, known := places[parent]; known {
			return here, nil
		}
		at, err := in.place(ctx, spec)
		if err != nil {
			return false, err
		}
		places[parent] = at.cloudlet == cloudlet
		return places[parent], nil
	}
}
