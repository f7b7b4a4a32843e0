// Package bitset holds sets of small integers for the packages that walk the
// states, events and actors of a table.
package bitset

import "math/bits"

// Set is a set of integers from 0 to a limit that New fixes. A Set is not safe for
// concurrent use if one goroutine changes it. A copy shares the elements.
type Set []uint64

// New returns an empty set for the integers from 0 to n-1.
func New(n int) Set { return make(Set, (n+63)/64) }

// Add adds i and reports whether the set did not contain it.
func (s Set) Add(i int) bool {
	added := !s.Has(i)
	s[i/64] |= 1 << (i % 64)
	return added
}

// Has reports whether the set contains i.
func (s Set) Has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// Remove removes i.
func (s Set) Remove(i int) { s[i/64] &^= 1 << (i % 64) }

// Union adds the elements of o, which New made with the same limit, and reports whether
// there was one that the set did not contain.
func (s Set) Union(o Set) (grew bool) {
	for i, word := range o {
		grew = grew || word&^s[i] != 0
		s[i] |= word
	}
	return grew
}

// And returns the elements that both sets contain.
func (s Set) And(o Set) Set {
	both := make(Set, len(s))
	for i, word := range o {
		both[i] = s[i] & word
	}
	return both
}

// Len returns the number of elements.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Elements returns the elements in ascending order.
func (s Set) Elements() (list []int) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, w*64+bits.TrailingZeros64(word))
		}
	}
	return list
}
