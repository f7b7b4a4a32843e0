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
	h, ok := store.(lifecycle.Historian)
	if !ok {
		return nil, fmt.Errorf("crashtest: %w: the store has no history", errors.ErrUnsupported)
	}
	k := lifecycle.Key{Machine: t.Name, ID: id}
	r, err := store.Get(ctx, k)
	if err != nil {
		return nil, err
	}
	rows, err := h.History(ctx, k, 0, everything)
	if err != nil {
		return nil, err
	}
	if problem := path(&r, t, rows); problem != "" {
		return rows, fmt.Errorf("crashtest: the history of %s: %s", nameOf(k), problem)
	}
	return rows, nil
}

// path returns why the history is no path of the table that ends in the record, or
// nothing. Without a table it checks only that the rows follow each other.
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
	if problem := follow(t, rows); problem != "" {
		return problem
	}
	last := &rows[len(rows)-1]
	state := last.To
	if !r.Exists() && (t == nil || isAbsent(t, last.To)) {
		state = ""
	}
	if r.State != state || r.Sequence != last.Sequence || r.Operation != last.Operation {
		return fmt.Sprintf("the record is %s at #%d in operation %d, the last row is: %v",
			cmp.Or(r.State, "absent"), r.Sequence, r.Operation, last)
	}
	return ""
}

func isAbsent(t *fsm.Table, state string) bool {
	i, ok := t.StateIndex(state)
	return ok && t.States[i].Kind == fsm.Absent
}

// follow returns the first finding of package history, or nothing. Times are not
// compared: a test may have changed them, see [Harness].
func follow(t *fsm.Table, rows []lifecycle.HistoryRow) string {
	if t == nil {
		return ""
	}
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
	return ""
}
