package fsm

import (
	"math/bits"
	"unsafe"
)

// book finds numbers by the address of a string. A constant has one address in
// the whole program, so that nearly every lookup ends here; what it does not
// find may still be known, spelled anew. The zero book is not usable.
type book struct {
	shift uint8
	mul   uint64
	slots []address // a power of two of them, at least one free
}

// address is where a string lies. The string cannot move or be freed while it
// is in the book.
type address struct {
	data   *byte
	length int
	number uint64
}

// missing is what a book returns for what it does not find.
const missing = ^uint64(0)

// newBook enters strings with their numbers. It tries a few multipliers for one
// under which no two want the same slot; of two that do, the first is kept.
func newBook(n int, entry func(int) (string, uint64)) (b book) {
	b.shift = uint8(64 - bits.Len(uint(8*n)))
	mul := uint64(0x9E3779B97F4A7C15)
	for range 64 {
		b.mul = mul // the one under which the slots below are filled
		if b.enter(n, entry) == n {
			break
		}
		mul = (mul*6364136223846793005 + 1442695040888963407) | 1
	}
	return b
}

// enter fills the slots and returns how many strings found one.
func (b *book) enter(n int, entry func(int) (string, uint64)) (entered int) {
	b.slots = make([]address, 1<<(64-b.shift))
	for i := range b.slots {
		b.slots[i].number = missing // the empty string may have no address either
	}
	for i := range n {
		s, number := entry(i)
		if a := b.slot(s); a.data == nil {
			*a = address{data: unsafe.StringData(s), length: len(s), number: number}
			entered++
		}
	}
	return entered
}

func (b *book) slot(s string) *address {
	h := uint64(uintptr(unsafe.Pointer(unsafe.StringData(s)))) * b.mul
	return &b.slots[h>>(b.shift&63)&uint64(len(b.slots)-1)]
}

func (b *book) find(s string) uint64 {
	if a := b.slot(s); a.data == unsafe.StringData(s) && a.length == len(s) {
		return a.number
	}
	return missing
}
