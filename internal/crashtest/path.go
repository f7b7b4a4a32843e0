package crashtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Audit reads an object and its history and checks them as [Run] does: the history
// is a path of the table from row to row, with the operation ids that the table
// requires, overrides excepted; sequence numbers have no gap, no commit is there
// twice, and the record equals the last row. It is for the end of tests that Run
// cannot perform, such as those that kill real processes. The object must not
// change meanwhile. Audit returns the rows, for further checks.
//
// Errors: [errors.ErrUnsupported] for a store without history, those of the
// store, and one that describes the first problem.
func Audit(ctx context.Context, store lifecycle.Store, t *fsm.Table, id string) ([]lifecycle.HistoryRow, error) {
	h, ok := store.(lifecycle.Historian)
	if !ok || !store.Capabilities().History {
		return nil, fmt.Errorf("crashtest: %w: the store has no history", errors.ErrUnsupported)
	}
	k := lifecycle.Key{Machine: t.Name, ID: id}
	r, err := store.Get(ctx, k)
	if err != nil {
		return nil, err
	}
	rows, err := history(ctx, h, k)
	if err != nil {
		return nil, err
	}
	if problem := path(&r, t, rows); problem != "" {
		return rows, fmt.Errorf("crashtest: the history of %s: %s", nameOf(k), problem)
	}
	return rows, nil
}

// history reads all of it.
func history(ctx context.Context, h lifecycle.Historian, k lifecycle.Key) (rows []lifecycle.HistoryRow, err error) {
	for after := uint64(0); ; after = rows[len(rows)-1].Sequence {
		page, err := h.History(ctx, k, after, 100)
		if err != nil {
			return nil, err
		}
		if rows = append(rows, page...); len(page) < 100 {
			return rows, nil
		}
	}
}

// path returns why the history is no path of the table that ends in the record, or
// nothing. Without a table it checks only that the rows follow each other.
func path(r *lifecycle.StoredRecord, t *fsm.Table, rows []lifecycle.HistoryRow) string {
	tokens := map[lifecycle.Token]bool{}
	for i := range rows {
		row := &rows[i]
		if tokens[row.Token] {
			return fmt.Sprintf("one commit is written twice: %v", row)
		}
		tokens[row.Token] = true
		var before *lifecycle.HistoryRow
		if i > 0 {
			before = &rows[i-1]
			if row.Sequence != before.Sequence+1 {
				return fmt.Sprintf("#%d follows #%d", row.Sequence, before.Sequence)
			}
		}
		if problem := step(t, before, row); problem != "" {
			return fmt.Sprintf("%s: %v", problem, row)
		}
	}
	if len(rows) == 0 {
		if r.Exists() {
			return "it is empty"
		}
		return ""
	}
	last := &rows[len(rows)-1]
	at := last.To
	if !r.Exists() && (t == nil || isAbsent(t, last.To)) {
		at = ""
	}
	if r.State != at || r.Sequence != last.Sequence || r.Operation != last.Operation {
		return fmt.Sprintf("the record is %s at #%d in operation %d, the last row is: %v",
			stateOr(r.State), r.Sequence, r.Operation, last)
	}
	return ""
}

func isAbsent(t *fsm.Table, state string) bool {
	i, ok := t.StateIndex(state)
	return ok && t.States[i].Kind == fsm.Absent
}

// step returns what is wrong with a row after the one before, which is nil if it is
// not known; or nothing.
func step(t *fsm.Table, before, row *lifecycle.HistoryRow) string {
	if before != nil {
		from := before.To
		if row.From == "" && (t == nil || isAbsent(t, from)) {
			from = "" // it was removed
		}
		switch {
		case row.From != from || from != "" && row.FromOrigin != before.Origin:
			return "it does not begin where the one before has ended"
		case row.Operation < before.Operation || row.Operation > before.Operation+1:
			return fmt.Sprintf("it follows operation %d", before.Operation)
		}
	}
	if t == nil || row.Event == lifecycle.Overridden {
		return ""
	}
	if row.Event == "" {
		if row.From != "" || row.To != t.States[t.Initial].Name {
			return "no row creates the object"
		}
		return ""
	}
	state, origin, problem := begin(t, row)
	if problem != "" {
		return problem
	}
	to, toOrigin, err := t.ParseStatus(row.To, row.Origin)
	if err != nil {
		return err.Error()
	}
	event, ok := t.EventIndex(row.Event)
	if !ok {
		return "the table has no such event"
	}
	candidates, err := t.Candidates(nil, state, origin, event, row.Actor, true)
	if err != nil {
		return err.Error()
	}
	for _, c := range candidates {
		s, o := t.After(state, origin, c)
		if s != to || o != toOrigin {
			continue
		}
		begins := t.States[to].Kind == fsm.Transitional && (t.States[state].Kind.Resting() || t.Rows[c].Supersede)
		if row.From == "" && before != nil {
			begins = begins || before.Operation > 0 // a new life, with a number of its own
		}
		if before == nil || begins == (row.Operation > before.Operation) {
			return ""
		}
		problem = "the operation is another one than it should be"
	}
	return cmp.Or(problem, "the table leads elsewhere")
}

// begin returns the status that a row begins with; objects that do not exist
// begin in an absent state.
func begin(t *fsm.Table, row *lifecycle.HistoryRow) (state, origin int, problem string) {
	if row.From != "" {
		state, origin, err := t.ParseStatus(row.From, row.FromOrigin)
		if err != nil {
			return 0, 0, err.Error()
		}
		return state, origin, ""
	}
	i := t.Initial
	if t.States[i].Kind != fsm.Absent {
		i = slices.IndexFunc(t.States, func(s fsm.TableState) bool { return s.Kind == fsm.Absent })
	}
	if i < 0 {
		return 0, 0, "the table has no absent state"
	}
	return i, i, ""
}
