package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// sentinels has one error for each reaction.
var sentinels = []error{
	lock.ErrConflict, lock.ErrQueueFull, lock.ErrIDInUse, lock.ErrInvalid,
	lock.ErrNotHeld, lock.ErrLost, lock.ErrRevoked, lock.ErrStaleToken,
	context.Canceled, context.DeadlineExceeded,
}

// sentinel returns the only sentinel that an error matches.
func sentinel(t testing.TB, err error) error {
	t.Helper()
	var match []error
	for _, s := range sentinels {
		if errors.Is(err, s) {
			match = append(match, s)
		}
	}
	require.Len(t, match, 1, "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "lock: "), err)
	return match[0]
}

// The suite makes these calls, too. This test adds the texts, and that bad input is
// refused before an ended context.
func TestBadInput(t *testing.T) {
	tree := new(lock.Tree)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := func(o *lock.Options) func() error {
		return func() error { _, err := tree.Lock(ctx, req("S at /z"), o); return err }
	}
	list := func(rs ...lock.Request) func() error {
		return func() error { _, err := tree.TryLockAll(ctx, rs, nil); return err }
	}
	holders := func(p lock.Path, s lock.Scope) func() error {
		return func() error { _, err := tree.Holders(ctx, p, s); return err }
	}
	for _, c := range []struct {
		call func() error
		want string
	}{
		{list(), `lock: list "" has no request`},
		{list(slices.Repeat(reqs("S at /z"), lock.MaxRequests+1)...), `lock: list "1001 requests" has more than 1000`},
		{list(lock.Request{Mode: lock.X}), `lock: path "" is the zero Path`},
		{list(lock.Request{Path: lock.Root()}), `lock: mode "Mode(0)" is none of IS, IX, S, SIX and X`},
		{
			list(req("S at /b"), lock.Request{Path: lock.Root(), Mode: lock.X | 8}),
			`lock: mode "Mode(13)" is none of IS, IX, S, SIX and X`,
		},
		{text(&lock.Options{Owner: "\xff"}), `lock: owner "\xff" is not UTF-8`},
		{text(&lock.Options{Reason: "a\x00b"}), `lock: reason "a\x00b" has a NUL`},
		{holders(lock.Root(), 0), `lock: scope "0" is not a combination of Above, At and Below`},
		{
			text(&lock.Options{ID: strings.Repeat("x", lock.MaxText+1)}),
			`lock: id "` + strings.Repeat("x", 77) + `..." is longer than 1024 bytes`,
		},
	} {
		t.Run(c.want, func(t *testing.T) {
			unchanged(t, tree, func() {
				err := c.call()
				require.EqualError(t, err, c.want)
				require.Equal(t, lock.ErrInvalid, sentinel(t, err))
			})
		})
	}
	unlock(t, take(t, tree, "S at /z", &lock.Options{ID: strings.Repeat("x", lock.MaxText), Owner: "ü\n"}))
	require.NotErrorIs(t, list(slices.Repeat(reqs("S at /z"), lock.MaxRequests)...)(), lock.ErrInvalid)
	_, err := tree.Try(lock.Path{}, lock.X)
	require.EqualError(t, err, `lock: path "" is the zero Path`)
	_, err = tree.Try(lock.Root(), 0)
	require.EqualError(t, err, `lock: mode "Mode(0)" is none of IS, IX, S, SIX and X`)
	require.ErrorIs(t, holders(lock.Path{}, lock.At)(), lock.ErrInvalid)
}

// Every refusal has its sentinel, text and details, and changes nothing.
func TestRefusals(t *testing.T) {
	inBubble(t, &lock.Config{MaxWaiters: 1, MaxHolders: 4}, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ann := &lock.Options{ID: "d-1", Owner: "ann", Reason: "deploy"}
		h := take(t, tree, "X at /a/b", ann)
		list, err := tree.TryLockAll(ctx, reqs("S at /c", "S at /d", "S at /e"), &lock.Options{ID: "l-1"})
		require.NoError(t, err)
		v, err := tree.Try(lock.MustParse("/f"), lock.IX)
		require.NoError(t, err)
		waiter := wait(ctx, tree, "IX at /c", by("bob"))

		const since = "since 2000-01-01T00:00:00Z"
		for _, c := range []struct {
			name string
			call func() error
			want error
			text string
			more bool
		}{
			{
				"try of one", func() error { _, err := tree.TryLock(ctx, req("S at /a"), nil); return err },
				lock.ErrConflict, "lock: S at /a: conflict; X at /a/b held by ann as d-1 (deploy) " + since + ", token 1", false,
			},
			{
				"try of a list", func() error { _, err := tree.TryLockAll(ctx, reqs("X at /f", "X at /g"), nil); return err },
				lock.ErrConflict, "lock: X at /f, X at /g: conflict; IX at /f held " + since + ", token 3", false,
			},
			{
				"more than the limit", func() error { _, err := tree.TryLock(ctx, req("X at /"), nil); return err },
				lock.ErrConflict, "", true,
			},
			{
				"full queue", func() error { _, err := tree.Lock(ctx, req("X at /c"), nil); return err },
				lock.ErrQueueFull,
				"lock: X at /c: the queue is full; S at /c held as l-1 " + since + ", token 2; IX at /c awaited by bob " + since, false,
			},
			{
				"id of one", func() error { _, err := tree.Lock(ctx, req("X at /b"), ann); return err },
				lock.ErrIDInUse, "lock: X at /b: the id is in use for other requests; X at /a/b held by ann as d-1 (deploy) " + since + ", token 1", false,
			},
			{
				"id of a list", func() error {
					_, err := tree.LockAll(ctx, reqs("S at /c", "S at /d"), &lock.Options{ID: "l-1"})
					return err
				},
				lock.ErrIDInUse, "lock: S at /c, S at /d: the id is in use for other requests; " +
					"S at /c held as l-1 " + since + ", token 2; S at /d held as l-1 " + since + ", token 2; S at /e held as l-1 " + since + ", token 2", false,
			},
			{
				"upgrade", func() error { return list.Upgrade(ctx, lock.X) },
				lock.ErrConflict, "lock: X at /c, X at /d, X at /e: conflict; IX at /c awaited by bob " + since, false,
			},
			{
				"ended context", func() error { _, err := tree.Lock(ended, req("X at /"), nil); return err },
				context.Canceled, "lock: X at /: the context has ended: context canceled", false,
			},
			{
				"revocation of a Handle", func() error { return tree.Revoke(ctx, v.Token(), "") },
				lock.ErrInvalid, `lock: token "3" is of a Handle, which cannot be revoked: break it`, false,
			},
			{"unknown token", func() error { return tree.Break(ctx, 99, "") }, lock.ErrNotHeld, "lock: not held: token 99", false},
		} {
			unchanged(t, tree, func() {
				err := c.call()
				require.Equal(t, c.want, sentinel(t, err), c.name)
				if c.text != "" {
					require.EqualError(t, err, c.text, c.name)
				}
				if refusal, ok := errors.AsType[*lock.ConflictError](err); ok && !errors.Is(err, context.Canceled) {
					require.Equal(t, c.more, refusal.More, c.name)
					require.LessOrEqual(t, len(refusal.Holders), 4, c.name)
					require.NotEmpty(t, refusal.Holders, c.name)
				}
			})
		}
		require.NoError(t, tree.Revoke(ctx, 1, "please"))
		require.Equal(t, lock.ErrRevoked, sentinel(t, h.Check()))
		require.EqualError(t, h.Check(), "lock: revoked: token 1: please")
		require.NoError(t, tree.Break(ctx, 1, ""))
		require.Equal(t, lock.ErrLost, sentinel(t, h.Check()))
		require.EqualError(t, h.Unlock(ctx), "lock: lost: token 1")
		unlock(t, list)
		unlock(t, waiter.granted(t))
		require.Equal(t, lock.ErrNotHeld, sentinel(t, list.Check()))
		require.True(t, v.Unlock())
		require.Equal(t, lock.ErrStaleToken, sentinel(t, new(lock.Fence).Admit(0)))
	})
}

