package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var commitDemands = []demand{
	{name: "Commit/sets_the_fields_of_the_store", check: commitSetsFields, clock: fakeClock},
	{name: "Commit/deadline_follows_the_timeout", check: deadlineFollowsTimeout, clock: fakeClock},
	{name: "Commit/wrong_revision_conflicts", check: wrongRevisionConflicts},
	{name: "Commit/wrong_state_conflicts", check: wrongStateConflicts},
	{name: "Commit/wrong_existence_conflicts", check: wrongExistenceConflicts},
	{name: "Commit/conflict_has_the_current_record", check: conflictHasTheCurrentRecord},
	{name: "Commit/same_content_is_a_change", check: sameContentIsAChange},
	{name: "Commit/malformed_is_refused", check: malformedIsRefused},
}

// Commit sets Revision, ChangedAt and Deadline of the record, whatever the caller had
// there, and no other field.
func commitSetsFields(t *tester) {
	wrong := time.Date(1955, 11, 5, 6, 15, 0, 0, time.UTC)
	r := t.get(key("a"))
	for range 3 {
		ch := change(r, moving)
		ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = r.Revision, wrong, wrong
		c, before := commitOf(ch), time.Now()
		require.NoError(t, t.store.Commit(t.Context(), c))
		next := c.Changes[0].To
		require.NotEqual(t, r.Revision, next.Revision)
		require.False(t, next.ChangedAt.IsZero() || next.ChangedAt.Equal(wrong), "ChangedAt is %v", next.ChangedAt)
		require.True(t, next.Deadline.IsZero(), "the deadline is %v", next.Deadline)
		if t.bubble {
			require.WithinDuration(t, before, next.ChangedAt, time.Millisecond)
		}
		ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = next.Revision, next.ChangedAt, next.Deadline
		equal(t, ch.To, next, "the record that Commit has filled")
		r = t.get(key("a"))
		equal(t, next, r, "the record that Get returns")
		t.pass(hour)
	}
}

// The deadline is Timeout after ChangedAt. A change with Timeout 0 clears it.
func deadlineFollowsTimeout(t *tester) {
	r := t.get(key("a"))
	for _, timeout := range []time.Duration{hour, 5 * time.Second, 1000 * hour} {
		ch := change(r, moving)
		ch.Timeout = timeout
		r = t.write(ch)
		require.Equal(t, timeout, r.Deadline.Sub(r.ChangedAt))
		t.unchanged("a change with a timeout", r)
		t.pass(hour)
		r = t.get(r.Key)
		require.Equal(t, timeout, r.Deadline.Sub(r.ChangedAt), "an hour later")
	}
	r = t.move(r, broken)
	require.True(t, r.Deadline.IsZero(), "Timeout 0 leaves the deadline %v", r.Deadline)
	t.unchanged("a change without a timeout", r)
}

// A change that expects an outdated revision is a conflict, even if the state is
// right. The store writes nothing, and the object can still be changed.
func wrongRevisionConflicts(t *tester) {
	first := t.put("a", idle)
	now, other := t.move(first, idle), t.put("b", idle)
	for _, ch := range []lifecycle.StoredChange{change(now, moving), removal(now)} {
		ch.Expect = first.Revision
		t.conflict(commitOf(ch), "an outdated revision")
		t.unchanged("a conflict", now, other)
		equal(t, []lifecycle.StoredRecord{now, other}, t.list(query()), "the list after a conflict")
	}
	t.move(now, moving)
}

// A change that expects another state is a conflict, even if the revision is right.
func wrongStateConflicts(t *tester) {
	now := t.put("a", idle)
	for _, from := range []string{moving, "idle", "Idle ", "Idl", ""} {
		for _, ch := range []lifecycle.StoredChange{change(now, broken), removal(now)} {
			ch.From = from
			t.conflict(commitOf(ch), fmt.Sprintf("state %q instead of %q", from, now.State))
		}
	}
	t.unchanged("conflicts", now)
}

