package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

func at(m lock.Mode, path string) lock.Request {
	return lock.Request{Path: lock.MustParse(path), Mode: m}
}

func by(owner string) *lock.Options { return &lock.Options{Owner: owner} }

// take is a TryLock that must succeed.
func take(t testing.TB, l *etcdlock.Locker, r lock.Request, owner string) *lock.Grant {
	t.Helper()
	g, err := l.TryLock(t.Context(), r, by(owner))
	require.NoError(t, err)
	return g
}

// waiter is a Lock in a goroutine of its own.
type waiter struct {
	cancel  context.CancelFunc
	done    chan struct{}
	grant   *lock.Grant
	err     error
	claimed clientv3.LeaseID
}

// queue starts a Lock and returns when its claim waits in etcd. The answer to the claim may
// still be on its way; see answersTo.
func queue(t testing.TB, l *etcdlock.Locker, client *clientv3.Client, prefix string, r lock.Request, owner string) *waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	t.Cleanup(cancel)
	go func() {
		defer close(w.done)
		w.grant, w.err = l.Lock(ctx, r, by(owner))
	}()
	require.Eventually(t, func() bool {
		w.claimed = leaseOf(t, client, prefix, owner)
		return w.claimed != 0
	}, 30*time.Second, 5*time.Millisecond, "%s does not wait", owner)
	return w
}

// answersTo returns an option of clients, and a channel that receives a value after each
// answer to a transaction that writes a claim of an owner. A test that cuts the connection of
// a waiting Lock waits for it: after an unknown outcome the Lock would end with an error.
func answersTo(owner string) (grpc.DialOption, <-chan struct{}) {
	answers := make(chan struct{}, 10)
	return etcdtest.Through(func(_ context.Context, req, _ any, send func() error) error {
		err := send()
		if txn, is := req.(*etcdserverpb.TxnRequest); is && strings.Contains(txn.String(), owner) {
			answers <- struct{}{}
		}
		return err
	}), answers
}

func (w *waiter) granted(t testing.TB) *lock.Grant {
	t.Helper()
	awaited(t, w.done)
	require.NoError(t, w.err)
	return w.grant
}

// awaited waits for a channel.
func awaited(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		require.FailNow(t, "does not happen")
	}
}

// leaseOf returns the lease of the claim of an owner, and 0 if there is none.
func leaseOf(t testing.TB, client *clientv3.Client, prefix, owner string) clientv3.LeaseID {
	t.Helper()
	got, err := client.Get(context.Background(), prefix+"/", clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range got.Kvs {
		if strings.Contains(string(kv.Value), fmt.Sprintf(`"owner":%q`, owner)) {
			return clientv3.LeaseID(kv.Lease)
		}
	}
	return 0
}

// claims returns the number of claims in etcd, of all processes.
func claims(t testing.TB, l *etcdlock.Locker) int {
	t.Helper()
	s, err := l.Snapshot(context.Background())
	require.NoError(t, err)
	return s.Nodes
}

// awaitClaims waits until etcd has a number of claims. A call returns before its claim is removed if
// that takes longer than the Locker waits for it.
func awaitClaims(t testing.TB, l *etcdlock.Locker, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return claims(t, l) == n }, 30*time.Second, 5*time.Millisecond)
}

// A pair takes two round trips at any depth, a refusal one, a list two.
func TestRoundTrips(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var trips atomic.Int64
	client := server.Client(t, etcdtest.Through(func(_ context.Context, _, _ any, send func() error) error {
		trips.Add(1)
		return send()
	}))
	l := open(t, client, freshPrefix(), &etcdlock.Config{TTL: time.Minute})
	take(t, l, at(lock.X, "/other"), "other")
	counted := func(do func()) int64 {
		before := trips.Load()
		do()
		return trips.Load() - before
	}
	unlock := func(g *lock.Grant, err error) {
		require.NoError(t, err)
		require.NoError(t, g.Unlock(t.Context()))
	}
	for _, depth := range []int{1, 4, 16, 32} {
		r := at(lock.X, strings.Repeat("/d", depth))
		tries := counted(func() { unlock(l.TryLock(t.Context(), r, nil)) })
		waits := counted(func() { unlock(l.Lock(t.Context(), r, nil)) })
		refusals := counted(func() {
			_, err := l.TryLock(t.Context(), at(lock.X, "/other"), nil)
			require.ErrorIs(t, err, lock.ErrConflict)
		})
		t.Logf("depth %d: TryLock and Unlock %d, Lock and Unlock %d, refusal %d round trips", depth, tries, waits, refusals)
		require.Equal(t, [3]int64{2, 2, 1}, [3]int64{tries, waits, refusals})
	}
	var list []lock.Request
	for i := range 300 {
		list = append(list, at(lock.X, fmt.Sprintf("/list/%d", i)))
	}
	require.EqualValues(t, 2, counted(func() { unlock(l.TryLockAll(t.Context(), list, nil)) }), "a list")
}

