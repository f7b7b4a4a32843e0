package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var transactionDemands = []demand{
	{name: "Transaction/changes_several_objects", check: changesSeveralObjects},
	{name: "Transaction/writes_all_or_nothing", check: writesAllOrNothing},
	{name: "Transaction/conflict_names_the_first_change", check: conflictNamesTheFirstChange},
	{name: "Transaction/preconditions_hold_or_nothing_is_written", check: preconditionsHold},
	{name: "Transaction/absence_is_a_precondition", check: absenceIsAPrecondition},
	{name: "Transaction/preconditions_see_the_state_before", check: preconditionsSeeTheStateBefore},
	{name: "Transaction/owner_is_alive_or_nothing_is_written", check: ownerIsAlive},
	{name: "Transaction/owner_is_compared_last", check: ownerIsComparedLast},
}

// One commit creates, moves and removes several objects, also of different machines.
func changesSeveralObjects(t *tester) {
	t.needsChanges(4)
	moved, removed := t.put("moved", idle), t.put("removed", idle)
	created, foreign := t.get(key("created")), t.get(lifecycle.Key{Machine: "truck", ID: "created"})
	c := commitOf(change(created, idle), change(moved, moving), removal(removed), change(foreign, broken))
	t.commit(c)
	t.unchanged("a commit of four changes", c.Changes[0].To, c.Changes[1].To, c.Changes[3].To)
	t.absent(removed.Key)
}

// If one change is a conflict, no change is written, wherever it stands.
func writesAllOrNothing(t *tester) {
	t.needsChanges(3)
	a, old := t.put("a", idle), t.put("b", idle)
	b, never := t.move(old, idle), t.get(key("c"))
	good, bad, creates := change(a, moving), change(old, moving), change(never, moving)
	for _, c := range []*lifecycle.Commit{
		commitOf(good, bad, creates), commitOf(bad, good, creates), commitOf(creates, good, bad),
		commitOf(removal(a), bad), commitOf(good, removal(old)),
	} {
		t.conflict(c, "one outdated revision")
		t.unchanged("a conflict", a, b, never)
	}
}

// A conflict has the index, the expectation and the current record of the first
// change whose expectation fails.
func conflictNamesTheFirstChange(t *tester) {
	t.needsChanges(3)
	current := map[string]lifecycle.StoredRecord{}
	var good, bad [3]lifecycle.StoredChange
	for i, id := range []string{"a", "b", "c"} {
		old := t.put(id, idle)
		current[id] = t.move(old, idle)
		good[i], bad[i] = change(current[id], moving), change(old, moving)
	}
	for _, c := range []struct {
		changes []lifecycle.StoredChange
		first   int
	}{
		{[]lifecycle.StoredChange{bad[0], good[1], good[2]}, 0},
		{[]lifecycle.StoredChange{good[0], bad[1], good[2]}, 1},
		{[]lifecycle.StoredChange{good[0], good[1], bad[2]}, 2},
		{[]lifecycle.StoredChange{good[2], good[1], bad[0]}, 2}, // not in the order of ids
		{[]lifecycle.StoredChange{good[2], bad[1], bad[0]}, 1},
		{[]lifecycle.StoredChange{bad[2], bad[1], bad[0]}, 0},
	} {
		failed := c.changes[c.first]
		want := lifecycle.ConflictError{Change: c.first, Expect: failed.Expect, From: failed.From, Current: current[failed.To.ID]}
		equal(t, want, *t.conflict(commitOf(c.changes...), "outdated revisions"), "the conflict")
	}
}

// requires commits a move of an object with preconditions.
func (t *tester) requires(r lifecycle.StoredRecord, conditions ...lifecycle.Precondition) error {
	c := commitOf(change(r, moving))
	c.Require = conditions
	return send(t.Context(), t.store, c)
}

// unmet requires that a move of r is refused because of the precondition p, although the
// others hold.
func (t *tester) unmet(
	r lifecycle.StoredRecord, p lifecycle.Precondition, current lifecycle.StoredRecord, others ...lifecycle.Precondition,
) {
	t.Helper()
	err := t.requires(r, append(others, p)...)
	var unmet *lifecycle.PreconditionError
	require.ErrorAs(t, err, &unmet, "%q instead of %q is required", p.States, current.State)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	equal(t, lifecycle.PreconditionError{Precondition: p, Current: current}, *unmet, "the error")
}

