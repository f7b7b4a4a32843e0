package store

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
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// contest is about one object that is changed under an exclusive lock only.
type contest struct {
	mu     sync.Mutex
	holder *lock.Grant // nil: none, or its Unlock has begun

	grants, written, failed, lost, unknown atomic.Int64
}

func (c *contest) String() string {
	return fmt.Sprintf("%d grants with %d commits, %d calls failed, %d commits after a loss, %d unknown",
		c.grants.Load(), c.written.Load(), c.failed.Load(), c.lost.Load(), c.unknown.Load())
}

// enter makes a grant the holder, and reports whether the one before is lost or released.
func (c *contest) enter(g *lock.Grant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := c.holder == nil || c.holder.Check() != nil
	c.holder = g
	return free
}

func (c *contest) leave(g *lock.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder == g {
		c.holder = nil
	}
}

// run takes the lock and changes the object, until done is closed.
func (c *contest) run(ctx context.Context, l *etcdlock.Locker, store lifecycle.Store, k lifecycle.Key, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		g, err := l.Lock(ctx, lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
		if err != nil { // etcd has not answered, or has ended the session
			if errors.Is(err, lock.ErrConflict) || ctx.Err() != nil {
				return err
			}
			c.failed.Add(1)
			continue
		}
		if err := c.hold(ctx, g, store, k); err != nil {
			return err
		}
		if err := g.Unlock(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
			return err
		}
	}
}

// hold changes the object once under a grant. While the grant is held, no other holder
// changes it: a conflict is a second holder.
func (c *contest) hold(ctx context.Context, g *lock.Grant, store lifecycle.Store, k lifecycle.Key) error {
	if !c.enter(g) {
		return errors.New("two holders")
	}
	defer c.leave(g)
	c.grants.Add(1)
	r, err := store.Get(ctx, k)
	for errors.Is(err, lifecycle.ErrUnavailable) {
		r, err = store.Get(ctx, k)
	}
	if err != nil {
		return err
	}
	commit := commitOf(change(r, "Moving"))
	commit.Require = []lifecycle.Precondition{{Grant: g}}
	err = store.Commit(ctx, commit)
	unknown := false
	for errors.Is(err, lifecycle.ErrUnknownOutcome) || errors.Is(err, lifecycle.ErrUnavailable) {
		if errors.Is(err, lifecycle.ErrUnknownOutcome) && !unknown {
			unknown = true
			c.unknown.Add(1)
		}
		err = store.Commit(ctx, commit)
	}
	switch {
	case err == nil:
		c.written.Add(1)
		return nil
	case errors.Is(err, lock.ErrLost), errors.Is(err, lifecycle.ErrConflict) && g.Check() != nil:
		c.lost.Add(1) // it was not written
		return nil
	}
	return fmt.Errorf("a commit under an exclusive lock: %w", err)
}

