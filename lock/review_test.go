package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// doneEarly is a context that breaks its contract: it is done, and has no error.
type doneEarly struct {
	context.Context
	done chan struct{}
}

func (c doneEarly) Done() <-chan struct{} { return c.done }

// A context that is done without an error gets no lock for it, and leaves
// nothing behind.
func TestDoneWithoutError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tree lock.Tree
		holder := take(t, &tree, "X at /a", named("holder"))
		odd := doneEarly{t.Context(), make(chan struct{})}
		close(odd.done)
		h, err := tree.Lock(odd, req("X at /a"), nil)
		require.Nil(t, h)
		require.ErrorIs(t, err, context.Canceled)
		unlock(t, holder)
		idle(t, &tree)
	})
}

// A repeated id never returns less than it asks for.
func TestRepeatedIDAfterConversions(t *testing.T) {
	var tree lock.Tree
	ctx := t.Context()
	h := take(t, &tree, "S at /a", named("one"))
	require.NoError(t, h.Upgrade(ctx, lock.X))
	again, err := tree.TryLock(ctx, req("S at /a"), named("one"))
	require.NoError(t, err, "an upgraded grant is more than was asked for")
	require.Same(t, h, again)
	require.NoError(t, h.Downgrade(ctx, lock.IS))
	unchanged(t, &tree, func() {
		_, err = tree.TryLock(ctx, req("S at /a"), named("one"))
		require.ErrorIs(t, err, lock.ErrIDInUse)
		require.Equal(t, []string{"IS at /a held as one"}, names(t, err))
	})
	unlock(t, h)
	idle(t, &tree)
}

// Two who work under one id: the second learns that the first released the lock
// under its hands.
func TestDoOfTwoUnderOneID(t *testing.T) {
	var tree lock.Tree
	ctx := t.Context()
	outer := lock.Do(ctx, &tree, req("X at /a"), named("one"), func(ctx context.Context, h *lock.Held) error {
		require.NoError(t, lock.Do(ctx, &tree, req("X at /a"), named("one"), func(context.Context, *lock.Held) error { return nil }))
		require.ErrorIs(t, h.Check(), lock.ErrNotHeld)
		return nil
	})
	require.ErrorIs(t, outer, lock.ErrNotHeld)
	idle(t, &tree)
}

// Who fails because it was asked to stop says by whom.
func TestDoAfterRevoke(t *testing.T) {
	var tree lock.Tree
	for _, fails := range []bool{true, false} {
		err := lock.Do(t.Context(), &tree, req("X at /a"), nil, func(ctx context.Context, h *lock.Held) error {
			require.NoError(t, tree.Revoke(t.Context(), h.Token(), "maintenance at noon"))
			if fails {
				return ctx.Err()
			}
			return nil
		})
		require.Equal(t, fails, err != nil, "%v", err)
		if fails {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, lock.ErrRevoked)
			require.ErrorContains(t, err, "maintenance at noon")
		}
	}
	idle(t, &tree)
}

// The code of an engine gets from a handle to its own side of it.
func TestGrantOfHeld(t *testing.T) {
	var tree lock.Tree
	h := take(t, &tree, "X at /a", nil)
	require.Equal(t, h.Token(), h.Grant().Token())
	unlock(t, h)
}

// What others wrote does not break the lines of a log.
func TestHostileTextsAreQuoted(t *testing.T) {
	var tree lock.Tree
	h, err := tree.TryLock(t.Context(), req("X at /a"), &lock.Options{
		ID: "id\u202e", Owner: "ann\n2026 all is well", Reason: "\x1b[2Jgone",
	})
	require.NoError(t, err)
	_, err = tree.TryLock(t.Context(), req("X at /a"), nil)
	require.NotContains(t, err.Error(), "\n")
	require.NotContains(t, err.Error(), "\x1b")
	require.NotContains(t, err.Error(), "\u202e")
	require.Contains(t, err.Error(), `by "ann\n2026 all is well" as "id\u202e" ("\x1b[2Jgone")`)
	for _, reason := range []string{"a\x00b", "\xff", strings.Repeat("x", lock.MaxText+1)} {
		require.ErrorIs(t, tree.Revoke(t.Context(), h.Token(), reason), lock.ErrInvalid)
		require.ErrorIs(t, tree.Break(t.Context(), h.Token(), reason), lock.ErrInvalid)
	}
	require.NoError(t, h.Check())
	require.NoError(t, tree.Break(t.Context(), h.Token(), "line\nbreak"))
	require.ErrorContains(t, h.Check(), `"line\nbreak"`)
	require.EqualError(t, tree.Break(t.Context(), 99, ""), "lock: not held: token 99")
}

