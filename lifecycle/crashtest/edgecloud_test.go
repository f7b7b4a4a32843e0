package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

type clusters = *lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]

func clusterKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "clusterinst", ID: id} }

// crm is the cloudlet's side: it does what it is asked for once, and reports it
// until it is heard.
type crm struct {
	w    *World[clusters]
	done map[lifecycle.OpID]bool
}

// works does what the cluster waits for, and says so by the event.
func (c *crm) works(id string, says edgecloud.Event) error {
	return c.w.Insist("controller", "the report of the CRM", func(ctx context.Context, m clusters) error {
		rec, err := m.Get(ctx, id)
		if errors.Is(err, lifecycle.ErrNotFound) || err == nil && rec.Deadline.IsZero() {
			return nil // nothing is owed
		}
		if err != nil {
			return err
		}
		if _, err := m.Report(ctx, id, rec.Operation, edgecloud.Working, edgecloud.CRM, ""); err != nil {
			return err
		}
		if says == edgecloud.Done && !c.done[rec.Operation] {
			if err := c.w.Apply(clusterKey(id), rec.Operation); err != nil {
				return err
			}
			c.done[rec.Operation] = true
		}
		_, err = m.Report(ctx, id, rec.Operation, says, edgecloud.CRM, "")
		return err
	})
}

// ask fires an event of the controller or a user until the object is in one of
// the states.
func askCluster(w *World[clusters], id string, fire func(context.Context, clusters) error, until ...edgecloud.State) error {
	return w.Insist("controller", fmt.Sprintf("%s until %v", id, until), func(ctx context.Context, m clusters) error {
		for range 2 {
			rec, err := m.Get(ctx, id)
			if errors.Is(err, lifecycle.ErrNotFound) {
				rec.State, err = edgecloud.NotPresent, nil
			}
			if err != nil {
				return err
			}
			for _, s := range until {
				if rec.State == s {
					return nil
				}
			}
			if err := fire(ctx, m); err != nil {
				return err
			}
		}
		return errors.New("it is elsewhere")
	})
}

func clusterLife(_ context.Context, w *World[clusters]) error {
	peer := &crm{w, map[lifecycle.OpID]bool{}}
	create := func(id string, change *lifecycle.Change[edgecloud.ClusterSpec]) func(context.Context, clusters) error {
		return func(ctx context.Context, m clusters) error {
			if change != nil {
				_, err := m.Fire(ctx, id, edgecloud.Update, edgecloud.User, change)
				return err
			}
			_, err := m.Create(ctx, id, edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 1})
			return err
		}
	}
	fire := func(id string, e edgecloud.Event, actor string) func(context.Context, clusters) error {
		by := edgecloud.User
		if actor == "controller" {
			by = edgecloud.Controller
		}
		return func(ctx context.Context, m clusters) error {
			_, err := m.Fire(ctx, id, e, by, nil)
			return err
		}
	}
	grow := &lifecycle.Change[edgecloud.ClusterSpec]{Edit: func(s *edgecloud.ClusterSpec) error { s.Nodes = 7; return nil }}
	for _, step := range []func() error{
		func() error {
			return askCluster(w, "c", create("c", nil), edgecloud.CreateRequested)
		},
		func() error { return peer.works("c", edgecloud.Done) },
		func() error { return askCluster(w, "c", create("c", grow), edgecloud.UpdateRequested) },
		func() error { return peer.works("c", edgecloud.Fail) },
		func() error {
			return askCluster(w, "c", fire("c", edgecloud.Undo, "controller"), edgecloud.Ready)
		},
		func() error { // the CRM of this one never answers
			return askCluster(w, "d", create("d", nil), edgecloud.CreateRequested)
		},
		func() error { w.Pass(edgecloud.CreateTimeout + time.Minute); return nil },
		func() error {
			return askCluster(w, "d", fire("d", edgecloud.Undo, "controller"), edgecloud.NotPresent)
		},
		func() error {
			return w.Insist("controller", "look at c", func(ctx context.Context, m clusters) error {
				rec, err := m.Get(ctx, "c")
				if err == nil && (rec.State != edgecloud.Ready || rec.Payload.Nodes != 1) {
					w.Blame("c is %s with %d nodes, after an update that was undone", rec.State, rec.Payload.Nodes)
				}
				return err
			})
		},
		func() error {
			for { // a CRM that is late is a deletion that failed: undo it, and ask again
				err := askCluster(w, "c", func(ctx context.Context, m clusters) error {
					_, _ = m.Fire(ctx, "c", edgecloud.Undo, edgecloud.Controller, nil)
					_, _ = m.Fire(ctx, "c", edgecloud.Delete, edgecloud.User, nil)
					_, err := m.Fire(ctx, "c", edgecloud.Prepared, edgecloud.Controller, nil)
					return err
				}, edgecloud.DeleteRequested, edgecloud.Deleting, edgecloud.NotPresent)
				if err == nil {
					err = peer.works("c", edgecloud.Done)
				}
				there := false
				if err == nil {
					err = w.Insist("controller", "look for c", func(ctx context.Context, m clusters) error {
						_, err := m.Get(ctx, "c")
						there = err == nil
						if errors.Is(err, lifecycle.ErrNotFound) {
							err = nil
						}
						return err
					})
				}
				if err != nil || !there {
					return err
				}
			}
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// A ClusterInst of the edge cloud: a user asks, a CRM reports, the controller
// undoes, and one CRM is silent.
func TestClusterInst(t *testing.T) {
	Run(t, memoryHarness(), Scenario[clusters]{
		Processes: []string{"controller"}, Tick: 10 * time.Minute,
		Start: func(ctx context.Context, p *Process) (clusters, error) {
			if err := p.Join(ctx, 25*time.Minute); err != nil {
				return nil, err
			}
			return Manage(p, edgecloud.ClusterInst, &lifecycle.Config[edgecloud.Event]{
				Undo: []edgecloud.Event{edgecloud.Undo}, WorkerActor: edgecloud.CRM, Done: []edgecloud.Event{edgecloud.Done},
			}), nil
		},
		Script: clusterLife,
		Ends:   map[lifecycle.Key][]string{clusterKey("c"): {""}, clusterKey("d"): {""}},
	})
}
