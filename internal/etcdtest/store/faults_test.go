package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

func key(id string) lifecycle.Key { return lifecycle.Key{Machine: "crane", ID: id} }

// change moves an object from the record that was read to a state.
func change(before lifecycle.StoredRecord, state string) lifecycle.StoredChange {
	to := lifecycle.StoredRecord{
		Key: before.Key, State: state, Origin: state, Sequence: before.Sequence + 1, Operation: before.Operation + 1,
		Actor: "tester", Event: "to " + state, Payload: []byte("in " + state),
	}
	return lifecycle.StoredChange{Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to}
}

func commitOf(changes ...lifecycle.StoredChange) *lifecycle.Commit {
	return &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: changes}
}

func get(t testing.TB, store lifecycle.Store, k lifecycle.Key) lifecycle.StoredRecord {
	t.Helper()
	r, err := store.Get(t.Context(), k)
	require.NoError(t, err)
	return r
}

// awaitAnswer waits until the connections of a store are back.
func awaitAnswer(t testing.TB, store lifecycle.Store) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := store.Get(t.Context(), key("a")); return err == nil }, time.Minute, 10*time.Millisecond)
}

// put moves an object to a state, or creates it.
func put(t testing.TB, store lifecycle.Store, k lifecycle.Key, state string) lifecycle.StoredRecord {
	t.Helper()
	before := get(t, store, k)
	c := commitOf(change(before, state))
	require.NoError(t, store.Commit(t.Context(), c))
	return c.Changes[0].To
}

// tally counts how the commits of writers end.
type tally struct{ acknowledged, unknown, settled, unavailable atomic.Int64 }

func (c *tally) String() string {
	return fmt.Sprintf("%d acknowledged, %d unknown (%d of them written), %d refused as unavailable",
		c.acknowledged.Load(), c.unknown.Load(), c.settled.Load(), c.unavailable.Load())
}

// write commits to one object, which has no other writer, until done is closed. It requires
// that every outcome is true. It returns the number of commits that were written.
func (c *tally) write(ctx context.Context, store lifecycle.Store, k lifecycle.Key, done <-chan struct{}) (written uint64, err error) {
	known := lifecycle.StoredRecord{Key: k, Revision: "never"}
	for {
		select {
		case <-done:
			return written, nil
		default:
		}
		commit := commitOf(change(known, []string{"Idle", "Moving"}[written%2]))
		err := store.Commit(ctx, commit)
		unknown := false
		for errors.Is(err, lifecycle.ErrUnknownOutcome) { // the same commit again, until its outcome is known
			unknown = true
			err = store.Commit(ctx, commit)
			for errors.Is(err, lifecycle.ErrUnavailable) {
				err = store.Commit(ctx, commit)
			}
		}
		switch {
		case err == nil:
			written++
			known = commit.Changes[0].To
			if unknown {
				c.settled.Add(1)
			} else {
				c.acknowledged.Add(1)
			}
		case errors.Is(err, lifecycle.ErrUnavailable):
			c.unavailable.Add(1)
		default:
			return written, fmt.Errorf("%s: a commit without another writer: %w", k.ID, err)
		}
		if unknown {
			c.unknown.Add(1)
		}
	}
}

// exact runs writers until trouble returns, and requires that every object has exactly the
// commits that its writer knows.
func exact(t *testing.T, p place, through func() lifecycle.Store, trouble func()) *tally {
	t.Helper()
	const writers = 8
	var counts tally
	var group errgroup.Group
	var written [writers]uint64
	done := make(chan struct{})
	for i := range writers {
		store := through()
		group.Go(func() (err error) {
			written[i], err = counts.write(t.Context(), store, key(fmt.Sprint(i)), done)
			return err
		})
	}
	trouble()
	close(done)
	require.NoError(t, group.Wait())
	direct, total := p.open(t), uint64(0)
	for i := range writers {
		r := get(t, direct, key(fmt.Sprint(i)))
		require.Equal(t, written[i], r.Sequence, "commits of writer %d", i)
		rows, err := direct.History(t.Context(), r.Key, 0, int(written[i])+1)
		require.NoError(t, err)
		require.Len(t, rows, int(written[i]))
		total += written[i]
	}
	p.audit(t)
	t.Logf("%d commits of %d writers in the history: %v", total, writers, &counts)
	return &counts
}

