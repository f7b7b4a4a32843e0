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

// Batches orders events that are due at the same time, for example after a pause of
// the service. The events of a batch are of one type, in the order of time, and may be
// executed side by side; one batch is over before the next begins:
//
//   - a lease starts, does what it has to do before its end, and ends, in this
//     order;
//   - a start comes after every end that is not later than itself, so that
//     resources are taken back before another lease gets them;
//   - what can be done now is done by type: what happens before an end comes first,
//     then what ends, then what starts. So leases that began long ago end before
//     others start, whatever the times.
//
// A lease that ends no later than it starts ends after all that start with it.
// Events of unknown types are in the first batches.
func Batches(due []Due) [][]Due {
	b := batching{leases: make(map[string]*waiting)}
	for _, p := range inPlace(due) {
		l := b.leases[p.Lease]
		if l == nil {
			l = &waiting{}
			b.leases[p.Lease] = l
		}
		switch p.Type {
		case StartLease:
			b.starts, l.starts = append(b.starts, p), l.starts+1
		case EndLease:
			b.ends, l.ends = append(b.ends, p), append(l.ends, p)
		default:
			l.before = append(l.before, p)
		}
	}
	for _, l := range b.leases {
		b.free(l)
	}
	for b.left() {
		b.take(&b.before, func(l *waiting) { l.doing-- })
		b.take(&b.ending, func(*waiting) {})
		b.start()
	}
	return b.batches
}

// batching is where Batches has got to.
type batching struct {
	leases         map[string]*waiting
	starts, ends   []*place // in order; those at the head that are in batches are dropped
	before, ending []*place // those that wait for nothing any more
	batches        [][]Due
}

// place is an event with its place in a total order that keeps all rules.
type place struct {
	Due
	at   time.Time
	rank int
	n    int  // its number in the order
	in   bool // a batch
}

// waiting is what the events of a lease wait for.
type waiting struct {
	starts, doing int // not in a batch: starts, and what is in batching.before
	before, ends  []*place
}

// inPlace returns events in order. The order of what has the same place is that in
// which it was given.
func inPlace(due []Due) []*place {
	starts := make(map[string]time.Time)
	for _, d := range due {
		if d.Type == StartLease {
			starts[d.Lease] = d.Time
		}
	}
	const afterStart = 3
	places := make([]*place, 0, len(due))
	for _, d := range due {
		p := &place{Due: d, at: d.Time, rank: max(0, slices.Index([]string{BeforeEndLease, EndLease, StartLease}, d.Type))}
		if start, has := starts[d.Lease]; has && d.Type != StartLease && !d.Time.After(start) {
			p.at, p.rank = start, p.rank+afterStart
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b *place) int { return cmp.Or(a.at.Compare(b.at), a.rank-b.rank) })
	for i, p := range places {
		p.n = i
	}
	return places
}

// left reports whether there is an event that is in no batch. The first of them in
// order is always one that waits for nothing: what it would wait for stands before
// it.
func (b *batching) left() bool {
	for len(b.ends) > 0 && b.ends[0].in {
		b.ends = b.ends[1:]
	}
	return len(b.starts)+len(b.ends)+len(b.before) > 0
}

// free moves the events of a lease that wait for nothing any more.
func (b *batching) free(l *waiting) {
	if l.starts > 0 {
		return
	}
	b.before = append(b.before, l.before...)
	l.doing, l.before = l.doing+len(l.before), nil
	if l.doing == 0 {
		b.ending = append(b.ending, l.ends...)
		l.ends = nil
	}
}

// take makes batches of a list.
func (b *batching) take(list *[]*place, done func(*waiting)) {
	taken := *list
	*list = nil
	slices.SortFunc(taken, func(a, b *place) int { return a.n - b.n })
	for i, p := range taken {
		p.in = true
		if i == 0 || taken[i-1].Type != p.Type {
			b.batches = append(b.batches, nil)
		}
		last := &b.batches[len(b.batches)-1]
		*last = append(*last, p.Due)
		l := b.leases[p.Lease]
		done(l)
		b.free(l)
	}
}

// start makes a batch of the starts that come before every end that is left.
func (b *batching) start() {
	if !b.left() {
		return
	}
	n := 0
	for n < len(b.starts) && (len(b.ends) == 0 || b.starts[n].n < b.ends[0].n) {
		n++
	}
	batch := b.starts[:n:n]
	b.starts = b.starts[n:]
	b.take(&batch, func(l *waiting) { l.starts-- })
}
