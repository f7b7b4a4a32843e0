package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file call from one goroutine, apart from waits.

// unchanged requires that a call leaves the locker as it was.
func (e *env) unchanged(what string, call func()) {
	e.Helper()
	snapshot := func() string {
		s, err := e.l.Snapshot(e.Context())
		require.NoError(e, err, "Snapshot")
		s.LastToken = 0 // a refused call may use a token
		return fmt.Sprintf("%+v", s)
	}
	before := snapshot()
	call()
	require.NoError(e, e.eventually(func() error {
		if now := snapshot(); now != before {
			return fmt.Errorf("the locker changed from %s to %s", before, now)
		}
		return nil
	}), "%s", what)
}

func endedRefused(e *env) {
	g := e.take("holder", at(lock.S, "/a"))
	token := g.Token()
	ctx, cancel := context.WithCancelCause(e.Context())
	cancel(errCancelled)
	calls := map[string]func() error{
		"Holders":   func() error { _, err := e.l.Holders(ctx, lock.Root(), lock.At); return err },
		"Snapshot":  func() error { _, err := e.l.Snapshot(ctx); return err },
		"Revoke":    func() error { return e.l.Revoke(ctx, token, "") },
		"Break":     func() error { return e.l.Break(ctx, token, "") },
		"Upgrade":   func() error { return g.Upgrade(ctx, lock.X) },
		"Downgrade": func() error { return g.Downgrade(ctx, lock.IS) },
	}
	for _, rs := range [][]lock.Request{
		{at(lock.X, "/free")}, {at(lock.X, "/a")}, {at(lock.X, "/free"), at(lock.X, "/b")},
	} {
		calls[fmt.Sprint("try ", rs)] = func() error { _, err := tryLock(ctx, e.l, rs, nil); return err }
		calls[fmt.Sprint("lock ", rs)] = func() error { _, err := lockAll(ctx, e.l, rs, nil); return err }
	}
	for what, call := range calls {
		e.unchanged(what, func() {
			err := call()
			require.ErrorIs(e, err, context.Canceled, "%s with an ended context", what)
			require.ErrorIs(e, err, errCancelled, "%s with an ended context", what)
		})
		require.NoError(e, g.Check(), "the holder after %s", what)
	}
}

func deadlines(e *env) {
	g := e.take("holder", at(lock.X, "/a"))
	const short = 20 * time.Millisecond // outside a bubble it may end before the wait begins
	ctx, cancel := context.WithTimeout(e.Context(), short)
	defer cancel()
	c := e.begin("Lock with a deadline", func(context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("waiting"))
	})
	time.Sleep(short)
	require.NoError(e, e.wait(c), "after the deadline")
	require.ErrorIs(e, c.err, context.DeadlineExceeded, "after the deadline")
	if refused, ok := errors.AsType[*lock.ConflictError](c.err); e.bubble && (!ok || len(refused.Holders) != 1) {
		e.Fatalf("the error does not list the holder: %v", c.err)
	}
	e.unlock(g)
	e.idle()
}

func releaseAnyway(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	for _, rs := range [][]lock.Request{{at(lock.X, "/a")}, {at(lock.X, "/a"), at(lock.S, "/b")}} {
		g := e.take("holder", rs...)
		next := e.queue("next", at(lock.X, "/a/b"))
		// A driver may report that it did not wait for the answer of its engine.
		if err := g.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
			e.Errorf("Unlock with an ended context: %v", err)
		}
		e.unlock(e.granted(next))
		e.idle()
	}
}

func badInput(e *env) {
	e.take("holder", at(lock.X, "/a"))
	good, taken := at(lock.X, "/free"), at(lock.X, "/a")
	for what, bad := range map[string]struct {
		rs []lock.Request
		o  *lock.Options
	}{
		"the zero path":            {rs: []lock.Request{{Mode: lock.X}}},
		"mode 0":                   {rs: []lock.Request{{Path: good.Path}}},
		"mode 6":                   {rs: []lock.Request{{Path: good.Path, Mode: lock.X + 1}}},
		"mode 9":                   {rs: []lock.Request{{Path: good.Path, Mode: 8 + lock.IS}}},
		"an empty list":            {rs: []lock.Request{}},
		"a list with a bad path":   {rs: []lock.Request{good, {Mode: lock.X}}},
		"a list with a bad mode":   {rs: []lock.Request{good, {Path: good.Path}}},
		"a bad path and a holder":  {rs: []lock.Request{taken, {Mode: lock.X}}},
		"a list that is too long":  {rs: slices.Repeat([]lock.Request{good}, lock.MaxRequests+1)},
		"an id that is too long":   {rs: []lock.Request{good}, o: &lock.Options{ID: strings.Repeat("x", lock.MaxText+1)}},
		"an owner with a NUL":      {rs: []lock.Request{good}, o: &lock.Options{Owner: "a\x00b"}},
		"a reason that is no text": {rs: []lock.Request{good}, o: &lock.Options{Reason: "\xff"}},
		"a bad id and a holder":    {rs: []lock.Request{taken}, o: &lock.Options{ID: "\x00"}},
	} {
		e.unchanged(what, func() {
			_, err := tryLock(e.Context(), e.l, bad.rs, bad.o)
			require.ErrorIs(e, err, lock.ErrInvalid, "a try with %s", what)
			c := e.begin(what, func(ctx context.Context) (*lock.Grant, error) { return lockAll(ctx, e.l, bad.rs, bad.o) })
			require.NoError(e, e.wait(c), "a lock with %s", what)
			require.ErrorIs(e, c.err, lock.ErrInvalid, "a lock with %s", what)
		})
	}
	for _, scope := range []lock.Scope{0, 8, 15} {
		_, err := e.l.Holders(e.Context(), good.Path, scope)
		require.ErrorIs(e, err, lock.ErrInvalid, "%d", scope)
	}
	_, err := e.l.Holders(e.Context(), lock.Path{}, lock.At)
	require.ErrorIs(e, err, lock.ErrInvalid, "Holders at the zero path")
}