// impatient opens a store that gives etcd less time for an answer than an election takes, so
// that outcomes become unknown.
func impatient(t testing.TB, p place, client *clientv3.Client) *etcdstore.Store {
	t.Helper()
	config := etcdstore.Config{Prefix: p.prefix, Timeout: 200 * time.Millisecond}
	store, err := etcdstore.Open(t.Context(), client, &config)
	for errors.Is(err, lifecycle.ErrUnavailable) { // on a busy machine an answer may take longer, too
		store, err = etcdstore.Open(t.Context(), client, &config)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// The members of a cluster fail, one at a time, the leader too. Commits and grants go on. No
// acknowledged commit is lost or written twice, and no two processes hold the lock at the
// same time.
func membersFail(t *testing.T, failures int, fail, mend func(*etcdtest.Server)) {
	members := etcdtest.StartCluster(t, 3)
	client := members.Client(t)
	p := newPlace(members[0])
	const contenders = 3
	var contest contest
	var group errgroup.Group
	done, shared := make(chan struct{}), key("shared")
	for range contenders {
		l, err := etcdlock.Open(t.Context(), members.Client(t), "locks/cluster", &etcdlock.Config{TTL: 2 * time.Second})
		require.NoError(t, err)
		t.Cleanup(l.Close)
		store := impatient(t, p, members.Client(t))
		group.Go(func() error { return contest.run(t.Context(), l, store, shared, done) })
	}
	exact(t, p, func() lifecycle.Store { return impatient(t, p, members.Client(t)) }, func() {
		for i := range failures {
			victim := members.Leader(t, client)
			if i%2 == 1 {
				victim = (victim + 1) % len(members)
			}
			fail(members[victim])
			grants := contest.grants.Load()
			progress(t, client)
			require.Eventually(t, func() bool { return contest.grants.Load() > grants+10 }, time.Minute, time.Millisecond)
			mend(members[victim])
			_, err := members[victim].Client(t).Get(t.Context(), "x") // it is as far as the others
			require.NoError(t, err)
		}
		close(done)
		require.NoError(t, group.Wait())
	})
	r := get(t, p.open(t), shared)
	require.EqualValues(t, contest.written.Load(), r.Sequence)
	t.Logf("%d failures; %v", failures, &contest)
}

func TestMembersAreKilled(t *testing.T) {
	kills := scale.Of(4, 40)
	membersFail(t, kills, func(s *etcdtest.Server) { s.Kill(t) }, func(s *etcdtest.Server) { s.Restart(t) })
}

// A member that is stopped keeps its connections, and answers nothing. The clients find that
// by their DialKeepAliveTime.
func TestMembersAreStopped(t *testing.T) {
	stops := scale.Of(1, 10)
	membersFail(t, stops, func(s *etcdtest.Server) { s.Pause(t) }, func(s *etcdtest.Server) { s.Continue(t) })
}

// With one of three members, there is no quorum: calls return in bounded time, and the
// outcome of a commit is unknown. When another member is back, everything works again.
func TestNoQuorum(t *testing.T) {
	members := etcdtest.StartCluster(t, 3)
	p := newPlace(members[0])
	patient, store := p.over(t, members.Client(t)), impatient(t, p, members.Client(t))
	r := put(t, patient, key("a"), "Idle")
	claims := make(chan struct{}, 2) // receives a value after the answer to each claim
	through := etcdtest.Through(func(_ context.Context, req, _ any, send func() error) error {
		err := send()
		if _, claim := req.(*etcdserverpb.TxnRequest); claim {
			select {
			case claims <- struct{}{}:
			default: // only the first two are awaited
			}
		}
		return err
	})
	locker, err := etcdlock.Open(t.Context(), members.Client(t, through), "locks/cluster", &etcdlock.Config{TTL: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(locker.Close)
	x := func(path string) lock.Request { return lock.Request{Path: lock.MustParse(path), Mode: lock.X} }
	held, err := locker.TryLock(t.Context(), x("/a"), nil)
	require.NoError(t, err)
	<-claims
	waits := make(chan error, 1)
	go func() { _, err := locker.Lock(t.Context(), x("/a"), nil); waits <- err }()
	<-claims // otherwise its answer may be lost with its member: the outcome would be unknown

	members[1].Kill(t)
	members[2].Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	for call, err := range calls(ctx, store, r) {
		if call == "Commit" {
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
		} else {
			require.ErrorIs(t, err, lifecycle.ErrUnavailable, call)
		}
	}
	c := commitOf(change(r, "Broken"))
	require.ErrorIs(t, store.Commit(ctx, c), lifecycle.ErrUnknownOutcome)
	t.Logf("one call of each kind of the store, and another commit: %v, with a time-out of 200 ms", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	<-held.Lost()
	require.ErrorIs(t, held.Check(), lock.ErrLost)
	require.ErrorIs(t, held.Unlock(ctx), lock.ErrLost)
	require.ErrorIs(t, <-waits, lock.ErrLost)
	t.Logf("the grant and the wait ended after %v more, with a TTL of 2 s", time.Since(began).Round(time.Millisecond))
	_, err = locker.TryLock(ctx, x("/b"), nil)
	require.ErrorIs(t, err, lock.ErrLost)
	require.NoError(t, ctx.Err())

	members[1].Restart(t)
	require.Eventually(t, func() bool { // the commit of calls, whose outcome was unknown too, may have been first
		err := store.Commit(t.Context(), c)
		return err == nil || errors.Is(err, lifecycle.ErrConflict)
	}, time.Minute, 10*time.Millisecond)
	now := get(t, patient, r.Key)
	require.EqualValues(t, 2, now.Sequence, "one of the two commits was written, once")
	c = commitOf(change(now, "Idle"))
	require.Eventually(t, func() bool {
		next, err := locker.Lock(t.Context(), x("/a"), nil)
		if err != nil {
			return false
		}
		c.Require = []lifecycle.Precondition{{Grant: next}}
		written := store.Commit(t.Context(), c)
		return errors.Join(written, next.Unlock(t.Context())) == nil && next.Token() > held.Token()
	}, time.Minute, 10*time.Millisecond)
	p.audit(t)
}
