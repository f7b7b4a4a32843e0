package storetest

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// Kept is what the suite expects of a store that declares History: it still has
// the last eight rows of an object, and knows of the last eight removals.
const kept = 8

func numberDemands() []demand {
	return []demand{
		{
			name: "Numbers/sequence_has_no_gap", run: sequenceHasNoGap,
			says: "The sequence number of an object grows by one with every commit.",
		},
		{
			name: "Numbers/revisions_never_repeat", run: revisionsNeverRepeat,
			says: "No revision of an object is like one that it had before.",
		},
		{
			name: "Numbers/revisions_never_repeat_after_removal", run: revisionsAfterRemoval,
			says: "Nor is one from before the object was removed, the revisions of its absence included.",
		},
		{
			name: "Numbers/go_on_after_removal", run: goOnAfterRemoval,
			says: "The sequence and operation numbers of an object that is made again are above those that it had.",
		},
		{
			name: "Numbers/go_on_after_many_removals", run: goOnAfterManyRemovals,
			says: "So they are, and so are the revisions new, after many other objects were removed.",
		},
		{
			name: "Numbers/outdated_creation_conflicts", run: outdatedCreation,
			says: "A creation that was decided before the object was made and removed is a conflict.",
		},
		{
			name: "Numbers/leaving_and_returning_conflicts", run: leavingAndReturning,
			says: "A change that was decided before the object left its state is a conflict, even if it has come back to the state and content that it had.",
		},
	}
}

func sequenceHasNoGap(t *trial) {
	r := t.put(key("a"), idle)
	for i := range uint64(20) {
		want := r.Sequence + 1
		t.move(r, []string{idle, moving, broken}[i%3])
		r = t.get(r.Key)
		if r.Sequence != want {
			t.Fatalf("the commit after #%d is #%d", want-1, r.Sequence)
		}
		if i%3 == 0 {
			t.put(key("other"), idle) // another object's commits do not count
		}
	}
}

// revisions remembers all revisions of a key.
type revisions map[lifecycle.Revision]string

// add fails the test if the revision of a new record was there before.
func (seen revisions) add(t *trial, r lifecycle.StoredRecord) {
	t.Helper()
	if before, ok := seen[r.Revision]; ok {
		t.Fatalf("%s has revision %q, so had %s", in(&r), r.Revision, before)
	}
	seen[r.Revision] = in(&r)
}

func revisionsNeverRepeat(t *trial) {
	seen := revisions{}
	r := t.get(key("a"))
	seen.add(t, r)
	for i := range 30 {
		r = t.move(r, []string{idle, moving}[i/5%2])
		seen.add(t, r)
	}
}

func revisionsAfterRemoval(t *trial) {
	seen := revisions{}
	left := t.get(key("a"))
	for range 5 {
		seen.add(t, left)
		r := t.move(left, idle)
		seen.add(t, r)
		r = t.move(r, moving)
		seen.add(t, r)
		left = t.remove(r)
	}
}

func goOnAfterRemoval(t *trial) {
	r := t.put(key("a"), idle)
	for range 5 {
		removed := t.write(removal(r))
		left := t.get(r.Key)
		t.isAbove(left, removed)
		r = t.move(left, idle)
		t.isAbove(r, removed)
	}
}

// isAbove demands that the numbers of a record go on from those of a removal.
func (t *trial) isAbove(r, removed lifecycle.StoredRecord) {
	t.Helper()
	next := uint64(0)
	if r.Exists() {
		next = 1
	}
	if r.Sequence < removed.Sequence+next {
		t.Fatalf("%s, although the removal before was #%d", in(&r), removed.Sequence)
	}
	if r.Operation < removed.Operation+lifecycle.OpID(next) {
		t.Fatalf("%s has operation %d, although the object was removed in operation %d", in(&r), r.Operation, removed.Operation)
	}
}

func goOnAfterManyRemovals(t *trial) {
	seen := revisions{}
	var removed lifecycle.StoredRecord
	for range 3 {
		left := t.get(key("a"))
		seen.add(t, left)
		if removed.Sequence > 0 {
			t.isAbove(left, removed)
		}
		r := t.move(left, idle)
		seen.add(t, r)
		for range 4 { // more commits than any of the others has
			r = t.move(r, moving)
			seen.add(t, r)
		}
		removed = t.write(removal(r))
		for i := range 4 * kept {
			t.remove(t.put(key(fmt.Sprint("other", i)), idle))
		}
	}
	// Those that were removed before it are forgotten first.
	t.isAbove(t.put(key("a"), idle), removed)
}

func outdatedCreation(t *trial) {
	for _, id := range []string{"a", "b"} {
		never := t.get(key(id))
		left := t.remove(t.move(never, idle))
		t.refused(commitOf(change(never, idle)), "a creation decided before the object was made and removed")
		t.stays("an outdated creation", left)
		if id == "b" {
			for i := range 2 * kept {
				t.remove(t.put(key(fmt.Sprint("other", i)), idle))
			}
			t.refused(commitOf(change(never, idle)), "a creation decided before the object and many others were removed")
		}
	}
}

func leavingAndReturning(t *trial) {
	old := t.put(key("a"), idle)
	for range 3 {
		back := t.move(t.move(old, moving), idle)
		t.refused(commitOf(change(old, broken)), "a revision from before the object left its state and came back")
		t.refused(commitOf(removal(old)), "a revision from before the object left its state and came back")
		t.stays("a change that was decided too early", back)
		old = back
	}
	again := t.move(t.remove(old), idle)
	t.refused(commitOf(change(old, broken)), "a revision from before the object was removed and made again")
	t.stays("a change that was decided too early", again)
}
