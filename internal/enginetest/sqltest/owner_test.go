package sqltest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// ownedBy returns a commit of an owner that moves an object. It starts an operation.
func ownedBy(o *lifecycle.Owner, r lifecycle.StoredRecord, messages int) *lifecycle.Commit {
	c := next(r, messages)
	c.Owner = lifecycle.OwnerRef{Name: o.Name(), Epoch: o.Epoch()}
	c.Changes[0].To.Operation++
	c.Changes[0].To.Admission = c.Token
	return c
}

// A process that was declared dead, or was replaced, writes nothing more: alone, with
// messages, and in a transaction of the caller.
func TestCommitOfALostOwner(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
		require.NoError(t, err)
		first := ownedBy(owner, get(t, store, orderA), 1)
		require.NoError(t, store.Commit(t.Context(), first))
		before := get(t, store, orderA)
		require.Equal(t, first.Token, before.Admission)

		_, err = lifecycle.Join(t.Context(), store, "alpha", 0) // a later process of the name
		require.NoError(t, err)
		refused := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, lifecycle.ErrStale)
			lost, ok := errors.AsType[*lifecycle.OwnerError](err)
			require.True(t, ok)
			require.Equal(t, lifecycle.OwnerRef{Name: "alpha", Epoch: owner.Epoch()}, lost.Owner)
			require.Equal(t, before, get(t, store, orderA))
		}
		for messages := range 2 {
			refused(store.Commit(t.Context(), ownedBy(owner, before, messages)))
		}
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		err = store.WithTx(tx).Commit(t.Context(), ownedBy(owner, before, 0))
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.NoError(t, tx.Commit(), "the transaction goes on")
		refused(err)

		require.NoError(t, store.Commit(t.Context(), first), "it was written while the owner was alive")
		late := ownedBy(owner, before, 0)
		late.Changes[0].Expect = "1-00"
		require.ErrorIs(t, store.Commit(t.Context(), late), lifecycle.ErrConflict, "a conflict comes before a dead owner")
		list, err := store.Messages(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}

// A commit of an owner reads the owner's record without a lock: it waits for no heartbeat,
// and sees every commit that was acknowledged, at every isolation level that Open accepts.
func TestCommitOfAnOwnerTakesNoLock(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the engine has one writer at a time")
		}
		w := e.open(t)
		for _, level := range []string{"serializable", "repeatable read", "read committed"} {
			setting := "default_transaction_isolation=" + level
			if e.name == "mysql" {
				setting = "tx_isolation=%27" + strings.ReplaceAll(strings.ToUpper(level), " ", "-") + "%27"
			}
			w = w.with(t, setting)
			db := pool(t, w)
			require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
			store, err := sqlstore.Open(t.Context(), db, e.dialect, &sqlstore.Config{RetryFor: time.Second})
			require.NoError(t, err)
			defer store.Close()
			key := lifecycle.Key{Machine: "order", ID: level}
			owner, err := lifecycle.Join(t.Context(), store, level, 0)
			require.NoError(t, err)

			other, err := db.BeginTx(t.Context(), nil) // another process expires the owner, and has not committed yet
			require.NoError(t, err)
			_, err = other.ExecContext(t.Context(), "UPDATE interlock_objects SET state = 'dead' WHERE machine = 'interlock.owner' AND id = '"+level+"'")
			require.NoError(t, err)
			require.NoError(t, store.Commit(t.Context(), ownedBy(owner, get(t, store, key), 0)), level)
			require.NoError(t, other.Commit())
			require.ErrorIs(t, store.Commit(t.Context(), ownedBy(owner, get(t, store, key), 0)), lifecycle.ErrStale, level)
		}
	})
}

// The token of the commit that started an operation is kept until the object is removed.
// An existing table needs no column for it.
func TestAdmission(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		m := manage(store)
		placed := create(t, m, "a")
		require.Zero(t, placed.Admission)
		began := fire(t, m, "a", pay, customer)
		require.NotZero(t, began.Admission)
		rows, err := m.History(t.Context(), "a", 1, 1)
		require.NoError(t, err)
		require.Equal(t, rows[0].Token, began.Admission)
		_, err = m.Report(t.Context(), "a", began.Operation, settled, bank, nil)
		require.NoError(t, err)
		got, err := m.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, began.Admission, got.Admission)

		for name, column := range map[string]string{"kept": "admitted", "not kept": ""} {
			t.Run(name, func(t *testing.T) {
				table := users(t, db, e, map[string]string{"kept": "k_", "not kept": "n_"}[name])
				table.Machine, table.Columns.Admission = "order", column
				existing := existing(t, db, e, table)
				m := manage(existing)
				create(t, m, "a")
				fire(t, m, "a", pay, customer)
				got, err := m.Get(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, column != "", got.Admission != lifecycle.Token{})
			})
		}
	})
}
