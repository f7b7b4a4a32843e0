package storetest

import (
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func commitDemands() []demand {
	return []demand{
		{
			name: "Commit/creates_moves_removes", run: createsMovesRemoves,
			says: "A commit creates what does not exist, moves what does, removes it, and creates it again.",
		},
		{
			name: "Commit/fills_the_record", run: fillsTheRecord, timed: true,
			says: "Revision, ChangedAt and Deadline of the change's record are the store's: they are filled, whatever the caller had there; the other fields stay the caller's.",
		},
		{
			name: "Commit/deadline_counts_from_the_change", run: deadlineCounts, timed: true,
			says: "The deadline is Timeout after ChangedAt, counted anew with every change.",
		},
		{
			name: "Commit/deadline_is_cleared", run: deadlineIsCleared,
			says: "A change with Timeout 0 clears the deadline.",
		},
		{
			name: "Commit/wrong_revision_conflicts", run: wrongRevision,
			says: "A change that expects an outdated revision is a conflict, even if the state is right.",
		},
		{
			name: "Commit/wrong_state_conflicts", run: wrongState,
			says: "A change that expects another state is a conflict, even if the revision is right.",
		},
		{
			name: "Commit/existence_is_part_of_the_condition", run: existence,
			says: "Creating what exists, moving or removing what does not, is a conflict.",
		},
		{
			name: "Commit/conflict_carries_the_winner", run: conflictCarries,
			says: "A conflict says what was expected and carries the whole record that is there, also where nothing is.",
		},
		{
			name: "Commit/refused_writes_nothing", run: refusedWritesNothing,
			says: "After a conflict every record is as it was.",
		},
		{
			name: "Commit/same_content_is_a_change", run: sameContent,
			says: "A commit that changes no field is a commit like any other: a new revision, one winner.",
		},
		{
			name: "Commit/malformed_is_refused", run: malformed,
			says: "A commit without changes or without a token, with two changes of one key, with a change without a state or with an epoch without an owner, and a query without limit, are refused with ErrInvalid; nothing is written.",
		},
	}
}

func createsMovesRemoves(t *trial) {
	left := t.get(key("a"))
	for range 3 {
		r := t.move(left, idle)
		same(t, "a created object", t.get(r.Key), r)
		r = t.move(r, moving)
		same(t, "a moved object", t.get(r.Key), r)
		left = t.remove(r)
	}
}

func fillsTheRecord(t *trial) {
	nonsense := time.Date(1955, 11, 5, 6, 15, 0, 0, time.UTC)
	r := t.get(key("a"))
	for range 3 {
		ch := change(r, moving)
		ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = r.Revision, nonsense, nonsense
		c, before := commitOf(ch), time.Now()
		if err := t.store.Commit(t.Context(), c); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		next := c.Changes[0].To
		ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = next.Revision, next.ChangedAt, next.Deadline
		same(t, "the caller's fields after Commit", next, ch.To)
		if next.Revision == r.Revision {
			t.Errorf("Commit left the revision at %q", r.Revision)
		}
		if next.ChangedAt.Equal(nonsense) || next.ChangedAt.IsZero() {
			t.Errorf("Commit left ChangedAt at %v", next.ChangedAt)
		}
		if d := next.ChangedAt.Sub(before); t.bubble && d.Abs() > time.Millisecond {
			t.Errorf("ChangedAt is %v off the moment of the commit", d)
		}
		if !next.Deadline.IsZero() {
			t.Errorf("Commit left the deadline at %v", next.Deadline)
		}
		r = t.get(key("a"))
		same(t, "what Get returns, against what Commit filled", r, next)
		t.pass(hour)
	}
}

func deadlineCounts(t *trial) {
	r := t.get(key("a"))
	for _, within := range []time.Duration{hour, 5 * time.Second, 1000 * hour} {
		ch := change(r, moving)
		ch.Timeout = within
		r = t.write(ch)
		if got := r.Deadline.Sub(r.ChangedAt); got != within {
			t.Errorf("the deadline is %v after the change, not %v", got, within)
		}
		same(t, "a record with a deadline", t.get(r.Key), r)
		t.pass(hour)
		r = t.get(r.Key)
		if got := r.Deadline.Sub(r.ChangedAt); got != within {
			t.Errorf("an hour later the deadline is %v after the change, not %v", got, within)
		}
	}
}

func deadlineIsCleared(t *trial) {
	ch := change(t.get(key("a")), moving)
	ch.Timeout = hour
	r := t.move(t.write(ch), broken)
	if !r.Deadline.IsZero() {
		t.Errorf("after a change with Timeout 0, Commit filled the deadline %v", r.Deadline)
	}
	if r = t.get(r.Key); !r.Deadline.IsZero() {
		t.Errorf("after a change with Timeout 0 the deadline is %v", r.Deadline)
	}
}

func wrongRevision(t *trial) {
	first := t.put(key("a"), idle)
	now := t.move(first, idle)
	outdated := change(now, moving)
	outdated.Expect = first.Revision
	t.refused(commitOf(outdated), "an outdated revision and the right state")
	outdated = removal(now)
	outdated.Expect = first.Revision
	t.refused(commitOf(outdated), "an outdated revision and the right state, to remove the object")
	t.stays("a commit with an outdated revision", now)
}

func wrongState(t *trial) {
	now := t.put(key("a"), idle)
	for _, from := range []string{moving, "idle", "Idle ", "Idl", ""} {
		wrong := change(now, broken)
		wrong.From = from
		t.refused(commitOf(wrong), "the right revision and state "+show(from)+" instead of "+show(idle))
		wrong = removal(now)
		wrong.From = from
		t.refused(commitOf(wrong), "the right revision and state "+show(from)+" instead of "+show(idle)+", to remove the object")
	}
	t.stays("commits with a wrong state", now)
}

func existence(t *trial) {
	absent := t.get(key("a"))
	moves := change(absent, moving)
	moves.From = idle
	t.refused(commitOf(moves), "a move of an object that never existed")
	removes := removal(absent)
	removes.From = idle
	t.refused(commitOf(removes), "a removal of an object that never existed")
	t.stays("moves of an absent object", absent)

	now := t.move(absent, idle)
	t.refused(commitOf(change(absent, moving)), "a second creation")
	created := change(now, moving)
	created.From = ""
	t.refused(commitOf(created), "a creation at the revision of the object that exists")
	t.stays("creations of an object that exists", now)

	left := t.remove(now)
	t.refused(commitOf(change(now, moving)), "a move of a removed object")
	t.refused(commitOf(removal(now)), "a second removal")
	moves = change(left, moving)
	moves.From = idle
	t.refused(commitOf(moves), "a move at the revision of a removed object")
	t.stays("moves of a removed object", left)
}

func conflictCarries(t *trial) {
	never := t.get(key("a"))
	ch := change(never, moving)
	sequence := ch.To.Sequence
	ch.To, ch.Timeout = full(ch.To.Key), hour
	ch.To.Sequence = sequence
	now := t.write(ch)

	outdated := change(now, broken)
	outdated.Expect = never.Revision
	conflict := t.refused(commitOf(outdated), "an outdated revision")
	same(t, "the record in the conflict", conflict.Current, now)
	if conflict.Expect != outdated.Expect || conflict.From != outdated.From || conflict.Change != 0 {
		t.Errorf("the conflict is of change %d that expected %q at %q, not of change 0 that expected %q at %q",
			conflict.Change, conflict.From, conflict.Expect, outdated.From, outdated.Expect)
	}
	left := t.remove(now)
	conflict = t.refused(commitOf(change(now, broken)), "a move of a removed object")
	same(t, "the record of a removed object in the conflict", conflict.Current, left)

	absent := t.get(key("b"))
	moves := change(absent, broken)
	moves.From = idle
	conflict = t.refused(commitOf(moves), "a move of an object that never existed")
	same(t, "the record of an absent object in the conflict", conflict.Current, absent)
}

func refusedWritesNothing(t *trial) {
	first := t.put(key("a"), idle)
	now := t.move(first, moving)
	other := t.put(key("b"), idle)
	for range 3 {
		t.refused(commitOf(change(first, broken)), "an outdated revision")
		t.refused(commitOf(removal(first)), "an outdated revision")
		t.stays("a conflict", now, other)
	}
	found := t.list(lifecycle.Query{Machine: machine})
	if len(found) != 2 {
		t.Fatalf("after conflicts there are %d objects, not 2", len(found))
	}
	same(t, "the first object in the list", found[0], now)
	same(t, "the second object in the list", found[1], other)
	t.move(now, idle) // and it can go on
}

func sameContent(t *trial) {
	r := t.put(key("a"), idle)
	for range 3 {
		ch := lifecycle.StoredChange{Expect: r.Revision, From: idle, FromOrigin: idle, To: r}
		ch.To.Sequence++
		next := t.write(ch)
		if next.Revision == r.Revision {
			t.Fatalf("two commits have the revision %q", r.Revision)
		}
		same(t, "a record written with the same content", t.get(r.Key), next)
		t.refused(commitOf(lifecycle.StoredChange{Expect: r.Revision, From: idle, FromOrigin: idle, To: ch.To}),
			"the same content at the revision before")
		r = next
	}
}

func malformed(t *trial) {
	r := t.put(key("a"), idle)
	nameless := change(r, "")
	twice := commitOf(change(r, moving), change(r, broken))
	ownerless := change(r, moving)
	ownerless.To.Epoch = 1
	unnamed := commitOf(change(r, moving))
	unnamed.Token = lifecycle.Token{}
	for what, c := range map[string]*lifecycle.Commit{
		"without changes":             commitOf(),
		"with a change without state": commitOf(nameless),
		"with an epoch and no owner":  commitOf(ownerless),
		"with two changes of one key": twice,
		"without a token":             unnamed,
	} {
		t.invalid("a commit "+what, t.store.Commit(t.Context(), c))
	}
	for _, limit := range []int{0, -1} {
		_, err := t.store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: limit})
		t.invalid("a query with limit "+show(limit), err)
	}
	t.stays("malformed commits", r)
}
