package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// MaxPage is the greatest length of a page of a list or history, and the default. A
// greater limit is refused.
const MaxPage = 1000

// Select selects objects. The zero value selects all.
type Select[S comparable] struct {
	States       []S           // only objects in one of these states; default: any
	UnchangedFor time.Duration // only objects whose last change is so long ago, by the store's clock
	Overdue      bool          // only objects past their deadlines, by the store's clock
	After        string        // only ids after this one in the store's order: the last one of the page before; empty: all
	Prefix       string        // only ids that begin with it and are longer, in a store with the bytewise order; empty: all
	Limit        int           // at most so many, up to [MaxPage]; 0 or less: MaxPage
	// WithoutPayload leaves the payloads of the records zero. The store does not read them.
	WithoutPayload bool
}

// List returns one page of the selected objects, in the store's order of ids: bytewise,
// unless the store documents another one. A page that is shorter than the limit is the last
// one. The page also has the objects whose record cannot be read, with [Record.Err]: the
// version is unknown, the state is not declared, or the payload cannot be decoded.
//
// Errors: [ErrInvalid] for a limit above [MaxPage], or an After or Prefix that cannot begin an id;
// [fsm.ErrUnknownState] for a selected state that is not declared; the store's.
func (m *Manager[S, E, T]) List(ctx context.Context, sel Select[S]) ([]Record[S, T], error) {
	stored, err := m.page(ctx, sel)
	if err != nil {
		return nil, err
	}
	records := make([]Record[S, T], len(stored))
	for i := range stored {
		records[i] = m.listed(&stored[i])
	}
	return records, nil
}

func (m *Manager[S, E, T]) page(ctx context.Context, sel Select[S]) ([]StoredRecord, error) {
	if len(sel.Prefix) >= MaxID {
		return nil, nil // no id is longer
	}
	q := Query{
		Machine: m.core.table.Name, UnchangedFor: sel.UnchangedFor, Overdue: sel.Overdue,
		After: max(sel.After, sel.Prefix), WithoutPayload: sel.WithoutPayload,
	}
	var stored []StoredRecord
	var err error
	if q.Limit, err = limit(sel.Limit); err == nil {
		q.States, err = m.stateNames(sel.States)
	}
	if err == nil {
		stored, err = m.core.list(ctx, q)
	}
	if err != nil {
		return nil, m.core.failed("list", "", err)
	}
	// The ids with a prefix are adjacent, so the page is the last one if another id follows.
	other := func(r StoredRecord) bool { return !strings.HasPrefix(r.ID, sel.Prefix) }
	if end := slices.IndexFunc(stored, other); end >= 0 {
		stored = stored[:end]
	}
	return stored, nil
}

// list reads a page of records. The observer receives the call.
func (c *core) list(ctx context.Context, q Query) ([]StoredRecord, error) {
	began := time.Now()
	records, err := c.store.List(ctx, q)
	if stored := c.observer.Stored; stored != nil {
		stored(ctx, StoreCall{Machine: c.table.Name, Call: "list", Err: err, Took: time.Since(began)})
	}
	return records, err
}

// listed returns the typed form of a record, or what is readable of it and Err.
func (m *Manager[S, E, T]) listed(r *StoredRecord) Record[S, T] {
	rec, err := m.record(r)
	if err != nil {
		var none T
		rec = newRecord(fsm.Status[S]{}, r, none)
		rec.Err = m.core.failed("list", r.ID, err)
	}
	return rec
}

// All yields the selected objects in the order of List. It reads page after page of
// sel.Limit while the caller continues. An error that matches [ErrForeign] is about one
// object: it comes with the record as in List, and the other objects follow. Any other
// error is one of List; it comes with a zero record and is the last value. All holds no
// lock and no snapshot between pages. An object that changes meanwhile may be missing, or
// come in either state. An object that does not change comes exactly once.
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
				if rec := m.listed(&page[i]); !yield(rec, rec.Err) {
					return
				}
			}
			if len(page) < cmp.Or(max(sel.Limit, 0), MaxPage) {
				return
			}
			sel.After = page[len(page)-1].ID
		}
	}
}

// History returns rows of an object's history with a sequence number above after,
// ascending, at most max of them, up to [MaxPage]; 0 or less is MaxPage. An object that
// was removed still has its history, as long as the store keeps it. The error is
// [ErrInvalid], [errors.ErrUnsupported] if the store keeps no history, or the
// store's.
func (m *Manager[S, E, T]) History(ctx context.Context, id string, after uint64, max int) ([]HistoryRow, error) {
	most, err := limit(max)
	err = errors.Join(err, checkID(id))
	historian, ok := m.core.historian()
	if !ok {
		err = fmt.Errorf("%w: the store keeps no history", errors.ErrUnsupported)
	}
	var rows []HistoryRow
	if err == nil {
		rows, err = historian.History(ctx, m.core.key(id), after, most)
	}
	if err != nil {
		return nil, m.core.failed("history", id, err)
	}
	return rows, nil
}

// stateNames returns the names that states have in records of all versions.
func (m *Manager[S, E, T]) stateNames(states []S) (names []string, err error) {
	for _, s := range states {
		i := m.machine.StateIndex(s)
		if i < 0 {
			return nil, &fsm.TransitionError{Machine: m.core.table.Name, From: fmt.Sprint(s), Row: -1, Err: fsm.ErrUnknownState}
		}
		names = append(names, m.core.storedNames(m.core.table.States[i].Name)...)
	}
	return names, nil
}

// limit returns the limit of a page.
func limit(n int) (int, error) {
	if n > MaxPage {
		return 0, fmt.Errorf("%w: limit %d, more than %d", ErrInvalid, n, MaxPage)
	}
	return cmp.Or(max(n, 0), MaxPage), nil
}