// A transaction that arrives after its caller has stopped waiting, and after the removal of
// its key, fails. Without the comparison it would lock until the end of the session.
func TestDelayedAttemptLeavesNoLock(t *testing.T) {
	server := etcdtest.Start(t, nil)
	var delayed atomic.Pointer[context.CancelFunc] // nil: no call is delayed. Otherwise it ends the context of its caller
	gate, arrived := make(chan struct{}), make(chan *etcdserverpb.TxnResponse)
	client := server.Client(t, grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		stops := delayed.Swap(nil)
		if stops == nil {
			return call(ctx, method, req, reply, cc, opts...)
		}
		go func() { // the network has the request, and delivers it late
			<-gate
			late := new(etcdserverpb.TxnResponse)
			_ = call(context.WithoutCancel(ctx), method, req, late, cc, opts...)
			arrived <- late
		}()
		(*stops)()
		<-ctx.Done()
		return ctx.Err()
	}))
	l := open(t, client, freshPrefix()+"/", &etcdlock.Config{TTL: time.Minute}) // two slashes stay two
	g := take(t, l, at(lock.S, "/g"), "upgraded")
	for _, c := range []struct {
		what string
		call func(context.Context) error
		held int // claims afterwards
	}{
		{"TryLock", func(ctx context.Context) error { _, err := l.TryLock(ctx, at(lock.X, "/a"), nil); return err }, 1},
		{"Lock", func(ctx context.Context) error { _, err := l.Lock(ctx, at(lock.X, "/a"), nil); return err }, 1},
		{"Upgrade", func(ctx context.Context) error { return g.Upgrade(ctx, lock.X) }, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			delayed.Store(&cancel)
			require.ErrorIs(t, c.call(ctx), context.Canceled)
			awaitClaims(t, l, c.held)
			gate <- struct{}{}
			late := <-arrived
			require.NotNil(t, late.Header, "the late transaction is answered")
			require.False(t, late.Succeeded)
			t.Logf("the late transaction fails, %d ghost locks", claims(t, l)-c.held)
			require.Equal(t, c.held, claims(t, l))
		})
	}
	require.ErrorIs(t, g.Check(), lock.ErrLost, "the outcome of the upgrade is unknown")
	require.NoError(t, take(t, l, at(lock.X, "/"), "next").Unlock(t.Context()))
}

// A caller whose session ends while it waits gets an error. The Locker begins another
// session.
func TestSessionLostWhileWaiting(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	first, second := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g := take(t, first, at(lock.X, "/a"), "first")
	w := queue(t, second, client, prefix, at(lock.X, "/a"), "second")
	began := time.Now()
	_, err := client.Revoke(t.Context(), w.claimed)
	require.NoError(t, err)
	awaited(t, w.done)
	t.Logf("returned %v after the end of the session", time.Since(began).Round(time.Millisecond))
	require.ErrorIs(t, w.err, lock.ErrLost)
	require.NoError(t, g.Check())
	next, err := second.Lock(t.Context(), at(lock.X, "/b"), by("second")) // waits for the next session
	require.NoError(t, err)
	require.NoError(t, next.Unlock(t.Context()))
}

