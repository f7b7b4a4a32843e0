package explore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A shard without places left says so, and still finds what it has.
func TestFullShard(t *testing.T) {
	s := shard[[1]uint64]{most: 100}
	for i := range uint64(100) {
		place, known := s.find([1]uint64{i}, hash([1]uint64{i}), nobody)
		require.Equal(t, uint32(i), place)
		require.False(t, known)
	}
	require.False(t, s.full)
	_, known := s.find([1]uint64{100}, hash([1]uint64{100}), nobody)
	require.True(t, known, "it was not added")
	require.True(t, s.full)
	for i := range uint64(100) {
		place, known := s.find([1]uint64{i}, hash([1]uint64{i}), nobody)
		require.Equal(t, uint32(i), place)
		require.True(t, known)
	}
	require.Equal(t, uint32(100), s.n)
}

// A search with a full shard does not conclude anything.
func TestFullShardIsInconclusive(t *testing.T) {
	sys := New("s")
	a := NewActor(sys, "a", 0)
	a.Acts(func(l int, step func(string, int)) { step("", min(l+1, 10)) })
	sys.Rests(func(*View) bool { return true })
	tab := newTables(sys)
	tab.lay = newLayout(tab)
	s := &search[[1]uint64]{t: tab, workers: 1, verdict: &Verdict{}, bound: Options{MaxBytes: defaultMaxBytes}}
	require.False(t, s.bounded())
	s.shards[7].full = true
	require.True(t, s.bounded())
	require.ErrorIs(t, s.verdict.Reason, ErrMaxBytes)
}