// Creating an object that exists, and moving or removing one that does not, is a
// conflict at every revision.
func wrongExistenceConflicts(t *tester) {
	absent := t.get(key("a"))
	moves, removes := change(absent, moving), removal(absent)
	moves.From, removes.From = idle, idle
	t.conflict(commitOf(moves), "a move of an object that never existed")
	t.conflict(commitOf(removes), "a removal of an object that never existed")
	t.unchanged("conflicts", absent)

	now := t.move(absent, idle)
	creates := change(now, moving)
	creates.From = ""
	t.conflict(commitOf(change(absent, moving)), "a second creation")
	t.conflict(commitOf(creates), "a creation at the revision of the object")
	t.unchanged("conflicts", now)

	left := t.remove(now)
	moves = change(left, moving)
	moves.From = idle
	t.conflict(commitOf(change(now, moving)), "a move of a removed object")
	t.conflict(commitOf(removal(now)), "a second removal")
	t.conflict(commitOf(moves), "a move at the revision of the removed object")
	t.unchanged("conflicts", left)
}

// A conflict has the expectation and the whole current record, also of an object that
// does not exist.
func conflictHasTheCurrentRecord(t *tester) {
	never := t.get(key("a"))
	now := t.write(t.fullChange(never))
	outdated := change(now, broken)
	outdated.Expect = never.Revision
	conflict := t.conflict(commitOf(outdated), "an outdated revision")
	want := lifecycle.ConflictError{Expect: outdated.Expect, From: outdated.From, Current: now}
	equal(t, want, *conflict, "the conflict")

	left := t.remove(now)
	conflict = t.conflict(commitOf(change(now, broken)), "a move of a removed object")
	equal(t, left, conflict.Current, "the record of a removed object")

	absent := t.get(key("b"))
	moves := change(absent, broken)
	moves.From = idle
	conflict = t.conflict(commitOf(moves), "a move of an object that never existed")
	equal(t, absent, conflict.Current, "the record of an object that never existed")
}

// A commit that changes no field is a commit: it has a new revision and one winner.
func sameContentIsAChange(t *tester) {
	r := t.put("a", idle)
	for range 3 {
		ch := lifecycle.StoredChange{Expect: r.Revision, From: idle, FromOrigin: idle, To: r}
		ch.To.Sequence++
		next := t.write(ch)
		require.NotEqual(t, r.Revision, next.Revision)
		t.unchanged("a commit of the same content", next)
		t.conflict(commitOf(ch), "the same content at the revision before")
		r = next
	}
}

// A malformed commit and a query without a limit are refused with ErrInvalid, and the
// store writes nothing.
func malformedIsRefused(t *tester) {
	r := t.put("a", idle)
	ownerless := change(r, moving)
	ownerless.To.Epoch = 1
	tokenless := commitOf(change(r, moving))
	tokenless.Token = lifecycle.Token{}
	nameless := commitOf(change(r, moving))
	nameless.Owner.Epoch = 1
	for name, c := range map[string]*lifecycle.Commit{
		"no changes":                 commitOf(),
		"no token":                   tokenless,
		"two changes of one key":     commitOf(change(r, moving), change(r, broken)),
		"a change without a state":   commitOf(change(r, "")),
		"an epoch without an owner":  commitOf(ownerless),
		"a writer without a name":    nameless,
		"metadata of another state":  commitOf(metadataTo(r, idle+"x", false)),
		"metadata of a removal":      commitOf(metadataTo(r, idle, true)),
		"metadata of a new object":   commitOf(metadataTo(t.get(key("b")), idle, false)),
		"two changes, one malformed": commitOf(change(t.get(key("b")), idle), change(r, "")),
	} {
		if len(c.Changes) <= t.has.Changes {
			require.ErrorIs(t, send(t.Context(), t.store, c), lifecycle.ErrInvalid, name)
		}
	}
	for _, limit := range []int{0, -1} {
		_, err := t.store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: limit})
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "a query with limit %d", limit)
	}
	t.unchanged("malformed commits", r)
	t.finds(query(), "a")
}

