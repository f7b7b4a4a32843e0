package lattice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

type backend = *lattice.Controller

// startBackend starts a process with a controller. Work takes longer than a second, so that
// faults occur during it.
func startBackend(ctx context.Context, p *crashtest.Process) (backend, error) {
	if err := p.Join(ctx, time.Minute); err != nil {
		return nil, err
	}
	slow := func(ctx context.Context) error {
		select {
		case <-time.After(1300 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	system := func(ctx context.Context, _ lattice.SystemID) error {
		if err := slow(ctx); err != nil {
			return err
		}
		return p.Effect(ctx)
	}
	action := func(ctx context.Context, _ lattice.Running) error { return slow(ctx) }
	c, err := lattice.Start(ctx, p.Store(), lattice.Infrastructure{
		Initialize: system, Remove: system, Build: action, Deploy: action, Teardown: action,
	}, &lattice.Config{Owner: p.Owner(), Queue: p.Queue()})
	if err != nil {
		return nil, err
	}
	// These tell the harness of the tables, and move nothing that the controller
	// has not moved before.
	crashtest.Manage(p, lattice.System, &lifecycle.Config[lattice.Event]{
		WorkerActor: lattice.Backend, Done: []lattice.Event{lattice.Initialized, lattice.TornDown},
	})
	crashtest.Manage(p, lattice.Service, nil)
	crashtest.Manage(p, lattice.Deploy, nil)
	crashtest.Manage(p, lattice.Teardown, nil)
	p.Every(func(ctx context.Context) error { _, err := c.Sweep(ctx); return err })
	return c, nil
}

// insist repeats a request until it succeeds.
func insist(w *crashtest.Clients[backend], what string, f func(context.Context, backend) error) error {
	return w.Insist("backend", what, f)
}

// system creates a system, again if the process dies during the initialization.
func system(w *crashtest.Clients[backend], id lattice.SystemID) error {
	return insist(w, "create", func(ctx context.Context, c backend) error {
		rec, err := c.Systems().Get(ctx, string(id))
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			h, err := c.CreateSystem(ctx, id, nil)
			if err == nil {
				_, err = h.Wait(ctx)
			}
			return err
		case err != nil:
			return err
		case rec.State == lattice.Failed:
			return remove(ctx, c, id)
		case rec.State == lattice.Pending, rec.State == lattice.Deleting:
			return lifecycle.ErrBusy
		}
		return nil
	})
}

func remove(ctx context.Context, c backend, id lattice.SystemID) error {
	h, err := c.DeleteSystem(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	if err == nil {
		_, err = h.Wait(ctx)
	}
	if err == nil {
		err = lifecycle.ErrBusy // to be looked at once more
	}
	return err
}

// deploy requests a deploy, until it is accepted or has ended.
func deploy(w *crashtest.Clients[backend], id lattice.DeployID, path string) error {
	return insist(w, "deploy "+string(id), func(ctx context.Context, c backend) error {
		_, err := c.Deploy(ctx, "shop", id, lock.MustParse(path), nil)
		if err == nil || errors.Is(err, lifecycle.ErrExists) {
			_, err = lifecycle.Await(ctx, c.Deploys(), "shop/"+string(id), func(r lattice.ActionRecord) bool {
				return r.State != lattice.ActionPending
			})
		}
		return err
	})
}

// ended waits until a deploy has ended, and returns an error for a wrong outcome.
func ended(w *crashtest.Clients[backend], id lattice.DeployID, want lattice.ActionState) error {
	return insist(w, "wait for "+string(id), func(ctx context.Context, c backend) error {
		rec, err := c.WaitDeploy(ctx, "shop", id)
		if err == nil && rec.State != want {
			w.Errorf("deploy %s is %s: %s", id, rec.State, rec.Reason)
		}
		return err
	})
}

func nothingIsLeft(c backend) error {
	for system := range c.Actions().Systems() {
		deploys, teardown := c.Actions().InProgressActions(system)
		return fmt.Errorf("locks of %s are left: %q %q", system, deploys, teardown)
	}
	return nil
}

// interval is the time of an action with its lock by its history: from its acceptance to its
// end. Without a from, it was refused at to.
type interval struct{ from, to time.Time }

func (i interval) overlaps(j interval) bool {
	return !i.from.IsZero() && !j.from.IsZero() && i.from.Before(j.to) && j.from.Before(i.to)
}

// has reports whether the action had its lock at a moment, the bounds included.
func (i interval) has(at time.Time) bool {
	return !at.Before(i.from) && !at.After(i.to) && !i.from.IsZero()
}

func heldBy(ctx context.Context, m *lifecycle.Manager[lattice.ActionState, lattice.ActionEvent, lattice.Action], id string) (i interval, err error) {
	rows, err := m.History(ctx, id, 0, lifecycle.MaxPage)
	for _, row := range rows {
		switch lattice.ActionState(row.To) {
		case lattice.ActionAccepted, lattice.ActionInProgress:
			if i.from.IsZero() {
				i.from = row.At
			}
		case lattice.ActionSucceeded, lattice.ActionFailed:
			i.to = row.At
		}
	}
	return i, err
}

// A fault at every write during deploys and teardowns of one system. Every action ends as
// without the fault, and every lock is released.
func TestCrashes(t *testing.T) {
	key := func(machine, id string) lifecycle.Key { return lifecycle.Key{Machine: "lattice-" + machine, ID: id} }
	s := crashtest.Scenario[backend]{
		Processes: []string{"backend"}, Tick: 20 * time.Second, Start: startBackend,
		Script: func(_ context.Context, w *crashtest.Clients[backend]) error {
			steps := []func() error{
				func() error { return system(w, "shop") },
				func() error {
					return insist(w, "service", func(ctx context.Context, c backend) error {
						return c.SetService(ctx, "shop", lock.MustParse("/a"), lattice.ServiceUpdating)
					})
				},
				func() error { return deploy(w, "d1", "/a") },
				// The first still holds what these two want.
				func() error { return deploy(w, "d2", "/a/b") },
				func() error { return ended(w, "d1", lattice.ActionSucceeded) },
				func() error {
					return insist(w, "service", func(ctx context.Context, c backend) error {
						return c.SetService(ctx, "shop", lock.MustParse("/a"), lattice.ServiceDegraded)
					})
				},
				func() error {
					return insist(w, "teardown", func(ctx context.Context, c backend) error {
						_, err := c.Teardown(ctx, "shop", "t1", nil)
						if errors.Is(err, lifecycle.ErrExists) {
							err = nil
						}
						if err == nil {
							_, err = c.WaitTeardown(ctx, "shop", "t1")
						}
						return err
					})
				},
			}
			for _, step := range steps {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		},
		Ends: map[lifecycle.Key][]string{
			key("system", "shop"):    {"degraded"},
			key("service", "shop/a"): {"degraded"},
			key("deploy", "shop/d1"): {"succeeded"},
			// It conflicts, unless a fault has kept it back until the first had ended; and
			// then it may be in the way of the teardown.
			key("deploy", "shop/d2"):   {"failed", "succeeded"},
			key("teardown", "shop/t1"): {"succeeded", "failed"},
		},
		Check: func(ctx context.Context, c backend) error {
			if err := nothingIsLeft(c); err != nil {
				return err
			}
			d1, err1 := heldBy(ctx, c.Deploys(), "shop/d1")
			d2, err2 := heldBy(ctx, c.Deploys(), "shop/d2")
			t1, err3 := heldBy(ctx, c.Teardowns(), "shop/t1")
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			if d1.overlaps(d2) || d1.overlaps(t1) || d2.overlaps(t1) {
				return fmt.Errorf("two run at once: %v, %v, %v", d1, d2, t1)
			}
			// A refusal has a reason.
			if t1.from.IsZero() && !d1.has(t1.to) && !d2.has(t1.to) {
				return fmt.Errorf("the teardown was refused without a conflict: %v, %v, %v", d1, d2, t1)
			}
			return nil
		},
	}
	crashtest.Run(t, memory(), s)
}

// A fault at every write during the deletion of a system with a running deploy.
func TestCrashesOfADeletion(t *testing.T) {
	s := crashtest.Scenario[backend]{
		Processes: []string{"backend"}, Tick: 20 * time.Second, Start: startBackend,
		Script: func(_ context.Context, w *crashtest.Clients[backend]) error {
			if err := system(w, "shop"); err != nil {
				return err
			}
			if err := deploy(w, "d1", "/a"); err != nil {
				return err
			}
			return insist(w, "delete", func(ctx context.Context, c backend) error { return remove(ctx, c, "shop") })
		},
		Ends: map[lifecycle.Key][]string{
			{Machine: "lattice-system", ID: "shop"}:    {""},
			{Machine: "lattice-deploy", ID: "shop/d1"}: {"failed", "succeeded"},
		},
		Check: func(_ context.Context, c backend) error { return nothingIsLeft(c) },
	}
	crashtest.Run(t, memory(), s)
}

func memory() crashtest.Harness {
	return crashtest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
	}
}
