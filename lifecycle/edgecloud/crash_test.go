package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// service is a controller's process.
type service struct {
	*edgecloud.Coordinator
}

// start makes a process: a coordinator, and managers of the same tables that
// sweep, and by which the histories are judged.
func start(_ context.Context, p *crashtest.Process) (service, error) {
	crashtest.Manage(p, edgecloud.ClusterInst, edgecloud.ManagerConfig())
	crashtest.Manage(p, edgecloud.AppInst, edgecloud.ManagerConfig())
	crashtest.Manage(p, edgecloud.CloudletCreate, nil)
	crashtest.Manage(p, edgecloud.CloudletUpgrade, nil)
	c := edgecloud.NewCoordinator(p.Store(), nil)
	p.Every(func(ctx context.Context) error { _, err := c.Sweep(ctx); return err })
	return service{c}, nil
}

// errNotYet is why a client asks again.
var errNotYet = errors.New("not yet")

// client asks for one thing until it is so.
type client struct {
	w    *crashtest.Clients[service]
	done map[lifecycle.Key]lifecycle.OpID // what the CRM has done
	fail bool                             // the CRM gives up
}

// until asks step after step: look returns what is to be done next, or nil when
// all is well.
func (c *client) until(what string, look func(context.Context, service) (func() error, error)) error {
	return c.w.Insist("alpha", what, func(ctx context.Context, s service) error {
		for range 8 {
			if err := c.connected(ctx, s); err != nil {
				return err
			}
			next, err := look(ctx, s)
			if err != nil || next == nil {
				return err
			}
			if err := next(); err != nil {
				return err
			}
			if err := c.serve(ctx, s); err != nil {
				return err
			}
		}
		return errNotYet
	})
}

// connected starts the CRM again once it has been given up, for having been
// silent while the controller stood still.
func (c *client) connected(ctx context.Context, s service) error {
	rec, err := s.Cloudlets.Creation(ctx, "b")
	if err != nil || rec.State != edgecloud.CloudletOffline || rec.Payload.NotifyID == 0 {
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	}
	n := rec.Payload.NotifyID + 1
	if _, err := s.Cloudlets.StartUp(ctx, "b", n, rec.Payload.Version); err != nil {
		return err
	}
	return s.Cloudlets.Gathered(ctx, "b", n)
}

// serve is the CRM of the cloudlet: it does each operation once, and answers
// whenever it is asked.
func (c *client) serve(ctx context.Context, s service) error {
	orders, err := s.Orders(ctx, "b")
	if err != nil {
		return err
	}
	for _, o := range orders {
		working := map[edgecloud.Event]edgecloud.State{
			edgecloud.Create: edgecloud.Creating, edgecloud.Update: edgecloud.Updating, edgecloud.Delete: edgecloud.Deleting,
		}[o.Verb]
		if _, err := s.Answer(ctx, o.Key, edgecloud.Info{Operation: o.Operation, State: working}); err != nil {
			return err
		}
		says := edgecloud.Ready
		switch {
		case c.fail:
			says = edgecloud.UpdateError
		case o.Verb == edgecloud.Delete:
			says = edgecloud.NotPresent
		}
		if !c.fail && c.done[o.Key] != o.Operation {
			if err := c.w.Apply(o.Key, o.Operation); err != nil {
				return err
			}
			c.done[o.Key] = o.Operation
		}
		if _, err := s.Answer(ctx, o.Key, edgecloud.Info{Operation: o.Operation, State: says}); err != nil {
			return err
		}
	}
	return nil
}

// at returns the state and the record of an instance.
func at[T any](ctx context.Context, in *edgecloud.Instances[T], id string) (edgecloud.Record[T], error) {
	rec, err := in.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		rec.State, err = edgecloud.NotPresent, nil
	}
	return rec, err
}

// gone deletes an instance, whatever state it is found in.
func gone[T any](ctx context.Context, in *edgecloud.Instances[T], id string) (func() error, error) {
	rec, err := at(ctx, in, id)
	switch rec.State {
	case edgecloud.NotPresent:
		return nil, err
	case edgecloud.Ready:
		return func() error { _, err := in.Delete(ctx, id, nil); return err }, err
	case edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError:
		return func() error { _, err := in.Undo(ctx, id, rec.Operation, ""); return err }, err
	case edgecloud.DeletePrepare:
		return nil, errNotYet // the sweeper's
	}
	return func() error { return nil }, err
}