// Connections are cut at random places of requests and answers. Every outcome is true, and
// no commit is a conflict.
func TestLostAnswers(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	network := proxy.New(t, "tcp", p.server.Endpoint())
	cuts := scale.Of(100, 2000)
	exact(t, p, func() lifecycle.Store { return p.over(t, etcdtest.Client(t, network.Addr())) }, func() {
		network.CutAtRandom(30)
		require.Eventually(t, func() bool { return network.Cuts() >= cuts }, 5*time.Minute, time.Millisecond)
		network.CutAtRandom(0)
	})
	t.Logf("%d connections were cut", network.Cuts())
}

// progress waits until etcd has executed 100 more writes.
func progress(t *testing.T, client *clientv3.Client) {
	t.Helper()
	revision := func() (int64, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a member may hang
		defer cancel()
		r, err := client.Get(ctx, "x")
		if err != nil {
			return 0, false
		}
		return r.Header.Revision, true
	}
	var before int64
	require.Eventually(t, func() (ok bool) { before, ok = revision(); return ok }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		now, ok := revision()
		return ok && now > before+100
	}, time.Minute, time.Millisecond)
}

// The server is killed again and again. Nothing that was acknowledged is lost.
func TestKills(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	kills := scale.Of(4, 20)
	counts := exact(t, p, func() lifecycle.Store { return p.open(t) }, func() {
		client := p.server.Client(t)
		for range kills {
			progress(t, client)
			p.server.Kill(t)
			p.server.Restart(t)
		}
	})
	require.Greater(t, counts.acknowledged.Load(), int64(100*kills/2))
	t.Logf("%d kills", kills)
}

// calls makes one call of each kind and returns the errors.
func calls(ctx context.Context, store *etcdstore.Store, r lifecycle.StoredRecord) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = store.Get(ctx, r.Key)
	_, errs["List"] = store.List(ctx, lifecycle.Query{Machine: "crane", Limit: 1})
	_, errs["List by state"] = store.List(ctx, lifecycle.Query{Machine: "crane", States: []string{"Idle"}, Limit: 1})
	_, errs["History"] = store.History(ctx, r.Key, 0, 1)
	_, errs["Requested"] = store.Requested(ctx, "crane", "r")
	_, errs["Recent"] = store.Recent(ctx, "crane", time.Hour, "", 1)
	_, errs["Messages"] = store.Messages(ctx, 1)
	errs["Discard"] = store.Discard(ctx, 1)
	_, errs["Trim"] = store.Trim(ctx, time.Hour, 0)
	errs["Commit"] = store.Commit(ctx, commitOf(change(r, "Moving")))
	return errs
}

// Without a server, every call returns ErrUnavailable at once, because nothing was sent.
func TestStoppedServer(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store := p.open(t)
	r := put(t, store, key("a"), "Idle")
	p.server.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for call, err := range calls(ctx, store, r) {
		require.ErrorIs(t, err, lifecycle.ErrUnavailable, call)
		require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome, call)
	}
	require.NoError(t, ctx.Err())
	p.server.Restart(t)
	awaitAnswer(t, store)
	now := get(t, store, r.Key)
	require.Equal(t, r, now)
}

// A server that is paused has no quorum: it accepts requests and answers none. A read is
// unavailable after the time-out, and the outcome of a commit is unknown. When the server
// continues, the same commit returns its outcome.
func TestPausedServer(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	patient, store := p.open(t), impatient(t, p, p.server.Client(t))
	r := put(t, patient, key("a"), "Idle")
	p.server.Pause(t)
	for call, err := range calls(t.Context(), store, r) {
		if call != "Commit" {
			require.ErrorIs(t, err, lifecycle.ErrUnavailable, call)
		}
	}
	c := commitOf(change(r, "Broken"))
	err := store.Commit(t.Context(), c)
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	unknown, _ := errors.AsType[*lifecycle.UnknownOutcomeError](err)
	require.Equal(t, c.Token, unknown.Token)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = store.Get(ctx, r.Key)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.server.Continue(t)
	require.Eventually(t, func() bool { // the commit of calls, whose outcome was unknown too, may have been first
		err := store.Commit(t.Context(), c)
		return err == nil || errors.Is(err, lifecycle.ErrConflict)
	}, time.Minute, 10*time.Millisecond)
	now := get(t, patient, r.Key)
	require.EqualValues(t, 2, now.Sequence, "one of the two commits was written, once")
}