func metadataTo(before lifecycle.StoredRecord, state string, remove bool) lifecycle.StoredChange {
	ch := takeOver(before, "one", 1)
	ch.To.State, ch.Remove = state, remove
	return ch
}

var numberDemands = []demand{
	{name: "Numbers/sequence_has_no_gap", check: sequenceHasNoGap},
	{name: "Numbers/revisions_never_repeat", check: revisionsNeverRepeat, clock: stoppedClock},
	{name: "Numbers/continue_after_removal", check: numbersContinueAfterRemoval},
	{name: "Numbers/survive_many_removals", check: numbersSurviveManyRemovals},
	{name: "Numbers/outdated_creation_conflicts", check: outdatedCreationConflicts},
	{name: "Numbers/returning_to_a_state_conflicts", check: returningToAStateConflicts},
}

// The sequence number of an object grows by one with every commit of the object.
func sequenceHasNoGap(t *tester) {
	r := t.put("a", idle)
	for i := range uint64(20) {
		t.move(r, []string{idle, moving, broken}[i%3])
		next := t.get(r.Key)
		require.Equal(t, r.Sequence+1, next.Sequence)
		t.put("other", idle)
		r = next
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

// No revision of a key is ever repeated, revisions of its absence included, and also
// where the clock of this process stands still.
func revisionsNeverRepeat(t *tester) {
	seen := map[lifecycle.Revision]bool{t.get(key("a")).Revision: true}
	for range 3 {
		t.newRevisions(seen, t.life(key("a")))
	}
}

// newRevisions requires that the revisions of records were not seen before.
func (t *tester) newRevisions(seen map[lifecycle.Revision]bool, records []lifecycle.StoredRecord) {
	t.Helper()
	for _, r := range records {
		require.False(t, seen[r.Revision], "revision %q of #%d is repeated", r.Revision, r.Sequence)
		seen[r.Revision] = true
	}
}

// Sequence numbers and operation ids of an object that is created again are above
// those that it had.
func numbersContinueAfterRemoval(t *tester) {
	var last lifecycle.StoredRecord
	for range 4 {
		absent := t.get(key("a"))
		t.continues(last, absent)
		r := t.move(absent, idle)
		t.continues(last, r)
		last = t.write(removal(r))
	}
}

// The same holds after so many other objects were removed that a store may have
// forgotten this one, and a creation that was decided before is a conflict.
func numbersSurviveManyRemovals(t *tester) {
	never := t.get(key("a"))
	seen := map[lifecycle.Revision]bool{never.Revision: true}
	life := t.life(key("a"))
	t.newRevisions(seen, life)
	t.removeOthers()
	t.conflict(commitOf(change(never, idle)), "an outdated creation")
	t.continues(life[len(life)-1], t.get(key("a")))
	again := t.life(key("a"))
	t.newRevisions(seen, again)
	t.continues(life[len(life)-1], again[0])
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

// A creation that was decided before the object was created and removed is a
// conflict.
func outdatedCreationConflicts(t *tester) {
	never := t.get(key("a"))
	left := t.remove(t.move(never, idle))
	t.conflict(commitOf(change(never, idle)), "an outdated creation")
	t.unchanged("an outdated creation", left)
}

// A change that was decided before the object left its state is a conflict, also if
// the object has returned to the same state and content.
func returningToAStateConflicts(t *tester) {
	old := t.put("a", idle)
	back := t.move(t.move(old, moving), idle)
	t.conflict(commitOf(change(old, broken)), "a revision from before the object left")
	t.conflict(commitOf(removal(old)), "a revision from before the object left")
	t.unchanged("conflicts", back)
	again := t.move(t.remove(back), idle)
	t.conflict(commitOf(change(old, broken)), "a revision from before the removal")
	t.unchanged("a conflict", again)
}
