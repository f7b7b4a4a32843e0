package crashtest

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// lift is a table with a transitional state that only an operator ends.
var lift = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "lift", Initial: "none", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[state]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "inspecting", Kind: fsm.Transitional, Manual: "an engineer looks at it"},
		{Name: "running", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "create", "inspecting").By("user"),
		fsm.Ignore[state, event]("inspecting", "done").By("worker"),
		fsm.Move[state, event]("inspecting", "release", "running").By("user"),
	),
})

// TestManualWithTimeout checks that an operation that waits for an operator is at rest,
// with a time-out and without.
func TestManualWithTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		t.Run(timeout.String(), func(t *testing.T) {
			Run(t, memoryHarness(), Scenario[vms]{
				Start: func(ctx context.Context, p *Process) (vms, error) {
					if err := p.Join(ctx, 30*time.Second); err != nil {
						return nil, err
					}
					return Manage(p, lift, &lifecycle.Config[event]{
						WorkerActor: "worker", Done: []event{"done"},
						Handlers: map[string]lifecycle.Handler{"look": func(context.Context, []byte) error { return nil }},
					}), nil
				},
				Script: func(_ context.Context, w *Clients[vms]) error {
					return w.Insist("alpha", "inspect l", func(ctx context.Context, m vms) error {
						if _, err := m.Get(ctx, "l"); err == nil {
							return nil
						}
						_, err := m.Do(ctx, "l", "create", "user", lifecycle.Work{Handler: "look", Timeout: timeout}, nil)
						return err
					})
				},
				Ends: map[lifecycle.Key][]string{{Machine: "lift", ID: "l"}: {"inspecting"}},
			})
		})
	}
}