// Of writes after the loss of a session, the guarded ones are refused, and unguarded ones
// overwrite those of the next holder.
func TestGuardedWritesAfterALoss(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	lockers := []*etcdlock.Locker{open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)}
	rounds, writes := scale.Of(25, 1000), scale.Of(4, 10)
	var guarded, refused, unguarded int
	var latest lock.Token // that has written
	stale := map[string]int{}
	// write counts a write that comes after one with a later token.
	write := func(key string, g *lock.Grant, conditions ...clientv3.Cmp) bool {
		r, err := client.Txn(t.Context()).If(conditions...).Then(clientv3.OpPut(key, fmt.Sprint(g.Token()))).Commit()
		require.NoError(t, err)
		if r.Succeeded && g.Token() < latest {
			stale[key]++
		}
		return r.Succeeded
	}
	both := func(g *lock.Grant) {
		guarded++
		if !write("guarded", g, g.Driver().(etcdlock.Guard).GuardCompare()) {
			refused++
		}
		unguarded++
		write("unguarded", g)
		latest = max(latest, g.Token())
	}
	for round := range rounds {
		holder := lockers[round%2]
		g, err := holder.Lock(t.Context(), at(lock.X, "/a"), by("holder"))
		require.NoError(t, err)
		w := queue(t, lockers[(round+1)%2], client, prefix, at(lock.S, "/a/b"), "next")
		for range writes {
			both(g)
		}
		_, err = client.Revoke(t.Context(), leaseOf(t, client, prefix, "holder"))
		require.NoError(t, err)
		next := w.granted(t)
		both(next)
		for range writes {
			both(g) // it has not looked at Check
		}
		awaited(t, g.Lost())
		require.ErrorIs(t, g.Check(), lock.ErrLost)
		require.NoError(t, next.Unlock(t.Context()))
	}
	t.Logf("%d guarded writes: %d stale, %d refused; %d unguarded writes: %d stale",
		guarded, stale["guarded"], refused, unguarded, stale["unguarded"])
	require.Zero(t, stale["guarded"])
	require.Equal(t, rounds*writes, refused)
	require.Equal(t, rounds*writes, stale["unguarded"])
}

// Grants and waits survive a restart of etcd that is shorter than the TTL.
func TestEngineRestarts(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	option, answers := answersTo("second")
	first, second := open(t, client, prefix, nil), open(t, server.Client(t, option), prefix, nil)
	for range 2 {
		g := take(t, first, at(lock.X, "/a"), "first")
		w := queue(t, second, client, prefix, at(lock.X, "/a"), "second")
		<-answers
		server.Kill(t)
		server.Restart(t)
		require.NoError(t, g.Check())
		require.NoError(t, g.Unlock(t.Context()))
		require.NoError(t, w.granted(t).Unlock(t.Context()))
	}
}

