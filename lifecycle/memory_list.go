package lifecycle

import (
	"cmp"
	"container/list"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// shelf holds the objects of one machine. Those that exist are in order of id, and
// in the groups that the queries of a sweep read: most objects are at rest, without
// an owner and a deadline.
type shelf struct {
	objects  map[string]*object // by id, removed ones included
	requests map[string]*object // by request in one of the object's history rows
	order    ordered
	states   map[string]*group // by state
	owned    group             // objects with an owner
	timed    group             // objects with a deadline
	recent   list.List         // the *object values, removed ones included; the last change first
}

func (s *MemoryStore) shelf(machine string) *shelf {
	sh := s.shelves[machine]
	if sh == nil {
		sh = &shelf{objects: map[string]*object{}, requests: map[string]*object{}, states: map[string]*group{}}
		if s.shelves == nil {
			s.shelves = make(map[string]*shelf)
		}
		s.shelves[machine] = sh
	}
	return sh
}

// set replaces the record of an object.
func (sh *shelf) set(o *object, after *StoredRecord) {
	existed, left := o.record.Exists(), o.record.State
	o.record = *after
	switch {
	case !existed && after.Exists():
		sh.order.insert(o)
	case existed && !after.Exists():
		sh.order.remove(o)
	}
	if existed {
		sh.state(left).set(o, inState, false)
	}
	if after.Exists() {
		sh.state(after.State).set(o, inState, true)
	}
	sh.owned.set(o, inOwned, after.Owner != "")
	sh.timed.set(o, inTimed, !after.Deadline.IsZero())
}

func (sh *shelf) state(name string) *group {
	g := sh.states[name]
	if g == nil {
		g = &group{}
		sh.states[name] = g
	}
	return g
}

// group is a set of objects. An object has a place in at most one group of each
// kind. It is no map: to read a map takes time for the most members that it ever had.
//
// Invariant: objects[o.place[kind]-1] == o for every object o of the group.
type group struct{ objects []*object }

// Kinds of groups.
const (
	inState = iota
	inOwned
	inTimed
	groupKinds
)

// set makes an object a member of the group, or no member.
func (g *group) set(o *object, kind int, member bool) {
	at := o.place[kind] - 1
	switch {
	case member && at < 0:
		g.objects = append(g.objects, o)
		o.place[kind] = len(g.objects)
	case !member && at >= 0:
		last := len(g.objects) - 1
		g.objects[at] = g.objects[last]
		g.objects[at].place[kind] = at + 1
		g.objects = slices.Delete(g.objects, last, last+1)
		o.place[kind] = 0
	}
}

// List implements [Store].
func (s *MemoryStore) List(ctx context.Context, q Query) ([]StoredRecord, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	sh := s.shelves[q.Machine]
	if sh == nil {
		return nil, nil
	}
	var page []StoredRecord
	for _, o := range sh.page(&q) {
		r := o.record
		if q.WithoutPayload {
			r.Payload, r.Saved, r.Args = nil, nil, nil
		}
		page = append(page, r)
	}
	return page, nil
}

// page returns the first objects that a query selects.
func (sh *shelf) page(q *Query) (page []*object) {
	now := time.Now()
	groups, n := sh.candidates(q)
	// The objects in order are the cheaper way to a page of many. After as many of
	// them as there are candidates, it is cheaper to sort those.
	steps := 0
	for o := range sh.order.after(q.After) {
		if steps++; steps > n {
			break
		}
		if q.Selects(&o.record, now) {
			page = append(page, o)
		}
		if len(page) == q.Limit {
			return page
		}
	}
	if steps <= n {
		return page // there are no more
	}
	page = nil
	for _, g := range groups {
		for _, o := range g.objects {
			if o.record.ID > q.After && q.Selects(&o.record, now) {
				page = append(page, o)
			}
		}
	}
	slices.SortFunc(page, func(a, b *object) int { return cmp.Compare(a.record.ID, b.record.ID) })
	return page[:min(len(page), q.Limit)]
}

// candidates returns groups that contain every object which a query selects, each
// once, and the number of objects in them. If the query names no group, the number
// is that of all objects.
func (sh *shelf) candidates(q *Query) (groups []*group, n int) {
	n = len(sh.objects)
	if len(q.States) > 0 {
		n = 0
		for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
			if g := sh.states[state]; g != nil {
				groups = append(groups, g)
				n += len(g.objects)
			}
		}
	}
	if q.NotOwnedBy != nil && len(sh.owned.objects) < n {
		groups, n = []*group{&sh.owned}, len(sh.owned.objects)
	}
	if q.Overdue && len(sh.timed.objects) < n {
		groups, n = []*group{&sh.timed}, len(sh.timed.objects)
	}
	return groups, n
}

// ordered is a set of objects in order of id. It consists of pieces that are short
// enough to shift and few enough to search.
//
// Invariant: no piece is empty, and every id of a piece is below every id of the
// next one.
type ordered struct{ pieces [][]*object }

const pieceSize = 512

// find returns the piece and the index in it where an id is or belongs.
func (s *ordered) find(id string) (piece, at int) {
	piece, _ = slices.BinarySearchFunc(s.pieces, id, func(p []*object, id string) int {
		return strings.Compare(p[len(p)-1].record.ID, id)
	})
	if piece == len(s.pieces) {
		return piece, 0
	}
	at, _ = slices.BinarySearchFunc(s.pieces[piece], id, func(o *object, id string) int {
		return strings.Compare(o.record.ID, id)
	})
	return piece, at
}

func (s *ordered) insert(o *object) {
	piece, at := s.find(o.record.ID)
	if piece == len(s.pieces) { // beyond the last one
		if piece == 0 {
			s.pieces = append(s.pieces, nil)
		} else {
			piece--
		}
		at = len(s.pieces[piece])
	}
	p := slices.Insert(s.pieces[piece], at, o)
	s.pieces[piece] = p
	if len(p) > pieceSize {
		half := len(p) / 2
		s.pieces = slices.Insert(s.pieces, piece+1, slices.Clone(p[half:]))
		clear(p[half:])
		s.pieces[piece] = p[:half]
	}
}

func (s *ordered) remove(o *object) {
	piece, at := s.find(o.record.ID)
	s.pieces[piece] = slices.Delete(s.pieces[piece], at, at+1)
	if len(s.pieces[piece]) == 0 {
		s.pieces = slices.Delete(s.pieces, piece, piece+1)
	}
}

// after returns the objects whose ids are greater than an id, in order.
func (s *ordered) after(id string) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		piece, at := s.find(id)
		for ; piece < len(s.pieces); piece, at = piece+1, 0 {
			for _, o := range s.pieces[piece][at:] {
				if o.record.ID > id && !yield(o) {
					return
				}
			}
		}
	}
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
	for e := sh.recent.Front(); e != nil; e = e.Next() {
		o := e.Value.(*object)
		if o.record.ChangedAt.Before(since) {
			break
		}
		if o.record.ID > after {
			found = append(found, ChangedObject{o.record.ID, o.record.Sequence})
		}
	}
	slices.SortFunc(found, func(x, y ChangedObject) int { return cmp.Compare(x.ID, y.ID) })
	return found[:min(len(found), max(limit, 0))], nil
}
