package explore

import (
	"math"
	"slices"
)

// noState is the parent of an initial state.
const noState = math.MaxUint32

// store has the states in the order in which the search finds them. The number of
// a state is its place in that order.
type store struct {
	states  slab
	parents slab // the state before, on a shortest path
	n       int
	slots   []slot // a hash table with linear probing
}

// slot is a place in the hash table: the number of a state plus one, or 0 if it is free, and
// the upper half of its hash, so that few states are compared in full.
type slot struct{ state, hash uint32 }

func (s *store) state(id uint32) []uint32 { return s.states.at(int(id)) }

// add returns the number of a state, and whether the store did not have it.
func (s *store) add(state []uint32, parent uint32) (id uint32, added bool) {
	if 3*s.n >= 2*len(s.slots) {
		s.grow()
	}
	hash := hash(state)
	at := s.find(state, hash)
	if at.state != 0 {
		return at.state - 1, false
	}
	copy(s.states.push(), state)
	s.parents.push()[0] = parent
	s.n++
	*at = slot{uint32(s.n), uint32(hash >> 32)}
	return at.state - 1, true
}

// find returns the slot of a state, or the free slot where it goes.
func (s *store) find(state []uint32, hash uint64) *slot {
	mask := uint64(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := &s.slots[i]
		if at.state == 0 || at.hash == uint32(hash>>32) && slices.Equal(s.state(at.state-1), state) {
			return at
		}
	}
}

func (s *store) grow() {
	s.slots = make([]slot, max(64, 2*len(s.slots)))
	for id := range uint32(s.n) {
		state := s.state(id)
		hash := hash(state)
		*s.find(state, hash) = slot{id + 1, uint32(hash >> 32)}
	}
}

// hash is FNV-1a over numbers instead of bytes. The lower bits, which select a slot, depend on
// the lower bits of every number, and the numbers of values are small.
func hash(state []uint32) uint64 {
	h := uint64(14695981039346656037)
	for _, n := range state {
		h = (h ^ uint64(n)) * 1099511628211
	}
	return h
}

func (s *store) bytes() int64 { return s.states.bytes() + s.parents.bytes() + 8*int64(len(s.slots)) }

// path returns a shortest path from an initial state to a state.
func (s *store) path(id uint32) (run []uint32) {
	for ; id != noState; id = s.parents.at(int(id))[0] {
		run = append(run, id)
	}
	slices.Reverse(run)
	return run
}

// slab is a list of entries with a fixed count of numbers each. It grows in pieces and
// never copies one.
type slab struct {
	each   int
	pieces [][]uint32
	n      int
}

const pieceEntries = 1 << 10

// push adds an entry and returns it.
func (s *slab) push() []uint32 {
	if s.n == len(s.pieces)*pieceEntries {
		s.pieces = append(s.pieces, make([]uint32, pieceEntries*s.each))
	}
	s.n++
	return s.at(s.n - 1)
}

func (s *slab) at(i int) []uint32 {
	from := i % pieceEntries * s.each
	return s.pieces[i/pieceEntries][from : from+s.each]
}

func (s *slab) bytes() int64 { return int64(len(s.pieces)) * int64(4*pieceEntries*s.each+24) }
