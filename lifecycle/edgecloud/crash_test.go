package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// process is a process of the controller.
type process struct {
	*edgecloud.Coordinator
}

// start makes a process: a coordinator, and managers of the same tables, by which the
// harness sweeps and checks the histories.
func start(_ context.Context, p *crashtest.Process) (process, error) {
	crashtest.Manage(p, edgecloud.ClusterInst, edgecloud.ManagerConfig())
	crashtest.Manage(p, edgecloud.AppInst, edgecloud.ManagerConfig())
	crashtest.Manage(p, edgecloud.CloudletCreate, nil)
	crashtest.Manage(p, edgecloud.CloudletUpgrade, nil)
	c, err := edgecloud.NewCoordinator(p.Store(), nil)
	p.Every(func(ctx context.Context) error { _, err := c.Sweep(ctx); return err })
	return process{c}, err
}

// errNotYet makes the harness repeat a step.
var errNotYet = errors.New("not yet")

// client is the user and the CRM of cloudlet b.
type client struct {
	w    *crashtest.Clients[process]
	done map[lifecycle.Key]lifecycle.OpID // what the CRM has done
	fail bool                             // every order fails
}

func newClient(w *crashtest.Clients[process]) *client {
	return &client{w: w, done: map[lifecycle.Key]lifecycle.OpID{}}
}

// until repeats a request until look returns none. The CRM carries out the orders.
func (c *client) until(goal string, look func(context.Context, process) (request func() error, err error)) error {
	return c.w.Insist("alpha", goal, func(ctx context.Context, p process) error {
		for range 8 {
			if err := c.reconnect(ctx, p); err != nil {
				return err
			}
			request, err := look(ctx, p)
			if err != nil || request == nil {
				return err
			}
			if err := request(); err != nil {
				return err
			}
			if err := c.serve(ctx, p); err != nil {
				return err
			}
		}
		return errNotYet
	})
}

// reconnect starts the CRM again after the sweeper has moved its cloudlet to Offline.
func (c *client) reconnect(ctx context.Context, p process) error {
	rec, err := p.Cloudlets.Creation(ctx, "b")
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	if err != nil || rec.State != edgecloud.CloudletOffline || rec.Payload.NotifyID == 0 {
		return err
	}
	n := rec.Payload.NotifyID + 1
	if _, err := p.Cloudlets.StartUp(ctx, "b", n, rec.Payload.Version); err != nil {
		return err
	}
	return p.Cloudlets.Gathered(ctx, "b", n)
}

// serve carries out every order once, and reports it as often as it is sent.
func (c *client) serve(ctx context.Context, p process) error {
	orders, err := p.Orders(ctx, "b")
	if err != nil {
		return err
	}
	for _, o := range orders {
		working, outcome := edgecloud.Creating, edgecloud.Ready
		switch o.Verb {
		case edgecloud.Update:
			working = edgecloud.Updating
		case edgecloud.Delete:
			working, outcome = edgecloud.Deleting, edgecloud.NotPresent
		}
		if c.fail {
			outcome = edgecloud.UpdateError
		}
		if _, err := p.Answer(ctx, notifyID(ctx, p.Coordinator, "b"), o.Key, edgecloud.Report{Operation: o.Operation, State: working}); err != nil {
			return err
		}
		if !c.fail && c.done[o.Key] != o.Operation {
			if err := c.w.Apply(o.Key, o.Operation); err != nil {
				return err
			}
			c.done[o.Key] = o.Operation
		}
		if _, err := p.Answer(ctx, notifyID(ctx, p.Coordinator, "b"), o.Key, edgecloud.Report{Operation: o.Operation, State: outcome}); err != nil {
			return err
		}
	}
	return nil
}

// get returns a record, in NotPresent if there is none.
func get[T any](ctx context.Context, in *edgecloud.Instances[T], id string) (edgecloud.Record[T], error) {
	rec, err := in.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		rec.State, err = edgecloud.NotPresent, nil
	}
	return rec, err
}

// create creates an instance. If the sweeper has ended the operation, it is undone
// first.
func create[T any](c *client, instances func(process) *edgecloud.Instances[T], id string, spec T) error {
	return c.until("create "+id, func(ctx context.Context, p process) (func() error, error) {
		in := instances(p)
		rec, err := get(ctx, in, id)
		switch rec.State {
		case edgecloud.Ready:
			return nil, err
		case edgecloud.NotPresent:
			return func() error { _, err := in.Create(ctx, id, spec, nil); return err }, err
		case edgecloud.CreateError:
			return func() error { _, err := in.Undo(ctx, id, rec.Operation, ""); return err }, err
		}
		return func() error { return nil }, err
	})
}

