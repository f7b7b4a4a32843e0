package explore

import (
	"bytes"
	"hash/maphash"
	"math"
	"unsafe"
)

// noState is the parent of an initial state.
const noState = math.MaxUint32

// store has the states in the order in which the search finds them. The number of
// a state is its place in that order.
type store struct {
	size    int // bytes of a state
	states  slab[byte]
	parents slab[uint32] // the state before, on a shortest path
	n       int
	seed    maphash.Seed
	// slots is a hash table with linear probing: the upper half of the hash, and
	// the number of the state plus one. 0 is a free slot.
	slots []uint64
}

func newStore(size int) *store {
	return &store{size: size, states: slab[byte]{each: size}, parents: slab[uint32]{each: 1}, seed: maphash.MakeSeed()}
}

func (s *store) hash(state []byte) uint64 { return maphash.Bytes(s.seed, state) }

func (s *store) state(id uint32) []byte  { return s.states.at(int(id)) }
func (s *store) parent(id uint32) uint32 { return s.parents.at(int(id))[0] }

// add returns the number of a state, and whether the store did not have it.
func (s *store) add(state []byte, parent uint32) (id uint32, added bool) {
	if 3*s.n >= 2*len(s.slots) {
		s.grow()
	}
	hash := s.hash(state)
	mask := uint64(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := s.slots[i]
		if slot == 0 {
			id = uint32(s.n)
			s.slots[i] = hash>>32<<32 | uint64(id+1)
			copy(s.states.push(), state)
			s.parents.push()[0] = parent
			s.n++
			return id, true
		}
		if slot>>32 == hash>>32 {
			if id = uint32(slot) - 1; bytes.Equal(s.state(id), state) {
				return id, false
			}
		}
	}
}

func (s *store) grow() {
	s.slots = make([]uint64, max(64, 2*len(s.slots)))
	mask := uint64(len(s.slots) - 1)
	for id := range uint32(s.n) {
		hash := s.hash(s.state(id))
		i := hash & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = hash>>32<<32 | uint64(id+1)
	}
}

func (s *store) bytes() int64 { return s.states.bytes() + s.parents.bytes() + 8*int64(len(s.slots)) }

// path returns the states of a shortest path to a state, in reverse order.
func (s *store) path(id uint32) (states [][]byte) {
	for ; id != noState; id = s.parent(id) {
		states = append(states, s.state(id))
	}
	return states
}

// slab is a list of entries with a fixed number of elements each. It grows in
// pieces and never copies one.
type slab[T any] struct {
	each   int
	pieces [][]T
	n      int
}

const pieceEntries = 1 << 10

// push adds an entry and returns it.
func (s *slab[T]) push() []T {
	if s.n == len(s.pieces)*pieceEntries {
		s.pieces = append(s.pieces, make([]T, pieceEntries*s.each))
	}
	s.n++
	return s.at(s.n - 1)
}

func (s *slab[T]) at(i int) []T {
	from := i % pieceEntries * s.each
	return s.pieces[i/pieceEntries][from : from+s.each]
}

func (s *slab[T]) bytes() int64 {
	var v T
	return int64(len(s.pieces)) * (int64(pieceEntries*s.each)*int64(unsafe.Sizeof(v)) + 24)
}

// bits is a set of states.
type bits []uint64

func (b bits) has(id uint32) bool { return int(id/64) < len(b) && b[id/64]&(1<<(id%64)) != 0 }

func (b *bits) add(id uint32) {
	*b = grown(*b, id/64)
	(*b)[id/64] |= 1 << (id % 64)
}
