package crashtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
)

// crowd is several concurrent clients. Their work overlaps, and their changes have
// messages and preconditions on each other.
func crowd(_ context.Context, w *Clients[vms]) error {
	var all errgroup.Group
	for i, role := range []string{"alpha", "beta", "alpha"} {
		id := fmt.Sprint("v", i)
		all.Go(func() error {
			for _, step := range []func(context.Context, vms) error{
				bring(id, "create", "stopped", "work"),
				bring(id, "start", "running", "slow"),
			} {
				if err := w.Insist(role, "bring up "+id, step); err != nil {
					return err
				}
			}
			err := w.Ask(role, "reboot "+id, func(ctx context.Context, m vms) error {
				ticket, err := m.Do(ctx, id, "reboot", "user", lifecycle.Named("slow", nil), &lifecycle.Change[struct{}]{
					Require:  []lifecycle.Precondition{m.Require(id + "-twin")},
					Messages: []lifecycle.Message{{Topic: "rebooted", Key: id}},
				})
				if err == nil {
					_, err = ticket.Wait(ctx)
				}
				return err
			})
			if err != nil && w.Faultless() {
				return err
			}
			// The deletion supersedes the start.
			if err := w.Ask(role, "make the twin of "+id, bring(id+"-twin", "create", "stopped", "work")); err != nil {
				return nil
			}
			_ = w.Ask(role, "start the twin of "+id, func(ctx context.Context, m vms) error {
				_, err := m.Do(ctx, id+"-twin", "start", "user", lifecycle.Named("hang", nil), nil)
				return err
			})
			w.Pass(time.Second) // until the turn of the start has begun
			_ = w.Ask(role, "delete the twin of "+id, func(ctx context.Context, m vms) error {
				_, err := m.Do(ctx, id+"-twin", "delete", "user", lifecycle.Named("slow", nil), nil)
				return err
			})
			w.Pass(time.Minute)
			return nil
		})
	}
	return all.Wait()
}

func TestCrowd(t *testing.T) {
	running := []string{"running"}
	Run(t, memoryHarness(), Scenario[vms]{
		Processes: []string{"alpha", "beta"}, Start: startVMs, Script: crowd,
		Ends: map[lifecycle.Key][]string{key("v0"): running, key("v1"): running, key("v2"): running},
	})
}
