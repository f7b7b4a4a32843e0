package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// The protocol of the alternating bit, which Bartlett, Scantlebury and Wilkinson
// published in 1969, survives loss and repetition, but neither the loss of its bit
// nor channels that reorder.
func TestAlternatingBit(t *testing.T) {
	v := explored(t, alternatingBit(true, true), nil)
	require.NoError(t, v.Err())
	require.Empty(t, v.Unused)
	require.Nil(t, v.Trace)
	for what, sys := range map[string]*explore.System{
		"reordered": alternatingBit(false, true), "without the bit": alternatingBit(true, false),
	} {
		t.Run(what, func(t *testing.T) {
			v := explored(t, sys, nil)
			require.Equal(t, explore.Violated, v.Outcome)
			require.Equal(t, "in order", v.Property)
			require.ErrorContains(t, v.Err(), v.Problem.Error())
			require.ErrorIs(t, v.Err(), v.Problem)
		})
	}
}

// forks is the state of a table: by fork, its holder, 0 for none.
type forks string

func (f forks) with(at, holder int) forks {
	b := []byte(f)
	b[at] = '0' + byte(holder)
	return forks(b)
}

func (f forks) holder(at int) int { return int(f[at] - '0') }

// philosophers returns the model in which each takes its left fork first, or the fork
// with the lower number.
func philosophers(n int, polite bool) *explore.Model[forks] {
	empty := forks(slices.Repeat([]byte{'0'}, n))
	return &explore.Model[forks]{
		Name: "philosophers", Initial: []forks{empty},
		Next: func(s forks, step func(string, bool, forks)) {
			for i := range n {
				first, second, me := i, (i+1)%n, i+1
				if polite && second < first {
					first, second = second, first
				}
				switch {
				case s.holder(first) == 0:
					step(fmt.Sprintf("%d takes %d", i, first), false, s.with(first, me))
				case s.holder(first) == me && s.holder(second) == 0:
					step(fmt.Sprintf("%d takes %d", i, second), false, s.with(second, me))
				case s.holder(first) == me && s.holder(second) == me:
					step(fmt.Sprintf("%d eats", i), false, s.with(first, 0).with(second, 0))
				}
			}
		},
		Rests: func(s forks) bool { return s == empty },
	}
}

// The philosophers of Dijkstra. Each thinks, holds its left fork or eats, and
// no fork to the right of an eating philosopher is held: the states are the closed
// walks of length n through the matrix 111 111 100, whose trace is the sum of the
// powers of 1+√2 and 1-√2.
func TestPhilosophers(t *testing.T) {
	before, states := 2, 6 // of 1 and 2
	for n := 3; n <= 9; n++ {
		before, states = states, 2*states+before
		m := philosophers(n, false)
		v, err := m.Explore(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, explore.Stuck, v.Outcome)
		require.Len(t, v.Trace.Steps, n, "every philosopher takes the left fork")

		m.Rests = func(forks) bool { return true } // to see them all
		v, err = m.Explore(context.Background(), nil)
		require.NoError(t, err)
		require.NoError(t, v.Err())
		require.Equal(t, states, v.States, n)

		v, err = philosophers(n, true).Explore(context.Background(), nil)
		require.NoError(t, err)
		require.NoError(t, v.Err(), "an order of forks keeps them going")
	}
}

// The jugs of [ExampleModel]: 16 contents, six actions in each.
func TestJugs(t *testing.T) {
	type jugs struct{ small, big int }
	m := &explore.Model[jugs]{
		Name: "jugs", Initial: []jugs{{}},
		Next: func(s jugs, step func(string, bool, jugs)) {
			down, up := min(s.small, 5-s.big), min(s.big, 3-s.small)
			for _, next := range []jugs{
				{3, s.big},
				{s.small, 5},
				{0, s.big},
				{s.small, 0},
				{s.small - down, s.big + down},
				{s.small + up, s.big - up},
			} {
				step("", false, next)
			}
		},
		Rests: func(s jugs) bool { return s.small == 0 && s.big == 0 },
	}
	v, err := m.Explore(context.Background(), nil)
	require.NoError(t, err)
	require.NoError(t, v.Err())
	require.Equal(t, []int{16, 96}, []int{v.States, v.Steps})
}

// The puzzle of eight tiles: half of the 9! arrangements can be reached, the
// farthest in 31 moves. In four squares two moves are possible, in four three, in
// one four.
func TestEightPuzzle(t *testing.T) {
	type board [9]uint8
	m := &explore.Model[board]{
		Name: "puzzle", Initial: []board{{1, 2, 3, 4, 5, 6, 7, 8, 0}},
		Next: func(s board, step func(string, bool, board)) {
			hole := slices.Index(s[:], 0)
			for _, d := range [][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
				row, column := hole/3+d[0], hole%3+d[1]
				if row < 0 || row > 2 || column < 0 || column > 2 {
					continue
				}
				next := s
				next[hole], next[3*row+column] = s[3*row+column], 0
				step("slide", false, next)
			}
		},
		Rests: func(s board) bool { return s[8] == 0 },
	}
	v, err := m.Explore(context.Background(), nil)
	require.NoError(t, err)
	require.NoError(t, v.Err())
	require.Equal(t, []int{181_440, 181_440 / 9 * 24, 31}, []int{v.States, v.Steps, v.Depth})
}

// contender is one of two processes that enter the critical section.
type contender struct {
	At   int // 0 idle, 1 wants in and has its flag set, 2 has given way, 3 is in
	Turn int // the process that is let in first; both have the same
	Flag bool
}

// peterson is Peterson's algorithm for two processes, as one state. Its safety depends
// on the order in which a process sets its flag and yields the turn.
func peterson(giveWayFirst bool) *explore.Model[[2]contender] {
	const idle, begun, waits, in = 0, 1, 2, 3
	type both = [2]contender
	return &explore.Model[both]{
		Name: "peterson", Initial: []both{{}},
		Next: func(s both, step func(string, bool, both)) {
			for i := range 2 {
				next, me, other := s, &s[i], &s[1-i]
				raise := func() { next[i].Flag = true }
				giveWay := func() { next[0].Turn, next[1].Turn = 1-i, 1-i }
				first, second := raise, giveWay
				if giveWayFirst {
					first, second = giveWay, raise
				}
				switch me.At {
				case idle:
					first()
					next[i].At = begun
				case begun:
					second()
					next[i].At = waits
				case waits:
					if other.Flag && me.Turn != i {
						continue
					}
					next[i].At = in
				case in:
					next[i].At, next[i].Flag = idle, false
				}
				step(fmt.Sprint(i), false, next)
			}
		},
		Always: map[string]func(both) error{"one at a time": func(s both) error {
			if s[0].At == in && s[1].At == in {
				return errors.New("both are in")
			}
			return nil
		}},
		Rests: func(s both) bool { return s[0].At == idle && s[1].At == idle },
	}
}

func TestPeterson(t *testing.T) {
	v, err := peterson(false).Explore(context.Background(), nil)
	require.NoError(t, err)
	require.NoError(t, v.Err())
	v, err = peterson(true).Explore(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Violated, v.Outcome)
	// The first process yields. The second yields, sets its flag and enters, because no
	// other flag is set. Then the first sets its flag and enters, because it has the turn.
	require.Len(t, v.Trace.Steps, 6)
}
