package crash

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/crashtest"
)

// points runs a scenario with every fault at every write that it makes on an
// engine; in short tests only the faults that are named.
func points(t *testing.T, s crashtest.Scenario[disks], short ...crashtest.Kind) {
	onEach(t, func(t *testing.T, e engine) {
		h := e.harness(t)
		if h.Kinds = short; long {
			h.Kinds = crashtest.Kinds()
		}
		c := crashtest.Run(t, h, s) // which logs the coverage
		require.Equal(t, c.Writes*len(h.Kinds), c.Found)
		require.Equal(t, c.Found, c.Covered)
		require.Greater(t, c.Writes, 15)
	})
}

// life is one disk from its making to its end, with messages, conditions and a
// chain, and one that cannot grow.
func life(_ context.Context, w *crashtest.World[disks]) error {
	insist := func(what string, f func(context.Context, disks) error) error { return w.Insist("alpha", what, f) }
	if err := insist("make a", bring("a", "make", "free", "work")); err != nil {
		return err
	}
	if err := insist("make b", bring("b", "make", "free", "work")); err != nil {
		return err
	}
	err := w.Ask("alpha", "grow a while b is free", func(ctx context.Context, m disks) error {
		return do("a", "grow", "grow", &lifecycle.Change[int]{
			Require:  []lifecycle.Precondition{m.Require("b", "free"), m.Require("c")},
			Messages: []lifecycle.Message{{Topic: "grows", Key: "a"}},
		})(ctx, m)
	})
	if w.Faultless() {
		if err != nil {
			return err
		}
		if err := insist("look at a", sized("a", 1)); err != nil {
			return err
		}
	}
	if err := insist("attach a", attach); err != nil {
		return err
	}
	err = w.Ask("alpha", "copy a", do("a", "copy", "work", nil))
	if w.Faultless() && err != nil {
		return err
	}
	err = w.Ask("alpha", "grow b in vain", do("b", "grow", "fail", nil))
	if w.Faultless() && !errors.Is(err, errFull) {
		return fmt.Errorf("the growth of b: %w", err)
	}
	w.Pass(20 * time.Second)
	if err := insist("detach and delete a", destroy("a")); err != nil {
		return err
	}
	return insist("override b", func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, "b")
		if err != nil || rec.State == "broken" {
			return err
		}
		_, err = m.Override(ctx, "b", "broken", user, "nobody can make it grow", nil)
		return err
	})
}

func sized(id string, want int) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, id)
		if err == nil && rec.Payload != want {
			err = fmt.Errorf("%s has the size %d, not %d", id, rec.Payload, want)
		}
		return err
	}
}

func attach(ctx context.Context, m disks) error {
	rec, err := m.Get(ctx, "a")
	if err == nil && rec.State == "free" {
		_, err = m.Fire(ctx, "a", "attach", user, &lifecycle.Change[int]{
			Messages: []lifecycle.Message{{Topic: "attached", Key: "a", Payload: []byte(fmt.Sprint(rec.Sequence))}},
		})
	}
	return err
}

// destroy detaches and deletes in one chain.
func destroy(id string) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, id)
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		work := lifecycle.Named("work", nil)
		steps := []lifecycle.Step[event]{{Event: "detach", Work: work}, {Event: "delete", Work: work}}
		if rec.State != "used" {
			steps = steps[1:]
		}
		h, err := m.DoSteps(ctx, id, user, steps, nil)
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	}
}

// One process, and whoever comes after it.
func TestLife(t *testing.T) {
	points(t, crashtest.Scenario[disks]{
		Start: start, Script: life,
		Ends: map[lifecycle.Key][]string{key("a"): {""}, key("b"): {"broken"}},
	}, crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer)
}

// handover is two processes: one dies at its work, one takes it over, and both
// come and go.
func handover(_ context.Context, w *crashtest.World[disks]) error {
	for _, step := range []func(context.Context, disks) error{
		bring("a", "make", "free", "work"),
		attach,
	} {
		if err := w.Insist("alpha", "make and attach a", step); err != nil {
			return err
		}
	}
	err := w.Ask("alpha", "copy a", func(ctx context.Context, m disks) error {
		_, err := m.Do(ctx, "a", "copy", user, lifecycle.Named("slow", nil), nil)
		return err
	})
	if err != nil && w.Faultless() {
		return err
	}
	w.Kill("alpha")
	w.Pass(50 * time.Second) // beta finds out, and does it again
	if err := w.Stop("beta"); err != nil && w.Faultless() {
		return err
	}
	return w.Insist("alpha", "look at a", func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, "a")
		if err == nil && rec.State != "used" {
			err = fmt.Errorf("a is %s", rec.State)
		}
		return err
	})
}

// Taking over has writes too, and each of them its faults.
func TestHandover(t *testing.T) {
	points(t, crashtest.Scenario[disks]{
		Processes: []string{"alpha", "beta"}, Start: start, Script: handover,
		Ends: map[lifecycle.Key][]string{key("a"): {"used"}},
	}, crashtest.DeathAfter, crashtest.Paused)
}
