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
	Time  time.Time // when it became due
}

// Batches orders events that are due at the same time, because nobody looked for a
// while. The events of a batch are of one type and may be executed side by side;
// one batch is over before the next begins:
//
//   - strictly in the order of time;
//   - at one time, what happens before an end comes first, then what ends, then
//     what starts, so that resources are taken back before somebody else gets them;
//   - what a lease has to do after its start comes after its start.
//
// Events of types that nobody knows come with the first.
func Batches(due []Due) [][]Due {
	starts := make(map[string]time.Time)
	for _, d := range due {
		if d.Type == StartLease {
			starts[d.Lease] = d.Time
		}
	}
	type place struct {
		Due
		at   time.Time
		rank int
	}
	const afterStart = 3
	places := make([]place, 0, len(due))
	for _, d := range due {
		p := place{Due: d, at: d.Time, rank: max(0, slices.Index([]string{BeforeEndLease, EndLease, StartLease}, d.Type))}
		if start, has := starts[d.Lease]; has && d.Type != StartLease && !d.Time.After(start) {
			p.at, p.rank = start, p.rank+afterStart
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(a.at.Compare(b.at), a.rank-b.rank) })
	var batches [][]Due
	for i, p := range places {
		if i == 0 || places[i-1].Type != p.Type {
			batches = append(batches, nil)
		}
		last := &batches[len(batches)-1]
		*last = append(*last, p.Due)
	}
	return batches
}
