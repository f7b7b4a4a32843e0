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
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// nextTxn returns a client whose next transaction, after the returned function was called,
// passes through a function.
func nextTxn(t testing.TB, server *etcdtest.Server, through func(execute func() error) error, options ...grpc.DialOption) (client *clientv3.Client, arm func()) {
	t.Helper()
	var armed atomic.Bool
	client = server.Client(t, append(options, etcdtest.Through(func(_ context.Context, req, _ any, execute func() error) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && armed.CompareAndSwap(true, false) {
			return through(execute)
		}
		return execute()
	}))...)
	return client, func() { armed.Store(true) }
}

// A claim that is granted while the transaction of an upgrade elsewhere is under way
// keeps its token.
func TestUpgradeLeavesTheTokensOfOthers(t *testing.T) {
	server := etcdtest.Start(t, nil)
	sent, deliver := make(chan struct{}), make(chan struct{})
	client, arm := nextTxn(t, server, func(execute func() error) error {
		close(sent)
		<-deliver
		return execute()
	})
	direct, prefix := server.Client(t), freshPrefix()
	l, other := open(t, client, prefix, nil), open(t, direct, prefix, nil)
	g, err := l.TryLockAll(t.Context(), []lock.Request{at(lock.X, "/a"), at(lock.S, "/b")}, nil)
	require.NoError(t, err)
	blocker := take(t, other, at(lock.X, "/c"), "blocker")
	bystander := queue(t, other, direct, prefix, at(lock.X, "/c"), "bystander")
	behind := queue(t, other, direct, prefix, at(lock.S, "/a"), "behind")
	require.NoError(t, take(t, l, at(lock.X, "/d"), "d").Unlock(t.Context()), "the view of l is up to date now")

	arm()
	upgraded := make(chan error)
	go func() { upgraded <- g.Upgrade(t.Context(), lock.X) }()
	awaited(t, sent)
	require.NoError(t, blocker.Unlock(t.Context()))
	token := bystander.granted(t).Token()
	close(deliver)
	require.NoError(t, <-upgraded)
	holders, err := l.Holders(t.Context(), lock.MustParse("/c"), lock.At)
	require.NoError(t, err)
	require.Len(t, holders, 1)
	require.Equal(t, token, holders[0].Token)
	require.NoError(t, g.Unlock(t.Context()))
	require.Greater(t, behind.granted(t).Token(), g.Token())
}

// A break reaches a call that still waits because its watch hangs: etcd has granted its
// request. Without that, the call would return a grant whose key is deleted.
func TestBreakWhileTheWatchHangs(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs sync.RWMutex // locked: no answer of a watch arrives
	client := server.Client(t, hangingWatch(&hangs))
	direct, prefix := server.Client(t), freshPrefix()
	l, other := open(t, client, prefix, &etcdlock.Config{TTL: 5 * time.Second}), open(t, direct, prefix, nil)
	g := take(t, other, at(lock.X, "/a"), "first")
	w := queue(t, l, direct, prefix, at(lock.X, "/a"), "second")
	hangs.Lock()
	defer hangs.Unlock()
	require.NoError(t, g.Unlock(t.Context()))
	holders, err := other.Holders(t.Context(), lock.MustParse("/a"), lock.At)
	require.NoError(t, err)
	require.NoError(t, other.Break(t.Context(), holders[0].Token, "maintenance"))
	awaited(t, w.done)
	require.ErrorIs(t, w.err, lock.ErrLost)
	require.ErrorContains(t, w.err, "maintenance")
}

// The watch hangs, and the context of a conversion ends when etcd has written it. The grant has
// the token and the modes of the conversion.
func TestConversionWhileTheWatchHangs(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs sync.RWMutex
	client, arm := unseenTxn(t, server, &hangs)
	l := open(t, client, freshPrefix(), nil)
	for _, to := range []lock.Mode{lock.X, lock.IS} {
		g := take(t, l, at(lock.S, "/a"), "holder")
		before, convert := g.Token(), g.Upgrade
		if to == lock.IS {
			convert = g.Downgrade
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hangs.Lock()
		arm(cancel)
		err := convert(ctx, to)
		token, has := g.Token(), g.Requests()
		hangs.Unlock()
		require.NoError(t, err)
		require.Equal(t, []lock.Request{at(to, "/a")}, has)
		require.Equal(t, to == lock.X, token > before)
		holders, err := l.Holders(t.Context(), lock.MustParse("/a"), lock.At)
		require.NoError(t, err)
		require.Equal(t, token, holders[0].Token)
		require.NoError(t, g.Unlock(t.Context()))
	}
}

// After a downgrade that the watch does not show, another request gets the lock. An upgrade back is
// not decided on the view from before the downgrade.
func TestUpgradeWhileTheWatchHangs(t *testing.T) {
	server, prefix := etcdtest.Start(t, nil), freshPrefix()
	var hangs sync.RWMutex
	client, arm := unseenTxn(t, server, &hangs)
	l, other := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.S, "/a"), "holder")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs.Lock()
	defer hangs.Unlock()
	arm(cancel)
	require.NoError(t, g.Downgrade(ctx, lock.IS))
	take(t, other, at(lock.IX, "/a"), "other")
	require.ErrorIs(t, g.Upgrade(t.Context(), lock.S), lock.ErrConflict)
}