func (c *client) life(context.Context) error {
	nodes := func(n int) func(*edgecloud.ClusterSpec) error {
		return func(s *edgecloud.ClusterSpec) error { s.Nodes = n; return nil }
	}
	steps := []func() error{
		func() error { return c.up(1, "v1") },
		func() error {
			return c.until("create c", func(ctx context.Context, s service) (func() error, error) {
				rec, err := at(ctx, s.Clusters, "c")
				if rec.State == edgecloud.Ready {
					return nil, err
				}
				return func() error {
					switch rec.State {
					case edgecloud.NotPresent:
					case edgecloud.CreateError: // of a controller that stood still for too long
						_, err := s.Clusters.Undo(ctx, "c", rec.Operation, "")
						return err
					default:
						return nil
					}
					_, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
					return err
				}, err
			})
		},
		func() error {
			return c.until("create a", func(ctx context.Context, s service) (func() error, error) {
				rec, err := at(ctx, s.Apps, "a")
				if rec.State == edgecloud.Ready {
					return nil, err
				}
				return func() error {
					switch rec.State {
					case edgecloud.NotPresent:
					case edgecloud.CreateError: // of a controller that stood still for too long
						_, err := s.Apps.Undo(ctx, "a", rec.Operation, "")
						return err
					default:
						return nil
					}
					_, err := s.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c", Replicas: 1}, nil)
					return err
				}, err
			})
		},
		func() error {
			return c.until("delete c in vain", func(ctx context.Context, s service) (func() error, error) {
				_, err := s.Clusters.Delete(ctx, "c", nil)
				if errors.Is(err, edgecloud.ErrInUse) {
					err = nil
				} else if err == nil {
					c.w.Errorf("c was deleted, with an app in it")
				}
				return nil, err
			})
		},
		func() error {
			c.fail = true
			err := c.until("update c in vain", func(ctx context.Context, s service) (func() error, error) {
				rec, err := at(ctx, s.Clusters, "c")
				switch rec.State {
				case edgecloud.UpdateError:
					return nil, err
				case edgecloud.Ready:
					return func() error { _, err := s.Clusters.Update(ctx, "c", nodes(7), nil); return err }, err
				case edgecloud.DeletePrepare: // of the step before, whose process died
					return nil, errNotYet
				}
				return func() error { return nil }, err
			})
			c.fail = false
			return err
		},
		func() error {
			return c.until("undo it", func(ctx context.Context, s service) (func() error, error) {
				rec, err := at(ctx, s.Clusters, "c")
				if rec.State == edgecloud.Ready {
					if rec.Payload.Nodes != 1 {
						c.w.Errorf("c has %d nodes after the undo", rec.Payload.Nodes)
					}
					return nil, err
				}
				return func() error { _, err := s.Clusters.Undo(ctx, "c", rec.Operation, ""); return err }, err
			})
		},
		func() error { return c.upgrade("v2") },
		func() error {
			return c.until("delete a", func(ctx context.Context, s service) (func() error, error) {
				return gone(ctx, s.Apps, "a")
			})
		},
		func() error {
			return c.until("delete c", func(ctx context.Context, s service) (func() error, error) {
				return gone(ctx, s.Clusters, "c")
			})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// up starts a CRM of a version, under a new notify id as often as it takes.
func (c *client) up(least int64, version string) error {
	return c.until("start the CRM", func(ctx context.Context, s service) (func() error, error) {
		rec, err := s.Cloudlets.Creation(ctx, "b")
		if errors.Is(err, lifecycle.ErrNotFound) {
			err = nil
		}
		n := rec.Payload.NotifyID
		switch {
		case rec.State == edgecloud.CloudletReady && n >= least:
			return nil, err
		case rec.State == edgecloud.CloudletInit && n >= least:
			return func() error { return s.Cloudlets.Acknowledge(ctx, "b", n) }, err
		case rec.State == edgecloud.CloudletInitOk && n >= least:
			return func() error { return s.Cloudlets.Gathered(ctx, "b", n) }, err
		}
		return func() error { _, err := s.Cloudlets.StartUp(ctx, "b", max(n+1, least), version); return err }, err
	})
}

// upgrade replaces the CRM.
func (c *client) upgrade(version string) error {
	return c.until("upgrade", func(ctx context.Context, s service) (func() error, error) {
		now, err := s.Cloudlets.Upgrading(ctx, "b")
		if err != nil {
			return nil, err
		}
		crm, err := s.Cloudlets.Creation(ctx, "b")
		n := crm.Payload.NotifyID
		switch {
		case now.State == edgecloud.CloudletReady && now.Payload.Version == version:
			return nil, err
		case now.State == edgecloud.CloudletReady:
			return func() error { _, err := s.Cloudlets.Upgrade(ctx, "b", version, ""); return err }, err
		case now.State == edgecloud.CloudletUpdateRequested:
			return func() error { return s.Cloudlets.AckUpgrade(ctx, "b", n) }, err
		case now.State == edgecloud.CloudletUpdateError:
			return func() error { return s.Cloudlets.Repaired(ctx, "b", crm.Payload.Version, "again") }, err
		case crm.Payload.Version != version:
			return func() error { _, err := s.Cloudlets.StartUp(ctx, "b", n+1, version); return err }, err
		case crm.State == edgecloud.CloudletInit:
			return func() error { return s.Cloudlets.Acknowledge(ctx, "b", n) }, err
		}
		return func() error { return s.Cloudlets.Gathered(ctx, "b", n) }, err
	})
}

// A controller dies, is refused by its store, stands still or is not answered at
// every single write of a life of a cloudlet and two instances.
func TestCrashes(t *testing.T) {
	h := crashtest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
	}
	if testing.Short() {
		h.Kinds = []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer}
	}
	c := crashtest.Run(t, h, crashtest.Scenario[service]{
		Start: start,
		Script: func(ctx context.Context, w *crashtest.Clients[service]) error {
			return (&client{w: w, done: map[lifecycle.Key]lifecycle.OpID{}}).life(ctx)
		},
		Ends: map[lifecycle.Key][]string{
			clusterKey("c"): {""}, appKey("a"): {""},
			{Machine: "cloudlet-create", ID: "b"}:  {"Ready"},
			{Machine: "cloudlet-upgrade", ID: "b"}: {"Ready"},
		},
		Check: func(ctx context.Context, s service) error {
			rec, err := s.Cloudlets.Upgrading(ctx, "b")
			if err == nil && rec.Payload.Version != "v2" {
				err = fmt.Errorf("the cloudlet is to run %s", rec.Payload.Version)
			}
			return err
		},
	})
	require.Equal(t, c.Found, c.Covered)
}

// The controller waits for an update that fails, and is to undo it; nobody else
// ever asks for that. It dies, is refused by its store, stands still or is not
// answered at every single write: the content of before is there again in the end.
// Of another update the errors are to be seen, and are.
func TestCrashesBeforeTheUndo(t *testing.T) {
	wants := func(n int) func(*edgecloud.ClusterSpec) error {
		return func(s *edgecloud.ClusterSpec) error { s.Nodes = n; return nil }
	}
	c := crashtest.Run(t, crashtest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
	}, crashtest.Scenario[service]{
		Processes: []string{"alpha", "beta"},
		Start:     start,
		Script: func(_ context.Context, w *crashtest.Clients[service]) error {
			crm := &client{w: w, done: map[lifecycle.Key]lifecycle.OpID{}}
			if err := crm.up(1, "v1"); err != nil {
				return err
			}
			if err := crm.failsToUpdate("c", nil, wants(7)); err != nil {
				return err
			}
			if err := crm.failsToUpdate("k", &edgecloud.Call{KeepError: true}, wants(7)); err != nil {
				return err
			}
			w.Pass(2 * time.Minute) // for longer than [edgecloud.Config].UndoAfter
			return nil
		},
		Ends: map[lifecycle.Key][]string{
			clusterKey("c"):                        {"Ready"},
			clusterKey("k"):                        {"UpdateError"},
			{Machine: "cloudlet-create", ID: "b"}:  {"Ready"},
			{Machine: "cloudlet-upgrade", ID: "b"}: {"Ready"},
		},
		Check: func(ctx context.Context, s service) error {
			for id, nodes := range map[string]int{"c": 1, "k": 7} {
				if rec, err := s.Clusters.Get(ctx, id); err != nil || rec.Payload.Nodes != nodes {
					return fmt.Errorf("%s has %d nodes: %w", id, rec.Payload.Nodes, err)
				}
			}
			return nil
		},
	})
	require.Equal(t, c.Found, c.Covered)
}