// The text lists three requests and holders; the error has all of them.
func TestLongRefusalsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := lock.Must(&lock.Config{MaxHolders: 100})
		var list []lock.Request
		for i := range 20 {
			text := fmt.Sprintf("X at /k%02d", i)
			list = append(list, req(text))
			take(t, tree, text, nil)
		}
		_, err := tree.TryLockAll(t.Context(), list, nil)
		require.EqualError(t, err, "lock: X at /k00, X at /k01, X at /k02 and 17 more: conflict; "+
			"X at /k00 held since 2000-01-01T00:00:00Z, token 1; X at /k01 held since 2000-01-01T00:00:00Z, token 2; X at /k02 held since 2000-01-01T00:00:00Z, token 3; and more")
		refusal, _ := errors.AsType[*lock.ConflictError](err)
		require.Len(t, refusal.Holders, 20)
		require.Equal(t, list, refusal.Requests)
		require.False(t, refusal.More)

		few := new(lock.Tree) // a refusal lists at most 16 holders
		for i := range 17 {
			take(t, few, fmt.Sprintf("X at /k%02d", i), nil)
		}
		_, err = few.TryLock(t.Context(), req("X at /"), nil)
		refusal, _ = errors.AsType[*lock.ConflictError](err)
		require.Len(t, refusal.Holders, 16)
		require.True(t, refusal.More)

		for held, more := range map[int]bool{16: false, 17: true} { // so does ErrIDInUse
			few = new(lock.Tree)
			_, err = few.TryLockAll(t.Context(), list[:held], &lock.Options{ID: "list"})
			require.NoError(t, err)
			_, err = few.TryLock(t.Context(), req("X at /"), &lock.Options{ID: "list"})
			require.ErrorIs(t, err, lock.ErrIDInUse)
			refusal, _ = errors.AsType[*lock.ConflictError](err)
			require.Len(t, refusal.Holders, 16)
			require.Equal(t, more, refusal.More)
		}
	})
}

