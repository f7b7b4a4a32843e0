package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// MaxPage is the greatest length of a page of a list or history, and the default.
const MaxPage = 1000

// Select selects objects. The zero value selects all.
type Select[S comparable] struct {
	States       []S           // only objects in one of these states; default: any
	UnchangedFor time.Duration // only objects whose last change is so long ago, by the store's clock
	Overdue      bool          // only objects past their deadlines, by the store's clock
	After        string        // only ids greater than this one, bytewise: the last one of the page before
	Limit        int           // at most so many; default and maximum: [MaxPage]
}

// List returns one page of the selected objects, in order of id. A page that is
// shorter than the limit is the last one. The error is [fsm.ErrUnknownState] for a
// state that is not declared, the store's, or [ErrForeign]: then it is an [*Error]
// with the ID of the first object whose record cannot be read, and the objects
// before it are returned. To leave that object out, continue After its ID.
func (m *Manager[S, E, T]) List(ctx context.Context, sel Select[S]) ([]Record[S, T], error) {
	stored, err := m.page(ctx, sel)
	if err != nil {
		return nil, err
	}
	records := make([]Record[S, T], len(stored))
	for i := range stored {
		if records[i], err = m.listed(&stored[i]); err != nil {
			return records[:i], err
		}
	}
	return records, nil
}

func (m *Manager[S, E, T]) page(ctx context.Context, sel Select[S]) ([]StoredRecord, error) {
	q, err := m.query(sel)
	if err != nil {
		return nil, m.core.failed("list", "", err)
	}
	stored, err := m.core.store.List(ctx, q)
	if err != nil {
		return nil, m.core.failed("list", "", err)
	}
	return stored, nil
}

func (m *Manager[S, E, T]) listed(r *StoredRecord) (Record[S, T], error) {
	rec, err := m.record(r)
	if err != nil {
		return rec, m.core.failed("list", r.ID, err)
	}
	return rec, nil
}

// All yields the selected objects in order of id. It reads page after page of
// sel.Limit while the caller continues. An error comes with a zero record. If the
// error is [ErrForeign], it stands for one object, whose ID is that of the [*Error],
// and the other objects follow; any other error is the last value. No lock and no
// snapshot is held between pages: an object that changes meanwhile may be missing or
// come in either state, one that does not change comes exactly once.
func (m *Manager[S, E, T]) All(ctx context.Context, sel Select[S]) iter.Seq2[Record[S, T], error] {
	return func(yield func(Record[S, T], error) bool) {
		sel := sel // every pass starts anew
		for {
			page, err := m.page(ctx, sel)
			if err != nil {
				yield(Record[S, T]{}, err)
				return
			}
			for i := range page {
				if !yield(m.listed(&page[i])) {
					return
				}
			}
			if len(page) < limit(sel.Limit) {
				return
			}
			sel.After = page[len(page)-1].ID
		}
	}
}

// History returns rows of an object's history with a sequence number above after,
// ascending, at most max of them (default and maximum: [MaxPage]). An object that
// was removed still has its history, as long as the store keeps it. The error is
// [ErrInvalid], [errors.ErrUnsupported] if the store keeps no history, or the
// store's.
func (m *Manager[S, E, T]) History(ctx context.Context, id string, after uint64, max int) ([]HistoryRow, error) {
	if err := checkID(id); err != nil {
		return nil, m.core.failed("history", id, err)
	}
	historian, ok := m.core.historian()
	if !ok {
		return nil, m.core.failed("history", id, fmt.Errorf("%w: the store keeps no history", errors.ErrUnsupported))
	}
	rows, err := historian.History(ctx, m.core.key(id), after, limit(max))
	if err != nil {
		return nil, m.core.failed("history", id, err)
	}
	return rows, nil
}

func (m *Manager[S, E, T]) query(sel Select[S]) (Query, error) {
	q := Query{
		Machine: m.core.table.Name, UnchangedFor: sel.UnchangedFor, Overdue: sel.Overdue,
		After: sel.After, Limit: limit(sel.Limit),
	}
	for _, s := range sel.States {
		i := m.machine.StateIndex(s)
		if i < 0 {
			return q, &fsm.TransitionError{
				Machine: m.core.table.Name, From: fmt.Sprint(s), Row: -1, Err: fsm.ErrUnknownState,
			}
		}
		q.States = append(q.States, m.core.table.States[i].Name)
	}
	return q, nil
}

func limit(n int) int {
	if n <= 0 || n > MaxPage {
		return MaxPage
	}
	return n
}
