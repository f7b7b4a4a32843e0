package locktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file make calls that a script cannot state.

func deadlines(e *env) {
	g := e.take("holder", at(lock.X, "/a"))
	const short = 20 * time.Millisecond // outside a bubble it may end before the wait begins
	ctx, cancel := context.WithTimeout(e.Context(), short)
	defer cancel()
	c := e.begin(ctx, "Lock with a deadline", func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("waiting"))
	})
	time.Sleep(short)
	e.wait(c)
	require.ErrorIs(e, c.err, context.DeadlineExceeded, "after the deadline")
	if e.bubble {
		var refused *lock.ConflictError
		require.ErrorAs(e, c.err, &refused)
		require.Len(e, refused.Holders, 1)
	}
	e.unlock(g)
	e.idle()
}

func badInput(e *env) {
	free, taken := at(lock.X, "/free"), at(lock.X, "/a")
	g := e.take("holder", taken)
	ctx, cancel := e.bounded(e.h.Patience)
	defer cancel()
	for what, bad := range map[string]struct {
		requests []lock.Request
		options  lock.Options
	}{
		"mode 6":                      {requests: []lock.Request{{Path: free.Path, Mode: lock.X + 1}}},
		"mode 9":                      {requests: []lock.Request{{Path: free.Path, Mode: 8 + lock.IS}}},
		"a list that is too long":     {requests: slices.Repeat([]lock.Request{free}, lock.MaxRequests+1)},
		"an id that is too long":      {[]lock.Request{free}, lock.Options{ID: strings.Repeat("x", lock.MaxText+1)}},
		"an owner with a NUL":         {[]lock.Request{free}, lock.Options{Owner: "a\x00b"}},
		"a reason that is not a text": {[]lock.Request{free}, lock.Options{Reason: "\xff"}},
		"a bad id and a holder":       {[]lock.Request{taken}, lock.Options{ID: "\x00"}},
	} {
		for _, op := range []string{"try", "lock"} {
			_, err := acquire(ctx, e.l, op, bad.requests, &bad.options)
			require.ErrorIs(e, err, lock.ErrInvalid, "%s of %s", op, what)
		}
	}
	for _, reason := range []string{strings.Repeat("x", lock.MaxText+1), "a\x00b", "\xff"} {
		require.ErrorIs(e, e.l.Revoke(e.Context(), g.Token(), reason), lock.ErrInvalid, "Revoke with reason %.9q", reason)
		require.ErrorIs(e, e.l.Break(e.Context(), g.Token(), reason), lock.ErrInvalid, "Break with reason %.9q", reason)
		require.NoError(e, g.Check(), "the grant after that")
	}
	for _, scope := range []lock.Scope{0, 8, 15} {
		_, err := e.l.Holders(e.Context(), free.Path, scope)
		require.ErrorIs(e, err, lock.ErrInvalid, "%d", scope)
	}
	_, err := e.l.Holders(e.Context(), lock.Path{}, lock.At)
	require.ErrorIs(e, err, lock.ErrInvalid, "Holders at the zero path")
	e.unlock(g)
	e.idle()
}
