package fsm

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i int)   { b[i/64] &^= 1 << (i % 64) }
func (b bitset) members() (is []int) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			is = append(is, w*64+bits.TrailingZeros64(word))
		}
	}
	return is
}

// union adds the members of o that also pass mask (nil: all) and reports
// whether b grew.
func (b bitset) union(o, mask bitset) (grew bool) {
	for i, w := range o {
		if mask != nil {
			w &= mask[i]
		}
		grew = grew || w&^b[i] != 0
		b[i] |= w
	}
	return grew
}

// possibleOrigins computes [Table.Origins] as the least fixpoint over the rows. It
// visits states, not pairs of state and origin, because a row passes on a whole set.
// Every visit of a state adds at least one origin to a successor, so there are at
// most states x states visits.
func possibleOrigins(t *Table) [][]int {
	n := len(t.States)
	sets := make([]bitset, n) // nil: not reached
	rowsFrom := make([][]int, n)
	masks := make([]bitset, len(t.Rows)) // nil: any origin
	for i := range t.Rows {
		for _, from := range t.Rows[i].From {
			rowsFrom[from] = append(rowsFrom[from], i)
		}
		if len(t.Rows[i].Origin) > 0 {
			masks[i] = newBitset(n)
			for _, o := range t.Rows[i].Origin {
				masks[i].add(o)
			}
		}
	}
	// Resting states come first. Each is visited once, and a transitional state with
	// more origins is visited fewer times.
	var resting, work []int
	queued := newBitset(n)
	reach := func(state int, origins, mask bitset) {
		fresh := sets[state] == nil
		if fresh {
			sets[state] = newBitset(n)
		}
		if (sets[state].union(origins, mask) || fresh) && !queued.has(state) {
			queued.add(state)
			if t.States[state].Kind.Resting() {
				resting = append(resting, state)
			} else {
				work = append(work, state)
			}
		}
	}
	rested := newBitset(n)
	rest := func(state int) {
		if rested.has(state) {
			return
		}
		rested.add(state)
		self := newBitset(n)
		self.add(state)
		reach(state, self, nil)
	}
	for _, s := range t.Entries() {
		rest(s)
	}
	for len(resting)+len(work) > 0 {
		var from int
		if len(resting) > 0 {
			from, resting = resting[0], resting[1:]
		} else {
			from, work = work[0], work[1:]
		}
		queued.remove(from)
		for _, i := range rowsFrom[from] {
			r := &t.Rows[i]
			if !sets[from].meets(masks[i]) {
				continue // no object in the source meets the origin condition
			}
			switch {
			case r.Then == ThenReturn, r.Then == ThenIgnore:
				// The target is a state that was visited before.
			case t.States[r.To].Kind.Resting():
				rest(r.To)
			case t.States[from].Kind.Resting():
				self := newBitset(n)
				self.add(from)
				reach(r.To, self, nil)
			default:
				reach(r.To, sets[from], masks[i])
			}
		}
	}
	origins := make([][]int, n)
	for i, s := range sets {
		origins[i] = s.members()
	}
	return origins
}

// meets reports whether b has a member that passes mask (nil: any).
func (b bitset) meets(mask bitset) bool {
	for i, w := range b {
		if mask == nil && w != 0 || mask != nil && w&mask[i] != 0 {
			return true
		}
	}
	return false
}