// A commit is written only if every required object is in one of the states. The error
// is otherwise a *PreconditionError with the precondition and the current record.
func preconditionsHold(t *tester) {
	t.needsChanges(3)
	a, other := t.put("a", idle), t.put("other", idle)
	third := t.move(t.get(lifecycle.Key{Machine: "truck", ID: "other"}), broken)
	holds := lifecycle.Precondition{Key: third.Key, States: []string{idle, broken}}
	for _, states := range [][]string{{moving}, {moving, broken}, {"idle"}, {""}, {}} {
		p := lifecycle.Precondition{Key: other.Key, States: states}
		t.unmet(a, p, other)
		t.unmet(a, p, other, holds)
		require.ErrorIs(t, t.requires(a, p, holds), lifecycle.ErrPrecondition)
		t.unchanged("a failed precondition", a, other, third)
	}
	p := lifecycle.Precondition{Key: other.Key, States: []string{moving, idle}}
	require.NoError(t, t.requires(a, p, holds))
	t.unchanged("a commit that required them", other, third)
}

// The empty state in a precondition means that the object does not exist: that it
// never existed, or was removed.
func absenceIsAPrecondition(t *tester) {
	t.needsChanges(2)
	a := t.put("a", idle)
	for _, absent := range []lifecycle.StoredRecord{t.get(key("never")), t.remove(t.put("removed", idle))} {
		t.unmet(a, lifecycle.Precondition{Key: absent.Key, States: []string{idle}}, absent)
		require.NoError(t, t.requires(a, lifecycle.Precondition{Key: absent.Key, States: []string{idle, ""}}))
		a = t.get(a.Key)
	}
	t.unmet(t.put("b", idle), lifecycle.Precondition{Key: a.Key, States: []string{""}}, a)
}

// A precondition on an object that the same commit changes is about its state before.
func preconditionsSeeTheStateBefore(t *tester) {
	t.needsChanges(3)
	a, b := t.put("a", idle), t.put("b", idle)
	t.unmet(a, lifecycle.Precondition{Key: a.Key, States: []string{moving}}, a)
	c := commitOf(change(a, moving), change(b, moving))
	c.Require = []lifecycle.Precondition{{Key: b.Key, States: []string{idle}}}
	t.commit(c)
}

// The states of an owner's record.
const (
	alive = "alive"
	dead  = "dead"
)

// join writes the record of an owner, and returns it.
func (t *tester) join(o lifecycle.OwnerRef, state string) lifecycle.StoredRecord {
	t.Helper()
	ch := change(t.get(o.Key()), state)
	ch.To.Operation = lifecycle.OpID(o.Epoch)
	r := t.write(ch)
	require.Equal(t, state == alive, o.Alive(&r))
	return r
}

// A commit with an owner returns an *OwnerError and writes nothing, if the owner's
// record does not exist, is not alive, or has another epoch. Heartbeats of the owner do
// not matter.
func ownerIsAlive(t *tester) {
	o, a, never := owner("process/1", 3), t.put("a", idle), t.get(key("never"))
	refused := func(why string) {
		t.Helper()
		for _, ch := range []lifecycle.StoredChange{change(a, moving), change(never, moving), removal(a), takeOver(a, "two", 1)} {
			c := commitOf(ch)
			c.Owner = o
			if t.has.Messages {
				c.Messages = []lifecycle.Message{message("refused")}
			}
			var lost *lifecycle.OwnerError
			err := send(t.Context(), t.store, c)
			require.ErrorAs(t, err, &lost, why)
			require.ErrorIs(t, err, lifecycle.ErrStale, why)
			require.Equal(t, o, lost.Owner)
		}
		t.unchanged("a commit of "+why, a, never)
		t.outbox(nil, "a commit of "+why)
	}
	refused("an owner without a record")
	for range 2 {
		t.join(owner(o.Name, 2), alive)
		refused("an owner of a later epoch")
		beat := t.join(o, alive)
		for range 2 {
			c := commitOf(change(a, idle))
			c.Owner = o
			t.commit(c)
			a = c.Changes[0].To
			beat = t.write(takeOver(beat, "", 0))
		}
		t.join(o, dead)
		refused("a dead owner")
		t.join(owner(o.Name, 4), alive)
		refused("an owner of an earlier epoch")
		t.remove(t.get(o.Key()))
		refused("an owner that has left")
	}
}

// A conflict and a failed precondition are reported before a dead owner. A commit that
// was written before its owner died can be sent again.
func ownerIsComparedLast(t *tester) {
	o, old := owner("process", 1), t.put("a", idle)
	t.join(o, alive)
	c := commitOf(change(old, idle))
	c.Owner = o
	s := t.sent(c)
	t.join(o, dead)
	t.repeat(s, "after the death of its owner")
	c = commitOf(change(old, moving))
	c.Owner = o
	t.conflict(c, "an outdated revision, and a dead owner")
	if t.has.Changes >= 2 {
		c = commitOf(change(s.filled.Changes[0].To, moving))
		c.Owner, c.Require = o, []lifecycle.Precondition{{Key: key("b"), States: []string{idle}}}
		require.ErrorIs(t, send(t.Context(), t.store, c), lifecycle.ErrPrecondition)
	}
	t.unchanged("refused commits", s.filled.Changes[0].To)
}
