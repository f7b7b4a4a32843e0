package lock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

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
	client := intercepted(t, server, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && hangs.Load() {
			waiting.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return call(ctx, method, req, reply, cc, opts...)
	})
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
