package crashtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Where no fault happens, what a process sees is the store.
func TestStoreIsOne(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Synctest: true, Attempts: 10, Sequences: 5,
		New: func(t testing.TB) lifecycle.Store {
			inner := lifecycle.NewMemoryStore()
			w := newWorld(t, &Harness{}, &scenario{}, inner, nil)
			return &store{p: &Process{w: w, name: "alpha"}, inner: inner}
		},
	})
}

// poor is a store with records and nothing else.
type poor struct{ lifecycle.Store }

func (poor) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

// Of a store without history and messages neither is asked, and the scenario is
// performed all the same.
func TestPoorStore(t *testing.T) {
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store { return poor{lifecycle.NewMemoryStore()} }
	h.Kinds = []Kind{CrashBefore, CrashAfter, Paused}
	s := plainPlanted()
	r, _ := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)

	w := newWorld(t, &Harness{}, &scenario{}, poor{lifecycle.NewMemoryStore()}, nil)
	p := &store{p: &Process{w: w}, inner: w.inner}
	_, err := p.History(t.Context(), key("a"), 0, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = p.Messages(t.Context(), 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, p.Discard(t.Context(), 1), errors.ErrUnsupported)
}

// What Start learns about its process: where nobody is to come back, the next one
// has another name, and plays the same role.
func TestProcess(t *testing.T) {
	names := map[string]int{}
	s := plainPlanted()
	s.started = func(ctx context.Context, p *Process, m vms) error {
		names[p.Role()+" is "+p.Name()]++
		require.Equal(t, p.Name(), p.Owner().Name())
		require.Zero(t, p.Queue().Stats().Keys)
		_, err := p.Store().Get(ctx, key("a"))
		return err
	}
	h := memoryHarness()
	h.Kinds = []Kind{DeathAfter}
	r, c := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)
	// The first write is that of Join: whoever dies there has not got this far.
	require.Equal(t, map[string]int{"alpha is alpha": c.Writes, "alpha is alpha-heir": c.Writes}, names)
}

// Discarded messages are not missed.
func TestDiscard(t *testing.T) {
	h := memoryHarness()
	h.Kinds = []Kind{LostAnswer}
	s := plainPlanted()
	tellsMaking(s)
	s.started = func(_ context.Context, p *Process, _ vms) error {
		p.Every(func(ctx context.Context) error { return p.Store().(lifecycle.Outbox).Discard(ctx, 1) })
		return nil
	}
	script := s.Script
	s.Script = func(ctx context.Context, w *World[vms]) error {
		err := script(ctx, w)
		w.Pass(1)
		return err
	}
	r, _ := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)
}

// The world outside takes no operation that is older than one it has seen, and
// work that is none has no effect.
func TestEffect(t *testing.T) {
	w := newWorld(t, &Harness{}, &scenario{}, lifecycle.NewMemoryStore(), nil)
	p := &Process{w: w}
	require.NoError(t, p.Apply(key("a"), 2))
	require.ErrorIs(t, p.Apply(key("a"), 1), lifecycle.ErrStale)
	require.NoError(t, p.Apply(key("b"), 1))
	require.Empty(t, w.wrong)
	require.NoError(t, p.apply(effect{key("a"), 2, "alpha", 7}))
	require.Equal(t, []string{`operation 2 of vm "a" is applied 2 times: by a peer, then by alpha in epoch 7`}, w.wrong)
	require.PanicsWithValue(t, "crashtest: Effect outside of work", func() { _ = p.Effect(t.Context()) })
}
