package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// recent are the objects of a machine in order of their last changes, removed ones
// included.
//
// Invariant: o.newer.older == o and o.older.newer == o, where they are not nil.
type recent struct{ newest *object }

// renew makes an object the newest one.
func (r *recent) renew(o *object) {
	if r.newest == o {
		return
	}
	r.remove(o)
	o.older = r.newest
	if o.older != nil {
		o.older.newer = o
	}
	r.newest = o
}

// remove takes an object out of the order, if it is in it.
func (r *recent) remove(o *object) {
	if r.newest == o {
		r.newest = o.older
	}
	if o.newer != nil {
		o.newer.older = o.older
	}
	if o.older != nil {
		o.older.newer = o.newer
	}
	o.newer, o.older = nil, nil
}

// Recent implements [Follower].
func (s *MemoryStore) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]ChangedObject, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	sh := s.shelves[machine]
	if sh == nil {
		return nil, nil
	}
	var found []ChangedObject
	since := time.Now().Add(-within)
	for o := sh.recent.newest; o != nil && !o.record.ChangedAt.Before(since); o = o.older {
		if o.record.ID > after {
			found = append(found, ChangedObject{o.record.ID, o.record.Sequence})
		}
	}
	slices.SortFunc(found, func(x, y ChangedObject) int { return cmp.Compare(x.ID, y.ID) })
	return found[:min(len(found), max(limit, 0))], nil
}
