package explore

import "math/bits"

// packed is a packed state of the system. Its size is chosen for the system, so
// that copies and comparisons are a few instructions without a loop.
type packed interface {
	[1]uint64 | [2]uint64 | [3]uint64 | [4]uint64 | [6]uint64 | [8]uint64 | [16]uint64
	comparable
}

// maxWords is the size of the greatest of packed.
const maxWords = 16

// layout says where in the words the numbers of a state are: local states by
// actor, then contents by channel, then what is left of budgets.
type layout struct {
	fields  []field
	actors  int
	budgets int // index of the first
	words   int
}

type field struct {
	word  int
	shift uint8
	width uint8
}

func (l *layout) channel(i int) int { return l.actors + i }
func (l *layout) budget(i int) int  { return l.budgets + i }

// most is the greatest number that the field holds.
func (f field) most() uint64 { return 1<<f.width - 1 }

// of returns the number in the field of a word.
func (f field) of(word uint64) uint32 { return uint32(word >> f.shift & f.most()) }

// in returns the word with the number in the field.
func (f field) in(word uint64, v uint32) uint64 {
	return word&^(f.most()<<f.shift) | uint64(v)<<f.shift
}

// newLayout packs fields that can hold what the tables have by now and some
// more. Fields never cross words. Space that is over goes to the fields of
// tables, so that they are outgrown late. nil: there is no room.
func newLayout(t *tables) *layout {
	const first = 6 // bits of a table's field, at least
	var widths []uint8
	need := func(n int) uint8 { return uint8(max(first, bits.Len(uint(n))+2)) }
	for _, l := range t.locals {
		widths = append(widths, min(need(l.size()), 32))
	}
	for _, c := range t.channels {
		widths = append(widths, min(need(len(c.lists)), 32))
	}
	growing := len(widths)
	for _, b := range t.sys.budgets {
		widths = append(widths, uint8(bits.Len(uint(b.most))))
	}
	l := &layout{actors: len(t.locals), budgets: growing}
	if l.fields, l.words = pack(widths); l.words > maxWords {
		return nil
	}
	for grew := true; grew; {
		grew = false
		for i := range widths[:growing] {
			if widths[i] == 32 {
				continue
			}
			widths[i]++
			if fields, n := pack(widths); n <= l.words {
				l.fields, grew = fields, true
			} else {
				widths[i]--
			}
		}
	}
	return l
}

// pack places fields of these widths, each in the first word with room for it.
func pack(widths []uint8) (fields []field, n int) {
	var used []uint8
	for _, w := range widths {
		at := 0
		for at < len(used) && used[at]+w > 64 {
			at++
		}
		if at == len(used) {
			used = append(used, 0)
		}
		fields = append(fields, field{word: at, shift: used[at], width: w})
		used[at] += w
	}
	return fields, max(1, len(used))
}

// outgrown reports whether a table has more entries than its field can hold.
func (t *tables) outgrown() bool {
	for i, l := range t.locals {
		if uint64(l.size()) > t.lay.fields[i].most()+1 {
			return true
		}
	}
	for i, c := range t.channels {
		if uint64(len(c.lists)) > t.lay.fields[t.lay.channel(i)].most()+1 {
			return true
		}
	}
	return false
}

// put returns the packed state with a number in the field.
func put[K packed](k K, f field, v uint32) K {
	k[f.word] = f.in(k[f.word], v)
	return k
}
