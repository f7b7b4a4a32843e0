package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// No revision of a key is ever repeated, revisions of its absence included, and sequence
// numbers and operation ids continue, also where the clock of this process stands still, and
// after so many other objects were removed that a store may have forgotten this one. A
// creation that was decided before all this is a conflict.
func numbersNeverRepeat(t *tester) {
	never := t.get(key("a"))
	seen := map[lifecycle.Revision]bool{never.Revision: true}
	live := func() (first, absent lifecycle.StoredRecord) {
		records := t.life(key("a"))
		for _, r := range records {
			require.False(t, seen[r.Revision], "revision %q of #%d is repeated", r.Revision, r.Sequence)
			seen[r.Revision] = true
		}
		return records[0], records[len(records)-1]
	}
	_, absent := live()
	for _, interlude := range []func(){func() {}, t.removeOthers} {
		interlude()
		t.conflict(commitOf(change(never, idle)), "an outdated creation")
		t.continues(absent, t.get(key("a")))
		again, end := live()
		t.continues(absent, again)
		absent = end
	}
}

// life creates an object, changes it and removes it, and returns all its records, the
// absent one included.
func (t *tester) life(k lifecycle.Key) (records []lifecycle.StoredRecord) {
	t.Helper()
	r := t.get(k)
	for i := range 20 {
		r = t.move(r, []string{idle, moving}[i/5%2])
		records = append(records, r)
	}
	return append(records, t.remove(r))
}

// removeOthers creates and removes many objects, a hundred in a commit.
func (t *tester) removeOthers() {
	t.Helper()
	many, batch := min(21*t.attempts, 2_100), min(100, t.has.Changes)
	if batch < 20 {
		many /= 10
	}
	for n := 0; n < many; n += batch {
		creations, removals := commitOf(), commitOf()
		for i := range batch {
			creations.Changes = append(creations.Changes, change(t.get(key(fmt.Sprint("other", n+i))), idle))
		}
		t.commit(creations)
		for i := range creations.Changes {
			removals.Changes = append(removals.Changes, removal(creations.Changes[i].To))
		}
		t.commit(removals)
	}
}

// continues requires that the numbers of a record follow those of a removal.
func (t *tester) continues(removed, r lifecycle.StoredRecord) {
	t.Helper()
	next := uint64(0)
	if r.Exists() {
		next = 1
	}
	require.GreaterOrEqual(t, r.Sequence, removed.Sequence+next)
	require.GreaterOrEqual(t, r.Operation, removed.Operation+lifecycle.OpID(next))
}
