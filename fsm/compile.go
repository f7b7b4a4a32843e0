package fsm

import (
	"math"
	"slices"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// Limits of a table. A table over a limit has a [Problem] and makes no machine.
const (
	MaxStates = 1 << 12
	MaxEvents = 1 << 12
	MaxActors = 64
	MaxRows   = 1 << 16

	maxCell = 256 // rows of one state and event
)

// maxDenseCells is the largest number of cells that are kept in an array.
// Larger tables keep them in a map.
const maxDenseCells = 1 << 20

// A status as one word: state and origin by index.
const (
	originShift = 12
	indexMask   = 1<<originShift - 1
	originBits  = uint64(indexMask) << originShift
)

func wordOf(state, origin int) uint64 {
	return uint64(state) | uint64(origin)<<originShift
}

func wordState(w uint64) int  { return int(w & indexMask) }
func wordOrigin(w uint64) int { return int(w >> originShift & indexMask) }

// edge is a row compiled for one source. A status moves to bits | word&keep.
type edge struct {
	actors uint64 // mask
	bits   uint64
	keep   uint64 // originBits between transitional states, else 0
	next   *edge  // of the same cell, in order of trial
	row    int32
	flags  edgeFlags
}

type edgeFlags uint8

const (
	guarded edgeFlags = 1 << iota
	forced
	conditional // has an origin condition
	returns
	ignores
)

// compiled is the form of a table for look-ups. It is immutable.
type compiled struct {
	actors  []Actor
	width   int     // events
	dense   []*edge // [state*width+event] -> first edge, nil for none
	sparse  map[int32]*edge
	out     [][]*edge // edges of a state in order of declaration
	origins [][]int
	allowed []bitset.Set // by row: the origins of its condition; nil for no condition
	resting bitset.Set

	stateNames index[string]
	eventNames index[string]
}

// compile compiles a table. REQUIRES: the table refers only to declared states and
// events.
func compile(t *Table) *compiled {
	n := len(t.States)
	c := &compiled{
		actors: t.Actors, width: len(t.Events), out: make([][]*edge, n), origins: possibleOrigins(t),
		allowed: conditions(t), resting: bitset.New(n), eventNames: newIndex(t.Events),
	}
	names := make([]string, n)
	for i := range t.States {
		names[i] = t.States[i].Name
		if t.States[i].Kind.Resting() {
			c.resting.Add(i)
		}
	}
	c.stateNames = newIndex(names)
	if n*c.width <= maxDenseCells {
		c.dense = make([]*edge, n*c.width)
	} else {
		c.sparse = make(map[int32]*edge, len(t.Rows))
	}
	last := make(map[int32]*edge) // last edge of a cell
	for i := range t.Rows {
		r := &t.Rows[i]
		for _, from := range r.From {
			cell := int32(from*c.width + r.Event)
			before := last[cell]
			if before != nil && before.row == int32(i) {
				continue // the row names the source twice
			}
			ed := c.edgeOf(t, i, from)
			c.out[from] = append(c.out[from], ed)
			switch {
			case before != nil:
				before.next = ed
			case c.dense != nil:
				c.dense[cell] = ed
			default:
				c.sparse[cell] = ed
			}
			last[cell] = ed
		}
	}
	return c
}

func (c *compiled) edgeOf(t *Table, row, from int) *edge {
	r := &t.Rows[row]
	e := &edge{row: int32(row)}
	if len(r.Actors) == 0 || len(t.Actors) == 0 {
		e.actors = math.MaxUint64
	}
	for _, a := range r.Actors {
		e.actors |= 1 << uint(a) // no bit for a negative index, or one above 63
	}
	if r.Guard != "" {
		e.flags |= guarded
	}
	if r.Forced {
		e.flags |= forced
	}
	if len(r.Origin) > 0 {
		e.flags |= conditional
	}
	switch r.Then {
	case ThenReturn:
		e.flags |= returns
	case ThenIgnore:
		e.flags |= ignores
	case ThenMove:
		switch {
		case c.resting.Has(r.To):
			e.bits = wordOf(r.To, r.To)
		case c.resting.Has(from):
			e.bits = wordOf(r.To, from)
		default: // the origin of the operation stays
			e.bits, e.keep = wordOf(r.To, 0), originBits
		}
	}
	return e
}

// first returns the first edge of a cell, nil if there is none.
func (c *compiled) first(state, event int) *edge {
	cell := state*c.width + event
	if c.dense != nil {
		return c.dense[cell]
	}
	return c.sparse[int32(cell)]
}

// move returns the word that the edge makes of w. It checks neither origin condition
// nor guard.
func (e *edge) move(w uint64) uint64 {
	switch {
	case e.flags&(returns|ignores) == 0:
		return e.bits | w&e.keep
	case e.flags&returns != 0:
		return wordOf(wordOrigin(w), wordOrigin(w))
	}
	return w // an ignored event moves nothing
}

// fits reports whether an object with this origin may take the edge: its origin
// condition holds, and a return row has an origin to return to.
func (c *compiled) fits(e *edge, origin int) bool {
	if e.flags&conditional != 0 && !c.allowed[e.row].Has(origin) {
		return false
	}
	return e.flags&returns == 0 || c.resting.Has(origin)
}

// agrees reports whether a request, forced or not, may take the edge from this
// origin. The caller checks actor and guard.
func (c *compiled) agrees(e *edge, origin int, force bool) bool {
	return (force || e.flags&forced == 0) && c.fits(e, origin)
}

// actorBit returns the mask of an actor, or 0 if it is not declared. Without any actors
// it is the same mask for all.
func (c *compiled) actorBit(a Actor) uint64 {
	if len(c.actors) == 0 {
		return 1
	}
	for i := range c.actors {
		if c.actors[i] == a {
			return 1 << i
		}
	}
	return 0
}

// index finds the number of a state or event by its value. The zero index finds
// nothing.
type index[K comparable] struct {
	keys []K
	by   map[K]int // nil for few keys
}

// fewKeys is the largest number of keys that are compared one by one, which takes less
// time than a hash.
const fewKeys = 16

// newIndex returns the index of the keys in their order, and keeps the slice.
func newIndex[K comparable](keys []K) index[K] {
	x := index[K]{keys: keys}
	if len(keys) > fewKeys {
		x.by = numbered(keys)
	}
	return x
}

// numbered numbers the keys in their order. Of equal keys, the first counts.
func numbered[K comparable](keys []K) map[K]int {
	numbers := make(map[K]int, len(keys))
	for i, k := range slices.Backward(keys) {
		numbers[k] = i
	}
	return numbers
}

// of returns the number of k, or -1.
func (x *index[K]) of(k K) int {
	if x.by != nil {
		if i, ok := x.by[k]; ok {
			return i
		}
		return -1
	}
	for i := range x.keys {
		if x.keys[i] == k {
			return i
		}
	}
	return -1
}
