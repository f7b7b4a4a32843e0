package storetest

import (
	"github.com/interlock-go/interlock/lifecycle"
)

func quietDemands() []demand {
	return []demand{
		{
			name: "Quiet/changes_owner_and_deadline", run: quietChanges, timed: true,
			says: "A quiet change writes owner, epoch and deadline, under a new revision, and leaves everything else, ChangedAt and the sequence number too.",
		},
		{
			name: "Quiet/writes_no_history", run: quietHistory, needs: needHistory,
			says: "A quiet change has no row in the history, and the row of the next change follows the one before without a gap.",
		},
		{
			name: "Quiet/is_compared", run: quietCompared,
			says: "A quiet change is a conflict like any other if the revision has moved on, and whoever read the record before a quiet change has a conflict.",
		},
		{
			name: "Quiet/sent_again_conflicts", run: quietAgain,
			says: "A quiet change that is sent again under its token is a conflict, and changes nothing.",
		},
		{
			name: "Quiet/moves_nothing", run: quietMovesNothing,
			says: "A quiet change that would move or remove its object is refused with ErrInvalid.",
		},
	}
}

// beat takes over an object that was read, and prolongs its deadline.
func beat(before lifecycle.StoredRecord, owner string, epoch uint64) lifecycle.StoredChange {
	to := before
	to.Owner, to.Epoch = owner, epoch
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to, Within: hour, Quiet: true,
	}
}

func quietChanges(t *trial) {
	ch := change(t.get(key("a")), moving)
	to := full(ch.To.Key)
	to.Sequence, to.Operation = ch.To.Sequence, ch.To.Operation
	ch.To, ch.Within = to, hour
	r := t.write(ch)
	t.pass(hour / 2)
	r = t.get(r.Key) // a harness may have moved it into the past
	now := t.write(beat(r, "another", 7))
	same(t, "the record after a quiet change", t.get(r.Key), now)
	if now.Revision == r.Revision {
		t.Errorf("a quiet change keeps the revision %q", r.Revision)
	}
	if !now.ChangedAt.Equal(r.ChangedAt) {
		t.Errorf("a quiet change sets ChangedAt from %v to %v", r.ChangedAt, now.ChangedAt)
	}
	if t.exact() && now.Deadline.Sub(r.Deadline) < hour/4 {
		t.Errorf("a quiet change half an hour later moved the deadline of an hour from %v to %v", r.Deadline, now.Deadline)
	}
	same(t, "but for what changed", func() lifecycle.StoredRecord {
		got := now
		got.Owner, got.Epoch, got.Revision, got.Deadline = r.Owner, r.Epoch, r.Revision, r.Deadline
		return got
	}(), r)
}

func quietHistory(t *trial) {
	r := t.put(key("a"), moving)
	rows := t.history(r.Key, 0, all)
	r = t.write(beat(r, "one", 1))
	r = t.write(beat(r, "one", 1))
	if after := t.history(r.Key, 0, all); len(after) != len(rows) {
		t.Errorf("two quiet changes make %d rows of %d", len(after), len(rows))
	}
	next := t.move(r, idle)
	after := t.history(r.Key, 0, all)
	if len(after) != len(rows)+1 || after[len(after)-1].Sequence != next.Sequence || next.Sequence != r.Sequence+1 {
		t.Errorf("the change after two quiet ones has sequence number %d, and the history is %v", next.Sequence, after)
	}
}

func quietCompared(t *trial) {
	r := t.put(key("a"), moving)
	beaten := t.write(beat(r, "one", 1))
	t.refused(commitOf(beat(r, "two", 1)), "a quiet change on an outdated revision")
	t.refused(commitOf(change(r, idle)), "a change decided before a quiet one")
	t.stays("refused commits", beaten)
	never := t.get(key("never"))
	never.State = moving
	never.Revision = r.Revision
	t.refused(commitOf(beat(never, "one", 1)), "a quiet change of an object that does not exist")
}

func quietAgain(t *trial) {
	r := t.put(key("a"), moving)
	c := commitOf(beat(r, "one", 1))
	twin := again(c)
	t.commit(c)
	t.refused(twin, "a quiet change that was written")
	t.stays("a quiet change sent again", c.Changes[0].To)
}

func quietMovesNothing(t *trial) {
	r := t.put(key("a"), moving)
	moves := beat(r, "one", 1)
	moves.To.State = idle
	t.invalid("a quiet change to another state", t.store.Commit(t.Context(), commitOf(moves)))
	removes := beat(r, "one", 1)
	removes.Remove = true
	t.invalid("a quiet removal", t.store.Commit(t.Context(), commitOf(removes)))
	t.stays("malformed quiet changes", r)
}
