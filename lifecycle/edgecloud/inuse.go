package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrInUse: other objects need the object, or are in transition in it. Delete them, or
// wait until they are at rest. [InUseError] names them.
var ErrInUse = errors.New("edgecloud: in use")

// MaxReferrers is how many instances an [InUseError] names at most.
const MaxReferrers = 100

// InUseError has the instances that prevent the change of an object. It matches
// [ErrInUse] and [lifecycle.ErrPrecondition]. It is a plain value.
type InUseError struct {
	Key  lifecycle.Key // of the object
	Verb Event         // or "Upgrade", for a cloudlet
	By   []Referrer    // at most [MaxReferrers]: ClusterInsts, then AppInsts, each in the order of their ids
}

// Referrer is an instance and its state.
type Referrer struct {
	Key   lifecycle.Key
	State State
}

// Error returns one line with the instances.
func (e *InUseError) Error() string {
	by := make([]string, len(e.By))
	for i, r := range e.By {
		by[i] = fmt.Sprintf("%s %q is %s", r.Key.Machine, r.Key.ID, r.State)
	}
	return fmt.Sprintf("%v: %s %q: %s: %s", ErrInUse, e.Key.Machine, e.Key.ID, e.Verb, strings.Join(by, ", "))
}

// Unwrap returns [ErrInUse] and [lifecycle.ErrPrecondition].
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, lifecycle.ErrPrecondition} }

// movingOn refuses an upgrade of a cloudlet while an instance there is in
// transition.
func (c *Coordinator) movingOn(ctx context.Context, cloudlet string) error {
	clusters, err := c.Clusters.moving(ctx, func(s *ClusterSpec) (bool, error) { return s.Cloudlet == cloudlet, nil })
	if err != nil {
		return err
	}
	apps, err := c.Apps.moving(ctx, c.appsOn(ctx, cloudlet))
	if by := slices.Concat(clusters, apps); err == nil && len(by) > 0 {
		key := lifecycle.Key{Machine: CloudletUpgrade.Name(), ID: cloudlet}
		err = &InUseError{key, Event(Upgrade), by[:min(len(by), MaxReferrers)]}
	}
	return err
}

// movingIn refuses an update of a ClusterInst while an AppInst in it is in
// transition.
func (c *Coordinator) movingIn(ctx context.Context, cluster string) error {
	by, err := c.Apps.moving(ctx, func(s *AppSpec) (bool, error) { return s.ClusterInst == cluster, nil })
	if err == nil && len(by) > 0 {
		err = &InUseError{c.Clusters.key(cluster), Update, by}
	}
	return err
}

// moving returns the instances in transition for which its returns true, at most
// [MaxReferrers].
func (in *Instances[T]) moving(ctx context.Context, its func(*T) (bool, error)) (by []Referrer, err error) {
	for rec, err := range in.m.All(ctx, lifecycle.Select[State]{States: transitional}) {
		if err != nil {
			return nil, err
		}
		here, err := its(&rec.Payload)
		if err != nil {
			return nil, err
		}
		if here {
			if by = append(by, Referrer{in.key(rec.ID), rec.State}); len(by) == MaxReferrers {
				break
			}
		}
	}
	return by, nil
}

var transitional = slices.Collect(func(yield func(State) bool) {
	for s := range ClusterInst.States() {
		if inTransition(s) && !yield(s) {
			return
		}
	}
})

// appsOn returns a function that reports whether an AppInst is on a cloudlet. It reads
// the place of each ClusterInst once.
func (c *Coordinator) appsOn(ctx context.Context, cloudlet string) func(*AppSpec) (bool, error) {
	places := map[string]bool{}
	return func(s *AppSpec) (bool, error) {
		here, known := places[s.ClusterInst]
		if known {
			return here, nil
		}
		at, err := c.placeOfApp(ctx, s)
		if err == nil {
			places[s.ClusterInst] = at.cloudlet == cloudlet
		}
		return at.cloudlet == cloudlet, err
	}
}
