package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// MaxPage is the longest page of a list or history, and the default.
const MaxPage = 1000

// Select says which objects are listed. The zero value selects all.
type Select[S comparable] struct {
	States       []S           // only objects in one of these; default: in any
	UnchangedFor time.Duration // only objects that have not changed for so long, by the store's clock
	Overdue      bool          // only objects whose deadline is over, by the store's clock
	After        string        // only ids greater than this one, bytewise: the last one of the page before
	Limit        int           // at most so many; default and maximum: [MaxPage]
}

// List returns one page of the objects that are selected, in order of id. A
// page shorter than the limit is the last one. The error is
// [fsm.ErrUnknownState] for a state that is not declared, the store's, or
// [ErrForeign]: then it is an [*Error] with the ID of the first object that cannot
// be told, and those before it are returned. Who lists on After that one leaves it
// out.
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
		return nil, m.listError("list", "", err)
	}
	stored, err := m.store.List(ctx, q)
	if err != nil {
		return nil, m.listError("list", "", err)
	}
	return stored, nil
}

func (m *Manager[S, E, T]) listed(r *StoredRecord) (Record[S, T], error) {
	rec, err := m.record(r)
	if err != nil {
		return rec, m.listError("list", r.ID, err)
	}
	return rec, nil
}

// All yields the objects that are selected in order of id, reading page after
// page of sel.Limit while the caller goes on. An error is yielded with a zero
// record. If it is [ErrForeign], it stands for one object, whose ID is that of the
// [*Error], and the others follow; any other is the end. No lock and no snapshot is
// held between pages: an object that changes meanwhile may be missed or come in
// either state, one that does not change comes exactly once.
func (m *Manager[S, E, T]) All(ctx context.Context, sel Select[S]) iter.Seq2[Record[S, T], error] {
	return func(yield func(Record[S, T], error) bool) {
		sel := sel // every pass begins anew
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

// History returns rows of an object's history with a sequence number above
// after, ascending, at most max of them (default and most: [MaxPage]). An
// object that was removed still has one, as long as the store keeps it. The
// error is [ErrInvalid], [errors.ErrUnsupported] if the store keeps no history,
// or the store's.
func (m *Manager[S, E, T]) History(ctx context.Context, id string, after uint64, max int) ([]HistoryRow, error) {
	if err := checkID(id); err != nil {
		return nil, m.listError("history", id, err)
	}
	historian, ok := m.historian()
	if !ok {
		return nil, m.listError("history", id, fmt.Errorf("%w: the store keeps no history", errors.ErrUnsupported))
	}
	rows, err := historian.History(ctx, m.key(id), after, limit(max))
	if err != nil {
		return nil, m.listError("history", id, err)
	}
	return rows, nil
}

func (m *Manager[S, E, T]) query(sel Select[S]) (Query, error) {
	q := Query{
		Machine: m.table.Name, UnchangedFor: sel.UnchangedFor, Overdue: sel.Overdue,
		After: sel.After, Limit: limit(sel.Limit),
	}
	for _, s := range sel.States {
		i := m.machine.StateIndex(s)
		if i < 0 {
			return q, &fsm.TransitionError{
				Machine: m.table.Name, From: fmt.Sprint(s), Row: -1, Err: fsm.ErrUnknownState,
			}
		}
		q.States = append(q.States, m.table.States[i].Name)
	}
	return q, nil
}

func (m *Manager[S, E, T]) listError(verb, id string, err error) error {
	return &Error{Verb: verb, Machine: m.table.Name, ID: id, Err: err}
}

func limit(n int) int {
	if n <= 0 || n > MaxPage {
		return MaxPage
	}
	return n
}

// historian is the store's, if it declares that it has a history.
func (m *Manager[S, E, T]) historian() (Historian, bool) {
	h, ok := m.store.(Historian)
	return h, ok && m.store.Capabilities().History
}