// Etcd executes a downgrade and answers NOSPACE, and another request gets the lock before the
// watch shows that. An upgrade back is decided on what etcd has.
func TestUpgradeAfterADowngradeThatFails(t *testing.T) {
	server, prefix := etcdtest.Start(t, nil), freshPrefix()
	var hangs sync.RWMutex
	client, arm := nextTxn(t, server, func(execute func() error) error {
		if err := execute(); err != nil {
			return err
		}
		return rpctypes.ErrGRPCNoSpace
	}, hangingWatch(&hangs))
	l, other := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.S, "/a"), "holder")
	hangs.Lock()
	defer hangs.Unlock()
	arm()
	require.ErrorIs(t, g.Downgrade(t.Context(), lock.IS), rpctypes.ErrNoSpace)
	take(t, other, at(lock.IX, "/a"), "other")
	require.ErrorIs(t, g.Upgrade(t.Context(), lock.S), lock.ErrConflict)
}

// A wait that ends before the watch has shown its claim lists what arrived before it, and not
// what arrived later.
func TestCancelWhileTheWatchHangs(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs sync.RWMutex
	prefix := freshPrefix()
	l, other := open(t, server.Client(t, hangingWatch(&hangs)), prefix, nil), open(t, server.Client(t), prefix, nil)
	held := take(t, other, at(lock.X, "/a"), "holder")
	waiting := func(count int) {
		require.Eventually(t, func() bool {
			s, err := other.Snapshot(t.Context())
			return err == nil && s.Waiting == count
		}, 30*time.Second, 5*time.Millisecond)
	}
	hangs.Lock()
	defer hangs.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Lock(ctx, at(lock.X, "/a"), by("waiting"))
		ended <- err
	}()
	waiting(1)
	later := make(chan *lock.Grant, 1)
	go func() {
		g, _ := other.Lock(t.Context(), at(lock.S, "/a"), by("later"))
		later <- g
	}()
	waiting(2)
	cancel()
	conflict, is := errors.AsType[*lock.ConflictError](<-ended)
	require.True(t, is)
	require.ErrorIs(t, conflict, context.Canceled)
	require.Len(t, conflict.Holders, 1)
	require.Equal(t, "holder", conflict.Holders[0].Owner)
	require.NoError(t, held.Unlock(t.Context()))
	require.NoError(t, (<-later).Unlock(t.Context()))
}

// unseenTxn returns a client whose watches wait while the mutex is locked. Its next transaction
// after arm calls written when etcd has written it.
func unseenTxn(t testing.TB, server *etcdtest.Server, hangs *sync.RWMutex) (_ *clientv3.Client, arm func(written func())) {
	var written func()
	client, armed := nextTxn(t, server, func(execute func() error) error {
		defer func() { written() }()
		return execute()
	}, hangingWatch(hangs))
	return client, func(f func()) { written = f; armed() }
}

// hangingWatch makes the answers of watches wait while the mutex is locked.
func hangingWatch(hangs *sync.RWMutex) grpc.DialOption {
	return grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		if method != etcdserverpb.Watch_Watch_FullMethodName {
			return stream, err
		}
		return &hangingStream{stream, hangs}, err
	})
}

type hangingStream struct {
	grpc.ClientStream
	hangs *sync.RWMutex
}

func (s *hangingStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.hangs.RLock()
	defer s.hangs.RUnlock()
	return err
}

// The request that fills the storage is executed, although its answer is NOSPACE. Its claim
// does not stay.
func TestStorageFullButWritten(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, arm := nextTxn(t, server, func(execute func() error) error {
		if err := execute(); err != nil {
			return err
		}
		return rpctypes.ErrGRPCNoSpace
	})
	l := open(t, client, freshPrefix(), nil)
	for _, lockIt := range []func(context.Context, lock.Request, *lock.Options) (*lock.Grant, error){l.TryLock, l.Lock} {
		arm()
		_, err := lockIt(t.Context(), at(lock.X, "/a"), nil)
		require.ErrorIs(t, err, rpctypes.ErrNoSpace)
		awaitClaims(t, l, 0)
	}
}