// The text of a refusal announces the requests and holders that it leaves out.
func TestTextOfShortRefusals(t *testing.T) {
	h := lock.Holder{Path: lock.MustParse("/a"), Mode: lock.S, Owner: "ann", ID: "ann", Waiting: true}
	const holder = "S at /a awaited by ann since 0001-01-01T00:00:00Z"
	for text, err := range map[string]*lock.ConflictError{
		"lock: X at /a, X at /b, X at /c and 1 more: conflict; " + holder: {
			Requests: reqs("X at /a", "X at /b", "X at /c", "X at /d"), Holders: []lock.Holder{h}, Err: lock.ErrConflict,
		},
		"lock: X at /a: conflict; " + holder + "; and more": {
			Requests: reqs("X at /a"), Holders: []lock.Holder{h}, More: true, Err: lock.ErrConflict,
		},
	} {
		t.Run(text, func(t *testing.T) { require.EqualError(t, err, text) })
	}
}

// A holder that conflicts with several requests of a list is one holder.
func TestHolderOfSeveralRequestsIsListedOnce(t *testing.T) {
	var tree lock.Tree
	take(t, &tree, "X at /a", by("ann"))
	_, err := tree.TryLockAll(t.Context(), reqs("S at /a/b", "S at /a/c"), nil)
	require.Equal(t, []string{"X at /a held by ann"}, names(t, err))
}

func TestCountsHaveTheNodes(t *testing.T) {
	var tree lock.Tree
	g := take(t, &tree, "X at /a/b", nil)
	require.Equal(t, lock.Snapshot{Held: 1, Nodes: 1, LastToken: 1}, tree.Counts())
	other := take(t, &tree, "X at /a/c", nil)
	require.Equal(t, lock.Snapshot{Held: 2, Nodes: 3, LastToken: 2}, tree.Counts(), "with the fork at /a")
	unlock(t, g, other)
	require.Equal(t, lock.Snapshot{LastToken: 2}, tree.Counts())
}

// The text of a holder has its time in UTC.
func TestHolderSinceInUTC(t *testing.T) {
	h := lock.Holder{Path: lock.MustParse("/a"), Mode: lock.X, Owner: "ann", Since: time.Date(2026, 1, 2, 15, 4, 5, 0, time.FixedZone("", 9*3600))}
	require.Contains(t, h.String(), " since 2026-01-02T06:04:05Z,")
}

// Texts of other callers do not break the lines of a log.
func TestHostileTextsAreQuoted(t *testing.T) {
	var tree lock.Tree
	g := take(t, &tree, "X at /a", &lock.Options{ID: "id\u202e", Owner: "ann\n2026 all is well", Reason: "\x1b[2Jgone"})
	_, err := tree.TryLock(t.Context(), req("X at /a"), nil)
	require.ErrorContains(t, err, `by "ann\n2026 all is well" as "id\u202e" ("\x1b[2Jgone")`)
	for _, reason := range []string{"a\x00b", "\xff", strings.Repeat("x", lock.MaxText+1)} {
		require.ErrorIs(t, tree.Revoke(t.Context(), g.Token(), reason), lock.ErrInvalid)
		require.ErrorIs(t, tree.Break(t.Context(), g.Token(), reason), lock.ErrInvalid)
	}
	require.NoError(t, tree.Break(t.Context(), g.Token(), "line\nbreak"))
	require.ErrorContains(t, g.Check(), `"line\nbreak"`)
}

// Methods of zero values do not panic. A driver may return errors without fields.
func TestZeroValues(t *testing.T) {
	require.Equal(t, "<nil>", new(lock.LostError).Error())
	require.Equal(t, "lock: : <nil>", new(lock.ConflictError).Error())
	require.Zero(t, lock.Handle{}.Token())
	require.False(t, lock.Handle{}.Unlock())
	require.False(t, (*lock.Unlocker)(nil).Unlock())
	require.False(t, new(lock.Unlocker).Unlock())
}
