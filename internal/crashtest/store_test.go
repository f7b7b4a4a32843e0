package crashtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Without a fault, a process sees an ordinary store.
func TestSimulatedStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) lifecycle.Store {
		inner := lifecycle.NewMemoryStore()
		sim := newSimulation(t, &Harness{}, &Scenario[any]{}, inner, nil)
		return &simulatedStore{inner, &Process{sim: sim, name: "alpha"}}
	}, &storetest.Config{Exclusive: true, Synctest: true, Attempts: 10})
}

// A process that replaces one whose name does not start again has another name.
func TestProcess(t *testing.T) {
	names := map[string]int{}
	s := plainPlanted()
	s.started = func(ctx context.Context, p *Process, m vms) error {
		names[p.name]++
		require.Equal(t, p.name, p.Owner().Name())
		require.Zero(t, p.Queue().Stats().Keys)
		_, err := p.Store().Get(ctx, key("a"))
		return err
	}
	h := memoryHarness()
	h.Kinds = []Kind{DeathAfter}
	text, writes := judge(t, h, s.Scenario)
	require.Empty(t, text)
	// The first write is that of Join: a process that dies there does not get this far.
	require.Equal(t, map[string]int{"alpha": writes, "alpha-2": writes}, names)
}

// The outside world refuses an operation that is older than one that it has seen.
func TestEffect(t *testing.T) {
	w := newSimulation(t, &Harness{}, &Scenario[any]{}, lifecycle.NewMemoryStore(), nil)
	p := &Process{sim: w}
	require.NoError(t, p.Apply(key("a"), 2))
	require.ErrorIs(t, p.Apply(key("a"), 1), lifecycle.ErrStale)
	require.NoError(t, p.Apply(key("b"), 1))
	require.Empty(t, w.problems)
	require.NoError(t, p.apply(operation{key("a"), 2}, "alpha"))
	require.Equal(t, []string{`operation 2 of vm "a" is applied again: by a peer, then by alpha`}, w.problems)
	require.PanicsWithValue(t, "crashtest: Effect outside of work", func() { _ = p.Effect(t.Context()) })
}
