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

// startService starts a process with a service. Each method counts once for its object, and for
// the disks that take part.
func startService(ctx context.Context, p *crashtest.Process) (*ovc.Service, error) {
	if err := p.Join(ctx, 12*time.Minute); err != nil {
		return nil, err
	}
	s, err := ovc.New(p.Store(), &ovc.Config{Owner: p.Owner(), Method: func(ctx context.Context, call ovc.Call) error {
		task := lifecycle.TaskOf(ctx)
		if task == nil { // a migration
			select {
			case <-time.After(7 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if call.Kind == ovc.KindVM && (call.Method == ovc.Stop || call.Method == ovc.Delete) {
			return nil // destroy follows
		}
		if err := applyOthers(ctx, p, task, call); err != nil {
			return err
		}
		return p.Effect(ctx)
	}})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = s.Close(ctx) }) // it does not wait
	// The harness needs the tables. The service handles stuck objects itself.
	for kind := range ovc.Kinds() {
		crashtest.Manage(p, kind.Machine(), &lifecycle.Config[ovc.Event]{
			Observe: func(context.Context, lifecycle.StoredRecord) (ovc.Event, fsm.Actor, error) {
				return "", "", errors.New("the service handles it")
			},
		})
	}
	p.Every(func(ctx context.Context) error {
		_, err := s.SelfHeal(ctx)
		return err
	})
	return s, nil
}

// applyOthers applies the operations of the other objects that take part in a call.
func applyOthers(ctx context.Context, p *crashtest.Process, task *lifecycle.Task, call ovc.Call) error {
	objects := []lifecycle.Key{call.Kind.Key(call.ID)}
	for _, disk := range call.Disks {
		objects = append(objects, ovc.KindDisk.Key(disk))
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
			continue // another process owns it
		}
		if err := p.Apply(key, rec.Operation); err != nil {
			return err
		}
	}
	return nil
}

// goal is an action that is requested until the object has a state.
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
			rec, err = s.Add(ctx, g.kind, g.id, "", ovc.Model{})
		}
		if err != nil || rec.State == g.until {
			return err
		}
		if g.action == ovc.Destroy && g.kind == ovc.KindVM {
			// A migration at the same moment is in no status.
			_, _ = s.Migrate(ctx, g.id, nil)
		}
		ticket, err := s.Do(ctx, g.kind, g.id, g.action, &ovc.Options{With: g.with})
		if err == nil {
			_, err = ticket.Wait(ctx)
		}
		return err
	})
}

// A machine with two disks, from its deployment to its destruction, with a process that
// dies, a store that fails or a lost answer at every write. Machine and disks end together,
// each action is performed once, and no object is stuck.
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
			ovc.KindVM.Key("m"):   {"DESTROYED"},
			ovc.KindDisk.Key("d"): {"DELETED"},
			ovc.KindDisk.Key("e"): {"DESTROYED"},
		},
		Check: func(ctx context.Context, s *ovc.Service) error { return consistent(ctx, s) },
	})
}

// consistent returns the differences between the records of machines and disks.
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
