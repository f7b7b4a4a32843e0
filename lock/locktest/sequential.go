package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file make calls that a script cannot state.

func deadlines(e *env) {
	g := e.take("holder", at(lock.X, "/a"))
	const short = 20 * time.Millisecond // on a busy machine it may end before the wait begins
	ctx, cancel := context.WithTimeout(e.Context(), short)
	defer cancel()
	c := e.begin(ctx, "Lock with a deadline", func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("waiting"))
	})
	time.Sleep(short)
	e.wait(c)
	require.ErrorIs(e, c.err, context.DeadlineExceeded, "after the deadline")
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

func revokedByAnother(e *env) {
	for i, of := range lockers(e.l) {
		for k, from := range lockers(e.l) {
			g, err := of.TryLock(e.Context(), at(lock.X, "/a"), by("holder"))
			require.NoError(e, err, "TryLock of locker %d, without a conflict", i+1)
			require.NoError(e, from.Revoke(e.Context(), g.Token(), "an operator"), "Revoke by locker %d of a grant of locker %d", k+1, i+1)
			require.NoError(e, e.eventually(func() error {
				if !errors.Is(g.Check(), lock.ErrRevoked) || !closed(g.Lost()) {
					return errors.New("the grant is not revoked")
				}
				return nil
			}), "after Revoke by locker %d of a grant of locker %d", k+1, i+1)
			e.unlock(g)
		}
	}
	e.idle()
}

// manySessions are so many that a fault does not end each of them.
const manySessions = 10

func renewedSessions(e *env) {
	for range manySessions {
		ctx, cancel := e.bounded(e.h.Patience)
		g, err := e.h.Faulty(e, e.config).TryLock(ctx, at(lock.X, "/a"), by("holder"))
		cancel()
		if err != nil { // a fault
			continue
		}
		time.Sleep(2 * e.h.TTL)
		if g.Check() == nil {
			return
		}
	}
	e.Errorf("every grant was lost that was held for twice the TTL of %s: is the session renewed?", e.h.TTL)
}

func limitedRefusals(e *env) {
	for _, limit := range []int{0, 3} {
		e.config.MaxHolders = limit
		e.l = e.fresh()
		limit = cmp.Or(limit, 16) // the default
		for i := range limit + 1 {
			e.take(fmt.Sprint("holder ", i), at(lock.X, fmt.Sprint("/a/", i)))
			_, err := e.l.TryLock(e.Context(), at(lock.X, "/"), nil)
			e.lists(err, min(i+1, limit), i == limit)
		}
		g := e.take("upgrading", at(lock.IS, "/"))
		e.lists(g.Upgrade(e.Context(), lock.X), limit, true)
		c := e.queue(by("waiting"), at(lock.X, "/a"))
		c.cancel(errCancelled)
		e.wait(c)
		e.lists(c.err, limit, true)
	}
}

// lists requires that a refusal lists so many holders, and whether there are more.
func (e *env) lists(err error, holders int, more bool) {
	e.Helper()
	var refused *lock.ConflictError
	require.ErrorAs(e, err, &refused)
	owners := map[string]bool{}
	for _, h := range refused.Holders {
		owners[h.Owner] = true
	}
	require.Len(e, refused.Holders, holders, "the holders of a refusal")
	require.Len(e, owners, holders, "the owners of these holders")
	require.Equal(e, more, refused.More, "More of a refusal")
}

// crowded is more requests than a driver may read at a time.
const crowded = 40

func longQueue(e *env) {
	read, write := at(lock.S, "/a"), at(lock.X, "/a")
	var readers []*lock.Grant
	for i := range crowded {
		readers = append(readers, e.take(fmt.Sprint("reader ", i), read))
	}
	writer := e.queue(by("writer"), write)
	var later []*call
	for i := range crowded {
		later = append(later, e.queue(by(fmt.Sprint("later reader ", i)), read))
	}
	for i, g := range readers {
		require.False(e, writer.returned(), "the writer is granted beside %d of %d readers", crowded-i, crowded)
		e.unlock(g)
	}
	e.unlock(e.granted(writer))
	for _, c := range later {
		e.granted(c)
	}
	for _, c := range later {
		e.unlock(c.grant)
	}
	e.idle()
}

func longestList(e *env) {
	var rs []lock.Request
	for i := range lock.MaxRequests {
		rs = append(rs, at(lock.X, fmt.Sprint("/list/", i)))
	}
	g, err := e.l.TryLockAll(e.Context(), rs, by("list"))
	require.NoError(e, err, "TryLockAll of %d requests, without a conflict", len(rs))
	require.Len(e, g.Requests(), len(rs), "the requests of the grant")
	for _, r := range []lock.Request{rs[0], rs[len(rs)/2], rs[len(rs)-1]} {
		_, err := e.l.TryLock(e.Context(), r, nil)
		require.ErrorIs(e, err, lock.ErrConflict, "TryLock of %s, which the list holds", r)
	}
	e.unlock(g)
	e.idle()
}
