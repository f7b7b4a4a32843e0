package crashtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Whoever takes over is hit, too, at each of its writes.
func TestTwice(t *testing.T) {
	h := memoryHarness()
	h.Twice = true
	c := Run(t, h, plainPlanted().Scenario)
	require.Equal(t, 5, c.Writes)
	require.Greater(t, c.Found, 45*10)
	require.Equal(t, c.Found, c.Covered)
}

// Two processes that come and go do not always do so in the same order once one of
// them was hit; what is missed for that is told.
func TestTwiceHandover(t *testing.T) {
	h := memoryHarness()
	h.Twice, h.Kinds = true, []Kind{DeathAfter}
	c := Run(t, h, Scenario[vms]{
		Processes: []string{"alpha", "beta"}, Start: startVMs, Script: handover,
		Ends: map[lifecycle.Key][]string{key("a"): {"running"}, key("c"): {"stopped"}},
	})
	require.Equal(t, c.Found, c.Covered+c.Missed)
	require.Greater(t, c.Covered, 10*c.Missed)
}

// What goes wrong after a second fault names both.
func TestTwiceNames(t *testing.T) {
	s := plainPlanted().Scenario
	script := s.Script
	hits := 0
	s.Script = func(ctx context.Context, w *World[vms]) error {
		err := script(ctx, w)
		w.w.mu.Lock()
		hits = w.w.hits
		w.w.mu.Unlock()
		if hits == 2 {
			w.Blame("it rains twice")
		}
		return err
	}
	h := memoryHarness()
	h.Twice, h.Kinds, h.Only = true, []Kind{CrashAfter}, "crash after write 3 of 5"
	r, _ := judge(t, h, s)
	require.Contains(t, r.failures[0], `crash after write 3 of 5 (alpha: vm "a" done by worker, to stopped from creating), then crash after write `)
	require.Contains(t, r.failures[0], "it rains twice")
	require.Equal(t, "1 writes, 2 points found, 3 covered, 4 missed", Coverage{1, 2, 3, 4}.String())
}
