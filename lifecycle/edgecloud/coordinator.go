package edgecloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Coordinator is the controller of the document: it takes the requests of users and
// the reports of CRMs, and refuses those that are out of turn. [NewCoordinator] makes
// one; the zero Coordinator is not usable. It is safe for concurrent use and must not
// be copied. In memory it keeps only counts: several of them, in several processes,
// may work on one store, and a new one continues after a crash.
type Coordinator struct {
	Clusters  *Instances[ClusterSpec]
	Apps      *Instances[AppSpec]
	Cloudlets *Cloudlets

	store                     lifecycle.Store
	undoAfter                 time.Duration
	cloudletRefs, clusterRefs *refsManager
}

// Config refines a [Coordinator]. The zero Config and nil are the defaults.
type Config struct {
	// Observer receives what happens to ClusterInsts, AppInsts and cloudlets, of
	// both tables. Default: none.
	Observer lifecycle.Observer
	// UndoAfter is how long a failed operation stays in its error state until
	// [Coordinator.Sweep] undoes it. [Instances.Wait] undoes it at once, but its
	// process may have died. 0: a minute. Below 0: no sweep undoes it.
	UndoAfter time.Duration
}

// NewCoordinator returns a coordinator of the objects in a store. It panics without
// a store. If the store does not take commits of at least eight changes and
// conditions, every request is refused with [errors.ErrUnsupported].
func NewCoordinator(store lifecycle.Store, config *Config) *Coordinator {
	if config == nil {
		config = &Config{}
	}
	cloudlets := &lifecycle.Config[CloudletEvent]{Observer: config.Observer}
	c := &Coordinator{
		store: store, undoAfter: cmp.Or(config.UndoAfter, time.Minute),
		cloudletRefs: lifecycle.Must(cloudletRefs, store, nil),
		clusterRefs:  lifecycle.Must(clusterRefs, store, nil),
	}
	c.Cloudlets = &Cloudlets{
		c:       c,
		start:   lifecycle.Must(CloudletCreate, store, cloudlets),
		upgrade: lifecycle.Must(CloudletUpgrade, store, cloudlets),
	}
	c.Clusters = &Instances[ClusterSpec]{
		c: c, machine: ClusterInst, refs: lifecycle.Must(clusterRef, store, nil),
		parent: func(s *ClusterSpec) string { return s.Cloudlet },
		place:  func(_ context.Context, s *ClusterSpec) (place, error) { return place{cloudlet: s.Cloudlet}, nil },
		check:  (*ClusterSpec).check, same: (*ClusterSpec).same,
	}
	c.Apps = &Instances[AppSpec]{
		c: c, machine: AppInst, refs: lifecycle.Must(appRef, store, nil),
		parent: func(s *AppSpec) string { return s.ClusterInst },
		place:  c.placeOfApp,
		check:  (*AppSpec).check, same: (*AppSpec).same,
	}
	insts := ManagerConfig()
	insts.Observer, insts.BeforeCommit = config.Observer, c.Clusters.beforeCommit
	c.Clusters.m = lifecycle.Must(ClusterInst, store, insts)
	insts.BeforeCommit = c.Apps.beforeCommit
	c.Apps.m = lifecycle.Must(AppInst, store, insts)
	return c
}

// place is what an instance depends on.
type place struct {
	cloudlet string // empty: unknown, because the ClusterInst does not exist
	cluster  string // empty for a ClusterInst
}

func (c *Coordinator) placeOfApp(ctx context.Context, s *AppSpec) (place, error) {
	cluster, err := c.Clusters.m.Get(ctx, s.ClusterInst)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return place{cluster: s.ClusterInst}, nil
	}
	return place{cloudlet: cluster.Payload.Cloudlet, cluster: s.ClusterInst}, err
}

func (s *ClusterSpec) check() error {
	switch {
	case s.Cloudlet == "":
		return fmt.Errorf("%w: a ClusterInst needs a cloudlet", lifecycle.ErrInvalid)
	case s.Nodes < 0:
		return fmt.Errorf("%w: %d nodes", lifecycle.ErrInvalid, s.Nodes)
	}
	return nil
}

func (s *AppSpec) check() error {
	switch {
	case s.ClusterInst == "":
		return fmt.Errorf("%w: an AppInst needs a ClusterInst", lifecycle.ErrInvalid)
	case s.Replicas < 0:
		return fmt.Errorf("%w: %d replicas", lifecycle.ErrInvalid, s.Replicas)
	}
	return nil
}

// same refuses a change of the place of an instance.
func (s *ClusterSpec) same(before *ClusterSpec) error {
	if s.Cloudlet != before.Cloudlet {
		return fmt.Errorf("%w: a ClusterInst stays on its cloudlet", lifecycle.ErrInvalid)
	}
	return nil
}

func (s *AppSpec) same(before *AppSpec) error {
	if s.ClusterInst != before.ClusterInst {
		return fmt.Errorf("%w: an AppInst stays in its ClusterInst", lifecycle.ErrInvalid)
	}
	return nil
}

// Sweep looks once at every object whose deadline has passed, as
// [lifecycle.Manager.Sweep] does: operations without an answer, deletes whose
// controller died while it prepared them, cloudlets whose CRM is silent. Then it
// undoes operations that failed longer than [Config.UndoAfter] ago. It records them
// as done if they were requested with [IgnoreCRMErrors], and leaves them if they were
// requested with KeepError. A process has to call Sweep from time to time.
func (c *Coordinator) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	var cases []lifecycle.SweepResult
	for _, sweep := range []func(context.Context) ([]lifecycle.SweepResult, error){
		c.Clusters.m.Sweep, c.Apps.m.Sweep, c.Cloudlets.start.Sweep, c.Cloudlets.upgrade.Sweep,
	} {
		found, err := sweep(ctx)
		cases = append(cases, found...)
		if err != nil {
			return cases, err
		}
	}
	if c.undoAfter < 0 {
		return cases, nil
	}
	// AppInsts first, as they are deleted.
	for _, undo := range []func(context.Context) ([]lifecycle.SweepResult, error){c.Apps.undoLeft, c.Clusters.undoLeft} {
		found, err := undo(ctx)
		cases = append(cases, found...)
		if err != nil {
			return cases, err
		}
	}
	return cases, nil
}
