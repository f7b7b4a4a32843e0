package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var historyDemands = []demand{
	{name: "History/one_row_per_change", check: oneRowPerChange},
	{name: "History/keeps_the_newest_rows", check: keepsTheNewestRows},
	{name: "History/has_no_row_of_refused_commits", check: noRowOfRefusedCommits},
	{name: "History/pages", check: historyPages},
}

// Every change has a row as soon as the commit is acknowledged, with the token and
// everything that the caller declared: creations, moves, removals, and every change of
// a commit of several.
func oneRowPerChange(t *tester) {
	t.needsHistory()
	check := func(c *lifecycle.Commit) {
		t.commit(c)
		for i := range c.Changes {
			want := c.Changes[i].Row(c.Token)
			got := t.rows(want.Key, want.Sequence-1, all)
			equal(t, []lifecycle.HistoryRow{want}, got, fmt.Sprintf("the new row of change %d", i))
		}
	}
	a := func() lifecycle.StoredRecord { return t.get(key("a")) }
	check(commitOf(change(a(), moving)))
	check(commitOf(t.fullChange(a())))
	ch := change(a(), idle)
	ch.FromOrigin = broken // the caller declares the origin
	check(commitOf(ch))
	check(commitOf(removal(a())))
	check(commitOf(change(a(), broken)))
	if t.has.Changes >= 3 {
		truck := t.get(lifecycle.Key{Machine: "truck", ID: "c"})
		check(commitOf(change(a(), moving), removal(t.put("b", idle)), change(truck, idle)))
	}
}

// newest requires that rows are the newest of those that are wanted, without a gap,
// and at least as many as a store keeps.
func (t *tester) newest(want, rows []lifecycle.HistoryRow) {
	t.Helper()
	require.GreaterOrEqual(t, len(rows), min(kept, len(want)))
	require.LessOrEqual(t, len(rows), len(want))
	equal(t, want[len(want)-len(rows):], rows, "the history")
}

// The rows that are kept end with the newest row and have no gap. They survive the
// removal of the object and continue when it is created again.
func keepsTheNewestRows(t *tester) {
	t.needsHistory()
	var want []lifecycle.HistoryRow
	for i := range 5 * kept {
		r := t.get(key("a"))
		c := commitOf(change(r, []string{idle, moving, broken}[i%3]))
		if r.Exists() && i%7 == 6 {
			c = commitOf(removal(r))
		}
		t.commit(c)
		want = append(want, c.Changes[0].Row(c.Token))
		t.newest(want, t.rows(r.Key, 0, all))
	}
}

// A commit that was refused has no row, and a commit that was sent again has no second
// row.
func noRowOfRefusedCommits(t *tester) {
	t.needsHistory()
	created := t.sent(commitOf(change(t.get(key("a")), idle)))
	old := created.filled.Changes[0].To
	moved := t.sent(commitOf(change(old, moving)))
	now := moved.filled.Changes[0].To
	want := t.rows(old.Key, 0, all)
	require.Len(t, want, 2)
	check := func(after string) {
		t.Helper()
		equal(t, want, t.rows(old.Key, 0, all), "the history after "+after)
	}
	t.conflict(commitOf(change(old, broken)), "an outdated revision")
	check("a conflict")
	t.conflict(commitOf(removal(old)), "an outdated revision")
	check("an outdated removal")
	t.repeat(created, "after the object was changed")
	t.repeat(moved, "at once")
	check("repeated commits")
	if t.has.Changes >= 2 {
		other := t.put("other", idle)
		t.unmet(now, lifecycle.Precondition{Key: other.Key, States: []string{moving}}, other)
		outdated := change(other, moving)
		outdated.From = broken
		t.conflict(commitOf(change(now, broken), outdated), "a wrong state of another object")
		check("a failed precondition and a conflict of another object")
	}
}

// History returns rows above a sequence number, ascending, at most as many as
// requested. An object that never existed has none.
func historyPages(t *tester) {
	t.needsHistory()
	var want []lifecycle.HistoryRow
	r := t.get(key("a"))
	for i := range kept {
		c := commitOf(change(r, []string{idle, moving}[i%2]))
		t.commit(c)
		want, r = append(want, c.Changes[0].Row(c.Token)), c.Changes[0].To
		t.put("other", idle)
	}
	for limit := 1; limit <= kept+1; limit++ {
		for skip := range kept + 1 {
			rest := want[skip:]
			got := t.rows(r.Key, want[0].Sequence+uint64(skip)-1, limit)
			equal(t, rest[:min(limit, len(rest))], got, fmt.Sprintf("%d rows after %d", limit, skip))
		}
	}
	require.Empty(t, t.rows(key("b"), 0, all))
	require.Empty(t, t.rows(lifecycle.Key{Machine: "truck", ID: "a"}, 0, all))
}
