package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file call from one goroutine, apart from waits.

func pairs(e *env) {
	var all []lock.Request
	for _, path := range []string{"/", "/a", "/a/b", "/a/b/c/d", "/ab", "/a!"} {
		for _, m := range lock.Modes {
			all = append(all, at(m, path))
		}
	}
	for _, first := range all {
		held := e.take("first", first)
		for _, second := range all {
			g, err := e.l.TryLock(e.Context(), second, by("second"))
			if conflict([]lock.Request{first}, []lock.Request{second}) {
				e.requireIs(err, lock.ErrConflict, "%s beside %s", second, first)
				continue
			}
			e.require(err, "%s beside %s", second, first)
			e.unlock(g)
		}
		e.unlock(held)
	}
	e.idle()
}

// unchanged requires that a call leaves the locker as it was.
func (e *env) unchanged(what string, call func()) {
	e.Helper()
	snapshot := func() string {
		s, err := e.l.Snapshot(e.Context())
		e.require(err, "Snapshot")
		s.LastToken = 0 // a refused call may use a token
		return fmt.Sprintf("%+v", s)
	}
	before := snapshot()
	call()
	e.require(e.eventually(func() error {
		if now := snapshot(); now != before {
			return fmt.Errorf("the locker changed from %s to %s", before, now)
		}
		return nil
	}), "%s", what)
}

// panicking is a context whose methods panic after some calls.
type panicking struct {
	context.Context
	left int
}

const panicValue = "locktest: a method of the context panics"

func (p *panicking) count() {
	if p.left--; p.left < 0 {
		panic(panicValue)
	}
}

func (p *panicking) Done() <-chan struct{} { p.count(); return p.Context.Done() }
func (p *panicking) Err() error            { p.count(); return p.Context.Err() }

func panics(e *env) {
	held := e.take("holder", at(lock.X, "/a"))
	try := func(ctx context.Context, rs []lock.Request) (*lock.Grant, error) {
		return tryLock(ctx, e.l, rs, by("panicking"))
	}
	wait := func(ctx context.Context, rs []lock.Request) (*lock.Grant, error) {
		return lockAll(ctx, e.l, rs, by("panicking"))
	}
	for _, rs := range [][]lock.Request{
		{at(lock.X, "/a/b")}, {at(lock.X, "/free")}, {at(lock.S, "/free"), at(lock.X, "/")},
	} {
		for left := range 8 {
			for _, acquire := range []func(context.Context, []lock.Request) (*lock.Grant, error){try, wait} {
				what := fmt.Sprintf("%s, panic after %d calls of the context", rs, left)
				e.unchanged(what, func() {
					c := e.begin(what, func(ctx context.Context) (*lock.Grant, error) {
						g, err := acquire(&panicking{ctx, left}, rs)
						if err == nil {
							return nil, g.Unlock(ctx)
						}
						return nil, err
					})
					e.settle()
					c.cancel(errCancelled)
					e.settle()
					if !c.returned() || c.panics != nil && c.panics != panicValue {
						e.Fatalf("%s: returned %t, panic %v", what, c.returned(), c.panics)
					}
				})
			}
		}
	}
	e.calls = nil // their panics are intended
	e.unlock(e.take("other", at(lock.X, "/free")))
	e.unlock(held)
	e.unlock(e.take("teardown", at(lock.X, "/")))
	e.idle()
}

func manyPaths(e *env) {
	var held []*lock.Grant
	for i := range 40 {
		held = append(held,
			e.take("leaf", at(lock.X, fmt.Sprintf("/p%d/q/r", i))),
			e.take("branch", at(lock.IX, fmt.Sprintf("/p%d/q", i))),
			e.take("fork", at(lock.S, fmt.Sprintf("/p%d/s", i))),
			e.take("root", at(lock.IS, "/")),
		)
	}
	deep := strings.Repeat("/d", lock.MaxDepth)
	held = append(held, e.take("deep", at(lock.X, deep)), e.take("half", at(lock.IX, deep[:lock.MaxDepth])))
	for i := range held { // from both ends, so that forks lose either branch first
		if i%2 == 1 {
			i = len(held) - i
		}
		e.unlock(held[i])
	}
	e.idle()
}

func limit(e *env) {
	for i := range 5 {
		e.take(fmt.Sprint(i), at(lock.X, fmt.Sprint("/p", i)))
		_, err := e.l.TryLock(e.Context(), at(lock.X, "/"), by("teardown"))
		refused, ok := errors.AsType[*lock.ConflictError](err)
		if !ok || len(refused.Holders) != min(i+1, 3) || refused.More != (i >= 3) {
			e.Fatalf("with %d holders and MaxHolders 3: %+v", i+1, err)
		}
	}
}

