package fsm

import (
	"math"
	"math/bits"
	"reflect"
	"unsafe"
)

// index finds the number of a state or event. Integers are looked up in an
// array and strings in a hash table made for them; both are several times as
// fast as a map, which serves every other type. The zero index finds nothing.
type index[K comparable] struct {
	kind  indexKind
	base  uint64  // integers: smallest value
	dense []int32 // integers: number by value-base, -1 none
	slots []slot  // strings: open table, its length a power of two
	mul   uint64
	shift uint8
	keys  map[K]int32
}

type indexKind uint8

const (
	byMap indexKind = iota
	byInt
	byString
)

type slot struct {
	key    string
	number int32
}

// newIndex numbers the keys. REQUIRES: the keys are unique.
func newIndex[K comparable](keys []K) (x index[K]) {
	if len(keys) == 0 {
		return x
	}
	switch k := reflect.TypeFor[K]().Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr && x.numberInts(keys):
	case k == reflect.String && x.hashStrings(keys):
	default:
		x.kind = byMap
		x.keys = make(map[K]int32, len(keys))
		for i, k := range keys {
			x.keys[k] = int32(i)
		}
	}
	return x
}

// of returns the number of k, or -1.
func (x *index[K]) of(k K) int32 {
	switch x.kind {
	case byInt:
		if i := integer(k) - x.base; i < uint64(len(x.dense)) {
			return x.dense[i]
		}
		return -1
	case byString:
		// K is of kind string, as newIndex saw, so k has a string's layout.
		s := *(*string)(unsafe.Pointer(&k))
		h := hash(s) * x.mul >> (x.shift & 63)
		for {
			sl := &x.slots[h&uint64(len(x.slots)-1)]
			if sl.key == s || sl.number < 0 {
				return sl.number
			}
			h++
		}
	}
	if i, ok := x.keys[k]; ok {
		return i
	}
	return -1
}

// columns returns the event index of every column of a grid, -1 for none: for
// integers the columns are the values less base, so that firing needs no look
// up, for all others they are the indexes themselves.
func (x *index[K]) columns() []int32 {
	switch x.kind {
	case byInt:
		return x.dense
	case byString:
		n := 0
		for i := range x.slots {
			if x.slots[i].number >= 0 {
				n++
			}
		}
		return upTo(n)
	}
	return upTo(len(x.keys))
}

func upTo(n int) []int32 {
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	return numbers
}

// integer returns the bits of k if it is of an integer kind, else anything. Negative numbers
// of the short types become large ones: a set with both signs may be too wide
// for the array and goes to the map.
func integer[K comparable](k K) uint64 {
	switch unsafe.Sizeof(k) {
	case 1:
		return uint64(*(*uint8)(unsafe.Pointer(&k)))
	case 2:
		return uint64(*(*uint16)(unsafe.Pointer(&k)))
	case 4:
		return uint64(*(*uint32)(unsafe.Pointer(&k)))
	case 8:
		return *(*uint64)(unsafe.Pointer(&k))
	}
	return 0
}

func (x *index[K]) numberInts(keys []K) bool {
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for _, k := range keys {
		lo, hi = min(lo, integer(k)), max(hi, integer(k))
	}
	if width := hi - lo; width > 4*uint64(len(keys))+1024 {
		return false
	}
	x.kind, x.base = byInt, lo
	x.dense = make([]int32, hi-lo+1)
	for i := range x.dense {
		x.dense[i] = -1
	}
	for i, k := range keys {
		x.dense[integer(k)-lo] = int32(i)
	}
	return true
}

// hash mixes the ends of s and its length, reading at most 16 bytes. Keys that
// differ only in the middle collide and are told apart by comparison.
func hash(s string) uint64 {
	n, p := len(s), unsafe.Pointer(unsafe.StringData(s))
	switch {
	case n >= 8: // two words, overlapping where n < 16
		return *(*uint64)(p) ^ bits.RotateLeft64(*(*uint64)(unsafe.Add(p, n-8)), 17) ^ uint64(n)
	case n >= 4:
		return (uint64(*(*uint32)(p))<<32 | uint64(*(*uint32)(unsafe.Add(p, n-4)))) ^ uint64(n)
	case n > 0:
		return uint64(s[0]) | uint64(s[n>>1])<<8 | uint64(s[n-1])<<16 | uint64(n)<<24
	}
	return 0
}

// hashStrings builds an open table, at most a quarter full, with a multiplier
// under which every key lies in its first slot. If a few tries find none, the
// last one serves, and some lookups walk on from an occupied slot; if they would
// have to walk far, because too many keys have the same ends, it gives up.
func (x *index[K]) hashStrings(keys []K) bool {
	const far = 16
	x.kind = byString
	x.shift = uint8(64 - bits.Len(uint(4*len(keys)-1)))
	x.mul = 0x9E3779B97F4A7C15
	for range 64 {
		displaced, farthest := x.place(keys)
		if displaced == 0 {
			return true
		}
		if farthest <= far && displaced < len(keys)/8 {
			break // good enough for a large table
		}
		x.mul = (x.mul*6364136223846793005 + 1442695040888963407) | 1
	}
	if _, farthest := x.place(keys); farthest > far {
		*x = index[K]{}
		return false
	}
	return true
}

// place fills the table. It returns how many keys are not in their first slot,
// and how many slots the farthest is away from it.
func (x *index[K]) place(keys []K) (displaced, farthest int) {
	x.slots = make([]slot, 1<<(64-x.shift))
	for i := range x.slots {
		x.slots[i].number = -1
	}
	for i := range keys {
		s := *(*string)(unsafe.Pointer(&keys[i]))
		h, walked := hash(s)*x.mul>>x.shift, 0
		for x.slots[h].number >= 0 {
			h = (h + 1) % uint64(len(x.slots))
			walked++
		}
		if walked > 0 {
			displaced++
		}
		farthest = max(farthest, walked)
		x.slots[h] = slot{key: s, number: int32(i)}
	}
	return displaced, farthest
}
