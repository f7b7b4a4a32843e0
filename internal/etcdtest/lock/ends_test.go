package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/errgroup"

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
	calls := map[string]func() error{
		"TryLock":   func() error { _, err := l.TryLock(ctx, at(lock.X, "/c"), nil); return err },
		"Lock":      func() error { _, err := l.Lock(ctx, at(lock.X, "/d"), nil); return err },
		"Unlock":    func() error { return held.Unlock(ctx) },
		"Downgrade": func() error { return converted.Downgrade(ctx, lock.IS) },
	}
	var ends errgroup.Group
	for name, call := range calls {
		ends.Go(func() error {
			if err := call(); !errors.Is(err, lock.ErrLost) {
				return fmt.Errorf("%s ends with: %v", name, err)
			}
			return nil
		})
	}
	require.Eventually(t, func() bool { return waiting.Load() == int64(len(calls)) }, 30*time.Second, time.Millisecond)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		l.Close()
		err = ends.Wait()
	}()
	awaited(t, done)
	require.NoError(t, err)
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
	require.Eventually(t, func() bool { return granted.Load() > 5 }, 30*time.Second, time.Millisecond)
	refuses.Store(false)
	next, err := l.Lock(t.Context(), at(lock.X, "/a"), by("next"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a revocation may take longer than the Locker waits for it
		leases, err := client.Leases(t.Context())
		return err == nil && len(leases.Leases) == 1
	}, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, next.Unlock(t.Context()))
}