// If etcd does not answer, the grant is lost before the lease can end, and a call
// returns with its context.
func TestEngineHangs(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	l := open(t, client, prefix, &etcdlock.Config{TTL: 2 * time.Second})
	g := take(t, l, at(lock.X, "/a"), "holder")
	w := queue(t, l, client, prefix, at(lock.X, "/a"), "waiting")
	server.Pause(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.TryLock(ctx, at(lock.X, "/b"), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	t.Logf("a call of 50 ms returned after %v", time.Since(began).Round(time.Millisecond))
	awaited(t, g.Lost())
	t.Logf("lost %v after the last answer, with a TTL of 2 s", time.Since(began).Round(time.Millisecond))
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	require.ErrorIs(t, g.Unlock(t.Context()), lock.ErrLost)
	awaited(t, w.done)
	require.ErrorIs(t, w.err, lock.ErrLost)
	_, err = l.TryLock(t.Context(), at(lock.X, "/b"), nil) // returns while etcd is silent
	require.ErrorIs(t, err, lock.ErrLost)
	require.ErrorContains(t, err, "no session")
	server.Continue(t)
	next, err := l.Lock(t.Context(), at(lock.X, "/"), by("next"))
	require.NoError(t, err)
	require.Greater(t, next.Token(), g.Token())
	require.Equal(t, 1, claims(t, l))
}

// A call whose session ends returns lock.ErrLost. Its error does not match that of a context:
// the context of the caller has not ended.
func TestSessionEndsDuringACall(t *testing.T) {
	server := etcdtest.Start(t, nil)
	l := open(t, server.Client(t), freshPrefix(), &etcdlock.Config{TTL: 2 * time.Second})
	g := take(t, l, at(lock.S, "/a"), "holder")
	server.Pause(t)
	calls := []func() error{
		func() error { _, err := l.TryLock(t.Context(), at(lock.X, "/b"), nil); return err },
		func() error { _, err := l.Lock(t.Context(), at(lock.X, "/c"), nil); return err },
		func() error { return g.Upgrade(t.Context(), lock.X) },
	}
	results := make(chan error, len(calls))
	for _, call := range calls {
		go func() { results <- call() }()
	}
	for range calls {
		err := <-results
		require.ErrorIs(t, err, lock.ErrLost)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "context")
	}
	server.Continue(t)
}

// The successor of a process that is cut off gets the lock when the lease ends. The grant of the
// process is lost by then.
func TestHolderIsCutOff(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	line := proxy.New(t, "tcp", server.Endpoint())
	remote := open(t, etcdtest.Client(t, line.Addr()), prefix, &etcdlock.Config{TTL: 2 * time.Second})
	l := open(t, client, prefix, nil)
	g := take(t, remote, at(lock.X, "/a"), "holder")
	w := queue(t, l, client, prefix, at(lock.X, "/a"), "next")
	began := time.Now()
	line.SetDown(true)
	next := w.granted(t)
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	awaited(t, g.Lost())
	t.Logf("the successor has the lock after %v, with a TTL of 2 s", time.Since(began).Round(time.Millisecond))
	line.SetDown(false)
	require.NoError(t, next.Unlock(t.Context()))
	again, err := remote.Lock(t.Context(), at(lock.X, "/a"), by("again"))
	require.NoError(t, err)
	require.NoError(t, again.Unlock(t.Context()))
}

// A watch whose revision was compacted while its connection was cut is begun again.
func TestCompactionWhileWaiting(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	line := proxy.New(t, "tcp", server.Endpoint())
	option, answers := answersTo("second")
	far := etcdtest.Connect(t, clientv3.Config{Endpoints: []string{line.Addr()}, DialOptions: []grpc.DialOption{option}})
	l, remote := open(t, client, prefix, nil), open(t, far, prefix, nil)
	for range 3 {
		g := take(t, l, at(lock.X, "/a"), "first")
		w := queue(t, remote, client, prefix, at(lock.X, "/a"), "second")
		<-answers
		line.SetDown(true)
		require.NoError(t, g.Unlock(t.Context()))
		var last *clientv3.PutResponse
		for range 3 {
			var err error
			last, err = client.Put(t.Context(), "unrelated", "")
			require.NoError(t, err)
		}
		_, err := client.Compact(t.Context(), last.Header.Revision, clientv3.WithCompactPhysical())
		require.NoError(t, err)
		line.SetDown(false)
		require.NoError(t, w.granted(t).Unlock(t.Context()))
	}
}

// Requests of two processes are granted in the order of their arrival.
func TestOrderAcrossProcesses(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	lockers := []*etcdlock.Locker{open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)}
	g := take(t, lockers[0], at(lock.X, "/a"), "first")
	var queued []*waiter
	for i := range 10 {
		queued = append(queued, queue(t, lockers[i%2], client, prefix, at(lock.X, "/a"), fmt.Sprint("waiting ", i)))
	}
	for i, w := range queued {
		for _, behind := range queued[i:] {
			select {
			case <-behind.done:
				require.FailNow(t, "overtaken", "%v", behind.err)
			default:
			}
		}
		require.NoError(t, g.Unlock(t.Context()))
		next := w.granted(t)
		require.Greater(t, next.Token(), g.Token())
		g = next
	}
}

// A claim whose list is raised elsewhere while another one waits for it gets a token below
// that of the waiting one.
func TestUpgradeWhileAwaited(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	l, other := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g, err := l.TryLockAll(t.Context(), []lock.Request{at(lock.X, "/a"), at(lock.S, "/b")}, nil)
	require.NoError(t, err)
	first := queue(t, other, client, prefix, at(lock.S, "/a"), "first")
	second := queue(t, l, client, prefix, at(lock.S, "/a/b"), "second")
	third := queue(t, other, client, prefix, at(lock.X, "/a"), "third")
	reader := take(t, l, at(lock.S, "/b"), "reader")
	require.NoError(t, reader.Unlock(t.Context()))
	require.NoError(t, g.Upgrade(t.Context(), lock.X))
	require.Greater(t, g.Token(), reader.Token())
	require.NoError(t, g.Unlock(t.Context()))
	require.Greater(t, first.granted(t).Token(), g.Token())
	require.Greater(t, second.granted(t).Token(), first.grant.Token())
	require.NoError(t, errors.Join(first.grant.Unlock(t.Context()), second.grant.Unlock(t.Context())))
	require.Greater(t, third.granted(t).Token(), second.grant.Token())
}

