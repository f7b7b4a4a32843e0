package store

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

// Names that would be ambiguous in a key are refused wherever a call has them.
func TestRefusedNames(t *testing.T) {
	store := newPlace(etcdtest.Start(t, nil)).open(t)
	never := get(t, store, key("a"))
	for _, bad := range []lifecycle.Key{{Machine: "crane"}, {ID: "a"}, key("a\x00"), key("\xff"), {Machine: "\x00", ID: "a"}} {
		_, err := store.Get(t.Context(), bad)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", bad)
		_, err = store.History(t.Context(), bad, 0, 1)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", bad)
		c := commitOf(change(never, "Idle"))
		c.Require = []lifecycle.Precondition{{Key: bad, States: []string{""}}}
		require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid, "%q", bad)
	}
	c := commitOf(change(never, "Idle"))
	c.Owner = lifecycle.OwnerRef{Name: "\x00", Epoch: 1}
	require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid)
	_, err := store.Requested(t.Context(), "crane", "\x00")
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = store.Recent(t.Context(), "\x00", time.Minute, "", 1)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = store.List(t.Context(), lifecycle.Query{Machine: "\x00", Limit: 1})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Equal(t, never, get(t, store, key("a")))
}

// A revision that no store has written is a conflict, whatever its form.
func TestRevisionsOfNoStore(t *testing.T) {
	store := newPlace(etcdtest.Start(t, nil)).open(t)
	r := put(t, store, key("a"), "Idle")
	for _, revision := range []lifecycle.Revision{"", "x", "never", "never-1", "a-b-c-d-e-f", "a-1-2-3-4-" + lifecycle.Revision(strings.Repeat("o", 300)), "-----"} {
		ch := change(r, "Moving")
		ch.Expect = revision
		require.ErrorIs(t, store.Commit(t.Context(), commitOf(ch)), lifecycle.ErrConflict, "%q", revision)
	}
	require.Equal(t, r, get(t, store, key("a")))
}

// A time that JSON does not have is refused.
func TestTimeBeyondTheCalendar(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store := p.open(t)
	r := put(t, store, key("a"), "Idle")
	ch := lifecycle.StoredChange{Expect: r.Revision, From: r.State, MetadataOnly: true, To: r}
	ch.To.Deadline = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	require.ErrorIs(t, store.Commit(t.Context(), commitOf(ch)), lifecycle.ErrInvalid)
	require.Equal(t, r, get(t, store, key("a")))
	p.audit(t)
}

// Another program has written the keys: each read names the one that it cannot read.
func TestForeignValues(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, client := p.open(t), p.server.Client(t)
	for _, c := range []struct {
		key, value string
		call       func() error
	}{
		{"record/crane\x00a", "{", func() error { _, err := store.Get(t.Context(), key("a")); return err }},
		{"record/crane\x00a", "{", func() error {
			return store.Commit(t.Context(), commitOf(change(lifecycle.StoredRecord{Key: key("a"), Revision: "never"}, "Idle")))
		}},
		{"record/crane\x00a", "[]", func() error {
			_, err := store.List(t.Context(), lifecycle.Query{Machine: "crane", Limit: 1})
			return err
		}},
		{"record/crane\x00a", "[]", func() error { return store.AfterRestore(t.Context(), 0) }},
		{"history/crane\x00a\x000000000000000001", "7", func() error { _, err := store.History(t.Context(), key("a"), 0, 9); return err }},
		{"history/crane\x00a\x000000000000000001", "7", func() error { _, err := store.Trim(t.Context(), time.Hour, 0); return err }},
		{"time/crane\x007fffffffffffffff\x00a", "x", func() error { _, err := store.Recent(t.Context(), "crane", time.Hour, "", 9); return err }},
		{"request/crane\x00r", "", func() error { _, err := store.Requested(t.Context(), "crane", "r"); return err }},
		{"message/0000000000000000\x00x\x00token\x00y", "{}", func() error { _, err := store.Messages(t.Context(), 9); return err }},
		{"message/0000000000000000\x00x", "{}", func() error { return store.Discard(t.Context(), 1<<62) }},
		{"version", "2-x", func() error { _, err := store.Get(t.Context(), key("b")); return err }},
		{"version", "2-x", func() error { return store.AfterRestore(t.Context(), 0) }},
	} {
		before, err := client.Get(t.Context(), p.prefix+c.key)
		require.NoError(t, err)
		_, err = client.Put(t.Context(), p.prefix+c.key, c.value)
		require.NoError(t, err)
		err = c.call()
		require.ErrorIs(t, err, etcdstore.ErrLayout, "%q", c.key)
		require.NotErrorIs(t, err, lifecycle.ErrUnavailable, "%q", c.key)
		if before.Count > 0 {
			_, err = client.Put(t.Context(), p.prefix+c.key, string(before.Kvs[0].Value))
		} else {
			_, err = client.Delete(t.Context(), p.prefix+c.key)
		}
		require.NoError(t, err)
	}
	put(t, store, key("a"), "Idle")
	require.NoError(t, store.Discard(t.Context()), "no numbers")
	p.audit(t)
}

// The entry of the state of a required object was deleted by hand. The commit is refused, and its
// error does not show a reason that is none.
func TestCommitThatTheRecordsDoNotExplain(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, client := p.open(t), p.server.Client(t)
	r, b := put(t, store, key("a"), "Idle"), put(t, store, key("b"), "Idle")
	_, err := client.Delete(t.Context(), p.prefix+"state/crane\x00Idle\x00b")
	require.NoError(t, err)
	c := commitOf(change(r, "Moving"))
	c.Require = []lifecycle.Precondition{{Key: b.Key, States: []string{"Idle"}}}
	err = store.Commit(t.Context(), c)
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.ErrorContains(t, err, "the records show no reason")
	require.Equal(t, r, get(t, store, key("a")))
}

// A server accepts connections and does not answer. Nothing is sent, and Open returns after the
// time-out.
func TestOpenWithoutAnAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	client := etcdtest.Client(t, listener.Addr().String())
	began := time.Now()
	_, err = etcdstore.Open(t.Context(), client, &etcdstore.Config{Timeout: 200 * time.Millisecond})
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.Less(t, time.Since(began), 10*time.Second)
}
