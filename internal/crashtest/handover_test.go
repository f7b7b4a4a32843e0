package crashtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// handover is two processes: one dies during its work, and the other takes the work
// over. Both end and start again.
func handover(ctx context.Context, w *Clients[vms]) error {
	for _, id := range []string{"a", "c"} {
		if err := w.Insist("alpha", "create "+id, bring(id, "create", "stopped", "work")); err != nil {
			return err
		}
	}
	if err := w.Insist("beta", "start a", bring("a", "start", "running", "work")); err != nil {
		return err
	}
	// No client waits for these: the process is killed during the first, and the second
	// never ends.
	begin := func(id string, e event, work lifecycle.Work) error {
		err := w.Ask("alpha", string(e)+" "+id, func(ctx context.Context, m vms) error {
			_, err := m.Do(ctx, id, e, "user", work, nil)
			return err
		})
		if w.Faultless() {
			return err
		}
		return nil
	}
	if err := begin("c", "start", lifecycle.Func(func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})); err != nil {
		return err
	}
	w.Pass(70 * time.Second) // the sweeper ends the operation of c
	if err := begin("a", "reboot", lifecycle.Named("slow", nil)); err != nil {
		return err
	}
	w.Pass(time.Second) // the turn of the work has begun
	w.Kill("alpha")
	w.Pass(time.Minute) // beta considers alpha dead and starts the work again
	if err := w.Stop("beta"); err != nil && w.Faultless() {
		return err
	}
	return w.Insist("alpha", "look at a", func(ctx context.Context, m vms) error {
		rec, err := m.Get(ctx, "a")
		if err == nil && rec.State != "running" {
			err = fmt.Errorf("a is %s", rec.State)
		}
		return err
	})
}

func TestHandover(t *testing.T) {
	Run(t, memoryHarness(), Scenario[vms]{
		Processes: []string{"alpha", "beta"}, Start: startVMs, Script: handover,
		Ends: map[lifecycle.Key][]string{key("a"): {"running"}, key("c"): {"stopped"}},
	})
}
