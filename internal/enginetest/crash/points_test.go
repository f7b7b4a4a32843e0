package crash

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle"
)

// points runs the scenario of each engine with every kind of fault at every write. Short
// tests use the named kinds only.
func points(t *testing.T, of func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]), short ...crashtest.Kind) {
	onEach(t, func(t *testing.T, e engine) {
		h, s := of(t, e)
		if h.Kinds = short; scale.Full {
			h.Kinds = crashtest.Kinds()
		}
		require.Greater(t, crashtest.Run(t, h, s), 15, "writes")
	})
}

// life is one disk from its creation to its end, with messages and conditions, and
// another disk that cannot grow.
func life(_ context.Context, w *crashtest.Clients[disks]) error {
	insist := func(what string, f func(context.Context, disks) error) error { return w.Insist("alpha", what, f) }
	if err := insist("make a", made("a")); err != nil {
		return err
	}
	if err := insist("make b", made("b")); err != nil {
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
		_, err = m.Override(ctx, "b", "broken", user, "it cannot grow", nil)
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

// destroy detaches a disk, if it is attached, and deletes it.
func destroy(id string) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, id)
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.State == "used" {
			if err := do(id, "detach", "work", nil)(ctx, m); err != nil {
				return err
			}
		}
		return do(id, "delete", "work", nil)(ctx, m)
	}
}

var (
	lifeEnds   = map[lifecycle.Key][]string{key("a"): {""}, key("b"): {"broken"}}
	shortKinds = []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer}
)

// TestLife runs one process, and the one that replaces it.
func TestLife(t *testing.T) { testLife(t, false) }

func testLife(t *testing.T, existing bool) {
	points(t, func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]) {
		e.existing = existing
		return e.harness(t), crashtest.Scenario[disks]{Start: start, Script: life, Ends: lifeEnds}
	}, shortKinds...)
}

// handover is two processes: one dies during its work, and the other one takes the
// work over.
func handover(_ context.Context, w *crashtest.Clients[disks]) error {
	for _, step := range []func(context.Context, disks) error{
		made("a"),
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
	w.Pass(time.Second) // the turn of the work has begun
	w.Kill("alpha")
	w.Pass(50 * time.Second) // beta considers alpha dead and does its work again
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

// TestHandover injects faults into the writes of the process that takes over.
func TestHandover(t *testing.T) { testHandover(t, false) }

func testHandover(t *testing.T, existing bool) {
	points(t, func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]) {
		e.existing = existing
		return e.harness(t), crashtest.Scenario[disks]{
			Processes: []string{"alpha", "beta"}, Start: start, Script: handover,
			Ends: map[lifecycle.Key][]string{key("a"): {"used"}},
		}
	}, crashtest.DeathAfter, crashtest.Paused)
}
