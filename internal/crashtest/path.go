package crashtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/lifecycle"
)

// Audit reads an object and its history and checks them as [Run] does:
//   - the history is a path of the table, see package fsm/history;
//   - sequence numbers have no gap, and no operation id is left out;
//   - no commit has two rows;
//   - the record equals the last row.
//
// Audit is for tests that Run cannot perform, such as those that kill real processes. The
// object must not change meanwhile. Audit returns the rows, for further checks.
//
// Errors: [errors.ErrUnsupported] for a store without history, those of the store, and
// one that describes the first problem.
func Audit(ctx context.Context, store lifecycle.Store, t *fsm.Table, id string) ([]lifecycle.HistoryRow, error) {
	h, ok := store.(historian)
	if !ok {
		return nil, fmt.Errorf("crashtest: %w: the store has no history", errors.ErrUnsupported)
	}
	_, rows, err := audit(ctx, h, t, lifecycle.Key{Machine: t.Name, ID: id})
	return rows, err
}

// historian is a store with history.
type historian interface {
	lifecycle.Store
	lifecycle.Historian
}

// audit is Audit of an object that may have no table.
func audit(ctx context.Context, store historian, t *fsm.Table, k lifecycle.Key) (r lifecycle.StoredRecord, rows []lifecycle.HistoryRow, err error) {
	if r, err = store.Get(ctx, k); err == nil {
		rows, err = store.History(ctx, k, 0, everything)
	}
	if err != nil {
		return r, nil, err
	}
	if problem := path(&r, t, rows); problem != "" {
		err = fmt.Errorf("crashtest: the history of %s: %s", nameOf(k), problem)
	}
	return r, rows, err
}

// path returns why the history is not a path of the table that ends in the record, or
// nothing. Without a table it checks only that the rows follow each other. Times are not
// compared: a test may have changed them, see [Harness].
func path(r *lifecycle.StoredRecord, t *fsm.Table, rows []lifecycle.HistoryRow) string {
	if len(rows) == 0 {
		if r.Exists() {
			return "it is empty"
		}
		return ""
	}
	tokens := map[lifecycle.Token]bool{}
	for i := range rows {
		row := &rows[i]
		if tokens[row.Token] {
			return fmt.Sprintf("one commit is written twice: %v", row)
		}
		tokens[row.Token] = true
		if i == 0 {
			continue
		}
		switch before := &rows[i-1]; {
		case row.Sequence != before.Sequence+1:
			return fmt.Sprintf("#%d follows #%d", row.Sequence, before.Sequence)
		case row.Operation < before.Operation || row.Operation > before.Operation+1:
			return fmt.Sprintf("it follows operation %d: %v", before.Operation, row)
		case t == nil && row.From != "" && row.From != before.To:
			return fmt.Sprintf("it does not begin where the one before has ended: %v", row)
		}
	}
	last, absent := &rows[len(rows)-1], true
	if t != nil {
		feed := func(yield func(history.Row, error) bool) {
			for i := range rows {
				r := &rows[i]
				if !yield(history.Row{
					Machine: t.Name, ID: r.ID, Sequence: r.Sequence, Operation: uint64(r.Operation), From: r.From,
					FromOrigin: r.FromOrigin, To: r.To, Origin: r.Origin, Event: r.Event, Actor: r.Actor,
				}, nil) {
					return
				}
			}
		}
		// A store may have discarded the first rows.
		sum, err := history.Check(feed, []history.TableVersion{{Table: t}}, &history.Config{Gaps: rows[0].Sequence > 1})
		switch {
		case err != nil:
			return err.Error()
		case len(sum.Findings) > 0:
			return sum.Findings[0].String()
		}
		i, ok := t.StateIndex(last.To)
		absent = ok && t.States[i].Kind == fsm.Absent
	}
	state := last.To
	if !r.Exists() && absent {
		state = ""
	}
	if r.State != state || r.Sequence != last.Sequence || r.Operation != last.Operation {
		return fmt.Sprintf("the record is %s at #%d in operation %d, the last row is: %v",
			cmp.Or(r.State, "absent"), r.Sequence, r.Operation, last)
	}
	return ""
}
