package crashtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

type ovcVMs = *lifecycle.Manager[ovc.State, ovc.Event, struct{}]

// A virtual machine of OpenvCloud: every action that is not finished leads back
// to where the machine was, and is asked for again.
func TestOVCMachine(t *testing.T) {
	k := lifecycle.Key{Machine: "ovc-vm", ID: "m"}
	work := lifecycle.Named("work", nil)
	action := func(w *World[ovcVMs], e ovc.Event, until ovc.State) error {
		return w.Insist("alpha", string(e), func(ctx context.Context, m ovcVMs) error {
			if rec, err := m.Get(ctx, "m"); err != nil || rec.State == until {
				return err
			}
			h, err := m.Do(ctx, "m", e, ovc.API, work, nil)
			if err == nil {
				_, err = h.Wait(ctx)
			}
			return err
		})
	}
	Run(t, memoryHarness(), Scenario[ovcVMs]{
		Processes: []string{"alpha", "beta"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *Process) (ovcVMs, error) {
			if err := p.Join(ctx, 12*time.Minute); err != nil {
				return nil, err
			}
			return Manage(p, ovc.VM, &lifecycle.Config[ovc.Event]{
				WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done},
				Handlers: map[string]lifecycle.Handler{
					"work": func(ctx context.Context, _ []byte) error { return p.Effect(ctx) },
				},
			}), nil
		},
		Script: func(_ context.Context, w *World[ovcVMs]) error {
			err := w.Insist("alpha", "model", func(ctx context.Context, m ovcVMs) error {
				_, err := m.Add(ctx, "m", ovc.API, struct{}{})
				if errors.Is(err, lifecycle.ErrExists) {
					return nil
				}
				return err
			})
			if err == nil {
				err = action(w, ovc.Deploy, ovc.Running)
			}
			if err == nil {
				err = action(w, ovc.Pause, ovc.Paused)
			}
			if err != nil {
				return err
			}
			// A disk is added to the paused machine, which stays paused.
			if err := w.Ask("beta", "add a disk", func(ctx context.Context, m ovcVMs) error {
				h, err := m.Do(ctx, "m", ovc.AddDisk, ovc.API, work, nil)
				if err == nil {
					_, err = h.Wait(ctx)
				}
				return err
			}); err != nil && w.Faultless() {
				return err
			}
			if err := action(w, ovc.Stop, ovc.Halted); err != nil {
				return err
			}
			return action(w, ovc.Destroy, ovc.Destroyed)
		},
		Ends: map[lifecycle.Key][]string{k: {string(ovc.Destroyed)}},
	})
}
