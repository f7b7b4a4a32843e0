package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// A store takes at least one change, is a Historian if it declares History, and an
// Outbox if it declares Messages. The declaration never changes, and all stores over the
// same data have the same. Two stores can be compared.
func capabilitiesAreHonest(t *tester) {
	require.True(t, reflect.ValueOf(t.stores[0]).Comparable(), "the type of the store is not comparable: return a pointer")
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

// A malformed commit and a query without a limit are refused with ErrInvalid. A commit that needs
// more than the store declares is refused with errors.ErrUnsupported: more changes and
// preconditions, a message, a Request, or a Version or Fence in a store that is Bare. Nothing is
// written.
func commitsAreRefused(t *tester) {
	r, absent := t.put("a", idle), t.get(key("b"))
	refuse := func(what string, want error, edit func(c *lifecycle.Commit)) {
		c := commitOf(change(r, moving))
		edit(c)
		if len(c.Changes) <= t.has.Changes || want == errors.ErrUnsupported {
			require.ErrorIs(t, t.send(c), want, what)
		}
	}
	invalid, unsupported := lifecycle.ErrInvalid, errors.ErrUnsupported
	refuse("no changes", invalid, func(c *lifecycle.Commit) { c.Changes = nil })
	refuse("no token", invalid, func(c *lifecycle.Commit) { c.Token = lifecycle.Token{} })
	refuse("two changes of one key", invalid, func(c *lifecycle.Commit) { c.Changes = append(c.Changes, change(r, broken)) })
	refuse("a change without a state", invalid, func(c *lifecycle.Commit) { c.Changes[0].To.State = "" })
	refuse("an epoch without an owner", invalid, func(c *lifecycle.Commit) { c.Changes[0].To.Epoch = 1 })
	refuse("a writer without a name", invalid, func(c *lifecycle.Commit) { c.Owner.Epoch = 1 })
	refuse("metadata of another state", invalid, func(c *lifecycle.Commit) { c.Changes[0].MetadataOnly = true })
	refuse("metadata of a removal", invalid, func(c *lifecycle.Commit) {
		c.Changes[0] = change(r, idle)
		c.Changes[0].MetadataOnly, c.Changes[0].Remove = true, true
	})
	refuse("metadata of a new object", invalid, func(c *lifecycle.Commit) { c.Changes[0].From, c.Changes[0].MetadataOnly = "", true })
	refuse("two changes, one malformed", invalid, func(c *lifecycle.Commit) { c.Changes = append(c.Changes, change(absent, "")) })
	refuse("more changes", unsupported, func(c *lifecycle.Commit) {
		for i := range t.has.Changes {
			absent.ID = fmt.Sprint(i)
			c.Changes = append(c.Changes, change(absent, idle))
		}
	})
	refuse("more preconditions", unsupported, func(c *lifecycle.Commit) {
		for i := range t.has.Changes {
			c.Require = append(c.Require, lifecycle.Precondition{Key: key(fmt.Sprint(i)), States: []string{""}})
		}
	})
	if !t.has.Messages {
		refuse("a message", unsupported, func(c *lifecycle.Commit) { c.Messages = []lifecycle.Message{{Topic: "t"}} })
	}
	if t.config.Bare {
		refuse("a version", unsupported, func(c *lifecycle.Commit) { c.Changes[0].To.Version = "2" })
		refuse("a fence", unsupported, func(c *lifecycle.Commit) { c.Changes[0].To.Fence = 7 })
	}
	if t.has.History && !t.keepsRequests() {
		refuse("a request", unsupported, func(c *lifecycle.Commit) { c.Changes[0].Request = "r" })
	}
	for _, limit := range []int{0, -1} {
		_, err := t.store().List(t.Context(), lifecycle.Query{Machine: machine, Limit: limit})
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "a query with limit %d", limit)
	}
	t.unchanged("refused commits", r)
	t.finds(query(), "a")
}

// A commit may have as many changes and preconditions as the store declares, here up to 256, in
// any proportion. Its owner, its messages and the requests of its changes do not count.
func asManyAsDeclared(t *tester) {
	o, n := owner("process", 1), min(t.has.Changes, 256)
	t.join(o, alive)
	requests := t.keepsRequests()
	for round, changes := range []int{1, (n + 1) / 2, n} {
		c := commitOf()
		c.Owner, c.Messages = o, t.messages("one", "two")
		for i := range n {
			k := key(fmt.Sprint("object ", i))
			if i >= changes {
				c.Require = append(c.Require, lifecycle.Precondition{Key: k, States: []string{"", idle}})
				continue
			}
			ch := change(t.get(k), idle)
			if requests {
				ch.Request = fmt.Sprint("request ", i, " of commit ", round)
			}
			c.Changes = append(c.Changes, ch)
		}
		require.NoError(t, t.send(c), "a commit of %d changes and %d preconditions: the store declares %d in all", changes, n-changes, t.has.Changes)
	}
}

// keepsRequests reports whether the store keeps the requests of changes.
func (t *tester) keepsRequests() bool {
	if !t.has.History {
		return false
	}
	_, err := t.store().(lifecycle.Historian).Requested(t.Context(), machine, "r")
	return !errors.Is(err, errors.ErrUnsupported)
}

// A commit that requires the grant of a lock which the store cannot compare is refused with
// errors.ErrUnsupported. If the store can compare it, a lost grant fails the precondition, and a
// revoked one is still held. Nothing is written with an error.
func grantsAreHeld(t *tester) {
	t.needsTwoChanges()
	var tree lock.Tree
	grant, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
	require.NoError(t, err)
	before := t.get(key("a"))
	for _, end := range []struct {
		grant string
		by    func(ctx context.Context, token lock.Token, reason string) error
		want  error
	}{{"held", nil, nil}, {"revoked", tree.Revoke, nil}, {"lost", tree.Break, lifecycle.ErrPrecondition}} {
		if end.by != nil {
			require.NoError(t, end.by(t.Context(), grant.Token(), "test"))
		}
		c := commitOf(change(before, idle))
		c.Require = []lifecycle.Precondition{{Grant: grant}}
		err := t.send(c)
		if !errors.Is(err, errors.ErrUnsupported) {
			require.ErrorIs(t, err, end.want, "a commit that requires a grant, which is %s", end.grant)
		}
		if err == nil {
			before = c.Changes[0].To
		}
		t.unchanged("a commit with a grant", before)
	}
}
