package fsm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// scattered is a sound table over n states whose cells are hard to lay out:
// events at random, several rows in some cells, some of them slow.
func scattered(n int, seed uint64) Spec[int, int] {
	random := rand.New(rand.NewPCG(seed, 0))
	spec := Spec[int, int]{Name: "scattered", Actors: []Actor{"a", "b", "c", "d"}}
	for i := range n {
		st := State[int]{Name: i * 3}
		if i%4 == 3 {
			st.Kind, st.Manual = Transitional, "us"
		}
		spec.States = append(spec.States, st)
		spec.Rows = append(spec.Rows, Move(i*3, n+i, (i+1)%n*3))
	}
	taken := map[[2]int]bool{}
	for range 4 * n {
		from, e := random.IntN(n), random.IntN(n)
		if taken[[2]int{from, e}] {
			continue
		}
		taken[[2]int{from, e}] = true
		r := Move(from*3, e, random.IntN(n)*3).By(spec.Actors[random.IntN(4)])
		switch random.IntN(5) {
		case 0:
			r = r.OnlyForced()
		case 1:
			r = Ignore(from*3, e)
		}
		spec.Rows = append(spec.Rows, r)
	}
	return spec
}

// The layout of a machine's cells: states have places of their own, cells belong
// to one state, and what a cell says is what the rows say. A state that found no
// room for its cells has none of them.
func TestGridHoldsTheRows(t *testing.T) {
	for _, n := range []int{2, 5, 64, 500} {
		for seed := range uint64(4) {
			m, err := New[int](scattered(n, seed))
			require.NoError(t, err)
			at := map[uint32]bool{}
			columns := m.events.columns()
			cells, lost := 0, 0
			for s := range n {
				place := m.grid.places[s]
				require.False(t, at[place], "two states at one place")
				at[place] = true
				require.NotZero(t, place)
				require.Less(t, place, uint32(placeBits))
				require.Equal(t, wordOf(s, 0), m.status(m.grid.word(wordOf(s, 0))))
				mine, missed := 0, 0
				for col, e := range columns {
					if e < 0 {
						continue
					}
					cell := m.cell(uint64(place), uint64(col))
					ed := m.c.celled(s, int(e))
					if ed == nil || cell.place&^slowCell != place {
						require.NotEqual(t, place, cell.place&^slowCell, "a cell that says too much")
						if ed != nil {
							missed++
						}
						continue
					}
					mine++
					require.Equal(t, ed.row, cell.row)
					require.Equal(t, ed.flags&guarded != 0 || ed.keep != 0, cell.place&slowCell != 0)
					require.True(t, ed.actors&m.c.actorBit(Actor(cell.actor)) != 0)
					require.Equal(t, m.names[wordState(ed.bits)], cell.state)
				}
				require.True(t, mine == 0 || missed == 0, "a state has some of its cells")
				cells, lost = cells+mine, lost+missed
			}
			require.GreaterOrEqual(t, cells, n)
			require.Less(t, lost*4, cells, "most edges have a cell")
		}
	}
}

// The short way of Next is taken for what it is made for: without that, no test
// would say anything about it.
func TestQuickIsTaken(t *testing.T) {
	ints, err := New[int](scattered(20, 1))
	require.NoError(t, err)
	for s := range 20 {
		for e := range 20 {
			ed := ints.c.celled(s, e)
			if ed == nil || ed.flags != 0 || ed.keep != 0 {
				continue
			}
			at, actor := ints.At(ints.StateAt(s)), ints.c.actors[actorNumber(ed.actors)]
			cell := ints.quick(at, ints.EventAt(e), actor)
			require.NotNil(t, cell)
			require.Equal(t, ed.row, cell.row)
			require.Nil(t, ints.quick(at, ints.EventAt(e), "nobody"))
		}
	}
	require.Nil(t, ints.quick(ints.At(1), 20, "a"), "no state")
	require.Nil(t, ints.quick(ints.At(0), 40, "a"), "no event")

	// Which strings are found at once depends on where they lie.
	m := light(t)
	taken := 0
	for s := range m.States() {
		for e := range m.Events() {
			if m.quick(m.At(s), e, anybody) != nil {
				taken++
			}
		}
	}
	require.Positive(t, taken)
	require.LessOrEqual(t, taken, 6, "moves from and to resting states, and into blinking")
	require.Nil(t, m.quick(m.At("blinking"), "blink", anybody), "the origin stays")
}

// Books find what they hold by address, and nothing else.
func TestBookFindsByAddress(t *testing.T) {
	for _, n := range []int{1, 2, 50, 3000} {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprint("word ", i))
		}
		b := newBook(n, func(i int) (string, uint64) { return words[i], uint64(i) })
		found := 0
		for i, w := range words {
			switch got := b.find(w); got {
			case uint64(i):
				found++
			default:
				require.EqualValues(t, missing, got, "another word's number")
			}
			require.EqualValues(t, missing, b.find(w[:len(w)-1]))
			require.EqualValues(t, missing, b.find(fmt.Sprint("word ", i)))
		}
		require.Greater(t, found*2, n, "most words keep their slots")
		require.EqualValues(t, missing, b.find(""))
	}
}
