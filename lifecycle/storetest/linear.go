package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// observation is what one call says about one object: at some moment between
// its call and its return the object became, or was, what the record says.
type observation struct {
	called, returned int64
	wrote            bool // it became so by this call
	expected         lifecycle.Revision
	token            lifecycle.Token // of what it wrote
	record           lifecycle.StoredRecord
}

// contradiction says why observations of one object, which was at sequence
// number first before all of them, cannot be put in one order, or nothing if
// they can.
//
// The sequence number leaves no choice: the commit that made #n comes after
// everything that saw #n-1 and before everything that saw #n. So the history is
// linearizable if and only if every #n was made once, on top of #n-1, everybody
// saw the same at #n, and no call returned before another one began that belongs
// before it. The last takes one pass over the calls in order of time.
func contradiction(first uint64, seen []observation) string {
	made := map[uint64]*observation{}
	same := map[uint64]*observation{}
	for i := range seen {
		o := &seen[i]
		n := o.record.Sequence
		if other := same[n]; other == nil {
			same[n] = o
		} else if other.record.Revision != o.record.Revision || other.record.State != o.record.State {
			return fmt.Sprintf("#%d was seen as %s at revision %q and as %s at %q", n,
				in(&other.record), other.record.Revision, in(&o.record), o.record.Revision)
		}
		if o.wrote {
			if made[n] != nil {
				return fmt.Sprintf("#%d was made twice", n)
			}
			made[n] = o
		}
	}
	for n := range same {
		if n < first || n > first && made[n] == nil {
			return fmt.Sprintf("#%d was seen, and nobody made it", n)
		}
	}
	for n, o := range made {
		if n <= first {
			return fmt.Sprintf("#%d was made, after #%d", n, first)
		}
		if before := same[n-1]; n-1 > first && made[n-1] == nil || before != nil && before.record.Revision != o.expected {
			return fmt.Sprintf("#%d was made on revision %q, which is not that of #%d", n, o.expected, n-1)
		}
	}
	return outOfOrder(seen)
}

// withoutEarly leaves out what was read before its writer was told of it, where
// an engine is killed: some show a commit to others before it is on disk, lose it,
// and may get it again when it is sent again. That is no contradiction as long as
// what comes instead of it has another revision, so that nothing can be built upon
// what is lost. What somebody was told to have written stays.
func withoutEarly(first uint64, seen []observation) []observation {
	last := first // that somebody was told to have written
	made := map[uint64]*observation{}
	for i := range seen {
		if o := &seen[i]; o.wrote {
			made[o.record.Sequence], last = o, max(last, o.record.Sequence)
		}
	}
	return slices.DeleteFunc(slices.Clone(seen), func(o observation) bool {
		by := made[o.record.Sequence]
		switch {
		case o.wrote:
			return false
		case by == nil:
			return o.record.Sequence > last
		case by.record.Revision != o.record.Revision:
			return o.returned < by.returned
		}
		return o.returned < by.returned && by.record.State == o.record.State
	})
}

// outOfOrder finds a call that returned before another one began, although it
// belongs behind it.
func outOfOrder(seen []observation) string {
	byCall := slices.SortedFunc(slices.Values(seen), func(a, b observation) int { return cmp.Compare(a.called, b.called) })
	byReturn := slices.SortedFunc(slices.Values(seen), func(a, b observation) int { return cmp.Compare(a.returned, b.returned) })
	// place orders commits and what was seen of them: 2n makes #n, 2n+1 sees it.
	place := func(o *observation) uint64 {
		if o.wrote {
			return 2 * o.record.Sequence
		}
		return 2*o.record.Sequence + 1
	}
	var last *observation // of those that have returned, the one that belongs last
	next := 0
	for i := range byCall {
		o := &byCall[i]
		for ; next < len(byReturn) && byReturn[next].returned < o.called; next++ {
			if last == nil || place(&byReturn[next]) > place(last) {
				last = &byReturn[next]
			}
		}
		if last != nil && place(last) > place(o) {
			return fmt.Sprintf("a call that began after #%d was known gave #%d", last.record.Sequence, o.record.Sequence)
		}
	}
	return ""
}

// observe lets several clients read and move a few objects, and returns what
// each call said, by object. Where connections break, more is not nil, and calls
// go on while it returns true. A call may fail then: a read is not counted, and a
// commit is sent again until it is settled, and is one call from the first time to
// the last.
func (t *trial) observe(clients, objects, calls int, more func() bool) [][]observation {
	var clock atomic.Int64
	logs := make([][][]observation, clients)
	together(clients, func(client int) {
		logs[client] = make([][]observation, objects)
		known := make([]lifecycle.StoredRecord, objects)
		random := rand.New(rand.NewPCG(uint64(client), 0))
		for call := 0; call < calls || more != nil && more() && !t.Failed(); call++ {
			n := random.IntN(objects)
			r := &known[n]
			o := observation{called: clock.Add(1)}
			var err error
			if r.Machine == "" || random.IntN(3) == 0 {
				o.record, err = t.store.Get(t.Context(), key(fmt.Sprint("object", n)))
			} else {
				err = t.alter(&o, *r, fmt.Sprintf("by %d", client), more != nil)
			}
			o.returned = clock.Add(1)
			switch {
			case err == nil:
				*r = o.record
				t.progress.Add(1)
				logs[client][n] = append(logs[client][n], o)
			case more == nil || errors.Is(err, errUnsettled):
				t.Error(err)
				return
			default:
				time.Sleep(time.Millisecond) // an engine that starts is not helped by haste
			}
		}
	})
	seen := make([][]observation, objects)
	for _, log := range logs {
		for n := range log {
			seen[n] = append(seen[n], log[n]...)
		}
	}
	return seen
}

// alter moves an object from the record that is known, and notes what was said:
// that it was written, or what is there instead. It returns an error if the
// commit came to nothing.
func (t *trial) alter(o *observation, known lifecycle.StoredRecord, state string, breaks bool) error {
	c := commitOf(change(known, state))
	var err error
	if breaks {
		_, err = t.settle(t.Context(), c)
	} else {
		err = send(t.Context(), t.store, c)
	}
	if conflict, lost := errors.AsType[*lifecycle.ConflictError](err); lost {
		o.record = conflict.Current
		return nil
	}
	o.wrote, o.expected, o.token, o.record = err == nil, known.Revision, c.Token, c.Changes[0].To
	return err
}

func linearizable(t *trial) {
	const clients, objects = 8, 3
	first := make([]uint64, objects)
	for n := range first {
		r := t.get(key(fmt.Sprint("object", n)))
		if n > 0 { // one is created by whoever is first
			r = t.move(r, idle)
		}
		first[n] = r.Sequence
	}
	seen := t.observe(clients, objects, 2*t.attempts, nil)
	for n := range seen {
		if why := contradiction(first[n], seen[n]); why != "" {
			t.Errorf("%d calls about object %d have no order: %s", len(seen[n]), n, why)
		}
	}
}
