package crashtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

type leases = *lifecycle.Manager[blazar.LeaseState, blazar.Call, blazar.LeaseSpec]

// A lease of Blazar: it is made, changed and started, hangs at a second start,
// and is deleted all the same, as a lease can be in every state.
func TestLease(t *testing.T) {
	ask := func(w *World[leases], id string, call blazar.Call, actor fsm.Actor, until ...blazar.LeaseState) error {
		return w.Insist("manager", string(call)+" "+id, func(ctx context.Context, m leases) error {
			rec, err := m.Get(ctx, id)
			if errors.Is(err, lifecycle.ErrNotFound) {
				rec.State, err = blazar.LeaseAbsent, nil
			}
			if err != nil {
				return err
			}
			for _, s := range until {
				if rec.State == s {
					return nil
				}
			}
			h, err := m.Do(ctx, id, call, actor, lifecycle.Named("work", nil), nil)
			if err == nil {
				_, err = h.Wait(ctx)
			}
			return err
		})
	}
	k := func(id string) lifecycle.Key { return lifecycle.Key{Machine: "lease", ID: id} }
	Run(t, memoryHarness(), Scenario[leases]{
		Processes: []string{"manager"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *Process) (leases, error) {
			if err := p.Join(ctx, 12*time.Minute); err != nil {
				return nil, err
			}
			return Manage(p, blazar.Lease, &lifecycle.Config[blazar.Call]{
				WorkerActor: blazar.Manager, Done: []blazar.Call{blazar.Done}, Failed: []blazar.Call{blazar.Fail},
				Handlers: map[string]lifecycle.Handler{
					"work": func(ctx context.Context, _ []byte) error { return p.Effect(ctx) },
					"hang": func(ctx context.Context, _ []byte) error {
						<-ctx.Done()
						return context.Cause(ctx)
					},
				},
			}), nil
		},
		Script: func(_ context.Context, w *World[leases]) error {
			if err := ask(w, "l", blazar.Create, blazar.User, blazar.LeasePending, blazar.LeaseError); err != nil {
				return err
			}
			if err := w.Ask("manager", "start l", func(ctx context.Context, m leases) error {
				_, err := m.Do(ctx, "l", blazar.Start, blazar.Manager, lifecycle.Named("hang", nil), nil)
				return err
			}); err != nil && w.Faultless() {
				return err
			}
			if err := w.Insist("manager", "delete l", func(ctx context.Context, m leases) error {
				if _, err := m.Get(ctx, "l"); errors.Is(err, lifecycle.ErrNotFound) {
					return nil
				}
				work := lifecycle.Named("work", nil)
				work.Preempt = queue.PreemptRunning
				h, err := m.Do(ctx, "l", blazar.Delete, blazar.User, work, nil)
				if err == nil {
					_, err = h.Wait(ctx)
				}
				return err
			}); err != nil {
				return err
			}
			if err := ask(w, "k", blazar.Create, blazar.User, blazar.LeasePending, blazar.LeaseError); err != nil {
				return err
			}
			if err := ask(w, "k", blazar.Start, blazar.Manager, blazar.LeaseActive, blazar.LeaseError); err != nil {
				return err
			}
			return ask(w, "k", blazar.Terminate, blazar.Manager, blazar.LeaseTerminated)
		},
		Ends: map[lifecycle.Key][]string{k("l"): {""}, k("k"): {string(blazar.LeaseTerminated)}},
	})
}
