package crashtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Without a fault, a process sees an ordinary store.
func TestSimulatedStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) lifecycle.Store {
		inner := lifecycle.NewMemoryStore()
		sim := newSimulation(t, &Harness{}, &scenario{}, inner, nil)
		return &simulatedStore{p: &Process{sim: sim, name: "alpha"}, inner: inner}
	}, &storetest.Config{Synctest: true, Attempts: 10})
}

// poor is a store with records and nothing else.
type poor struct{ lifecycle.Store }

func (poor) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

// A scenario runs on a store without history and messages.
func TestPoorStore(t *testing.T) {
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store { return poor{lifecycle.NewMemoryStore()} }
	h.Kinds = []Kind{CrashBefore, CrashAfter, Paused}
	s := plainPlanted()
	text, _ := judge(t, h, s.Scenario)
	require.Empty(t, text)

	w := newSimulation(t, &Harness{}, &scenario{}, poor{lifecycle.NewMemoryStore()}, nil)
	p := &simulatedStore{p: &Process{sim: w}, inner: w.inner}
	_, err := p.History(t.Context(), key("a"), 0, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = p.Messages(t.Context(), 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, p.Discard(t.Context(), 1), errors.ErrUnsupported)
}

// A process that replaces one whose name does not start again has another name and the
// same role.
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
	text, c := judge(t, h, s.Scenario)
	require.Empty(t, text)
	// The first write is that of Join: a process that dies there does not get this far.
	require.Equal(t, map[string]int{"alpha is alpha": c.Writes, "alpha is alpha-2": c.Writes}, names)
}

// Discarded messages are not missed.
func TestDiscard(t *testing.T) {
	h := memoryHarness()
	h.Kinds = []Kind{LostAnswer}
	s := plainPlanted()
	emitMessage(s)
	s.started = func(_ context.Context, p *Process, _ vms) error {
		p.Every(func(ctx context.Context) error { return p.Store().(lifecycle.Outbox).Discard(ctx, 1) })
		return nil
	}
	script := s.Script
	s.Script = func(ctx context.Context, w *Clients[vms]) error {
		err := script(ctx, w)
		w.Pass(1)
		return err
	}
	text, _ := judge(t, h, s.Scenario)
	require.Empty(t, text)
}

// The outside world refuses an operation that is older than one that it has seen.
func TestEffect(t *testing.T) {
	w := newSimulation(t, &Harness{}, &scenario{}, lifecycle.NewMemoryStore(), nil)
	p := &Process{sim: w}
	require.NoError(t, p.Apply(key("a"), 2))
	require.ErrorIs(t, p.Apply(key("a"), 1), lifecycle.ErrStale)
	require.NoError(t, p.Apply(key("b"), 1))
	require.Empty(t, w.problems)
	require.NoError(t, p.apply(effect{key("a"), 2, "alpha", 7}))
	require.Equal(t, []string{`operation 2 of vm "a" is applied again: by a peer, then by alpha in epoch 7`}, w.problems)
	require.PanicsWithValue(t, "crashtest: Effect outside of work", func() { _ = p.Effect(t.Context()) })
}
