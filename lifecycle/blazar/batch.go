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
//   - A lease ends after it has started, because its end is later than its start.
func Batches(due []Due) [][]Due {
	sorted := slices.SortedStableFunc(slices.Values(due), func(a, b Due) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Type, b.Type)) // end_lease before start_lease
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
