package store

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

// restorable opens a store that is back after a restart of its server.
func restorable(t *testing.T, p place) (*etcdstore.Store, disks) {
	t.Helper()
	store := p.open(t)
	awaitAnswer(t, store)
	return store, lifecycle.Must(disk, store, nil)
}

// send commits a message about an object and returns its number.
func send(t *testing.T, store *etcdstore.Store) uint64 {
	t.Helper()
	before := get(t, store, key("a"))
	c := commitOf(change(before, "Idle"))
	c.Messages = make([]lifecycle.Message, 1)
	require.NoError(t, store.Commit(t.Context(), c))
	list, err := store.Messages(t.Context(), 100)
	require.NoError(t, err)
	return list[len(list)-1].Number
}

// Etcd loses its newest commits. After AfterRestore nothing that was handed out before has an
// effect: reports by plain numbers, revisions, owners, for objects that the backup has, and
// for those that it never saw or has as removed.
func TestAfterRestore(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, m := restorable(t, p)
	must := func(r lifecycle.Record[string, int], err error) lifecycle.Record[string, int] {
		t.Helper()
		require.NoError(t, err)
		return r
	}
	begin := func(id string) lifecycle.Record[string, int] { // an operation of an object that is free or missing
		t.Helper()
		if _, err := m.Get(t.Context(), id); err != nil {
			return must(m.Create(t.Context(), id, "make", user, 0, nil))
		}
		return must(m.Fire(t.Context(), id, "copy", user, nil))
	}
	owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
	require.NoError(t, err)
	for _, id := range []string{"known", "removed"} {
		begin(id)
		must(m.Fire(t.Context(), id, "done", worker, nil))
	}
	must(m.Fire(t.Context(), "removed", "delete", user, nil))
	must(m.Fire(t.Context(), "removed", "done", worker, nil))
	begun := change(lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "disk", ID: "owned"}, Revision: "never"}, "copying")
	begun.To.Origin, begun.To.Owner, begun.To.Epoch, begun.To.Payload = "free", owner.Name(), owner.Epoch(), []byte("0")
	require.NoError(t, store.Commit(t.Context(), commitOf(begun))) // an operation in progress
	restore := p.server.Backup(t)

	// These commits are lost.
	store, m = restorable(t, p)
	lost := map[string]lifecycle.Record[string, int]{}
	for _, id := range []string{"known", "removed", "unseen"} {
		lost[id] = begin(id)
	}
	message := send(t, store)
	restore()
	store, _ = restorable(t, p)
	require.NoError(t, store.AfterRestore(t.Context(), 1000))
	store, m = restorable(t, p)
	p.audit(t)
	require.Greater(t, send(t, store), message+900<<7, "a message number contains a revision of etcd")
	require.Eventually(t, func() bool {
		err = owner.Heartbeat(t.Context()) // over a connection of before
		return !errors.Is(err, lifecycle.ErrUnavailable)
	}, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, err, lifecycle.ErrStale, "an owner of before")
	rejoined, err := lifecycle.Join(t.Context(), store, "alpha", 0)
	require.NoError(t, err)
	require.Greater(t, rejoined.Epoch(), owner.Epoch()+999)
	results, err := m.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 1, "the operation of the owner of before is taken over")
	require.Equal(t, "owned", results[0].ID)
	for id, before := range lost {
		again := begin(id)
		require.Greater(t, again.Operation, before.Operation, id)
		verdict, err := m.Report(t.Context(), id, before.Operation, "done", worker, nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Stale, verdict, id)
		_, err = m.Fire(t.Context(), id, "done", worker, &lifecycle.Change[int]{Expect: before.Revision})
		require.ErrorIs(t, err, lifecycle.ErrConflict, id)
		verdict, err = m.Report(t.Context(), id, again.Operation, "done", worker, nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, verdict, id)
		rows, err := m.History(t.Context(), id, 0, 0)
		require.NoError(t, err)
		for i := range rows {
			require.Equal(t, rows[0].Sequence+uint64(i), rows[i].Sequence, "the history has no gap")
		}
	}
	// A creation that was decided before a restore is a conflict.
	missing := get(t, store, key("decided"))
	require.EqualValues(t, 1000, missing.Sequence)
	require.ErrorIs(t, store.AfterRestore(t.Context(), 1<<40+1), lifecycle.ErrInvalid)
	require.NoError(t, store.AfterRestore(t.Context(), 0), "once more")
	for _, revision := range []lifecycle.Revision{"never", missing.Revision} {
		missing.Revision = revision
		require.ErrorIs(t, store.Commit(t.Context(), commitOf(change(missing, "Idle"))), lifecycle.ErrConflict)
	}
	require.Greater(t, put(t, store, key("decided"), "Idle").Operation, lifecycle.OpID(1_000_000_000))
	p.audit(t)
}
