package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// A record refuses tokens that are lower than one that it has seen, also after the object
// was removed and made again.
func TestFence(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	with := func(token lock.Token) error {
		_, err := m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{Fence: token})
		return err
	}
	require.NoError(t, with(7))
	require.NoError(t, with(7), "the same holder")
	require.NoError(t, with(0), "a change without a token is not compared")
	before := get(t, m, "a")
	err := with(6)
	require.ErrorIs(t, err, lock.ErrStaleToken)
	require.ErrorContains(t, err, "token 6 is stale: the fence has admitted token 7")
	require.Equal(t, 409, lifecycle.HTTPStatus(err))
	require.Equal(t, before, get(t, m, "a"))
	require.NoError(t, with(9))
	r := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "a"})
	require.EqualValues(t, 9, r.Fence)

	_, err = m.Override(t.Context(), "a", "Failed", user, "broken", &lifecycle.Change[size]{Fence: 8})
	require.ErrorIs(t, err, lock.ErrStaleToken, "no verb skips the fence")
	require.ErrorIs(t, commitAll(t.Context(), firing(m, "a", "touch", user, &lifecycle.Change[size]{Fence: 8})), lock.ErrStaleToken)
}

// A commit requires a grant: one that was lost or released writes nothing.
func TestGrantIsRequired(t *testing.T) {
	var tree lock.Tree
	m, _ := vms(t)
	ready(t, m, "a")
	acquire := func() *lock.Grant {
		g, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/vm/a"), Mode: lock.X}, nil)
		require.NoError(t, err)
		return g
	}
	under := func(ctx context.Context, g *lock.Grant) error {
		_, err := m.Fire(ctx, "a", "touch", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{{Grant: g}}})
		return err
	}
	g := acquire()
	require.NoError(t, under(t.Context(), g))
	require.Empty(t, explain(t, m, "a", lifecycle.Precondition{Grant: g}, m.Require("a", "Ready")).Blocked)
	require.NoError(t, tree.Revoke(t.Context(), g.Token(), "upgrade of the host"))
	require.NoError(t, under(t.Context(), g), "a revoked grant is held until its holder unlocks")
	require.NoError(t, tree.Break(t.Context(), g.Token(), "the holder is gone"))
	before := get(t, m, "a")
	err := under(t.Context(), g)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.ErrorIs(t, err, lock.ErrLost)
	require.NotErrorIs(t, &lifecycle.PreconditionError{}, lock.ErrLost, "a condition on an object")
	require.Equal(t, 412, lifecycle.HTTPStatus(err))
	require.Equal(t, []string{"precondition: the grant with token 1 is not held"}, explain(t, m, "a", lifecycle.Precondition{Grant: g}).Blocked)

	g = acquire()
	require.NoError(t, g.Unlock(t.Context()))
	require.ErrorIs(t, under(t.Context(), g), lock.ErrNotHeld)
	g = acquire()
	const mixed = "precondition with a grant and with a key or states"
	for _, bad := range []struct {
		condition lifecycle.Precondition
		text      string
	}{
		{lifecycle.Precondition{Key: lifecycle.Key{Machine: "vm", ID: "a"}, Grant: g}, mixed},
		{lifecycle.Precondition{States: []string{"Ready"}, Grant: g}, mixed},
		{lifecycle.Precondition{Grant: nil}, "precondition with neither a grant nor an id"},
		{m.Require("a\x00", "Ready"), `NUL in id of a precondition "a\x00"`},
		{lifecycle.Precondition{Key: lifecycle.Key{Machine: "vm", ID: "b"}}, `precondition on vm "b" without states`},
	} {
		_, err = m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{bad.condition}})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.EqualError(t, err, `lifecycle: fire vm "a": touch by user: invalid request: `+bad.text)
		_, err = m.Explain(t.Context(), "a", bad.condition)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, bad.text)
	}
	require.Equal(t, before, get(t, m, "a"))
}

// The grant is lost after it was checked, and before the commit: the store refuses.
func TestGrantIsLostBeforeTheCommit(t *testing.T) {
	var tree lock.Tree
	m, _ := vms(t)
	before := ready(t, m, "a")
	g, err := tree.TryLock(t.Context(), lock.Request{Path: lock.Root(), Mode: lock.X}, nil)
	require.NoError(t, err)
	_, err = m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{
		Require: []lifecycle.Precondition{{Grant: g}},
		Edit:    func(*size) error { return tree.Break(t.Context(), g.Token(), "in between") },
	})
	var failed *lifecycle.PreconditionError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, lock.ErrLost)
	require.ErrorContains(t, err, "precondition failed: the grant with token 1 is not held")
	require.Equal(t, before, get(t, m, "a"))
}
