package fsm

import "github.com/interlock-go/interlock/fsm/internal/bitset"

// setOf returns a set of numbers below n.
func setOf(n int, list ...int) bitset.Set {
	s := bitset.New(n)
	for _, i := range list {
		s.Add(i)
	}
	return s
}

// conditions returns the origins of the condition of every row, nil for no condition.
func conditions(t *Table) []bitset.Set {
	list := make([]bitset.Set, len(t.Rows))
	for i := range t.Rows {
		if origins := t.Rows[i].Origin; len(origins) > 0 {
			list[i] = setOf(len(t.States), origins...)
		}
	}
	return list
}

// possibleOrigins computes [Table.Origins] as the least fixpoint over the rows. It
// visits states, not pairs of state and origin, because a row passes on a whole set.
// Every visit of a state adds at least one origin to a successor, so there are at
// most states x states visits. Resting states come first: each is visited once, and a
// transitional state with more origins is visited fewer times: in a document of 1 MB, this
// is a tenth of a second instead of many.
func possibleOrigins(t *Table) [][]int {
	n := len(t.States)
	sets := make([]bitset.Set, n) // nil: not reached
	rowsFrom, allowed := make([][]int, n), conditions(t)
	for i := range t.Rows {
		for _, from := range t.Rows[i].From {
			rowsFrom[from] = append(rowsFrom[from], i)
		}
	}
	var resting, work []int
	queued := bitset.New(n)
	reach := func(state int, origins bitset.Set) {
		if sets[state] == nil {
			sets[state] = bitset.New(n)
		}
		switch {
		case !sets[state].Union(origins) || !queued.Add(state):
		case t.States[state].Kind.Resting():
			resting = append(resting, state)
		default:
			work = append(work, state)
		}
	}
	for _, s := range t.Entries() {
		reach(s, setOf(n, s))
	}
	for len(resting)+len(work) > 0 {
		var from int
		if len(resting) > 0 {
			from, resting = resting[0], resting[1:]
		} else {
			from, work = work[0], work[1:]
		}
		queued.Remove(from)
		for _, i := range rowsFrom[from] {
			r, origins := &t.Rows[i], sets[from]
			if allowed[i] != nil {
				origins = origins.And(allowed[i])
			}
			switch {
			case origins.Len() == 0: // no object in the source meets the origin condition
			case r.Then == ThenReturn, r.Then == ThenIgnore: // the target was visited before
			case t.States[r.To].Kind.Resting():
				reach(r.To, setOf(n, r.To))
			case t.States[from].Kind.Resting():
				reach(r.To, setOf(n, from))
			default:
				reach(r.To, origins)
			}
		}
	}
	origins := make([][]int, n)
	for i, s := range sets {
		origins[i] = s.Elements()
	}
	return origins
}