// A refusal that names not all of them says so, however few it names.
func TestRefusalSaysThatThereAreMore(t *testing.T) {
	tree := lock.NewTree(&lock.Config{MaxHolders: 1})
	take(t, tree, "X at /a", nil)
	take(t, tree, "X at /b", nil)
	_, err := tree.TryLock(t.Context(), req("X at /"), nil)
	require.ErrorContains(t, err, "; and more")
}

// A call whose context has ended before says what it was about.
func TestEndedContextNamesTheRequest(t *testing.T) {
	var tree lock.Tree
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tree.Lock(ctx, req("X at /a"), nil)
	require.EqualError(t, err, "lock: X at /a: given up: context canceled")
	require.ErrorIs(t, err, context.Canceled)
}

// Errors that a driver forgot to fill do not panic.
func TestEmptyErrors(t *testing.T) {
	require.NotEmpty(t, new(lock.LostError).Error())
	require.NotEmpty(t, new(lock.ConflictError).Error())
	require.Zero(t, (*lock.Unlocker)(nil).Mode())
}

// The observer of a wait learns who is in the way, and cannot change what an id
// stands for.
func TestWaitingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []lock.Waiting
		tree := lock.NewTree(&lock.Config{Observer: &lock.Observer{Waiting: func(e lock.Waiting) {
			events = append(events, e)
			e.Requests[0] = req("IS at /z")
		}}})
		holder := take(t, tree, "X at /a/b", named("holder"))
		w := wait(t.Context(), tree, "X at /a", named("one"))
		w.waits(t)
		require.Len(t, events, 1)
		require.Equal(t, "holder", events[0].Holders[0].ID)
		second := wait(t.Context(), tree, "X at /a", named("one"))
		second.waits(t)
		unlock(t, holder)
		require.Same(t, w.granted(t), second.granted(t))
	})
}

// The observer is told of a revocation, once.
func TestRevokedEvent(t *testing.T) {
	var events []lock.Revoked
	tree := lock.NewTree(&lock.Config{Observer: &lock.Observer{Revoked: func(e lock.Revoked) { events = append(events, e) }}})
	h := take(t, tree, "X at /a", named("holder"))
	for range 2 {
		require.NoError(t, tree.Revoke(t.Context(), h.Token(), "please"))
	}
	require.Equal(t, []lock.Revoked{{Options: *named("holder"), Token: h.Token(), Reason: "please"}}, events)
}

// After a wait, Since and what is told at the release count from the grant.
func TestTimesCountFromTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released []lock.Released
		tree := lock.NewTree(&lock.Config{Observer: &lock.Observer{Released: func(e lock.Released) { released = append(released, e) }}})
		holder := take(t, tree, "X at /a", nil)
		w := wait(t.Context(), tree, "X at /a", nil)
		w.waits(t)
		time.Sleep(time.Hour)
		granted := time.Now()
		unlock(t, holder)
		h := w.granted(t)
		time.Sleep(time.Minute)
		s, err := tree.Snapshot(t.Context())
		require.NoError(t, err)
		require.True(t, granted.Equal(s.Holders[0].Since), "%v", s.Holders[0].Since)
		unlock(t, h)
		require.Equal(t, time.Minute, released[1].Held)
	})
}

// A driver may say in its own words that a grant is not held: lost is lost.
func TestWrappedNotHeld(t *testing.T) {
	g := &wrapping{}
	h, lose := lock.NewHeld(g)
	g.before = func() { lose(&lock.LostError{Token: 1, Err: lock.ErrLost}) }
	err := h.Upgrade(t.Context(), lock.X)
	require.ErrorIs(t, err, lock.ErrLost)
}

// wrapping is a grant whose conversion meets its end.
type wrapping struct {
	lock.Grant
	before func()
}

func (g *wrapping) Check() error { return nil }

func (g *wrapping) Upgrade(context.Context, lock.Mode) error {
	g.before()
	return errors.Join(errors.New("engine: no key"), lock.ErrNotHeld)
}

func named(id string) *lock.Options { return &lock.Options{ID: id} }
