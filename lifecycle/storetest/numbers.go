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
	r, seen := never, map[lifecycle.Revision]bool{never.Revision: true}
	isNew := func() {
		require.False(t, seen[r.Revision], "revision %q of #%d is repeated", r.Revision, r.Sequence)
		seen[r.Revision] = true
	}
	for life := range 3 {
		if life == 2 {
			t.removeOthers()
		}
		if life > 0 {
			t.conflict(commitOf(change(never, idle)), "an outdated creation")
		}
		removed := r
		r = t.get(removed.Key)
		t.continues(removed, r)
		for i := range 20 {
			r = t.move(r, []string{idle, moving}[i/5%2])
			isNew()
		}
		r = t.remove(r)
		isNew()
	}
}

// removeOthers creates and removes many objects, a hundred in a commit.
func (t *tester) removeOthers() {
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

// continues requires that the numbers of an absent object follow those of its removal.
func (t *tester) continues(removed, r lifecycle.StoredRecord) {
	require.GreaterOrEqual(t, r.Sequence, removed.Sequence)
	require.GreaterOrEqual(t, r.Operation, removed.Operation)
}
