package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// verify looks at what is left.
func (w *world) verify() {
	w.mu.Lock()
	if w.scriptErr != nil && w.unnoticed() {
		w.accuse("the script: %v", w.scriptErr)
	}
	if w.target != nil && !w.struck {
		w.accuse("the write is not reached: the script does not do the same every time")
	}
	for _, p := range w.processes {
		if p.state == runs {
			for _, text := range p.waiters() {
				w.accuse("%s", text)
			}
		}
	}
	var keys []lifecycle.Key
	for k := range w.keys {
		keys = append(keys, k)
	}
	for k := range w.s.ends {
		if !w.keys[k] {
			keys = append(keys, k)
		}
	}
	tables := maps.Clone(w.tables)
	alive := slices.IndexFunc(w.processes, (*Process).lives)
	var app any
	if alive >= 0 {
		app = w.processes[alive].app
	}
	w.mu.Unlock()

	slices.SortFunc(keys, func(a, b lifecycle.Key) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.ID, b.ID))
	})
	for _, k := range keys {
		w.object(k, tables[k.Machine]) // without a table for owners
	}
	w.messages()
	if alive < 0 {
		w.blame("no process lives")
	} else if err := w.s.check(w.ctx, app); err != nil {
		w.blame("%v", err)
	}
}

// object looks at one object: its record, its history, and what was done for it
// outside.
func (w *world) object(k lifecycle.Key, m managed) {
	r, err := w.inner.Get(context.Background(), k)
	if err != nil {
		w.blame("Get of %s: %v", nameOf(k), err)
		return
	}
	w.state(&r, m.table)
	h, ok := w.inner.(lifecycle.Historian)
	if !ok || !w.inner.Capabilities().History {
		return
	}
	var rows []lifecycle.HistoryRow
	for after := uint64(0); ; after = rows[len(rows)-1].Sequence {
		page, err := h.History(context.Background(), k, after, 100)
		if err != nil {
			w.blame("History of %s: %v", nameOf(k), err)
			return
		}
		rows = append(rows, page...)
		if len(page) < 100 {
			break
		}
	}
	if problem := w.path(&r, m.table, rows); problem != "" {
		w.blame("the history of %s: %s", nameOf(k), problem)
	}
	w.lost(k, rows)
	w.effects(k, m, rows)
}

// state looks at where the object has come to rest.
func (w *world) state(r *lifecycle.StoredRecord, t *fsm.Table) {
	allowed, named := w.s.ends[r.Key]
	switch {
	case named && slices.Contains(allowed, r.State):
	case named:
		w.blame("%s is %s in the end, allowed are %q", nameOf(r.Key), stateOr(r.State), allowed)
	case t == nil || !r.Exists():
	case slices.Contains(transitional(t), r.State):
		w.blame("%s is still %s in the end", nameOf(r.Key), r.State)
	}
}

// path says where the history is no path of the table that ends in the record.
// Without a table, only that rows follow each other.
func (w *world) path(r *lifecycle.StoredRecord, t *fsm.Table, rows []lifecycle.HistoryRow) string {
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
		return fmt.Sprintf("the record is %s at #%d in operation %d, the last row says: %v",
			stateOr(r.State), r.Sequence, r.Operation, last)
	}
	return ""
}

func isAbsent(t *fsm.Table, state string) bool {
	i, ok := t.StateIndex(state)
	return ok && t.States[i].Kind == fsm.Absent
}

// step says what is wrong with a row after the one before, nil if none is known.
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
			return "objects do not begin like this"
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

// lost looks for writes that a process was told of and that are not there.
func (w *world) lost(k lifecycle.Key, rows []lifecycle.HistoryRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.learnt {
		known := &w.learnt[i]
		if known.Key != k || len(rows) > 0 && known.Sequence < rows[0].Sequence {
			continue
		}
		found := slices.ContainsFunc(rows, func(row lifecycle.HistoryRow) bool {
			return row.Token == known.Token && row.Sequence == known.Sequence
		})
		if !found {
			w.accuse("it was acknowledged, and is lost: %v", known)
		}
	}
}

// effects looks for operations that are said to be done and are not.
func (w *world) effects(k lifecycle.Key, m managed, rows []lifecycle.HistoryRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if row.Actor != m.worker || m.worker == "" || !slices.Contains(m.done, row.Event) {
			continue
		}
		if w.outside.count[effectKey{k, row.Operation}] == 0 {
			w.accuse("it is said to be done, and was not: %v", row)
		}
	}
}

func stateOr(name string) string {
	if name == "" {
		return "absent"
	}
	return name
}
