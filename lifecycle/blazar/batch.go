package blazar

import (
	"cmp"
	"slices"
	"time"
)

// Due is an event that is due. It is a plain value.
type Due struct {
	ID    string
	Lease string
	Type  string
	Time  time.Time // of the event
}

// Batches orders events that are due together, for example after an outage of the
// service. The events of a batch are of one type, in the order of time, and may be
// executed at the same time; a batch is executed after the one before it:
//
//   - A start comes after every end that is not later than itself, so that resources are
//     released before another lease gets them.
//   - A lease ends after it has started, also if its end is not later than its start.
func Batches(due []Due) [][]Due {
	starts := make(map[string]time.Time)
	for _, d := range due {
		if d.Type == StartLease {
			starts[d.Lease] = d.Time
		}
	}
	const end, start, ownEnd = 0, 1, 2 // the order of events at one time
	place := func(d Due) (time.Time, int) {
		at, starting := starts[d.Lease]
		switch {
		case d.Type == StartLease:
			return d.Time, start
		case starting && !d.Time.After(at):
			return at, ownEnd
		}
		return d.Time, end
	}
	sorted := slices.SortedStableFunc(slices.Values(due), func(a, b Due) int {
		at, rank := place(a)
		other, otherRank := place(b)
		return cmp.Or(at.Compare(other), rank-otherRank)
	})
	var batches [][]Due
	for i, d := range sorted {
		if i == 0 || sorted[i-1].Type != d.Type {
			batches = append(batches, nil)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], d)
	}
	return batches
}