// The holder keeps a grant that is revoked, also if the answer to its confirmation is lost.
func TestLostConfirmationOfARevocation(t *testing.T) {
	server := etcdtest.Start(t, nil)
	confirmed := make(chan struct{})
	client, arm := nextTxn(t, server, func(execute func() error) error {
		defer close(confirmed)
		if err := execute(); err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "connection lost")
	})
	prefix := freshPrefix()
	l, operator := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	arm()
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "maintenance"))
	awaited(t, confirmed)
	require.ErrorIs(t, g.Check(), lock.ErrRevoked)
	require.NoError(t, take(t, l, at(lock.X, "/b"), "b").Unlock(t.Context()))
	require.Equal(t, 1, claims(t, operator), "the holder keeps the lock")
	require.NoError(t, g.Unlock(t.Context()))
}

// The watch hangs, and the renewal reads a revocation. The holder confirms it, although its view
// does not show it.
func TestRevocationWhileTheWatchHangs(t *testing.T) {
	server, prefix := etcdtest.Start(t, nil), freshPrefix()
	var hangs sync.RWMutex
	l := open(t, server.Client(t, hangingWatch(&hangs)), prefix, &etcdlock.Config{TTL: 3 * time.Second})
	direct := server.Client(t)
	operator := open(t, direct, prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	hangs.Lock()
	defer hangs.Unlock()
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "maintenance"))
	require.ErrorIs(t, g.Check(), lock.ErrRevoked)
	all, err := direct.Get(t.Context(), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range all.Kvs {
		require.NotContains(t, string(kv.Value), "maintenance")
	}
}

