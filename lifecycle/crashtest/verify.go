package crashtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// verify checks the end of a point.
func (w *world) verify() {
	w.mu.Lock()
	if w.scriptErr != nil && w.unnoticed() {
		w.accuse("the script: %v", w.scriptErr)
	}
	if len(w.faults) > 0 && w.hits == 0 {
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

// object checks one object: its record, its history, and its effects on the outside
// world.
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
	rows, err := history(context.Background(), h, k)
	if err != nil {
		w.blame("History of %s: %v", nameOf(k), err)
		return
	}
	if problem := path(&r, m.table, rows); problem != "" {
		w.blame("the history of %s: %s", nameOf(k), problem)
	}
	w.lost(k, rows)
	w.effects(k, m, rows)
}

// state checks the state in which the object has ended.
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

// lost finds writes that were acknowledged to a process and are not there.
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
			w.accuse("it was acknowledged and is lost: %v", known)
		}
	}
}

// effects finds operations that are recorded as done and were not applied.
func (w *world) effects(k lifecycle.Key, m managed, rows []lifecycle.HistoryRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if row.Actor != m.worker || m.worker == "" || !slices.Contains(m.done, row.Event) {
			continue
		}
		if w.outside.count[effectKey{k, row.Operation}] == 0 {
			w.accuse("it is recorded as done, and was not applied: %v", row)
		}
	}
}

func stateOr(name string) string {
	if name == "" {
		return "absent"
	}
	return name
}
