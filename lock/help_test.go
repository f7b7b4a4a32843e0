package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// req parses the text of a request, such as "X at /a/b".
func req(text string) lock.Request {
	mode, path, ok := strings.Cut(text, " at ")
	m, err := lock.ParseMode(mode)
	if !ok || err != nil {
		panic("not a request: " + text)
	}
	return lock.Request{Path: lock.MustParse(path), Mode: m}
}

func reqs(texts ...string) (rs []lock.Request) {
	for _, text := range texts {
		rs = append(rs, req(text))
	}
	return rs
}

// take is a TryLock that must succeed.
func take(t testing.TB, l lock.Locker, text string, o *lock.Options) *lock.Grant {
	t.Helper()
	h, err := l.TryLock(context.Background(), req(text), o)
	require.NoError(t, err)
	return h
}

func unlock(t testing.TB, grants ...*lock.Grant) {
	t.Helper()
	for _, h := range grants {
		require.NoError(t, h.Unlock(context.Background()))
	}
}

// pending is a call in a goroutine of a bubble.
type pending struct {
	grant *lock.Grant
	err   error
	done  bool
}

// start makes a call in a goroutine, and returns when the call has returned or
// waits.
func start(f func() (*lock.Grant, error)) *pending {
	p := new(pending)
	go func() {
		grant, err := f()
		p.grant, p.err, p.done = grant, err, true
	}()
	synctest.Wait()
	return p
}

// wait starts a Lock.
func wait(ctx context.Context, l lock.Locker, text string, o *lock.Options) *pending {
	return start(func() (*lock.Grant, error) { return l.Lock(ctx, req(text), o) })
}

func (p *pending) granted(t testing.TB) *lock.Grant {
	t.Helper()
	synctest.Wait()
	require.True(t, p.done, "still waits")
	require.NoError(t, p.err)
	require.NoError(t, p.grant.Check())
	return p.grant
}

func (p *pending) waits(t testing.TB) {
	t.Helper()
	synctest.Wait()
	require.False(t, p.done, "returned %v", p.err)
}

func (p *pending) failed(t testing.TB) error {
	t.Helper()
	synctest.Wait()
	require.True(t, p.done, "still waits")
	require.Error(t, p.err)
	require.Nil(t, p.grant)
	return p.err
}

// names returns the holders of a refusal, each as "X at /a held by owner".
func names(t testing.TB, err error) (names []string) {
	t.Helper()
	refusal, ok := errors.AsType[*lock.ConflictError](err)
	require.True(t, ok, "%v", err)
	for _, h := range refusal.Holders {
		text, _, _ := strings.Cut(h.String(), " since ")
		names = append(names, text)
	}
	return names
}

func snapshot(t testing.TB, l lock.Locker) lock.Snapshot {
	t.Helper()
	s, err := l.Snapshot(context.Background())
	require.NoError(t, err)
	return s
}

// idle requires that a tree keeps nothing (G3) and that its counters are right.
func idle(t testing.TB, tree *lock.Tree) {
	t.Helper()
	require.Empty(t, lock.CheckTree(tree))
	s := snapshot(t, tree)
	require.Equal(t, lock.Snapshot{Holders: []lock.Holder{}, LastToken: s.LastToken}, s)
}

// unchanged requires that a call leaves the tree as it was (G2).
func unchanged(t testing.TB, tree *lock.Tree, call func()) {
	t.Helper()
	before := snapshot(t, tree)
	call()
	require.Equal(t, before, snapshot(t, tree))
	require.Empty(t, lock.CheckTree(tree))
}

func by(owner string) *lock.Options { return &lock.Options{Owner: owner} }

// forward returns an observer that calls the current functions of o.
func forward(o *lock.Observer) lock.Observer {
	return lock.Observer{
		Granted: func(ctx context.Context, e lock.Acquisition) {
			if o.Granted != nil {
				o.Granted(ctx, e)
			}
		},
		Refused: func(ctx context.Context, e lock.Refused) {
			if o.Refused != nil {
				o.Refused(ctx, e)
			}
		},
		Waiting: func(ctx context.Context, e lock.Waiting) {
			if o.Waiting != nil {
				o.Waiting(ctx, e)
			}
		},
		Released: func(ctx context.Context, e lock.Released) {
			if o.Released != nil {
				o.Released(ctx, e)
			}
		},
	}
}
