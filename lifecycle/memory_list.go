package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// List implements [Store].
func (s *MemoryStore) List(ctx context.Context, q Query) ([]StoredRecord, error) {
	if q.Limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d of a query", ErrInvalid, q.Limit)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	sh := s.shelves[q.Machine]
	if sh == nil {
		return nil, nil
	}
	now := time.Now()
	var found []StoredRecord
	take := func(e *entry) bool {
		found = append(found, StoredRecord{})
		e.record(q.Machine, &found[len(found)-1])
		return len(found) < q.Limit
	}
	lists, n := sh.where(&q)
	if n >= len(sh.entries)/8 {
		sh.order.from(q.After, func(e *entry) bool { return !e.selected(&q, now) || take(e) })
		return found, nil
	}
	if q.Limit < n {
		// Many pages will be read of these few. Those of objects that lie close
		// together are short walks; who has walked past as many as there are to
		// sort sorts them, for no more than twice the cost.
		steps := n
		sh.order.from(q.After, func(e *entry) bool {
			steps--
			return steps >= 0 && (!e.selected(&q, now) || take(e))
		})
		if len(found) == q.Limit || steps >= 0 {
			return found, nil
		}
		found = found[:0]
	}
	// Sorting few is cheaper than walking past all the others.
	var few []*entry
	for _, list := range lists {
		for _, e := range list {
			if e.selected(&q, now) {
				few = append(few, e)
			}
		}
	}
	slices.SortFunc(few, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range few[:min(len(few), q.Limit)] {
		take(e)
	}
	return found, nil
}

// selected reports whether a query selects an object.
func (e *entry) selected(q *Query, now time.Time) bool {
	return e.id > q.After &&
		(len(q.States) == 0 || slices.Contains(q.States, e.state())) &&
		(q.UnchangedFor <= 0 || now.Sub(e.changedAt) >= q.UnchangedFor) &&
		(!q.Overdue || !e.deadline.IsZero() && now.After(e.deadline)) &&
		(q.Owner == "" || q.Owner == e.owner())
}

// where returns lists in which everything is that a query selects, each once, and
// how many entries are in them; all entries, without lists, if it does not say.
func (sh *shelf) where(q *Query) (lists [][]*entry, n int) {
	n = len(sh.entries)
	if len(q.States) > 0 {
		n = 0
		for _, state := range distinct(q.States) {
			if b := sh.states[state]; b != nil {
				lists = append(lists, b.entries)
				n += len(b.entries)
			}
		}
	}
	if q.Owner != "" && len(sh.owned) < n {
		return [][]*entry{sh.owned}, len(sh.owned)
	}
	return lists, n
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// History implements [Historian].
func (s *MemoryStore) History(ctx context.Context, key Key, after uint64, limit int) ([]HistoryRow, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.NoHistory {
		return nil, fmt.Errorf("%w: this store keeps no history", errors.ErrUnsupported)
	}
	e := s.entry(key)
	if e == nil {
		return nil, nil
	}
	var rows []HistoryRow
	for i := range e.past.len() {
		if k := e.past.at(i); k.sequence > after && len(rows) < limit {
			rows = append(rows, k.row(key))
		}
	}
	return rows, nil
}

// Messages implements [Outbox].
func (s *MemoryStore) Messages(ctx context.Context, limit int) ([]OutboxMessage, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return slices.Clone(s.outbox[:min(len(s.outbox), max(limit, 0))]), nil
}

// Discard implements [Outbox].
func (s *MemoryStore) Discard(ctx context.Context, numbers ...uint64) error {
	numbers = slices.Sorted(slices.Values(numbers))
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	// Readers discard the oldest: what is kept of those moves up to the rest,
	// which stays where it is, however long it has become.
	first, found := slices.BinarySearchFunc(s.outbox, numbers[len(numbers)-1], func(m OutboxMessage, number uint64) int {
		return cmp.Compare(m.Number, number)
	})
	if found {
		first++
	}
	for at := first - 1; at >= 0; at-- {
		if _, gone := slices.BinarySearch(numbers, s.outbox[at].Number); !gone {
			first--
			s.outbox[first] = s.outbox[at]
		}
	}
	clear(s.outbox[:first])
	s.outbox = s.outbox[first:]
	if len(s.outbox) == 0 {
		s.outbox = nil
	}
	return nil
}

// ordered is a set of entries sorted by id, in pieces that are short enough to
// shift and few enough to search.
//
// Invariant: no piece is empty, and every id of a piece is below every id of
// the next.
type ordered struct{ pieces [][]*entry }

const pieceSize = 512

// place returns the piece and the index at which an id is or belongs.
func (o *ordered) place(id string) (piece, at int) {
	piece, _ = slices.BinarySearchFunc(o.pieces, id, func(p []*entry, id string) int {
		return strings.Compare(p[len(p)-1].id, id)
	})
	if piece == len(o.pieces) {
		return piece, 0
	}
	at, _ = slices.BinarySearchFunc(o.pieces[piece], id, func(e *entry, id string) int {
		return strings.Compare(e.id, id)
	})
	return piece, at
}

func (o *ordered) insert(e *entry) {
	piece, at := o.place(e.id)
	if piece == len(o.pieces) { // beyond the last one
		if piece == 0 {
			o.pieces = append(o.pieces, nil)
		} else {
			piece--
		}
		at = len(o.pieces[piece])
	}
	p := slices.Insert(o.pieces[piece], at, e)
	o.pieces[piece] = p
	if len(p) > pieceSize {
		half := len(p) / 2
		o.pieces = slices.Insert(o.pieces, piece+1, slices.Clone(p[half:]))
		clear(p[half:])
		o.pieces[piece] = p[:half]
	}
}

func (o *ordered) remove(e *entry) {
	piece, at := o.place(e.id)
	o.pieces[piece] = slices.Delete(o.pieces[piece], at, at+1)
	if len(o.pieces[piece]) == 0 {
		o.pieces = slices.Delete(o.pieces, piece, piece+1)
	}
}

// from calls yield for every entry above an id, in order, while it returns true.
func (o *ordered) from(after string, yield func(*entry) bool) {
	piece, at := o.place(after)
	for ; piece < len(o.pieces); piece, at = piece+1, 0 {
		for _, e := range o.pieces[piece][at:] {
			if e.id > after && !yield(e) {
				return
			}
		}
	}
}
