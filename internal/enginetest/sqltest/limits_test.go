package sqltest

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// Three reports with reasons of 20 MiB do not make the file of a database larger. They
// once grew it to 80 MiB.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStores(t, onSQLite(), sqlstore.Config{})
	m := manage(s.new(t))
	create(t, m, "a")
	begun := fire(t, m, "a", pay, customer)
	for range 3 {
		_, err := m.Report(t.Context(), "a", begun.Operation, settled, bank, &lifecycle.Change[string]{Reason: strings.Repeat("x", 20<<20)})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.way.file(t) + suffix); err == nil {
			size += info.Size()
		}
	}
	require.Less(t, size, int64(8<<20))
}

// Names that no engine keeps, numbers that no column keeps, and ids that the type of a column
// refuses are refused wherever a call has them.
func TestRefusedNames(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, typedTable(t, db, e, sqlstore.UUID, vmCodes))
		for _, key := range []lifecycle.Key{
			{Machine: "order", ID: ""},
			{Machine: "", ID: "a"},
			{Machine: "order", ID: "a\x00"},
			{Machine: "order", ID: "\xff"},
			{Machine: "order", ID: strings.Repeat("x", 256)},
			{Machine: "vm", ID: "no uuid"},
		} {
			c := next(get(t, store, orderA), 0)
			c.Require = []lifecycle.Precondition{{Key: key, States: []string{""}}}
			require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid, "%q", key)
			_, err := store.History(t.Context(), key, 0, 1)
			require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", key)
		}
		for _, after := range []string{"\xff", "a\x00b", strings.Repeat("x", 256)} {
			_, err := store.List(t.Context(), lifecycle.Query{Machine: "order", After: after, Limit: 1})
			require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", after)
		}
		_, err := store.Recent(t.Context(), "vm", time.Minute, "no uuid", 1)
		if e.name == "postgres" {
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		} else { // the ids are in a column of text, where a row may have any
			require.NoError(t, err)
		}
		c := next(get(t, store, orderA), 0)
		c.Owner = lifecycle.OwnerRef{Name: "\xff", Epoch: 1}
		require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid)
		c = next(get(t, store, orderA), 0)
		c.Changes[0].To.Fence = 1 << 63
		err = store.Commit(t.Context(), c)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `fence of "a" is above 9223372036854775807`)
		require.Empty(t, get(t, store, orderA).State)
	})
}

// A payload that the server does not take is refused, and the store can be used further.
func TestLargePacket(t *testing.T) {
	store, db := fresh(t, engines()[2])
	most := 0
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT @@max_allowed_packet").Scan(&most))
	if most > 64<<20 {
		t.Skip("skipped: max_allowed_packet of the server is above the defaults")
	}
	c := next(get(t, store, orderA), 0)
	c.Changes[0].To.Payload = make([]byte, most+most/16)
	err := store.Commit(t.Context(), c)
	for tries := 0; errors.Is(err, lifecycle.ErrUnavailable) && tries < 20; tries++ {
		err = store.Commit(t.Context(), c) // the server has cut the connection before the driver read its answer
	}
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	require.Empty(t, get(t, store, orderA).State)
	c.Changes[0].To.Payload = make([]byte, min(most/2, 8<<20)) // a larger row does not fit into the log of MySQL
	require.NoError(t, store.Commit(t.Context(), c))
}

// A query may name owners with epochs that no column keeps. They own nothing, and the others own
// what they own.
func TestEpochsThatNoColumnKeeps(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, _ := fresh(t, e)
		c := next(get(t, store, orderA), 0)
		c.Changes[0].To.Owner, c.Changes[0].To.Epoch = "p", 1
		require.NoError(t, store.Commit(t.Context(), c))
		for want, owners := range map[int][]lifecycle.OwnerRef{
			0: {{Name: "p", Epoch: 1}, {Name: "p", Epoch: math.MaxUint64}},
			1: {{Name: "p", Epoch: 2}, {Name: "p", Epoch: math.MaxUint64}},
		} {
			list, err := store.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 10, NotOwnedBy: owners})
			require.NoError(t, err)
			require.Len(t, list, want, owners)
		}
	})
}
