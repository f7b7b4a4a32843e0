package explore

import (
	"math/bits"
	"unsafe"
)

// States are spread over shards by their hash. The number of shards is fixed, so
// that the numbers of states do not depend on that of the workers. A state is
// named by its place in its shard and the shard, in one number.
const (
	shardBits = 5
	shards    = 1 << shardBits
	placeBits = 24 // places of a shard; the hash table has the rest for a tag
	maxPlaces = 1<<placeBits - 1
	nobody    = ^uint32(0) // no state
)

func idOf(shard int, place uint32) uint32 { return place<<shardBits | uint32(shard) }
func shardOf(id uint32) int               { return int(id % shards) }
func placeOf(id uint32) uint32            { return id >> shardBits }

// node is a state with what is known about it.
type node[K packed] struct {
	k      K
	parent uint32 // of a shortest way; nobody for initial states
	edges  uint32 // where its edges begin, plus one; 0: it has none
}

// shard has the states of some hashes. In a phase of the search only one worker
// writes to it.
type shard[K packed] struct {
	nodes slab[node[K]]
	n     uint32
	most  uint32 // places
	// table is open addressing with linear probing: place plus one and, above it,
	// a tag of the hash that spares most looks at states that are others. 0: free.
	table []uint32
	rests []uint64 // by place: whether the state rests
	full  bool     // a state could not be added, for lack of numbers
}

// hash must be the same in every run: numbers of states depend on it.
func hash[K packed](k K) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for i := range len(k) {
		hi, lo := bits.Mul64(h^k[i], 0xd6e8feb86659fd93)
		h = hi ^ lo + uint64(i)
	}
	hi, lo := bits.Mul64(h, 0xa0761d6478bd642f)
	return hi ^ lo
}

func shardOfHash(h uint64) int { return int(h >> (64 - shardBits)) }

func tagOf(h uint64) uint32 { return uint32(h>>(64-shardBits-8)) << placeBits }

// find returns the place of a state, and false if it had to be added. In a shard
// that is full the place of a new state is that of another: who finds it so must
// not believe what was explored.
func (s *shard[K]) find(k K, h uint64, parent uint32) (place uint32, known bool) {
	if uint64(s.n)*4 >= uint64(len(s.table))*3 {
		s.grow()
	}
	mask, tag := uint64(len(s.table)-1), tagOf(h)
	for i := h & mask; ; i = (i + 1) & mask {
		switch slot := s.table[i]; {
		case slot == 0 && s.n == s.most:
			s.full = true
			return 0, true
		case slot == 0:
			place = s.n
			s.table[i] = tag | (place + 1)
			s.nodes.push(node[K]{k: k, parent: parent})
			s.n++
			return place, false
		case slot&^maxPlaces == tag:
			if place = slot&maxPlaces - 1; s.nodes.at(place).k == k {
				return place, true
			}
		}
	}
}

func (s *shard[K]) grow() {
	s.table = make([]uint32, max(16, 2*len(s.table)))
	mask := uint64(len(s.table) - 1)
	for place := range s.n {
		h := hash(s.nodes.at(place).k)
		i := h & mask
		for s.table[i] != 0 {
			i = (i + 1) & mask
		}
		s.table[i] = tagOf(h) | (place + 1)
	}
}

func (s *shard[K]) setRests(place uint32, rests bool) {
	if int(place/64) == len(s.rests) {
		s.rests = append(s.rests, 0)
	}
	if rests {
		s.rests[place/64] |= 1 << (place % 64)
	}
}

func (s *shard[K]) resting(place uint32) bool { return s.rests[place/64]&(1<<(place%64)) != 0 }

// slab is a long slice in pieces, which grows without being copied. Its first
// piece does grow by being copied, so that few entries take little.
type slab[T any] struct{ pieces [][]T }

const pieceBits = 9

func (s *slab[T]) at(i uint32) *T {
	return &s.pieces[i>>pieceBits][i&(1<<pieceBits-1)]
}

func (s *slab[T]) push(v T) {
	last := len(s.pieces) - 1
	switch {
	case last < 0:
		s.pieces = append(s.pieces, make([]T, 0, 4))
		last = 0
	case len(s.pieces[last]) < cap(s.pieces[last]):
	case last == 0 && cap(s.pieces[0]) < 1<<pieceBits:
		longer := make([]T, len(s.pieces[0]), 2*cap(s.pieces[0]))
		copy(longer, s.pieces[0])
		s.pieces[0] = longer
	default:
		s.pieces = append(s.pieces, make([]T, 0, 1<<pieceBits))
		last++
	}
	s.pieces[last] = append(s.pieces[last], v)
}

func (s *slab[T]) bytes() (n int64) {
	var v T
	if len(s.pieces) > 0 {
		n = int64(cap(s.pieces[0])) + int64(len(s.pieces)-1)<<pieceBits
	}
	return n*int64(unsafe.Sizeof(v)) + 24*int64(cap(s.pieces))
}

// edgeList has the edges without faults, those of a state one behind the other:
// names of states, the last of which is marked.
type edgeList struct {
	pieces [][]uint32
	n      uint64
}

const (
	lastEdge      = 1 << 31
	edgePieceBits = 12
)

// reserve makes room for n more and returns where it begins.
func (e *edgeList) reserve(n int) uint64 {
	at := e.n
	e.n += uint64(n)
	for uint64(len(e.pieces))<<edgePieceBits < e.n {
		e.pieces = append(e.pieces, make([]uint32, 1<<edgePieceBits))
	}
	return at
}

func (e *edgeList) at(i uint64) *uint32 {
	return &e.pieces[i>>edgePieceBits][i&(1<<edgePieceBits-1)]
}

func (e *edgeList) bytes() int64 {
	return int64(len(e.pieces))*(4<<edgePieceBits) + 24*int64(cap(e.pieces))
}
