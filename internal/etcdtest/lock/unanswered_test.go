package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// A TryLock waits for the answer to another one of its process. Its context ends the wait, and so
// does the end of the session.
func TestEndOfTheWaitForTheTurn(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var armed atomic.Bool
	sent := make(chan struct{})
	client := server.Client(t, etcdtest.Through(func(ctx context.Context, req, _ any, execute func() error) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && armed.CompareAndSwap(true, false) {
			close(sent)
			<-ctx.Done()
			return ctx.Err()
		}
		return execute()
	}))
	direct, prefix := server.Client(t), freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: time.Minute})
	g := take(t, l, at(lock.X, "/a"), "holder")
	armed.Store(true)
	first, behind := make(chan error, 1), make(chan error, 1)
	go func() { _, err := l.TryLock(t.Context(), at(lock.X, "/b"), nil); first <- err }()
	awaited(t, sent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.TryLock(ctx, at(lock.X, "/c"), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	waits := make(chan struct{})
	look := hostileContext{t.Context(), sync.OnceFunc(func() { close(waits) })}
	go func() { _, err := l.TryLock(look, at(lock.X, "/d"), nil); behind <- err }()
	awaited(t, waits) // it looks at its context to wait for the turn
	require.Empty(t, behind)
	_, err = direct.Revoke(t.Context(), leaseOf(t, direct, prefix, "holder"))
	require.NoError(t, err)
	require.ErrorIs(t, <-first, lock.ErrLost)
	require.ErrorIs(t, <-behind, lock.ErrLost)
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	next, err := l.Lock(t.Context(), at(lock.X, "/"), by("next"))
	require.NoError(t, err)
	require.NoError(t, next.Unlock(t.Context()))
}

// The key of a session, or its lease, is removed by hand while the watch hangs. The next request
// and the next renewal find that out.
func TestSessionIsRemovedWhileTheWatchHangs(t *testing.T) {
	server := etcdtest.Start(t, nil)
	direct := server.Client(t)
	for _, what := range []string{"key", "lease"} {
		t.Run(what, func(t *testing.T) {
			var hangs sync.RWMutex
			prefix := freshPrefix()
			l := open(t, server.Client(t, hangingWatch(&hangs)), prefix, &etcdlock.Config{TTL: 6 * time.Second})
			g := take(t, l, at(lock.X, "/a"), "holder")
			lease := leaseOf(t, direct, prefix, "holder")
			hangs.Lock()
			held := sync.OnceFunc(hangs.Unlock)
			defer held()
			var err error
			if what == "key" {
				_, err = direct.Delete(t.Context(), fmt.Sprintf("%s/%016x", prefix, int64(lease)))
			} else {
				_, err = direct.Revoke(t.Context(), lease)
			}
			require.NoError(t, err)
			_, err = l.TryLock(t.Context(), at(lock.X, "/b"), nil)
			require.ErrorIs(t, err, lock.ErrLost)
			require.ErrorContains(t, err, "the session's key was deleted")
			awaited(t, g.Lost())
			require.ErrorIs(t, g.Check(), lock.ErrLost)
			require.ErrorContains(t, g.Check(), "the lease has ended")
			held()
			next, err := l.Lock(t.Context(), at(lock.X, "/"), by("next"))
			require.NoError(t, err)
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// A grant is released before its holder has confirmed a revocation. Revoke returns.
func TestReleaseBeforeTheConfirmationOfARevocation(t *testing.T) {
	server := etcdtest.Start(t, nil)
	sent, deliver := make(chan struct{}), make(chan struct{})
	client, arm := nextTxn(t, server, func(execute func() error) error {
		close(sent)
		<-deliver
		return execute()
	})
	prefix := freshPrefix()
	l, operator := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	arm()
	revoked := make(chan error, 1)
	go func() { revoked <- operator.Revoke(t.Context(), g.Token(), "maintenance") }()
	awaited(t, sent)
	require.ErrorIs(t, g.Check(), lock.ErrRevoked)
	require.NoError(t, g.Unlock(t.Context()))
	close(deliver)
	require.NoError(t, <-revoked)
	require.Zero(t, claims(t, operator))
	require.ErrorIs(t, g.Driver().Upgrade(t.Context(), lock.X), lock.ErrNotHeld)
}

// A holder could not confirm a revocation. Later changes of the tree do not revoke its grant
// again, and another Revoke does.
func TestRevocationThatIsNotConfirmed(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, arm := nextTxn(t, server, func(func() error) error { return status.Error(codes.InvalidArgument, "refused") })
	prefix := freshPrefix()
	l, operator := open(t, client, prefix, &etcdlock.Config{TTL: 2 * time.Second}), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	arm()
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "first"))
	require.ErrorIs(t, g.Check(), lock.ErrRevoked)
	for range 3 {
		require.NoError(t, take(t, operator, at(lock.X, "/b"), "other").Unlock(t.Context()))
	}
	require.ErrorContains(t, g.Check(), "first")
	require.Equal(t, 1, claims(t, operator))
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "second"))
	require.NoError(t, operator.Break(t.Context(), g.Token(), "third"))
	require.ErrorIs(t, g.Check(), lock.ErrLost)
}

// A wait ends while etcd does not answer. Its error has the holders that the process has seen.
func TestCancelWhileEtcdDoesNotAnswer(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: time.Minute})
	g := take(t, l, at(lock.X, "/a"), "holder")
	w := queue(t, l, client, prefix, at(lock.X, "/a"), "waiting")
	server.Pause(t)
	w.cancel()
	awaited(t, w.done)
	server.Continue(t)
	require.ErrorIs(t, w.err, context.Canceled)
	conflict, is := errors.AsType[*lock.ConflictError](w.err)
	require.True(t, is)
	require.Len(t, conflict.Holders, 1)
	require.Equal(t, g.Token(), conflict.Holders[0].Token)
	awaitClaims(t, l, 1)
	require.NoError(t, g.Unlock(t.Context()))
}