// Revoke and Break reach the holder in another process before they return. A holder that is
// gone is broken after its TTL.
func TestOperatorInAnotherProcess(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	line := proxy.New(t, "tcp", server.Endpoint())
	holder, operator := open(t, server.Client(t), prefix, nil), open(t, client, prefix, nil)
	remote := open(t, etcdtest.Client(t, line.Addr()), prefix, &etcdlock.Config{TTL: 2 * time.Second})
	g := take(t, holder, at(lock.X, "/a"), "holder")
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "maintenance"))
	require.ErrorIs(t, g.Check(), lock.ErrRevoked)
	require.ErrorContains(t, g.Check(), "maintenance")
	require.Equal(t, 1, claims(t, operator), "the holder keeps the lock")
	require.NoError(t, operator.Break(t.Context(), g.Token(), "too late"))
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	require.ErrorContains(t, g.Check(), "too late")
	require.Zero(t, claims(t, operator))
	require.ErrorIs(t, operator.Break(t.Context(), g.Token(), ""), lock.ErrNotHeld)

	g = take(t, remote, at(lock.X, "/a"), "remote")
	line.SetDown(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, operator.Break(ctx, g.Token(), "cut off"), context.DeadlineExceeded)
	began := time.Now()
	err := operator.Break(t.Context(), g.Token(), "cut off")
	t.Logf("broken after %v, with a TTL of 2 s", time.Since(began).Round(time.Millisecond))
	if !errors.Is(err, lock.ErrNotHeld) { // the lease has ended first
		require.NoError(t, err)
	}
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	require.NoError(t, take(t, operator, at(lock.X, "/a"), "next").Unlock(t.Context()))
}

// A holder is cut off, and its lease does not end: the orders wait for one TTL, after which the
// grant is lost. Break deletes the claim then.
func TestOperatorOfAHolderThatDoesNotObey(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	line := proxy.New(t, "tcp", server.Endpoint())
	operator := open(t, client, prefix, nil)
	remote := open(t, etcdtest.Client(t, line.Addr()), prefix, &etcdlock.Config{TTL: 2 * time.Second})
	g := take(t, remote, at(lock.X, "/a"), "remote")
	lease := leaseOf(t, client, prefix, "remote")
	line.SetDown(true)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	alive, err := client.KeepAlive(ctx, lease)
	require.NoError(t, err)
	go func() {
		for range alive { // it is kept alive until ctx ends
		}
	}()
	require.NoError(t, operator.Revoke(t.Context(), g.Token(), "maintenance"))
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	require.Equal(t, 1, claims(t, operator))
	require.NoError(t, operator.Break(t.Context(), g.Token(), "it does not answer"))
	require.Zero(t, claims(t, operator))
	require.NoError(t, take(t, operator, at(lock.X, "/a"), "next").Unlock(t.Context()))
}

// An id that another process has is in use for other requests, and conflicts for the same
// ones, also in a mode that is compatible.
func TestIDsAcrossProcesses(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	first, second := open(t, client, prefix, nil), open(t, server.Client(t), prefix, nil)
	g, err := first.TryLock(t.Context(), at(lock.S, "/a"), &lock.Options{ID: "deploy", Owner: "first"})
	require.NoError(t, err)
	_, err = second.TryLock(t.Context(), at(lock.S, "/a"), &lock.Options{ID: "deploy"})
	require.ErrorIs(t, err, lock.ErrConflict)
	require.ErrorContains(t, err, "S at /a held by first")
	_, err = second.Lock(t.Context(), at(lock.S, "/b"), &lock.Options{ID: "deploy"})
	require.ErrorIs(t, err, lock.ErrIDInUse)
	require.NoError(t, g.Unlock(t.Context()))
	_, err = second.TryLock(t.Context(), at(lock.S, "/b"), &lock.Options{ID: "deploy"})
	require.NoError(t, err)
}

