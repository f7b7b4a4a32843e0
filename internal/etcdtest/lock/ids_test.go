package lock_test

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// A TryLock with the id of a Lock gets its grant, also if etcd has granted it so recently that
// the process has not seen that yet.
func TestIDOfAGrantThatIsNotSeenYet(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs sync.RWMutex // locked: no answer of a watch arrives
	client := server.Client(t, hangingWatch(&hangs))
	prefix, deploy := freshPrefix(), &lock.Options{ID: "deploy"}
	l, other := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	first := take(t, other, at(lock.X, "/a"), "first")
	granted := make(chan *lock.Grant)
	go func() {
		g, _ := l.Lock(t.Context(), at(lock.X, "/a"), deploy)
		granted <- g
	}()
	awaitClaims(t, other, 2)
	// This call returns when the watch has shown that the claim waits.
	_, err := l.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	require.ErrorIs(t, err, lock.ErrConflict)
	hangs.Lock()
	require.NoError(t, first.Unlock(t.Context()))
	g, err := l.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	hangs.Unlock()
	require.NoError(t, err)
	require.Same(t, g, <-granted)
	require.NoError(t, g.Unlock(t.Context()))
}

// The context of a Lock ends before etcd's answer arrives, and another call with its id has
// got the grant meanwhile. That grant holds.
func TestCallEndsAfterAnotherHasItsGrant(t *testing.T) {
	server := etcdtest.Start(t, nil)
	prefix, deploy := freshPrefix(), &lock.Options{ID: "deploy"}
	ctx, cancel := context.WithCancel(t.Context())
	var l *etcdlock.Locker
	var held *lock.Grant
	var armed atomic.Bool
	client := server.Client(t, etcdtest.Through(func(call context.Context, req, _ any, send func() error) error {
		err := send()
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && armed.CompareAndSwap(true, false) {
			held, err = l.Lock(t.Context(), at(lock.X, "/a"), deploy)
			cancel()
			<-call.Done()
		}
		return cmp.Or(err, call.Err())
	}))
	l = open(t, client, prefix, nil)
	armed.Store(true)
	_, err := l.Lock(ctx, at(lock.X, "/a"), deploy)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, held)
	_, err = open(t, server.Client(t), prefix, nil).TryLock(t.Context(), at(lock.X, "/a"), nil)
	require.ErrorIs(t, err, lock.ErrConflict)
	require.NoError(t, held.Unlock(t.Context()))
}

// The context of a Lock ends before etcd's answer arrives. Another call with its id waits for
// the claim, which came too late: another process had taken the last place. That call is
// refused.
func TestCallEndsWhileAnotherWaitsTooLate(t *testing.T) {
	server := etcdtest.Start(t, nil)
	direct, prefix, deploy := server.Client(t), freshPrefix(), &lock.Options{ID: "deploy"}
	ctx, cancel := context.WithCancel(t.Context())
	joins, joined := make(chan struct{}), make(chan error)
	other := open(t, direct, prefix, nil)
	var l *etcdlock.Locker
	client, arm := nextTxn(t, server, func(execute func() error) error {
		go func() {
			_, err := l.Lock(hostileContext{t.Context(), sync.OnceFunc(func() { close(joins) })}, at(lock.X, "/a"), deploy)
			joined <- err
		}()
		<-joins
		queue(t, other, direct, prefix, at(lock.X, "/a"), "faster")
		if err := execute(); err != nil {
			return err
		}
		_, err := l.TryLock(t.Context(), at(lock.X, "/a"), deploy) // returns when the claim is seen
		cancel()
		return cmp.Or(ctx.Err(), err)
	})
	l = open(t, client, prefix, &etcdlock.Config{MaxWaiters: 1})
	first := take(t, other, at(lock.X, "/a"), "first")
	arm()
	_, err := l.Lock(ctx, at(lock.X, "/a"), deploy)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case err = <-joined:
	case <-time.After(30 * time.Second):
		err = first.Unlock(t.Context())
		require.FailNow(t, "one more waits than the limit permits", "%v", err)
	}
	require.ErrorIs(t, err, lock.ErrQueueFull)
	awaitClaims(t, other, 2)
}

