package fsm

import (
	"reflect"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Firing an event is a chain of loads that ends in a compare-and-set, and the
// processor starts none of them before the compare-and-set of the move before.
// So the chain is made short: an instance's word does not hold the index of its
// state but the place where the state's cells begin, and the cells lie right
// behind the machine, so that word and event give the address of the cell
// without another load.
//
// The cells of all states share one row (row displacement): the cell of state s
// and column e is at place(s)+e, and names the place of the state that it
// belongs to. A table with few rows has few cells, however many states and
// events.

// An instance's word: the place of the state, the origin by index, and a count
// of moves, which makes every move a new word, self transitions included. The
// count wraps after 2^32 moves: to be fooled, a caller would have to sleep
// between reading and comparing while others make exactly that many.
const (
	placeBits = 1<<20 - 1
	homeShift = 20 // of the origin
	homeBits  = uint64(indexMask) << homeShift
	countBits = ^uint64(placeBits | homeBits)
	countOne  = 1 << 32
)

// cell is an edge that asks for one actor and at most a guard: the first edge of
// its state and event, and the first of its actors. The zero cell belongs to no
// state: place 0 is not given away.
type cell[S comparable] struct {
	_      [0]atomic.Uint64 // places count in words on 32-bit systems too
	word   uint64           // place and origin of the target, and countOne
	keep   uint64           // bits of the old word that stay: the count, and the origin if it does
	actor  string
	place  uint32 // of the state that it belongs to, and slowCell
	row    int32
	state  S
	origin S // unless the old one stays

	// Of the state whose place is this cell: its refusals by column and actor,
	// nil if there are too many.
	refusals *refusal
}

// slowCell marks the place of a cell that has a guard or leaves the origin as it
// is, so that who looks for less does not take it.
const slowCell = 1 << 31

// grid is how the cells of a machine are laid out. Places count words of eight
// bytes, which saves the multiplication.
type grid struct {
	unit   int      // words of a cell
	places []uint32 // by state
	states []int32  // by place/unit, -1 none
	owners []int32  // by cell: the state that it belongs to, -1 none
}

// noCells is the unit of a grid without cells. No cell is as small as one word.
const noCells = 1

// newGrid finds a place for every state such that no two states share a place
// and no two edges a cell. It goes through the states in order of declaration,
// because neighbours there tend to be neighbours in time. It looks at a bounded
// number of places for each state and then takes one behind all others. A state
// whose place would be too far away has none of its edges in a cell.
func newGrid(c *compiled, columns []int32, unit int) grid {
	const looks = 128
	n := len(c.out)
	g := grid{unit: unit, places: make([]uint32, n), states: []int32{-1}}
	if (n+1+len(columns))*unit > placeBits {
		// States so large, or so many, that a word has no room for their places:
		// without cells, the places are just numbers.
		g.unit = noCells
		for s := range n {
			g.take(s, s+1, nil)
		}
		return g
	}
	used := make([][]int, n) // columns
	for s := range used {
		for col, e := range columns {
			if e >= 0 && c.celled(s, int(e)) != nil {
				used[s] = append(used[s], col)
			}
		}
	}
	lowest := 1 // no place below is free
	for s := range n {
		at := lowest
		for look := 0; !g.free(at, used[s]); look++ {
			if at++; look == looks {
				at = max(len(g.states), len(g.owners))
			}
		}
		if (at+len(columns))*unit > placeBits {
			at, used[s] = lowest, nil
		}
		g.take(s, at, used[s])
		for lowest < len(g.states) && g.states[lowest] >= 0 {
			lowest++
		}
	}
	return g
}

// celled returns the edge that gets the cell of a state and an event: the first
// one, if it asks for nothing but the actor, or for a guard that has the last
// word because no later edge is for one of its actors. Nil if none gets it.
func (c *compiled) celled(state, event int) *edge {
	first := &c.edges[c.first(state, event)]
	if first.actors == 0 || first.flags&^guarded != 0 {
		return nil
	}
	for i := first.next; i != 0 && first.flags != 0; i = c.edges[i].next {
		if c.edges[i].actors&first.actors != 0 {
			return nil
		}
	}
	return first
}

// free reports whether a state with edges in these columns can have a place.
func (g *grid) free(at int, used []int) bool {
	if at < len(g.states) && g.states[at] >= 0 {
		return false
	}
	for _, col := range used {
		if at+col < len(g.owners) && g.owners[at+col] >= 0 {
			return false
		}
	}
	return true
}

// take gives a state its place and its edges their cells.
func (g *grid) take(state, at int, used []int) {
	for len(g.states) <= at {
		g.states = append(g.states, -1)
	}
	g.places[state], g.states[at] = uint32(at*g.unit), int32(state)
	for _, col := range used {
		for len(g.owners) <= at+col {
			g.owners = append(g.owners, -1)
		}
		g.owners[at+col] = int32(state)
	}
}

// word returns the word of an instance in a status, with the count at zero.
func (g *grid) word(status uint64) uint64 {
	return uint64(g.places[wordState(status)]) | uint64(wordOrigin(status))<<homeShift
}

// place puts a machine into memory with its cells behind it.
func place[S, E comparable, T any](parts core[S, E, T]) *Machine[S, E, T] {
	g, columns := &parts.grid, parts.events.columns()
	n := len(g.states) + len(columns) // so that no place and column lead beyond
	if g.unit == noCells {
		n = 1
	}
	block := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Machine", Type: reflect.TypeFor[Machine[S, E, T]]()},
		{Name: "Cells", Type: reflect.ArrayOf(n, reflect.TypeFor[cell[S]]())},
	}))
	m := (*Machine[S, E, T])(block.UnsafePointer())
	m.core = parts
	m.self = m
	if block.Elem().Field(1).UnsafeAddr() != uintptr(unsafe.Pointer(m.cell(0, 0))) {
		panic("fsm: the cells do not follow the machine")
	}
	if m.observer != nil || g.unit == noCells {
		return m // every firing goes the long way, where an observer is told
	}
	m.openBooks(columns)
	m.refuseEarly(columns)
	for at, state := range g.owners {
		if state >= 0 {
			m.fill(int(state), at-int(g.places[state])/g.unit, columns)
		}
	}
	return m
}