// Cancelled waits leave neither a key nor, as TestMain checks, a goroutine.
func TestCancelledWaits(t *testing.T) {
	server := etcdtest.Start(t, nil)
	l := open(t, server.Client(t), freshPrefix(), nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	n := scale.Of(100, 1000)
	var waits errgroup.Group
	ctx, cancel := context.WithCancel(t.Context())
	for range n {
		waits.Go(func() error {
			if _, err := l.Lock(ctx, at(lock.X, "/a"), nil); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a wait ends with: %v", err)
			}
			return nil
		})
	}
	require.Eventually(t, func() bool { return claims(t, l) > n/2 }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, waits.Wait())
	awaitClaims(t, l, 1)
	require.NoError(t, g.Unlock(t.Context()))
}

// While the storage of etcd is full, requests fail and grants can be released.
func TestStorageFull(t *testing.T) {
	server := etcdtest.Start(t, &etcdtest.Config{Quota: 1 << 20})
	client := server.Client(t)
	l := open(t, client, freshPrefix(), nil)
	g := take(t, l, at(lock.S, "/a"), "holder")
	fill := strings.Repeat("x", 200_000)
	var err error
	for i := 0; err == nil; i++ {
		_, err = client.Put(t.Context(), fmt.Sprint("fill", i), fill)
	}
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	_, err = l.TryLock(t.Context(), at(lock.X, "/b"), nil)
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	require.ErrorIs(t, g.Upgrade(t.Context(), lock.X), rpctypes.ErrNoSpace)
	require.NoError(t, g.Check(), "a refused upgrade changes nothing")
	require.NoError(t, g.Unlock(t.Context()))
	require.Zero(t, claims(t, l))
}

// What another program has written locks the whole tree: nothing is known about it.
func TestUnreadableClaim(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	l := open(t, client, prefix, nil)
	key := prefix + "/0000000000000001/0000000000000001"
	for name, value := range map[string]string{
		"no requests":    `{"version":9}`,
		"other requests": `{"requests":[{"p":"/b","m":"X"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Put(t.Context(), key, value)
			require.NoError(t, err)
			_, err = l.TryLock(t.Context(), at(lock.IS, "/a"), nil)
			require.ErrorIs(t, err, lock.ErrConflict)
			require.ErrorContains(t, err, "cannot be read")
		})
	}
	_, err := client.Delete(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, take(t, l, at(lock.IS, "/a"), "a").Unlock(t.Context()))
}

func TestOpenAndClose(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client, prefix := server.Client(t), freshPrefix()
	for name, c := range map[string]etcdlock.Config{
		"a negative TTL":     {TTL: -1},
		"a TTL of centuries": {TTL: math.MaxInt64},
		"negative waiters":   {MaxWaiters: -1},
		"negative holders":   {MaxHolders: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := etcdlock.Open(t.Context(), client, prefix, &c)
			require.ErrorIs(t, err, lock.ErrInvalid)
		})
	}
	cause := errors.New("cause")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := etcdlock.Open(ended, client, prefix, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)

	l, other := open(t, client, prefix, nil), open(t, client, prefix, nil)
	g := take(t, l, at(lock.X, "/a"), "holder")
	w := queue(t, l, client, prefix, at(lock.X, "/a"), "waiting")
	l.Close()
	l.Close()
	awaited(t, w.done)
	require.ErrorIs(t, w.err, lock.ErrLost)
	require.ErrorIs(t, g.Check(), lock.ErrLost)
	require.ErrorIs(t, g.Unlock(t.Context()), lock.ErrLost)
	_, err = l.TryLock(t.Context(), at(lock.X, "/a"), nil)
	require.ErrorIs(t, err, etcdlock.ErrClosed)
	require.ErrorIs(t, l.Revoke(t.Context(), g.Token(), ""), etcdlock.ErrClosed)
	require.ErrorIs(t, l.Break(t.Context(), g.Token(), ""), etcdlock.ErrClosed)
	require.Zero(t, claims(t, other), "the session has ended with the Locker")
}
