package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var commitDemands = []demand{
	{name: "Commit/sets_the_fields_of_the_store", check: commitSetsFields, clock: fakeClock},
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
	{name: "Numbers/revisions_never_repeat", check: revisionsNeverRepeat, clock: stoppedClock},
	{name: "Numbers/survive_many_removals", check: numbersSurviveManyRemovals},
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
