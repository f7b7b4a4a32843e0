package storetest

import (
	"github.com/interlock-go/interlock/lifecycle"
)

func metadataDemands() []demand {
	return []demand{
		{
			name: "Metadata/changes_owner_work_and_deadline", run: metadataChanges, timed: true,
			says: "A MetadataOnly change writes owner, epoch, work, its arguments and options, and the deadline, under a new revision. It leaves everything else, ChangedAt and the sequence number included.",
		},
		{
			name: "Metadata/keeps_the_deadline", run: metadataKeepsDeadline,
			says: "A MetadataOnly change with Timeout 0 leaves the deadline.",
		},
		{
			name: "Metadata/writes_no_history", run: metadataHistory, needs: needHistory,
			says: "A MetadataOnly change has no row in the history, and the row of the next change follows the one before without a gap.",
		},
		{
			name: "Metadata/is_compared", run: metadataCompared,
			says: "A MetadataOnly change is a conflict if the revision has moved on. A change that was decided on the record before a MetadataOnly change is a conflict.",
		},
		{
			name: "Metadata/sent_again_conflicts", run: metadataAgain,
			says: "A MetadataOnly change that is sent again under its token is a conflict, and changes nothing.",
		},
		{
			name: "Metadata/moves_nothing", run: metadataMovesNothing,
			says: "A MetadataOnly change that would move or remove its object is refused with ErrInvalid.",
		},
	}
}

// beat takes over an object that was read, and prolongs its deadline.
func beat(before lifecycle.StoredRecord, owner string, epoch uint64) lifecycle.StoredChange {
	to := before
	to.Owner, to.Epoch = owner, epoch
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to, Timeout: hour, MetadataOnly: true,
	}
}

func metadataChanges(t *trial) {
	ch := change(t.get(key("a")), moving)
	to := full(ch.To.Key)
	to.Sequence, to.Operation = ch.To.Sequence, ch.To.Operation
	ch.To, ch.Timeout = to, hour
	r := t.write(ch)
	t.pass(hour / 2)
	r = t.get(r.Key) // a harness may have moved it into the past
	ch = beat(r, "another", 7)
	ch.To.Work, ch.To.Args, ch.To.WorkOptions = "lower", []byte("slowly"), []byte("{}")
	now := t.write(ch)
	same(t, "the record after a metadata-only change", t.get(r.Key), now)
	if now.Revision == r.Revision {
		t.Errorf("a metadata-only change keeps the revision %q", r.Revision)
	}
	if !now.ChangedAt.Equal(r.ChangedAt) {
		t.Errorf("a metadata-only change sets ChangedAt from %v to %v", r.ChangedAt, now.ChangedAt)
	}
	if t.exact() && now.Deadline.Sub(r.Deadline) < hour/4 {
		t.Errorf("a metadata-only change half an hour later moved the deadline of an hour from %v to %v", r.Deadline, now.Deadline)
	}
	same(t, "but for what changed", func() lifecycle.StoredRecord {
		got := now
		got.Owner, got.Epoch, got.Revision, got.Deadline = r.Owner, r.Epoch, r.Revision, r.Deadline
		got.Work, got.Args, got.WorkOptions = r.Work, r.Args, r.WorkOptions
		return got
	}(), r)
}

func metadataKeepsDeadline(t *trial) {
	r := t.get(t.due(key("a"), moving, hour).Key)
	ch := beat(r, "another", 7)
	ch.Timeout = 0
	now := t.write(ch)
	if !now.Deadline.Equal(r.Deadline) {
		t.Errorf("a metadata-only change with Timeout 0 moved the deadline from %v to %v", r.Deadline, now.Deadline)
	}
	same(t, "the record after a metadata-only change", t.get(r.Key), now)
}

func metadataHistory(t *trial) {
	r := t.put(key("a"), moving)
	rows := t.history(r.Key, 0, all)
	r = t.write(beat(r, "one", 1))
	r = t.write(beat(r, "one", 1))
	if after := t.history(r.Key, 0, all); len(after) != len(rows) {
		t.Errorf("two metadata-only changes make %d rows of %d", len(after), len(rows))
	}
	next := t.move(r, idle)
	after := t.history(r.Key, 0, all)
	if len(after) != len(rows)+1 || after[len(after)-1].Sequence != next.Sequence || next.Sequence != r.Sequence+1 {
		t.Errorf("the change after two metadata-only ones has sequence number %d, and the history is %v", next.Sequence, after)
	}
}

func metadataCompared(t *trial) {
	r := t.put(key("a"), moving)
	beaten := t.write(beat(r, "one", 1))
	t.refused(commitOf(beat(r, "two", 1)), "a metadata-only change on an outdated revision")
	t.refused(commitOf(change(r, idle)), "a change decided before a metadata-only one")
	t.stays("refused commits", beaten)
	never := t.get(key("never"))
	never.State = moving
	never.Revision = r.Revision
	t.refused(commitOf(beat(never, "one", 1)), "a metadata-only change of an object that does not exist")
}

func metadataAgain(t *trial) {
	r := t.put(key("a"), moving)
	c := commitOf(beat(r, "one", 1))
	twin := again(c)
	t.commit(c)
	t.refused(twin, "a metadata-only change that was written")
	t.stays("a metadata-only change sent again", c.Changes[0].To)
}

func metadataMovesNothing(t *trial) {
	r := t.put(key("a"), moving)
	moves := beat(r, "one", 1)
	moves.To.State = idle
	t.invalid("a metadata-only change to another state", t.store.Commit(t.Context(), commitOf(moves)))
	removes := beat(r, "one", 1)
	removes.Remove = true
	t.invalid("a metadata-only removal", t.store.Commit(t.Context(), commitOf(removes)))
	t.stays("malformed metadata-only changes", r)
}
