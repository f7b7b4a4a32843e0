package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// The same model and steps as in the suite, driven by rapid, on stores that keep
// much and little.
func TestMemoryAgreesWithTheModel(t *testing.T) {
	for name, keep := range map[string]struct{ history, removed int }{
		"defaults":      {},
		"everything":    {history: -1, removed: 1 << 20},
		"what is asked": {history: kept, removed: kept},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			s := &lifecycle.MemoryStore{KeepHistory: keep.history, KeepRemoved: keep.removed}
			n := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
			steps := make([]step, 30)
			for i := range steps {
				steps[i] = draw(n, 4)
			}
			require.NoError(t, newModel(t.Context(), s, 1).play(steps))
		}))
	}
}

// A failure tells a sequence that a person can follow, and how to repeat it.
func TestReportTellsTheSequence(t *testing.T) {
	for _, f := range faults() {
		if f.demand != "Model/random_sequences_agree" {
			continue
		}
		said := judge(t, f.harness(t), f.demand).failed[f.demand]
		require.Contains(t, said, "(Seed 1)")
		require.Regexp(t, `(?m)^  1 commit m`, said)
		require.NotRegexp(t, `(?m)^  6 `, said, "five steps are enough to show it")
		return
	}
	t.Fatal("no such fault")
}
