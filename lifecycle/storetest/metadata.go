package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var metadataDemands = []demand{
	{name: "Metadata/changes_lease_fields_only", check: metadataChangesLeaseFields, clock: fakeClock},
	{name: "Metadata/writes_no_history", check: metadataWritesNoHistory},
	{name: "Metadata/is_compared", check: metadataIsCompared},
	{name: "Metadata/among_others_is_written_once", check: metadataAmongOthers},
}

// takeOver is a MetadataOnly change that sets the owner and the deadline.
func takeOver(before lifecycle.StoredRecord, owner string, epoch uint64) lifecycle.StoredChange {
	to := before
	to.Owner, to.Epoch = owner, epoch
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to, Timeout: hour, MetadataOnly: true,
	}
}

// A MetadataOnly change writes owner, epoch, work, arguments, work options and
// deadline under a new revision. All other fields stay, ChangedAt and the sequence
// number included. With Timeout 0 the deadline stays too.
func metadataChangesLeaseFields(t *tester) {
	before := t.write(t.fullChange(t.get(key("a"))))
	t.pass(hour / 2)
	before = t.get(before.Key) // Config.Age may have moved its times
	ch := takeOver(before, "another", 7)
	ch.To.Work, ch.To.Args, ch.To.WorkOptions = "lower", []byte("slowly"), []byte("{}")
	after := t.write(ch)
	t.unchanged("a MetadataOnly change", after)
	require.NotEqual(t, before.Revision, after.Revision)
	if t.movesTime() {
		require.Greater(t, after.Deadline.Sub(before.Deadline), hour/4, "how far the deadline moved in half an hour")
	}
	want := ch.To
	want.Revision, want.Deadline = after.Revision, after.Deadline
	equal(t, want, after, "the record")

	ch = takeOver(after, "a third", 8)
	ch.Timeout = 0
	last := t.write(ch)
	require.True(t, last.Deadline.Equal(after.Deadline), "Timeout 0 moves the deadline to %v", last.Deadline)
	t.unchanged("a MetadataOnly change without a timeout", last)
}

// A MetadataOnly change has no history row. The row of the next change follows the
// row before without a gap.
func metadataWritesNoHistory(t *tester) {
	t.needsHistory()
	r := t.put("a", moving)
	rows := t.rows(r.Key, 0, all)
	next := t.move(t.write(takeOver(t.write(takeOver(r, "one", 1)), "one", 1)), idle)
	after := t.rows(r.Key, 0, all)
	require.Len(t, after, len(rows)+1)
	require.Equal(t, r.Sequence+1, next.Sequence)
	require.Equal(t, next.Sequence, after[len(after)-1].Sequence)
}

// A MetadataOnly change at an outdated revision is a conflict, and so is a change that
// was decided before a MetadataOnly change, and a MetadataOnly change that is sent
// again under its token.
func metadataIsCompared(t *tester) {
	r := t.put("a", moving)
	c := commitOf(takeOver(r, "one", 1))
	again := clone(c)
	t.commit(c)
	now := c.Changes[0].To
	t.conflict(again, "a MetadataOnly change that is sent again")
	t.conflict(commitOf(takeOver(r, "two", 1)), "a MetadataOnly change at an outdated revision")
	t.conflict(commitOf(change(r, idle)), "a change that was decided before a MetadataOnly change")
	never := t.get(key("never"))
	never.State, never.Revision = moving, r.Revision
	t.conflict(commitOf(takeOver(never, "one", 1)), "a MetadataOnly change of an object that does not exist")
	t.unchanged("conflicts", now)
}

// A commit of MetadataOnly and other changes is written together. Sent again it is a
// conflict, like every commit with a MetadataOnly change, and is not written again.
func metadataAmongOthers(t *tester) {
	t.needsChanges(2)
	for _, metadata := range []int{0, 1} {
		c := commitOf(change(t.put("a", moving), idle), change(t.put("b", moving), idle))
		c.Changes[metadata] = takeOver(t.get(c.Changes[metadata].To.Key), "one", 1)
		s := t.sent(c)
		a, b := s.filled.Changes[0].To, s.filled.Changes[1].To
		rows := append(t.rows(a.Key, 0, all), t.rows(b.Key, 0, all)...)
		for range 2 {
			t.conflict(clone(c), "a commit with a MetadataOnly change that is sent again")
			t.unchanged("a commit that was sent again", a, b)
			equal(t, rows, append(t.rows(a.Key, 0, all), t.rows(b.Key, 0, all)...), "the history")
		}
	}
}
