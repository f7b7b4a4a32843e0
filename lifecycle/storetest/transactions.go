package storetest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

var transactionDemands = []demand{
	{name: "Transaction/grants_are_held_or_nothing_is_written", check: grantsAreHeld},
	{name: "Transaction/owner_is_alive_or_nothing_is_written", check: ownerIsAlive},
	{name: "Transaction/owner_is_compared_last", check: ownerIsComparedLast},
}

// A commit that requires the grant of a lock which the store cannot compare is refused with
// errors.ErrUnsupported. If the store can compare it, a lost grant fails the precondition.
// In both cases nothing is written.
func grantsAreHeld(t *tester) {
	t.needsChanges(2)
	var tree lock.Tree
	grant, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
	require.NoError(t, err)
	write := func() error {
		c := commitOf(change(t.get(key("a")), idle))
		c.Require = []lifecycle.Precondition{{Grant: grant}}
		return send(t.Context(), t.store, c)
	}
	before := t.get(key("a"))
	if err := write(); err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		t.unchanged("an unsupported commit", before)
	}
	before = t.get(key("a"))
	require.NoError(t, tree.Break(t.Context(), grant.Token(), "test"))
	if err := write(); !errors.Is(err, errors.ErrUnsupported) {
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	}
	t.unchanged("a commit under a lost grant", before)
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