// failsToUpdate makes a cluster, and asks for an update that the CRM gives up.
func (c *client) failsToUpdate(id string, call *edgecloud.Call, edit func(*edgecloud.ClusterSpec) error) error {
	var ready lifecycle.OpID
	err := c.until("create "+id, func(ctx context.Context, s service) (func() error, error) {
		rec, err := at(ctx, s.Clusters, id)
		if rec.State == edgecloud.Ready {
			ready = rec.Operation
			return nil, err
		}
		return func() error {
			if rec.State != edgecloud.NotPresent {
				return nil // the CRM's, or the sweeper's
			}
			_, err := s.Clusters.Create(ctx, id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
			return err
		}, err
	})
	if err != nil {
		return err
	}
	c.fail = true
	defer func() { c.fail = false }()
	return c.w.Insist("alpha", "update "+id, func(ctx context.Context, s service) error {
		if err := c.connected(ctx, s); err != nil {
			return err
		}
		rec, err := s.Clusters.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case rec.Operation > ready && rec.State == edgecloud.UpdateError:
			return nil // a process that is gone has got this far
		case rec.Operation == ready:
			if rec, err = s.Clusters.Update(ctx, id, edit, call); err != nil {
				return err
			}
		case rec.State == edgecloud.Ready:
			return nil // and this one was undone
		}
		if err := c.serve(ctx, s); err != nil {
			return err
		}
		_, err = s.Clusters.Wait(ctx, rec, call)
		if errors.Is(err, edgecloud.ErrFailed) {
			return nil
		}
		return err
	})
}