func firstToken(e *env) {
	before, err := e.l.Snapshot(e.Context())
	e.require(err, "Snapshot")
	a, b := e.take("a", at(lock.X, "/a")), e.take("b", at(lock.X, "/b"))
	after, err := e.l.Snapshot(e.Context())
	e.require(err, "Snapshot")
	lowest, greatest := min(a.Token(), b.Token()), max(a.Token(), b.Token())
	if lowest < 1<<40 || lowest == greatest || before.LastToken >= lowest || after.LastToken < greatest {
		e.Errorf("FirstToken 1<<40: tokens %d and %d, last token %d before and %d after",
			a.Token(), b.Token(), before.LastToken, after.LastToken)
	}
}

func onlyHeldTokens(e *env) {
	a, raised := e.take("a", at(lock.S, "/a")), e.take("raised", at(lock.S, "/r"))
	gone := e.take("gone", at(lock.X, "/gone"))
	before := raised.Token()
	e.require(raised.Upgrade(e.Context(), lock.X), "Upgrade")
	e.unlock(gone)
	e.queue("waiting", at(lock.X, "/a"))
	s, err := e.l.Snapshot(e.Context())
	e.require(err, "Snapshot")
	e.unchanged("Break and Revoke of tokens that are not held", func() {
		for _, token := range []lock.Token{0, gone.Token(), before, s.LastToken + 1000} {
			e.requireIs(e.l.Break(e.Context(), token, ""), lock.ErrNotHeld, "Break of token %d", token)
			e.requireIs(e.l.Revoke(e.Context(), token, ""), lock.ErrNotHeld, "Revoke of token %d", token)
		}
	})
	e.require(errors.Join(a.Check(), raised.Check()), "the other grants")
}

func fenced(e *env) {
	var fence lock.Fence
	for range 5 {
		first := e.take("first", at(lock.X, "/a"))
		e.require(fence.Admit(first.Token()), "the holder")
		waiting := e.queue("second", at(lock.X, "/a/b"))
		e.require(e.l.Break(e.Context(), first.Token(), "unreachable"), "Break")
		second := e.granted(waiting)
		e.require(fence.Admit(second.Token()), "the next holder")
		e.requireIs(fence.Admit(first.Token()), lock.ErrStaleToken, "the lost holder")
		e.unlock(second)

		a, b := e.take("a", at(lock.S, "/a")), e.take("b", at(lock.S, "/a"))
		e.require(fence.Admit(b.Token()), "the second reader")
		e.unlock(b)
		e.require(a.Upgrade(e.Context(), lock.X), "Upgrade")
		e.require(fence.Admit(a.Token()), "the first reader after its upgrade")
		e.requireIs(fence.Admit(b.Token()), lock.ErrStaleToken, "the second reader")
		e.unlock(a)
	}
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
			e.requireIs(err, context.Canceled, "%s with an ended context", what)
			e.requireIs(err, errCancelled, "%s with an ended context", what)
		})
		e.require(g.Check(), "the holder after %s", what)
	}
}

func deadlines(e *env) {
	g := e.take("holder", at(lock.X, "/a"))
	const short = 20 * time.Millisecond // outside a bubble it may end before the wait begins
	ctx, cancel := context.WithTimeout(e.Context(), short)
	defer cancel()
	c := e.beginWith(ctx, "Lock with a deadline", func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("waiting"))
	})
	time.Sleep(short)
	e.require(e.wait(c), "after the deadline")
	e.requireIs(c.err, context.DeadlineExceeded, "after the deadline")
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

func outlives(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	a, err := e.l.TryLock(ctx, at(lock.X, "/a"), by("a"))
	e.require(err, "TryLock")
	waiting := e.beginWith(ctx, "Lock", func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("b"))
	})
	e.require(e.waits(waiting, "b"), "Lock")
	c, err := e.l.TryLock(ctx, at(lock.X, "/c"), by("c"))
	e.require(err, "TryLock")
	e.unlock(a)
	b := e.granted(waiting)
	cancel()
	e.settle()
	for _, g := range []*lock.Grant{b, c} {
		e.require(g.Check(), "after the end of the context of the call")
		_, err := e.l.TryLock(e.Context(), at(lock.IS, g.Requests()[0].Path.String()), nil)
		e.requireIs(err, lock.ErrConflict, "after the end of the context of the call")
		e.unlock(g)
	}
	e.idle()
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
			e.requireIs(err, lock.ErrInvalid, "a try with %s", what)
			c := e.begin(what, func(ctx context.Context) (*lock.Grant, error) { return lockAll(ctx, e.l, bad.rs, bad.o) })
			e.require(e.wait(c), "a lock with %s", what)
			e.requireIs(c.err, lock.ErrInvalid, "a lock with %s", what)
		})
	}
	for _, scope := range []lock.Scope{0, 8, 15} {
		_, err := e.l.Holders(e.Context(), good.Path, scope)
		e.requireIs(err, lock.ErrInvalid, "%s", scope)
	}
	_, err := e.l.Holders(e.Context(), lock.Path{}, lock.At)
	e.requireIs(err, lock.ErrInvalid, "Holders at the zero path")
}