// The id of other requests is in use, and its holder releases it before the refusal is made. The
// call makes its own request then: a refusal would list no holder.
func TestIDInUseIsReleasedMeanwhile(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var held *lock.Grant
	var armed atomic.Bool
	client := server.Client(t, etcdtest.Through(func(ctx context.Context, req, _ any, send func() error) error {
		if _, read := req.(*etcdserverpb.RangeRequest); read && armed.CompareAndSwap(true, false) {
			if err := held.Unlock(ctx); err != nil {
				return err
			}
		}
		return send()
	}))
	l, deploy := open(t, client, freshPrefix(), nil), &lock.Options{ID: "deploy"}
	var err error
	held, err = l.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	require.NoError(t, err)
	armed.Store(true)
	g, err := l.TryLock(t.Context(), at(lock.X, "/b"), deploy)
	require.NoError(t, err)
	require.False(t, armed.Load())
	require.NoError(t, g.Unlock(t.Context()))
}

// A Lock takes its place in the first transaction, whatever other processes write meanwhile:
// also if it has an id, and if the number of those that wait is limited.
func TestLockBesideFasterWriters(t *testing.T) {
	server := etcdtest.Start(t, nil)
	prefix := freshPrefix()
	other := open(t, server.Client(t), prefix, nil)
	var racing atomic.Bool
	var overtaken atomic.Int64
	client := server.Client(t, etcdtest.Through(func(ctx context.Context, req, _ any, send func() error) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && racing.Load() {
			overtaken.Add(1)
			if err := take(t, other, at(lock.X, "/b"), "faster").Unlock(ctx); err != nil {
				return err
			}
		}
		return send()
	}))
	for name, c := range map[string]struct {
		limit int
		id    string
	}{
		"neither id nor limit": {0, ""},
		"an id":                {0, "deploy"},
		"a limit":              {1, ""},
		"an id and a limit":    {1, "deploy"},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, client, prefix, &etcdlock.Config{MaxWaiters: c.limit})
			overtaken.Store(0)
			racing.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			g, err := l.Lock(ctx, at(lock.X, "/a"), &lock.Options{ID: c.id})
			cancel()
			racing.Store(false)
			require.NoError(t, err)
			require.EqualValues(t, 1, overtaken.Load())
			require.NoError(t, g.Unlock(t.Context()))
		})
	}
}

// Another process takes the last place, or the id, while the transaction of a Lock is under
// way. The Lock is refused, and leaves nothing.
func TestLockThatComesTooLate(t *testing.T) {
	server := etcdtest.Start(t, nil)
	for _, c := range []struct {
		name    string
		limit   int
		id      string
		faster  lock.Request
		refused error
	}{
		{"another one waits", 1, "", at(lock.X, "/a"), lock.ErrQueueFull},
		{"another one waits, and there is a place left", 2, "", at(lock.X, "/a"), nil},
		{"the id is in use for other requests", 0, "deploy", at(lock.S, "/b"), lock.ErrIDInUse},
		{"the id is in use for the same requests", 0, "deploy", at(lock.X, "/a"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent, deliver := make(chan struct{}), make(chan struct{})
			client, arm := nextTxn(t, server, func(execute func() error) error {
				close(sent)
				<-deliver
				return execute()
			})
			direct, prefix := server.Client(t), freshPrefix()
			l, other := open(t, client, prefix, &etcdlock.Config{MaxWaiters: c.limit}), open(t, direct, prefix, nil)
			first := take(t, other, at(lock.X, "/a/first"), "first")
			arm()
			ctx, cancel := context.WithCancel(t.Context())
			late := make(chan error)
			go func() {
				g, err := l.Lock(ctx, at(lock.X, "/a"), &lock.Options{ID: c.id})
				if err == nil {
					err = g.Unlock(t.Context())
				}
				late <- err
			}()
			awaited(t, sent)
			done := make(chan error)
			go func() {
				g, err := other.Lock(t.Context(), c.faster, &lock.Options{ID: c.id})
				if err == nil {
					<-ctx.Done()
					err = g.Unlock(t.Context())
				}
				done <- err
			}()
			awaitClaims(t, other, 2)
			close(deliver)
			if c.refused != nil {
				err := <-late
				require.ErrorIs(t, err, c.refused)
				awaitClaims(t, other, 2)
				if c.id != "" {
					require.ErrorContains(t, err, "S at /b")
					require.NotContains(t, err.Error(), "X at /a held")
				}
			} else {
				awaitClaims(t, other, 3)
				cancel()
				require.ErrorIs(t, <-late, context.Canceled)
			}
			cancel()
			require.NoError(t, first.Unlock(t.Context()))
			require.NoError(t, <-done)
			awaitClaims(t, other, 0)
		})
	}
}
