package crashtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/crashtest"
)

// A door is opened by a motor. Who dies while it is opening leaves it closed.
var doors = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "door", Initial: "closed", Actors: []fsm.Actor{"user", "motor"},
	States: []fsm.State[string]{
		{Name: "closed"}, {Name: "opening", Kind: fsm.Transitional}, {Name: "open"},
	},
	Rows: fsm.Rows(
		fsm.Move("closed", "open", "opening").By("user"),
		fsm.Move("opening", "opened", "open").By("motor"),
		fsm.Return("opening", "stuck").After(time.Minute),
		fsm.Move("open", "close", "closed").By("user"),
	),
})

type manager = *lifecycle.Manager[string, string, struct{}]

// start makes a process.
func start(ctx context.Context, p *crashtest.Process) (manager, error) {
	if err := p.Join(ctx, lifecycle.DefaultTTL); err != nil {
		return nil, err
	}
	return crashtest.Manage(p, doors, &lifecycle.Config[string]{
		WorkerActor: "motor", Done: []string{"opened"},
		Handlers: map[string]lifecycle.Handler{
			"turn": func(ctx context.Context, _ []byte) error { return p.Effect(ctx) },
		},
	}), nil
}

// open is a client that does not give up until the front door is open.
func open(_ context.Context, w *crashtest.World[manager]) error {
	return w.Insist("alpha", "open the front door", func(ctx context.Context, m manager) error {
		rec, err := m.Get(ctx, "front")
		if errors.Is(err, lifecycle.ErrNotFound) {
			rec, err = m.Add(ctx, "front", "user", struct{}{})
		}
		if err != nil || rec.State == "open" {
			return err
		}
		h, err := m.Do(ctx, "front", "open", "user", lifecycle.Named("turn", nil), nil)
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	})
}

// crashes is the body of a test.
func crashes(t *testing.T) crashtest.Coverage {
	return crashtest.Run(t, crashtest.Harness{
		New:      func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() },
		Synctest: true,
	}, crashtest.Scenario[manager]{
		Start: start, Script: open,
		Ends: map[lifecycle.Key][]string{{Machine: "door", ID: "front"}: {"open"}},
	})
}

// The writes are: to join, to add the door, to admit its opening, and the
// outcome. Whatever happens at them, in the end the door is open, and the motor
// has turned once for each operation.
func ExampleRun() {
	var _ func(t *testing.T) crashtest.Coverage = crashes
	// Output:
}