// cell returns a cell. REQUIRES: the place is one of this machine, and the column
// below the number of its columns; then the cell is in the block that place
// made, because that ends so many cells behind the highest place.
func (m *Machine[S, E, T]) cell(place, column uint64) *cell[S] {
	return (*cell[S])(unsafe.Add(unsafe.Pointer(m),
		unsafe.Sizeof(*m)+uintptr(column)*unsafe.Sizeof(cell[S]{})+uintptr(place)*8))
}

// openBooks prepares the ways from values to columns and places.
func (m *Machine[S, E, T]) openBooks(columns []int32) {
	switch m.events.kind {
	case byInt:
		m.base, m.columns = m.events.base, uint64(len(columns))
	case byString:
		m.columns = uint64(len(columns))
		m.columnBook = newBook(len(m.eventsBy), func(i int) (string, uint64) {
			return *(*string)(unsafe.Pointer(&m.eventsBy[i])), uint64(i)
		})
	}
	switch m.states.kind {
	case byInt:
		m.values = make([]uint32, len(m.states.dense))
		for value, state := range m.states.dense {
			if state >= 0 {
				m.values[value] = m.grid.places[state]
			}
		}
	case byString:
		m.placeBook = newBook(len(m.names), func(i int) (string, uint64) {
			return *(*string)(unsafe.Pointer(&m.names[i])), uint64(m.grid.places[i]) - 1
		})
	}
}

// fill makes the cell of a state and a column.
func (m *Machine[S, E, T]) fill(state, column int, columns []int32) {
	place := m.grid.places[state]
	to := m.cell(uint64(place), uint64(column))
	ed := m.c.celled(state, int(columns[column]))
	actor := 0
	if actors := m.table.Rows[ed.row].Actors; len(actors) > 0 {
		actor = actors[0]
	}
	refusals := to.refusals
	*to = cell[S]{
		refusals: refusals,
		word:     m.grid.word(ed.bits) + countOne, keep: countBits,
		actor: string(m.table.Actors[actor]), place: place, row: ed.row,
		state: m.names[wordState(ed.bits)], origin: m.names[wordOrigin(ed.bits)],
	}
	if ed.keep != 0 {
		to.keep |= homeBits
	}
	if ed.flags&guarded != 0 || ed.keep != 0 {
		to.place |= slowCell
	}
}

// status returns the indexes behind the word of an instance.
func (m *Machine[S, E, T]) status(w uint64) uint64 {
	unit := uint64(unsafe.Sizeof(cell[S]{}) / 8) // known to the compiler, unlike grid.unit
	if m.grid.unit == noCells {
		unit = noCells
	}
	return wordOf(int(m.grid.states[w&placeBits/unit]), int(w>>homeShift&indexMask))
}

// refuseEarly gives every state its refusals, laid out as [Instance.Fire] looks
// them up.
func (m *Machine[S, E, T]) refuseEarly(columns []int32) {
	actors := len(m.c.actors)
	if m.c.refusals == nil || len(columns) == 0 || len(m.names)*len(columns)*actors > maxRefusals {
		return
	}
	all := make([]refusal, len(m.names)*len(columns)*actors)
	for s := range m.names {
		own := all[s*len(columns)*actors:]
		for col, e := range columns {
			for a := range actors {
				if e >= 0 {
					own[a*len(columns)+col] = m.c.refusals[(s*m.c.width+int(e))*actors+a]
				}
			}
		}
		m.cell(uint64(m.grid.places[s]), 0).refusals = &own[0]
	}
	for i := copy(m.first[:], m.c.actors); i < len(m.first); i++ {
		m.first[i] = Actor(strings.Clone("nobody")) // at an address that no actor has
	}
}
