package fsm_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// raw is a string that may hold anything: its name is its bytes in hexadecimal.
type raw string

func (r raw) String() string { return "x" + hex.EncodeToString([]byte(r)) }

// finds asks a machine for every one of its states, and for others.
func finds[S comparable](t require.TestingT, states, others []S) {
	events := make([]int, len(states))
	for i := range events {
		events[i] = i
	}
	m, err := fsm.New[none](ring(states, events))
	require.NoError(t, err)
	for i, s := range states {
		require.Equal(t, i, m.StateIndex(s), "of %v", s)
		require.Equal(t, s, m.StateAt(i))
	}
	for _, s := range others {
		require.Equal(t, -1, m.StateIndex(s), "of %v, which is not declared", s)
	}
	// The same values as events.
	e, err := fsm.New[none](ring(events, states))
	require.NoError(t, err)
	for i, s := range states {
		require.Equal(t, i, e.EventIndex(s), "of %v", s)
	}
	for _, s := range others {
		require.Equal(t, -1, e.EventIndex(s), "of %v, which is not declared", s)
	}
}

func TestIndexOfInts(t *testing.T) {
	t.Run("int", func(t *testing.T) {
		finds(t, []int{5, 3, 4, 100}, []int{0, -1, 2, 6, 99, 101, math.MaxInt, math.MinInt})
		finds(t, []int{-5, -3}, []int{0, -4, -6, 5, 3, math.MinInt})
		finds(t, []int{-1, 0, 1}, []int{-2, 2, math.MaxInt, math.MinInt})
		finds(t, []int{math.MinInt, 0, math.MaxInt}, []int{-1, 1, math.MaxInt - 1, math.MinInt + 1})
		finds(t, []int{math.MaxInt, math.MaxInt - 1}, []int{math.MinInt, 0, math.MaxInt - 2})
		finds(t, []int{0, 1032}, []int{1, 1031, 1033, -1}) // the widest array of two
		finds(t, []int{0, 1033}, []int{1, 1032, 1034, -1}) // too wide for one
	})
	t.Run("int8", func(t *testing.T) { finds(t, []int8{-128, 127, 0, -1}, []int8{-127, 126, 1, -2}) })
	t.Run("int16", func(t *testing.T) { finds(t, []int16{-32768, 32767, 0, -1}, []int16{1, -2, 255, 256}) })
	t.Run("int32", func(t *testing.T) { finds(t, []int32{math.MinInt32, math.MaxInt32, 0, -1}, []int32{1, -2, 1 << 16}) })
	t.Run("int64", func(t *testing.T) { finds(t, []int64{math.MinInt64, math.MaxInt64, 0, -1}, []int64{1, -2, 1 << 32}) })
	t.Run("uint8", func(t *testing.T) { finds(t, []uint8{255, 0, 128}, []uint8{1, 127, 254}) })
	t.Run("uint16", func(t *testing.T) { finds(t, []uint16{65535, 0, 256}, []uint16{1, 255, 65534}) })
	t.Run("uint32", func(t *testing.T) { finds(t, []uint32{math.MaxUint32, 7, 1 << 16}, []uint32{0, 1, 1<<16 + 7}) })
	t.Run("uint64", func(t *testing.T) { finds(t, []uint64{math.MaxUint64, 7, 1 << 32}, []uint64{0, 1, 1<<32 + 7}) })
	t.Run("uint", func(t *testing.T) { finds(t, []uint{9, 8, 7}, []uint{0, 6, 10, math.MaxUint}) })
	t.Run("uintptr", func(t *testing.T) { finds(t, []uintptr{4096, 8192}, []uintptr{0, 4095, 4097}) })
	t.Run("named", func(t *testing.T) { finds(t, []level{1, 0}, []level{2}) })
}

