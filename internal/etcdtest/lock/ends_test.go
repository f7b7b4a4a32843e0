package lock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// The end of a session ends its calls that wait for an answer of etcd, and not only after the
// TTL.
func TestCloseWhileEtcdDoesNotAnswer(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs atomic.Bool
	var waiting atomic.Int64
	client := server.Client(t, etcdtest.Through(func(ctx context.Context, req, _ any, send func() error) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && hangs.Load() {
			waiting.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return send()
	}))
	l := open(t, client, freshPrefix(), &etcdlock.Config{TTL: time.Hour})
	held, converted := take(t, l, at(lock.X, "/a"), "a"), take(t, l, at(lock.X, "/b"), "b")
	hangs.Store(true)
	ctx := context.Background()
	ends := make(chan error)
	calls := []func() error{
		func() error { _, err := l.TryLock(ctx, at(lock.X, "/c"), nil); return err },
		func() error { _, err := l.Lock(ctx, at(lock.X, "/d"), nil); return err },
		func() error { return held.Unlock(ctx) },
		func() error { return converted.Downgrade(ctx, lock.IS) },
	}
	for _, call := range calls {
		go func() { ends <- call() }()
	}
	require.Eventually(t, func() bool { return waiting.Load() == int64(len(calls)) }, 10*time.Second, time.Millisecond)
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	for range calls {
		select {
		case err := <-ends:
			require.ErrorIs(t, err, lock.ErrLost)
		case <-time.After(20 * time.Second):
			require.FailNow(t, "a call hangs")
		}
	}
	awaited(t, closed)
}

// A session that cannot begin leaves no lease: a Locker tries again five times a second, and a
// lease lasts for the TTL.
func TestNoLeasesOfSessionsThatDoNotBegin(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var refuses atomic.Bool
	var granted atomic.Int64
	client := server.Client(t, etcdtest.Through(func(_ context.Context, req, _ any, send func() error) error {
		if _, put := req.(*etcdserverpb.PutRequest); put && refuses.Load() {
			return rpctypes.ErrGRPCPermissionDenied
		}
		err := send()
		if _, lease := req.(*etcdserverpb.LeaseGrantRequest); lease {
			granted.Add(1)
		}
		return err
	}))
	prefix := freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: time.Hour})
	g := take(t, l, at(lock.X, "/a"), "holder")
	refuses.Store(true)
	_, err := client.Revoke(t.Context(), leaseOf(t, client, prefix, "holder"))
	require.NoError(t, err)
	awaited(t, g.Lost())
	require.Eventually(t, func() bool { return granted.Load() > 5 }, 20*time.Second, time.Millisecond)
	refuses.Store(false)
	next, err := l.Lock(t.Context(), at(lock.X, "/a"), by("next"))
	require.NoError(t, err)
	leases, err := client.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
	require.NoError(t, next.Unlock(t.Context()))
}