// A revocation reaches a call that still waits because its watch hangs: etcd has granted its
// request. The call then returns a grant that is revoked.
func TestRevocationOfAGrantThatTheWatchDoesNotShow(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var hangs sync.RWMutex
	client := server.Client(t, hangingWatch(&hangs))
	direct, prefix := server.Client(t), freshPrefix()
	l, operator := open(t, client, prefix, &etcdlock.Config{TTL: 3 * time.Second}), open(t, direct, prefix, nil)
	g := take(t, operator, at(lock.X, "/a"), "first")
	hangs.Lock()
	shows := sync.OnceFunc(hangs.Unlock)
	defer shows()
	w := queue(t, l, direct, prefix, at(lock.X, "/a"), "second")
	require.NoError(t, g.Unlock(t.Context()))
	holders, err := operator.Holders(t.Context(), lock.MustParse("/a"), lock.At)
	require.NoError(t, err)
	require.NoError(t, operator.Revoke(t.Context(), holders[0].Token, "maintenance"))
	all, err := direct.Get(t.Context(), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range all.Kvs {
		require.NotContains(t, string(kv.Value), "maintenance")
	}
	shows()
	lost, is := errors.AsType[*lock.LostError](w.granted(t).Check())
	require.True(t, is)
	require.Equal(t, lock.LostError{Token: w.grant.Token(), Reason: "maintenance", Err: lock.ErrRevoked}, *lost)
}

// A session whose lease is answered so late that little of its TTL is left is not used: a
// grant in it would be lost before its first renewal.
func TestLateLease(t *testing.T) {
	server := etcdtest.Start(t, nil)
	const ttl = 5 * time.Second
	var late atomic.Bool
	var lateLease int64
	client := server.Client(t, etcdtest.Through(func(ctx context.Context, _, reply any, send func() error) error {
		err := send()
		lease, granted := reply.(*etcdserverpb.LeaseGrantResponse)
		if !granted || !late.CompareAndSwap(true, false) {
			return err
		}
		lateLease = lease.ID
		select {
		case <-time.After(ttl * 3 / 4):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	prefix := freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: ttl})
	g := take(t, l, at(lock.X, "/a"), "first")
	late.Store(true)
	_, err := client.Revoke(t.Context(), leaseOf(t, client, prefix, "first"))
	require.NoError(t, err)
	awaited(t, g.Lost())
	next, err := l.Lock(t.Context(), at(lock.X, "/a"), by("next"))
	require.NoError(t, err)
	require.False(t, late.Load())
	require.NotEqual(t, lateLease, int64(leaseOf(t, client, prefix, "next")))
	require.NoError(t, next.Unlock(t.Context()))
}

// A Locker with a TTL of less than a second begins another session after the loss of one.
func TestShortTTL(t *testing.T) {
	client, prefix := etcdtest.Start(t, nil).Client(t), freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: time.Millisecond})
	g := take(t, l, at(lock.X, "/a"), "first")
	_, err := client.Revoke(t.Context(), leaseOf(t, client, prefix, "first"))
	require.NoError(t, err)
	awaited(t, g.Lost())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	next, err := l.Lock(ctx, at(lock.X, "/a"), by("next"))
	require.NoError(t, err)
	require.NoError(t, next.Unlock(t.Context()))
}

// slowContext calls a function when a context that was derived from it is cancelled.
type slowContext struct {
	context.Context
	done      chan struct{}
	cancelled func()
}

func (c slowContext) Done() <-chan struct{} { return c.done }

func (c slowContext) AfterFunc(func()) (stop func() bool) {
	return func() bool { c.cancelled(); return true }
}

// Close notifies all holders before it ends the lease, which lets others in.
func TestCloseNotifiesBeforeItReleases(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	l, other := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	w := queue(t, other, client, prefix, at(lock.X, "/a"), "next")
	early := false
	_, cancel := g.Context(slowContext{t.Context(), make(chan struct{}), func() {
		select {
		case <-w.done:
			early = true
		case <-time.After(time.Second): // long enough for a grant that comes too early
		}
	}})
	l.Close()
	cancel()
	require.False(t, early, "granted before the holder was notified")
	require.NoError(t, w.granted(t).Unlock(t.Context()))
}

// hostileContext calls a function in its method Done.
type hostileContext struct {
	context.Context
	done func()
}

func (c hostileContext) Done() <-chan struct{} { c.done(); return c.Context.Done() }

// The context of a Lock panics before its claim is written. A call with the same id, which waits
// for this claim, writes one of its own.
func TestPanicBeforeAClaimIsWritten(t *testing.T) {
	l := open(t, etcdtest.Start(t, nil).Client(t), freshPrefix(), nil)
	deploy, entered, joined := &lock.Options{ID: "deploy"}, make(chan struct{}), make(chan struct{})
	panicked := make(chan any)
	go func() {
		defer func() { panicked <- recover() }()
		_, _ = l.Lock(hostileContext{t.Context(), func() { close(entered); <-joined; panic("hostile") }}, at(lock.X, "/a"), deploy)
	}()
	awaited(t, entered)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g, err := l.Lock(hostileContext{ctx, sync.OnceFunc(func() { close(joined) })}, at(lock.X, "/a"), deploy)
	require.Equal(t, "hostile", <-panicked)
	require.NoError(t, err)
	require.NoError(t, g.Unlock(t.Context()))
}

// Etcd takes longer for a conditional write than the session was certain to live when the next
// ones began. They have their turn after it: the session was renewed meanwhile.
func TestTurnAfterARenewal(t *testing.T) {
	var armed atomic.Bool
	sent := make(chan struct{})
	client := etcdtest.Start(t, nil).Client(t, etcdtest.Through(func(ctx context.Context, req, _ any, execute func() error) error {
		if _, txn := req.(*etcdserverpb.TxnRequest); txn && armed.CompareAndSwap(true, false) {
			close(sent)
			<-ctx.Done() // the time that the session was certain to live
		}
		return execute()
	}))
	l := open(t, client, freshPrefix(), &etcdlock.Config{TTL: 4 * time.Second})
	g := take(t, l, at(lock.S, "/upgraded"), "holder")
	armed.Store(true)
	var calls errgroup.Group
	calls.Go(func() error {
		_, err := l.TryLock(t.Context(), at(lock.X, "/slow"), nil)
		if !errors.Is(err, lock.ErrLost) {
			return fmt.Errorf("the slow write: %w", err)
		}
		return nil
	})
	awaited(t, sent)
	calls.Go(func() error { return g.Upgrade(t.Context(), lock.X) })
	calls.Go(func() error { _, err := l.TryLock(t.Context(), at(lock.X, "/next"), nil); return err })
	require.NoError(t, calls.Wait())
	require.NoError(t, g.Check())
}

// A call that waits does not wake when other locks come and go: it would cost each of them the
// time of all that wait.
func TestOthersDoNotWakeAWait(t *testing.T) {
	client, prefix := etcdtest.Start(t, nil).Client(t), freshPrefix()
	l := open(t, client, prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	var looks atomic.Int64 // a call that wakes looks at its context again
	ctx := hostileContext{t.Context(), func() { looks.Add(1) }}
	var waits errgroup.Group
	waits.Go(func() error {
		next, err := l.Lock(ctx, at(lock.X, "/a"), by("next"))
		if err == nil {
			err = next.Unlock(t.Context())
		}
		return err
	})
	pair := func() { require.NoError(t, take(t, l, at(lock.X, "/b"), "other").Unlock(t.Context())) }
	require.Eventually(t, func() bool { return leaseOf(t, client, prefix, "next") != 0 }, 30*time.Second, 5*time.Millisecond)
	pair() // its answer comes after that of the claim
	before := looks.Load()
	for range 20 {
		pair()
	}
	require.Less(t, looks.Load()-before, int64(10))
	require.NoError(t, g.Unlock(t.Context()))
	require.NoError(t, waits.Wait())
}