func TestIndexOfOtherTypes(t *testing.T) {
	a, b, c := new(int), new(int), new(int)
	t.Run("struct", func(t *testing.T) { finds(t, []point{{1, 2}, {2, 1}}, []point{{}, {1, 1}, {2, 2}}) })
	t.Run("array", func(t *testing.T) { finds(t, [][2]int{{1, 2}, {2, 1}}, [][2]int{{}, {1, 1}}) })
	t.Run("array of one int", func(t *testing.T) { finds(t, [][1]int{{1}, {2}}, [][1]int{{0}, {3}}) })
	t.Run("struct of one string", func(t *testing.T) {
		finds(t, []struct{ s string }{{"a"}, {"b"}}, []struct{ s string }{{""}, {"c"}})
	})
	t.Run("float", func(t *testing.T) { finds(t, []float64{0.5, -1, math.Inf(1)}, []float64{0, 1, math.NaN()}) })
	t.Run("complex", func(t *testing.T) { finds(t, []complex64{1i, 1}, []complex64{0, -1i}) })
	t.Run("pointer", func(t *testing.T) { finds(t, []*int{a, b}, []*int{nil, c}) })
	t.Run("interface", func(t *testing.T) { finds(t, []any{1, "1x", level(0)}, []any{nil, int8(1), level(1)}) })
	t.Run("bool", func(t *testing.T) { finds(t, []bool{true, false}, nil) })
}

func TestIndexOfStrings(t *testing.T) {
	for name, c := range map[string]struct{ states, others []raw }{
		"empty":          {[]raw{"", "a", "\x00"}, []raw{"b", "aa", "\x00\x00"}},
		"without empty":  {[]raw{"a", "b"}, []raw{"", "\x00", "c"}},
		"one":            {[]raw{"lonely"}, []raw{"", "lonelx", "onely", "lonely "}},
		"every length":   {lengths(), []raw{raw(strings.Repeat("x", 40)), raw(strings.Repeat("y", 8))}},
		"zeros":          {zeros(0, 24), []raw{zero(25), zero(30)}},
		"not UTF-8":      {[]raw{"\xff", "\xfe", "\xff\xfe"}, []raw{"\xfe\xff", "\xfd"}},
		"differ in case": {[]raw{"State", "state", "STATE"}, []raw{"sTATE"}},
	} {
		t.Run(name, func(t *testing.T) { finds(t, c.states, c.others) })
	}
}

func lengths() (s []raw) {
	for n := range 40 {
		s = append(s, raw(strings.Repeat("x", n)))
	}
	return s
}

func zero(n int) raw { return raw(make([]byte, n)) }

func zeros(from, to int) (s []raw) {
	for n := from; n < to; n++ {
		s = append(s, zero(n))
	}
	return s
}

// Keys of one length that agree at both ends are told apart by their middles
// alone. Whatever a hash reads of them, all are found, and no other.
func TestIndexOfStringsThatShareTheirEnds(t *testing.T) {
	for _, n := range []int{1, 2, 3, 40, 700} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			states, others := make([]raw, n), make([]raw, n)
			for i := range n {
				states[i] = raw(fmt.Sprintf("cluster-%06d-requested", i))
				others[i] = raw(fmt.Sprintf("cluster-%06d-requested", n+i))
			}
			finds(t, states, others)
		})
	}
}

// As many keys as a machine may have.
func TestIndexOfEveryKeyThereMayBe(t *testing.T) {
	var words []raw
	var sparse []int64
	for i := range fsm.MaxStates {
		words = append(words, raw(fmt.Sprintf("state-%x", i*i)))
		sparse = append(sparse, int64(i)*int64(i)*int64(i)-1<<40)
	}
	t.Run("words", func(t *testing.T) { finds(t, words, []raw{"", "state-", "state-3", "state-ffffffff"}) })
	t.Run("sparse", func(t *testing.T) { finds(t, sparse, []int64{0, 1, 2, 3, math.MaxInt64}) })
}

func TestIndexFindsWhatAMapFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A small alphabet and short lengths make keys alike.
		key := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 0, 20), func(b []byte) raw { return raw(b) })
		states := rapid.SliceOfNDistinct(key, 1, 60, rapid.ID[raw]).Draw(t, "states")
		known := map[raw]bool{}
		for _, s := range states {
			known[s] = true
		}
		var others []raw
		for _, k := range rapid.SliceOfN(key, 0, 60).Draw(t, "others") {
			if !known[k] {
				others = append(others, k)
			}
		}
		finds(t, states, others)

		number := rapid.Int64()
		if rapid.Bool().Draw(t, "near") {
			number = rapid.Int64Range(-600, 600)
		}
		numbers := rapid.SliceOfNDistinct(number, 1, 60, rapid.ID[int64]).Draw(t, "numbers")
		taken := map[int64]bool{}
		for _, n := range numbers {
			taken[n] = true
		}
		var free []int64
		for _, n := range numbers {
			for _, k := range []int64{n - 1, n + 1, -n, n ^ math.MinInt64} {
				if !taken[k] {
					free = append(free, k)
				}
			}
		}
		finds(t, numbers, free)
	})
}
