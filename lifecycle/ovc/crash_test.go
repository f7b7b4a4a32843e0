package ovc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// startService makes a process that does the methods of a service: each counts
// once for the object that it is about, and for the disks that take part.
func startService(ctx context.Context, p *crashtest.Process) (*ovc.Service, error) {
	if err := p.Join(ctx, 12*time.Minute); err != nil {
		return nil, err
	}
	config := &ovc.Config{Owner: p.Owner(), Method: func(ctx context.Context, call ovc.Call) error {
		task := lifecycle.TaskOf(ctx)
		if task == nil { // hidden
			select {
			case <-time.After(7 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if call.Kind == ovc.KindVM && (call.Method == ovc.Stop || call.Method == ovc.Delete) {
			return nil // destroy is to come
		}
		if err := applyOthers(ctx, p, task, call); err != nil {
			return err
		}
		return p.Effect(ctx)
	}}
	s := ovc.NewManaged(p.Store(), config, func(m *fsm.Machine[ovc.State, ovc.Event, ovc.Model], _ lifecycle.Store, c *lifecycle.Config[ovc.Event]) *ovc.Manager {
		// In the queue of the process, which the harness looks at.
		c.Queue = p.Queue()
		return crashtest.Manage(p, m, c)
	})
	p.Every(func(ctx context.Context) error {
		_, err := s.SelfHeal(ctx)
		return err
	})
	return s, nil
}

// applyOthers applies the operations of the other objects that take part in a call.
func applyOthers(ctx context.Context, p *crashtest.Process, task *lifecycle.Task, call ovc.Call) error {
	objects := []lifecycle.Key{keyOf(call.Kind, call.ID)}
	for _, disk := range call.Disks {
		objects = append(objects, keyOf(ovc.KindDisk, disk))
	}
	for _, key := range objects {
		if key == task.Key {
			continue
		}
		rec, err := p.Store().Get(ctx, key)
		if err != nil {
			return err
		}
		if rec.Owner != task.Owner || rec.Epoch != task.Epoch {
			continue // another process has taken it away
		}
		if err := p.Apply(key, rec.Operation); err != nil {
			return err
		}
	}
	return nil
}

func keyOf(kind ovc.Kind, id string) lifecycle.Key {
	return lifecycle.Key{Machine: kind.Machine().Name(), ID: id}
}

// goal is an action that is asked for until the object is where it is to be.
type goal struct {
	role   string
	kind   ovc.Kind
	id     string
	action ovc.Event
	with   string
	until  ovc.State
}

func (g goal) reach(w *crashtest.Clients[*ovc.Service]) error {
	return w.Insist(g.role, fmt.Sprintf("%s %s", g.action, g.id), func(ctx context.Context, s *ovc.Service) error {
		rec, err := s.Get(ctx, g.kind, g.id)
		if errors.Is(err, lifecycle.ErrNotFound) {
			rec, err = s.Add(ctx, g.kind, g.id, ovc.Model{})
		}
		if err != nil || rec.State == g.until {
			return err
		}
		if g.action == ovc.Destroy && g.kind == ovc.KindVM {
			// The node is emptied at this moment: nobody sees it.
			_, _ = s.Migrate(ctx, g.id, nil)
		}
		h, err := s.Do(ctx, g.kind, g.id, g.action, &ovc.Options{With: g.with})
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	})
}

// A machine with two disks, from its deployment to its destruction, with a
// process that dies, a store that fails or an answer that is lost at every write.
// Whatever happens, machine and disks end together, each action was done once,
// and nobody is stuck.
func TestCrashes(t *testing.T) {
	harness := crashtest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
	}
	if testing.Short() {
		harness.Kinds = []crashtest.Kind{crashtest.CrashAfter, crashtest.DeathBefore, crashtest.LostAnswer, crashtest.Paused}
	}
	crashtest.Run(t, harness, crashtest.Scenario[*ovc.Service]{
		Processes: []string{"alpha", "beta"}, Tick: 5 * time.Minute, Start: startService,
		Script: func(_ context.Context, w *crashtest.Clients[*ovc.Service]) error {
			for _, g := range []goal{
				{"alpha", ovc.KindVM, "m", ovc.Deploy, "", ovc.Running},
				{"beta", ovc.KindDisk, "d", ovc.Create, "", ovc.Created},
				{"alpha", ovc.KindDisk, "d", ovc.Attach, "m", ovc.Assigned},
				{"beta", ovc.KindDisk, "e", ovc.Assign, "m", ovc.Assigned},
				{"alpha", ovc.KindDisk, "d", ovc.Detach, "", ovc.Created},
				{"alpha", ovc.KindVM, "m", ovc.Pause, "", ovc.Paused},
				{"alpha", ovc.KindVM, "m", ovc.Destroy, "", ovc.Destroyed},
				{"beta", ovc.KindDisk, "d", ovc.Delete, "", ovc.Deleted},
			} {
				if err := g.reach(w); err != nil {
					return err
				}
			}
			return nil
		},
		Ends: map[lifecycle.Key][]string{
			keyOf(ovc.KindVM, "m"):   {"DESTROYED"},
			keyOf(ovc.KindDisk, "d"): {"DELETED"},
			keyOf(ovc.KindDisk, "e"): {"DESTROYED"},
		},
		Check: func(ctx context.Context, s *ovc.Service) error { return consistent(ctx, s) },
	})
}

// consistent says where machines and disks do not know the same of each other.
func consistent(ctx context.Context, s *ovc.Service) error {
	holds := map[string]string{}
	for vm, err := range s.Objects(ovc.KindVM).All(ctx, lifecycle.Select[ovc.State]{}) {
		if err != nil {
			return err
		}
		for _, d := range vm.Payload.Disks {
			if before := holds[d]; before != "" {
				return fmt.Errorf("disk %s is at %s and %s", d, before, vm.ID)
			}
			holds[d] = vm.ID
		}
	}
	for d, err := range s.Objects(ovc.KindDisk).All(ctx, lifecycle.Select[ovc.State]{}) {
		if err != nil {
			return err
		}
		if d.Payload.VM != holds[d.ID] {
			return fmt.Errorf("disk %s, %s, is at %q, and %q has it", d.ID, d.State, d.Payload.VM, holds[d.ID])
		}
	}
	return nil
}