// remove deletes an instance in any state.
func remove[T any](c *client, instances func(process) *edgecloud.Instances[T], id string) error {
	return c.until("delete "+id, func(ctx context.Context, p process) (func() error, error) {
		in := instances(p)
		rec, err := get(ctx, in, id)
		switch rec.State {
		case edgecloud.NotPresent:
			return nil, err
		case edgecloud.Ready:
			return func() error { _, err := in.Delete(ctx, id, nil); return err }, err
		case edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError:
			return func() error { _, err := in.Undo(ctx, id, rec.Operation, ""); return err }, err
		case edgecloud.DeletePrepare:
			return nil, errNotYet // the sweeper ends it
		}
		return func() error { return nil }, err
	})
}

func clusters(p process) *edgecloud.Instances[edgecloud.ClusterSpec] { return p.Clusters }
func apps(p process) *edgecloud.Instances[edgecloud.AppSpec]         { return p.Apps }

// startCRM starts a CRM of a version, as often as it takes.
func (c *client) startCRM(version string) error {
	return c.until("start the CRM", func(ctx context.Context, p process) (func() error, error) {
		rec, err := p.Cloudlets.Creation(ctx, "b")
		if errors.Is(err, lifecycle.ErrNotFound) {
			err = nil
		}
		n := rec.Payload.NotifyID
		switch {
		case n == 0:
		case rec.State == edgecloud.CloudletReady:
			return nil, err
		case rec.State == edgecloud.CloudletInit:
			return func() error { return p.Cloudlets.Acknowledge(ctx, "b", n) }, err
		case rec.State == edgecloud.CloudletInitOk:
			return func() error { return p.Cloudlets.Gathered(ctx, "b", n) }, err
		}
		return func() error { _, err := p.Cloudlets.StartUp(ctx, "b", n+1, version); return err }, err
	})
}

// upgrade replaces the CRM.
func (c *client) upgrade(version string) error {
	return c.until("upgrade", func(ctx context.Context, p process) (func() error, error) {
		now, err := p.Cloudlets.Upgrading(ctx, "b")
		if err != nil {
			return nil, err
		}
		crm, err := p.Cloudlets.Creation(ctx, "b")
		n := crm.Payload.NotifyID
		switch {
		case now.State == edgecloud.CloudletReady && now.Payload.Version == version:
			return nil, err
		case now.State == edgecloud.CloudletReady:
			return func() error { _, err := p.Cloudlets.Upgrade(ctx, "b", version, ""); return err }, err
		case now.State == edgecloud.CloudletUpdateRequested:
			return func() error { return p.Cloudlets.AckUpgrade(ctx, "b", n) }, err
		case now.State == edgecloud.CloudletUpdateError:
			return func() error { return p.Cloudlets.Repaired(ctx, "b", crm.Payload.Version, "again") }, err
		case crm.Payload.Version != version:
			return func() error { _, err := p.Cloudlets.StartUp(ctx, "b", n+1, version); return err }, err
		case crm.State == edgecloud.CloudletInit:
			return func() error { return p.Cloudlets.Acknowledge(ctx, "b", n) }, err
		}
		return func() error { return p.Cloudlets.Gathered(ctx, "b", n) }, err
	})
}

// failToDelete requests the delete of cluster c, which has an app.
func (c *client) failToDelete() error {
	return c.until("delete c in use", func(ctx context.Context, p process) (func() error, error) {
		_, err := p.Clusters.Delete(ctx, "c", nil)
		if errors.Is(err, edgecloud.ErrInUse) {
			return nil, nil
		}
		if err == nil {
			c.w.Errorf("c was deleted with an app in it")
		}
		return nil, err
	})
}

