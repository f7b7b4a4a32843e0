package storetest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var capabilityDemands = []demand{
	{name: "Capabilities/are_honest", check: capabilitiesAreHonest},
	{name: "Capabilities/undeclared_changes_are_refused", check: undeclaredChangesAreRefused},
	{name: "Capabilities/undeclared_messages_are_refused", check: undeclaredMessagesAreRefused},
	{name: "Capabilities/versions_are_kept_or_refused", check: versionsAreKeptOrRefused},
}

// A store takes at least one change, is a Historian if it declares History, and an
// Outbox if it declares Messages. The declaration never changes, and all stores over the
// same data have the same.
func capabilitiesAreHonest(t *tester) {
	require.GreaterOrEqual(t, t.has.Changes, 1, "every store takes one change in a commit")
	if t.has.History {
		require.Implements(t, (*lifecycle.Historian)(nil), t.stores[0])
	}
	if t.has.Messages {
		require.Implements(t, (*lifecycle.Outbox)(nil), t.stores[0])
	}
	t.remove(t.put("a", idle))
	t.list(query())
	for _, store := range t.stores {
		require.Equal(t, t.has, store.Capabilities(), "the capabilities have changed")
	}
}

// A commit with more changes and preconditions than declared returns
// errors.ErrUnsupported, and the store writes nothing.
func undeclaredChangesAreRefused(t *tester) {
	first := t.get(key("0"))
	changes, conditions := commitOf(), commitOf(change(first, idle))
	for i := range t.has.Changes + 1 {
		r := lifecycle.StoredRecord{Key: key(fmt.Sprint(i)), Revision: first.Revision, Sequence: first.Sequence}
		changes.Changes = append(changes.Changes, change(r, idle))
	}
	for i := range t.has.Changes {
		p := lifecycle.Precondition{Key: key(fmt.Sprint("other", i)), States: []string{""}}
		conditions.Require = append(conditions.Require, p)
	}
	for _, c := range []*lifecycle.Commit{changes, conditions} {
		require.ErrorIs(t, send(t.Context(), t.store, c), errors.ErrUnsupported,
			"%d changes, %d preconditions", len(c.Changes), len(c.Require))
	}
	t.unchanged("refused commits", first)
	t.finds(query())
}

// A store that does not declare Messages refuses a commit with a message with
// errors.ErrUnsupported and writes nothing.
func undeclaredMessagesAreRefused(t *tester) {
	t.needs(!t.has.Messages, "the store declares Messages")
	before := t.get(key("a"))
	c := commitOf(change(before, idle))
	c.Messages = []lifecycle.Message{message("one")}
	require.ErrorIs(t, send(t.Context(), t.store, c), errors.ErrUnsupported)
	t.unchanged("a refused commit", before)
}

// A store keeps the Version and Fence of a record until another change sets them, or
// refuses them with errors.ErrUnsupported and writes nothing. The records of objects that
// were removed have no Version.
func versionsAreKeptOrRefused(t *tester) {
	before := t.get(key("a"))
	ch := change(before, idle)
	ch.To.Version = "2"
	if t.config.Bare {
		require.ErrorIs(t, send(t.Context(), t.store, commitOf(ch)), errors.ErrUnsupported)
		ch.To.Version, ch.To.Fence = "", 7
		require.ErrorIs(t, send(t.Context(), t.store, commitOf(ch)), errors.ErrUnsupported)
		t.unchanged("a refused commit", before)
		return
	}
	ch.To.Fence = 7
	r := t.write(ch)
	t.unchanged("a commit with a version", r)
	r = t.write(takeOver(r, "one", 1))
	now := t.get(r.Key)
	require.Equal(t, "2", now.Version, "after a MetadataOnly change")
	require.EqualValues(t, 7, now.Fence, "after a MetadataOnly change")
	t.write(removal(r))
	require.Empty(t, t.get(r.Key).Version, "after the removal")
}
