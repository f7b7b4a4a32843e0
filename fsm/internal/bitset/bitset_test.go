package bitset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

func TestSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		draw := func(label string) (bitset.Set, map[int]bool) {
			s, m := bitset.New(n), map[int]bool{}
			for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, label) {
				require.Equal(t, !m[i], s.Add(i))
				m[i] = true
			}
			return s, m
		}
		a, in := draw("a")
		b, more := draw("b")
		a.Union(b)
		for i := range more {
			in[i] = true
		}
		require.Equal(t, len(in), a.Len())
		for i := range n {
			require.Equal(t, in[i], a.Has(i))
		}
	})
}
