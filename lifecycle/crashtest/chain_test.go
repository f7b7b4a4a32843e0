package crashtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// chain is a VM that is stopped and deleted in one chain, for which nobody waits
// and which nobody asks for again once it has begun.
func chain(_ context.Context, w *World[vms]) error {
	for _, step := range []func(context.Context, vms) error{
		bring("d", "create", "stopped", "work"),
		bring("d", "start", "running", "work"),
		func(ctx context.Context, m vms) error {
			rec, err := m.Get(ctx, "d")
			if errors.Is(err, lifecycle.ErrNotFound) || err == nil && rec.State != "running" {
				return nil
			}
			if err == nil {
				_, err = m.DoSteps(ctx, "d", "user", steps(), nil)
			}
			return err
		},
	} {
		if err := w.Insist("alpha", "the next step of d", step); err != nil {
			return err
		}
	}
	w.Pass(10 * time.Second)
	return nil
}

// A chain goes on whoever dies between its steps.
func TestChain(t *testing.T) {
	s := Scenario[vms]{
		Start: startVMs, Script: chain,
		// A stop that nobody finished has failed, and the chain with it.
		Ends: map[lifecycle.Key][]string{key("d"): {"", "failed"}},
	}
	h := memoryHarness()
	h.Kinds = slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == NoAnswer || k == Refused })
	Run(t, h, s)
	// A store that fails between two steps, or never says whether one is written,
	// ends the chain: whoever waits is told, and no step stays in the record.
	h.Kinds = []Kind{Refused, NoAnswer}
	s.Ends[key("d")] = append(s.Ends[key("d")], "stopped")
	Run(t, h, s)
}
