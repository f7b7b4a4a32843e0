package edgecloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Coordinator is the controller of the document: users tell it what they want,
// CRMs what they do, and it lets nobody move an object out of turn. It is made by
// [NewCoordinator]; the zero Coordinator is not usable. It is safe for concurrent
// use and must not be copied. In memory it keeps only counts: several of them, in
// several processes, may work on one store, and one that is started again goes on
// where the last one stopped.
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
	// Observer is told what happens to ClusterInsts, AppInsts and cloudlets, of
	// both tables. Default: nobody.
	Observer lifecycle.Observer
	// UndoAfter is how long a failed operation may stay in its error state until
	// [Coordinator.Sweep] undoes it: whoever waits for it does so at once, and may
	// have died. Default, at 0: a minute. Below 0: for ever.
	UndoAfter time.Duration
}

// NewCoordinator returns a coordinator of the objects in a store. The store must
// take commits of at least eight changes and conditions, or every request is
// refused with [errors.ErrUnsupported]. It panics without a store.
func NewCoordinator(store lifecycle.Store, config *Config) *Coordinator {
	if config == nil {
		config = &Config{}
	}
	cloudlets := &lifecycle.Config[CloudletEvent]{Observer: config.Observer}
	c := &Coordinator{
		store: store, undoAfter: cmp.Or(config.UndoAfter, time.Minute),
		cloudletRefs: lifecycle.New(cloudletRefs, store, nil),
		clusterRefs:  lifecycle.New(clusterRefs, store, nil),
	}
	c.Cloudlets = &Cloudlets{
		c:       c,
		start:   lifecycle.New(CloudletCreate, store, cloudlets),
		upgrade: lifecycle.New(CloudletUpgrade, store, cloudlets),
	}
	c.Clusters = &Instances[ClusterSpec]{
		c: c, refs: lifecycle.New(clusterRef, store, nil),
		parent: func(s *ClusterSpec) string { return s.Cloudlet },
		place:  func(_ context.Context, s *ClusterSpec) (place, error) { return place{cloudlet: s.Cloudlet}, nil },
		check:  (*ClusterSpec).check, same: (*ClusterSpec).same,
	}
	c.Apps = &Instances[AppSpec]{
		c: c, refs: lifecycle.New(appRef, store, nil),
		parent: func(s *AppSpec) string { return s.ClusterInst },
		place:  c.placeOfApp,
		check:  (*AppSpec).check, same: (*AppSpec).same,
	}
	insts := ManagerConfig()
	insts.Observer, insts.Along = config.Observer, c.Clusters.along
	c.Clusters.m = lifecycle.New(ClusterInst, store, insts)
	insts.Along = c.Apps.along
	c.Apps.m = lifecycle.New(AppInst, store, insts)
	return c
}

// place is what an instance depends on.
type place struct {
	cloudlet string // empty: nobody knows, the ClusterInst is gone
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

// same refuses a change of what says where an instance is.
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

// Sweep looks once after everything whose deadline is over, as
// [lifecycle.Manager.Sweep] does: operations that nobody answers, deletes whose
// controller died while it prepared them, cloudlets whose CRM is silent. Then it
// undoes what has failed and was left for [Config.UndoAfter], because whoever was
// to do that has died, and takes for done what was asked for with
// [IgnoreCRMErrors]; what was asked for with KeepError it leaves. Some process has
// to call it now and then.
func (c *Coordinator) Sweep(ctx context.Context) ([]lifecycle.Case, error) {
	var cases []lifecycle.Case
	for _, sweep := range []func(context.Context) ([]lifecycle.Case, error){
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
	for _, undo := range []func(context.Context) ([]lifecycle.Case, error){c.Apps.undoLeft, c.Clusters.undoLeft} {
		found, err := undo(ctx)
		cases = append(cases, found...)
		if err != nil {
			return cases, err
		}
	}
	return cases, nil
}
