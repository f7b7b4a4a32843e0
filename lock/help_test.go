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

// req reads a request as it is printed: "X at /a/b".
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

// take is a TryLock that is granted.
func take(t testing.TB, l lock.Locker, text string, o *lock.Options) *lock.Held {
	t.Helper()
	h, err := l.TryLock(context.Background(), req(text), o)
	require.NoError(t, err)
	return h
}

func unlock(t testing.TB, held ...*lock.Held) {
	t.Helper()
	for _, h := range held {
		require.NoError(t, h.Unlock(context.Background()))
	}
}

// pending is a call under way in a bubble.
type pending struct {
	held *lock.Held
	err  error
	done bool
}

// start makes a call in a goroutine of its own, and returns when it has
// returned or waits.
func start(f func() (*lock.Held, error)) *pending {
	p := new(pending)
	go func() {
		held, err := f()
		p.held, p.err, p.done = held, err, true
	}()
	synctest.Wait()
	return p
}

// wait starts a Lock.
func wait(ctx context.Context, l lock.Locker, text string, o *lock.Options) *pending {
	return start(func() (*lock.Held, error) { return l.Lock(ctx, req(text), o) })
}

func (p *pending) granted(t testing.TB) *lock.Held {
	t.Helper()
	synctest.Wait()
	require.True(t, p.done, "still waits")
	require.NoError(t, p.err)
	require.NoError(t, p.held.Check())
	return p.held
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
	require.Nil(t, p.held)
	return p.err
}

// names is who a refusal names, each as "X at /a held by owner".
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

// idle requires that nothing is left in a tree (G3), and that what it counts is
// what it has.
func idle(t testing.TB, tree *lock.Tree) {
	t.Helper()
	require.Empty(t, lock.CheckTree(tree))
	s := snapshot(t, tree)
	require.Equal(t, lock.Snapshot{Holders: []lock.Holder{}, LastToken: s.LastToken}, s)
}

// unchanged requires that a call leaves no trace (G2).
func unchanged(t testing.TB, tree *lock.Tree, call func()) {
	t.Helper()
	before := snapshot(t, tree)
	call()
	require.Equal(t, before, snapshot(t, tree))
	require.Empty(t, lock.CheckTree(tree))
}

func by(owner string) *lock.Options { return &lock.Options{Owner: owner} }
