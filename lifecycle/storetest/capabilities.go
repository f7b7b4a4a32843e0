package storetest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

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

// A commit that needs more than the store declares returns errors.ErrUnsupported, and the
// store writes nothing: more changes and preconditions, a message, a Request, or a Version or
// Fence in a store that is Bare.
func undeclaredIsRefused(t *tester) {
	first := t.get(key("0"))
	for what, beyond := range map[string]struct {
		undeclared bool
		add        func(c *lifecycle.Commit)
	}{
		"more changes": {true, func(c *lifecycle.Commit) {
			for i := range t.has.Changes {
				other := first
				other.ID = fmt.Sprint(1 + i)
				c.Changes = append(c.Changes, change(other, idle))
			}
		}},
		"more preconditions": {true, func(c *lifecycle.Commit) {
			for i := range t.has.Changes {
				c.Require = append(c.Require, lifecycle.Precondition{Key: key(fmt.Sprint(1 + i)), States: []string{""}})
			}
		}},
		"a message": {!t.has.Messages, func(c *lifecycle.Commit) { c.Messages = []lifecycle.Message{{Topic: "t"}} }},
		"a version": {t.config.Bare, func(c *lifecycle.Commit) { c.Changes[0].To.Version = "2" }},
		"a fence":   {t.config.Bare, func(c *lifecycle.Commit) { c.Changes[0].To.Fence = 7 }},
		"a request": {t.has.History && !t.keepsRequests(), func(c *lifecycle.Commit) { c.Changes[0].Request = "r" }},
	} {
		if c := commitOf(change(first, idle)); beyond.undeclared {
			beyond.add(c)
			require.ErrorIs(t, t.send(c), errors.ErrUnsupported, what)
		}
	}
	t.unchanged("refused commits", first)
	t.finds(query())
}

// keepsRequests reports whether the store keeps the requests of changes.
func (t *tester) keepsRequests() bool {
	if !t.has.History {
		return false
	}
	_, err := t.store().(lifecycle.Historian).Requested(t.Context(), machine, "r")
	return !errors.Is(err, errors.ErrUnsupported)
}

// A malformed commit and a query without a limit are refused with ErrInvalid, and the
// store writes nothing.
func malformedIsRefused(t *tester) {
	r, absent := t.put("a", idle), t.get(key("b"))
	ownerless := change(r, moving)
	ownerless.To.Epoch = 1
	tokenless := commitOf(change(r, moving))
	tokenless.Token = lifecycle.Token{}
	nameless := commitOf(change(r, moving))
	nameless.Owner.Epoch = 1
	metadata := func(before lifecycle.StoredRecord, state string, remove bool) *lifecycle.Commit {
		ch := takeOver(before, "one", 1)
		ch.To.State, ch.Remove = state, remove
		return commitOf(ch)
	}
	for name, c := range map[string]*lifecycle.Commit{
		"no changes":                 commitOf(),
		"no token":                   tokenless,
		"two changes of one key":     commitOf(change(r, moving), change(r, broken)),
		"a change without a state":   commitOf(change(r, "")),
		"an epoch without an owner":  commitOf(ownerless),
		"a writer without a name":    nameless,
		"metadata of another state":  metadata(r, idle+"x", false),
		"metadata of a removal":      metadata(r, idle, true),
		"metadata of a new object":   metadata(absent, idle, false),
		"two changes, one malformed": commitOf(change(absent, idle), change(r, "")),
	} {
		if len(c.Changes) <= t.has.Changes {
			require.ErrorIs(t, t.send(c), lifecycle.ErrInvalid, name)
		}
	}
	for _, limit := range []int{0, -1} {
		_, err := t.store().List(t.Context(), lifecycle.Query{Machine: machine, Limit: limit})
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "a query with limit %d", limit)
	}
	t.unchanged("malformed commits", r)
	t.finds(query(), "a")
}

// A commit that requires the grant of a lock which the store cannot compare is refused with
// errors.ErrUnsupported. If the store can compare it, a lost grant fails the precondition.
// In both cases nothing is written.
func grantsAreHeld(t *tester) {
	t.needsChanges(2)
	var tree lock.Tree
	grant, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
	require.NoError(t, err)
	before := t.get(key("a"))
	for _, want := range []error{nil, lifecycle.ErrPrecondition} {
		if want != nil {
			require.NoError(t, tree.Break(t.Context(), grant.Token(), "test"))
		}
		c := commitOf(change(before, idle))
		c.Require = []lifecycle.Precondition{{Grant: grant}}
		err := t.send(c)
		if !errors.Is(err, errors.ErrUnsupported) {
			require.ErrorIs(t, err, want)
		}
		if err == nil {
			before = c.Changes[0].To
		}
		t.unchanged("a commit with a grant", before)
	}
}
