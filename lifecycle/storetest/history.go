package storetest

import (
	"github.com/interlock-go/interlock/lifecycle"
)

func historyDemands() []demand {
	return []demand{
		{
			name: "History/one_row_per_change", run: oneRowPerChange, needs: needHistory,
			says: "Every change has a row as soon as it is acknowledged, with its token and what it changed; creations and removals too.",
		},
		{
			name: "History/rows_of_all_changes", run: rowsOfAllChanges, needs: needHistory, changes: 3,
			says: "A commit of several changes writes a row for each of them.",
		},
		{
			name: "History/has_no_gap", run: historyHasNoGap, needs: needHistory,
			says: "What is kept ends with the newest row and has no gap; it is at least the last eight rows.",
		},
		{
			name: "History/survives_removal", run: historySurvivesRemoval, needs: needHistory,
			says: "The history of a removed object can be read, and goes on when it is made again.",
		},
		{
			name: "History/nothing_of_refused_commits", run: historyOfRefused, needs: needHistory,
			says: "A commit that was refused leaves no row, and one that was sent again no second row.",
		},
		{
			name: "History/pages", run: historyPages, needs: needHistory,
			says: "Rows come ascending from above a sequence number, at most as many as asked for; an unknown object has none.",
		},
	}
}

// all is more rows than any object here has.
const all = 1000

func oneRowPerChange(t *trial) {
	r := t.get(key("a"))
	for _, ch := range []func() lifecycle.StoredChange{
		func() lifecycle.StoredChange { return change(r, moving) },
		func() lifecycle.StoredChange {
			ch := change(r, idle)
			sequence := ch.To.Sequence
			ch.To, ch.Timeout = full(r.Key), hour
			ch.To.Sequence = sequence
			return ch
		},
		func() lifecycle.StoredChange { return change(r, idle) },
		func() lifecycle.StoredChange { return removal(r) },
		func() lifecycle.StoredChange { return change(r, broken) },
	} {
		c := commitOf(ch())
		if c.Changes[0].From == idle {
			c.Changes[0].FromOrigin = broken // the caller's word
		}
		t.commit(c)
		want := c.Changes[0].Row(c.Token)
		rows := t.history(r.Key, want.Sequence-1, all)
		if len(rows) != 1 {
			t.Fatalf("above #%d there are %d rows, not the one of the commit that was just acknowledged", want.Sequence-1, len(rows))
		}
		same(t, "the row of the last change", rows[0], want)
		r = t.get(r.Key)
	}
}

func rowsOfAllChanges(t *trial) {
	a, b, c := t.put(key("a"), idle), t.put(key("b"), idle), t.get(lifecycle.Key{Machine: "truck", ID: "c"})
	commit := commitOf(change(a, moving), removal(b), change(c, idle))
	t.commit(commit)
	for i := range commit.Changes {
		want := commit.Changes[i].Row(commit.Token)
		rows := t.history(want.Key, want.Sequence-1, all)
		if len(rows) != 1 {
			t.Errorf("change %d has left %d rows", i, len(rows))
			continue
		}
		same(t, "a row of several", rows[0], want)
	}
}

// newest demands that rows end with the newest that is wanted and have no gap,
// and that each of them is as wanted.
func (t *trial) newest(rows, want []lifecycle.HistoryRow, atLeast int) {
	t.Helper()
	atLeast = min(atLeast, len(want))
	if len(rows) < atLeast || len(rows) > len(want) {
		t.Fatalf("of %d rows there are %d", len(want), len(rows))
	}
	for i, w := range want[len(want)-len(rows):] {
		if d := differences(rows[i], w); d != "" {
			t.Fatalf("row %d of %d, of #%d: %s", i+1, len(rows), w.Sequence, d)
		}
	}
}

func historyHasNoGap(t *trial) {
	var want []lifecycle.HistoryRow
	r := t.get(key("a"))
	for i := range 5 * kept {
		c := commitOf(change(r, []string{idle, moving, broken}[i%3]))
		t.commit(c)
		want = append(want, c.Changes[0].Row(c.Token))
		r = c.Changes[0].To
		t.newest(t.history(r.Key, 0, all), want, kept)
	}
}

func historySurvivesRemoval(t *trial) {
	var want []lifecycle.HistoryRow
	for range 3 {
		for _, next := range []func(lifecycle.StoredRecord) lifecycle.StoredChange{
			func(r lifecycle.StoredRecord) lifecycle.StoredChange { return change(r, idle) },
			removal,
		} {
			c := commitOf(next(t.get(key("a"))))
			t.commit(c)
			want = append(want, c.Changes[0].Row(c.Token))
			t.newest(t.history(key("a"), 0, all), want, kept)
		}
	}
}

func historyOfRefused(t *trial) {
	a := t.get(key("a"))
	made, filled := t.sent(commitOf(change(a, idle)))
	r := filled.Changes[0].To
	moved, filled := t.sent(commitOf(change(r, moving)))
	want := t.history(r.Key, 0, all)
	if len(want) != 2 {
		t.Fatalf("of two commits there are %d rows", len(want))
	}
	refusals := map[string]func(){
		"a conflict":          func() { t.refused(commitOf(change(r, broken)), "an outdated revision") },
		"an outdated removal": func() { t.refused(commitOf(removal(r)), "an outdated revision") },
		"a creation sent again": func() {
			t.repeat(made, &lifecycle.Commit{Changes: []lifecycle.StoredChange{{To: r}}}, "after the object moved on")
		},
		"a move sent again": func() { t.repeat(moved, filled, "at once") },
	}
	if t.store.Capabilities().Changes >= 2 {
		other := t.put(key("other"), idle)
		unmet := commitOf(change(filled.Changes[0].To, broken))
		unmet.Require = []lifecycle.Precondition{{Key: other.Key, States: []string{moving}}}
		refusals["a precondition that does not hold"] = func() {
			if err := t.store.Commit(t.Context(), unmet); err == nil {
				t.Error("a commit whose precondition does not hold was written")
			}
		}
		refusals["a conflict in the other object"] = func() {
			outdated := change(other, moving)
			outdated.From = broken
			t.refused(commitOf(change(filled.Changes[0].To, broken), outdated), "a wrong state of another object")
		}
	}
	for what, refuse := range refusals {
		refuse()
		rows := t.history(r.Key, 0, all)
		if len(rows) != len(want) {
			t.Errorf("after %s there are %d rows, not %d", what, len(rows), len(want))
			continue
		}
		t.newest(rows, want, len(want))
	}
}

func historyPages(t *trial) {
	var want []lifecycle.HistoryRow
	r := t.get(key("a"))
	for i := range kept {
		c := commitOf(change(r, []string{idle, moving}[i%2]))
		t.commit(c)
		want = append(want, c.Changes[0].Row(c.Token))
		r = c.Changes[0].To
		t.put(key("other"), idle)
	}
	first := want[0].Sequence
	for limit := 1; limit <= kept+1; limit++ {
		for skip := range kept + 1 {
			after := uint64(skip) + first - 1
			rows := t.history(r.Key, after, limit)
			rest := want[skip:]
			rest = rest[:min(limit, len(rest))]
			if len(rows) != len(rest) {
				t.Fatalf("above #%d there are %d rows at most %d at a time, not %d", after, len(rows), limit, len(rest))
			}
			t.newest(rows, rest, len(rest))
		}
	}
	for _, k := range []lifecycle.Key{key("b"), {Machine: "truck", ID: "a"}} {
		if rows := t.history(k, 0, all); len(rows) > 0 {
			t.Errorf("an object that never existed has %d rows", len(rows))
		}
	}
}