// failToUpdate requests an update of a cluster that fails, and waits for it. Of a process
// that dies meanwhile, the sweeper undoes the update unless the request had KeepError.
func (c *client) failToUpdate(id string, call *edgecloud.Call) error {
	var ready lifecycle.OpID
	if err := c.until("read "+id, func(ctx context.Context, p process) (func() error, error) {
		rec, err := p.Clusters.Get(ctx, id)
		ready = rec.Operation
		return nil, err
	}); err != nil {
		return err
	}
	c.fail = true
	defer func() { c.fail = false }()
	return c.w.Insist("alpha", "update "+id, func(ctx context.Context, p process) error {
		if err := c.reconnect(ctx, p); err != nil {
			return err
		}
		rec, err := p.Clusters.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case rec.State == edgecloud.DeletePrepare:
			return errNotYet // of failToDelete; the sweeper ends it
		case rec.Event == string(edgecloud.PrepareFailed) || rec.Event == string(edgecloud.TimedOut) && rec.State == edgecloud.Ready:
			ready = rec.Operation
		case rec.Operation > ready && (rec.State == edgecloud.UpdateError || rec.State == edgecloud.Ready):
			return nil // failed in a process that died; undone unless the error is kept
		}
		if rec.Operation == ready {
			rec, err = p.Clusters.Update(ctx, id, func(s *edgecloud.ClusterSpec) error { s.Nodes = 7; return nil }, call)
			if err != nil {
				return err
			}
		}
		if err := c.serve(ctx, p); err != nil {
			return err
		}
		if _, err = p.Clusters.Wait(ctx, rec, 0); errors.Is(err, edgecloud.ErrFailed) {
			return nil
		}
		return err
	})
}

// A controller dies, its store refuses, it stalls, or an answer is lost, at every write of
// the life of a cloudlet and its instances.
func TestCrashes(t *testing.T) {
	spec := edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}
	keep := &edgecloud.Call{KeepError: true}
	ready := []string{"Ready"}
	cloudlet := map[lifecycle.Key][]string{
		{Machine: "cloudlet-create", ID: "b"}: ready, {Machine: "cloudlet-upgrade", ID: "b"}: ready,
	}
	for name, tt := range map[string]struct {
		script []func(*client) error
		ends   map[lifecycle.Key][]string
		check  func(context.Context, process) error
	}{
		"life": {
			script: []func(*client) error{
				func(c *client) error { return c.startCRM("v1") },
				func(c *client) error { return create(c, clusters, "c", spec) },
				func(c *client) error { return create(c, apps, "a", edgecloud.AppSpec{ClusterInst: "c", Replicas: 1}) },
				(*client).failToDelete,
				func(c *client) error { return c.upgrade("v2") },
				func(c *client) error { return remove(c, apps, "a") },
				func(c *client) error { return remove(c, clusters, "c") },
			},
			ends: map[lifecycle.Key][]string{clusterKey("c"): {""}, appKey("a"): {""}},
			check: func(ctx context.Context, p process) error {
				rec, err := p.Cloudlets.Upgrading(ctx, "b")
				if err == nil && rec.Payload.Version != "v2" {
					err = fmt.Errorf("the cloudlet has version %s", rec.Payload.Version)
				}
				return err
			},
		},
		"failed updates": {
			script: []func(*client) error{
				func(c *client) error { return c.startCRM("v1") },
				func(c *client) error { return create(c, clusters, "c", spec) },
				func(c *client) error { return create(c, clusters, "k", spec) },
				func(c *client) error { return c.failToUpdate("c", nil) },
				func(c *client) error { return c.failToUpdate("k", keep) },
				func(c *client) error { c.w.Pass(2 * time.Minute); return nil }, // longer than Config.UndoAfter
			},
			ends: map[lifecycle.Key][]string{clusterKey("c"): ready, clusterKey("k"): {"UpdateError"}},
			check: func(ctx context.Context, p process) error {
				for id, nodes := range map[string]int{"c": 1, "k": 7} {
					if rec, err := p.Clusters.Get(ctx, id); err != nil || rec.Payload.Nodes != nodes {
						return fmt.Errorf("%s has %d nodes: %w", id, rec.Payload.Nodes, err)
					}
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := crashtest.Harness{
				New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
			}
			if testing.Short() {
				h.Kinds = []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer}
			}
			for k, states := range cloudlet {
				tt.ends[k] = states
			}
			crashtest.Run(t, h, crashtest.Scenario[process]{
				Processes: []string{"alpha", "beta"}, Start: start, Ends: tt.ends, Check: tt.check,
				Script: func(_ context.Context, w *crashtest.Clients[process]) error {
					c := newClient(w)
					for _, step := range tt.script {
						if err := step(c); err != nil {
							return err
						}
					}
					return nil
				},
			})
		})
	}
}