// The database is full: a commit is unavailable and writes nothing, in whichever way etcd
// refuses it. Reads go on, and so do commits when there is space.
func TestFullStorage(t *testing.T) {
	server := etcdtest.Start(t, &etcdtest.Config{Quota: 4 << 20})
	p := newPlace(server)
	store, client := p.open(t), server.Client(t)
	r := put(t, store, key("a"), "Idle")
	var err error
	written := 0
	for ; err == nil; written++ {
		require.Less(t, written, 100)
		ch := change(r, "Moving")
		ch.To.Payload = make([]byte, 1<<18)
		c := commitOf(ch)
		if err = store.Commit(t.Context(), c); err == nil {
			r = c.Changes[0].To
		}
	}
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.ErrorContains(t, err, "database space exceeded")
	require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	now := get(t, store, r.Key)
	require.Equal(t, r.Revision, now.Revision, "a refused commit writes nothing")
	rows, err := store.History(t.Context(), r.Key, r.Sequence, 10)
	require.NoError(t, err)
	require.Empty(t, rows)
	p.audit(t)
	t.Logf("%d commits of 256 KiB in 4 MiB were acknowledged", written-1)

	head, err := client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = client.Compact(t.Context(), head.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	_, err = client.Defragment(t.Context(), server.Endpoint())
	require.NoError(t, err)
	_, err = client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	require.Equal(t, r.Sequence+1, put(t, store, r.Key, "Idle").Sequence)
}

// The database loses its newest commits, and etcd counts its revisions again. A revision
// from before the loss is a conflict also where the object has as many changes again.
func TestRestoredBackup(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store := p.open(t)
	put(t, store, key("a"), "Idle")
	restore := p.server.Backup(t)
	awaitAnswer(t, store)
	lost := put(t, store, key("a"), "Moving")
	restore()
	awaitAnswer(t, store)
	again := put(t, store, key("a"), "Moving")
	require.Equal(t, lost.Sequence, again.Sequence)
	require.NotEqual(t, lost.Revision, again.Revision)
	require.ErrorIs(t, store.Commit(t.Context(), commitOf(change(lost, "Idle"))), lifecycle.ErrConflict)
	p.audit(t)
}

// A commit with a MetadataOnly change is written, and sent again by another call, whose
// answer is lost. The second call is a conflict: it has no trace of the first deadline.
func TestMixedCommitIsSentAgain(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	var armed atomic.Bool
	store := p.over(t, p.server.Client(t, etcdtest.Through(func(_ context.Context, req, _ any, send func() error) error {
		err := send()
		if txn, ok := req.(*etcdserverpb.TxnRequest); ok && len(txn.Compare) > 0 && armed.CompareAndSwap(true, false) {
			return status.Error(codes.Unavailable, "the answer is lost")
		}
		return err
	})))
	for _, metadataFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("metadata first: ", metadataFirst), func(t *testing.T) {
			moved, extended := put(t, store, key("moved "+t.Name()), "Idle"), put(t, store, key("extended "+t.Name()), "Idle")
			heartbeat := lifecycle.StoredChange{Expect: extended.Revision, From: "Idle", To: extended, MetadataOnly: true, Timeout: time.Hour}
			first := commitOf(change(moved, "Moving"), heartbeat)
			if metadataFirst {
				slices.Reverse(first.Changes)
			}
			again := *first
			again.Changes = slices.Clone(first.Changes)
			require.NoError(t, store.Commit(t.Context(), first))
			p.ahead.Add(int64(time.Minute))
			armed.Store(true)
			require.ErrorIs(t, store.Commit(t.Context(), &again), lifecycle.ErrConflict)
			require.False(t, armed.Load())
		})
	}
	p.audit(t)
}
