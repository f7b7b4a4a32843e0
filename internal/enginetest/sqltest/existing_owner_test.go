package sqltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An operation in an existing table has an owner, which is in the library's own tables. A
// process that was declared dead writes nothing more, and a sweep takes over what it left.
func TestExistingTableOwner(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
		require.NoError(t, err)
		begun := ownedBy(owner, get(t, store, orderA), 1)
		to := &begun.Changes[0].To
		to.State, to.Owner, to.Epoch = "paying", owner.Name(), owner.Epoch()
		require.NoError(t, store.Commit(t.Context(), begun))
		require.NoError(t, owner.Heartbeat(t.Context()))

		_, err = lifecycle.Join(t.Context(), store, "alpha", 0) // a later process of the name
		require.NoError(t, err)
		before := get(t, store, orderA)
		require.ErrorIs(t, store.Commit(t.Context(), ownedBy(owner, before, 1)), lifecycle.ErrStale)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.ErrorIs(t, store.WithTx(tx).Commit(t.Context(), ownedBy(owner, before, 0)), lifecycle.ErrStale)
		require.NoError(t, tx.Commit())
		require.Equal(t, before, get(t, store, orderA))

		results, err := manage(store).Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Contains(t, results[0].Cause, `owner "alpha" of epoch 1`)
		var user, own int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM shop_things").Scan(&user))
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM interlock_objects WHERE state = 'alive'").Scan(&own))
		require.Equal(t, []int{1, 1}, []int{user, own})
	})
}

// One commit changes objects of an existing table and of the library's own tables, or none.
func TestExistingTableWithOwnTables(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		order, other := orderA, lifecycle.Key{Machine: "crane", ID: "a"}
		both := func() *lifecycle.Commit {
			c := next(get(t, store, order), 1)
			c.Changes = append(c.Changes, next(get(t, store, other), 0).Changes...)
			return c
		}
		first, late := both(), both()
		require.NoError(t, store.Commit(t.Context(), first))
		require.NoError(t, store.Commit(t.Context(), first), "the same token again")
		require.Equal(t, first.Changes[0].To.ChangedAt, first.Changes[1].To.ChangedAt)
		for i, key := range []lifecycle.Key{order, other} {
			require.Equal(t, first.Changes[i].To, get(t, store, key))
			rows, err := store.History(t.Context(), key, 0, 9)
			require.NoError(t, err)
			require.Len(t, rows, 1)
			require.Equal(t, first.Token, rows[0].Token)
		}
		late.Changes[0].Expect, late.Changes[0].From = first.Changes[0].To.Revision, first.Changes[0].To.State
		late.Changes[0].To.Sequence = 2
		require.ErrorIs(t, store.Commit(t.Context(), late), lifecycle.ErrConflict, "the other object has moved")
		require.Equal(t, first.Changes[0].To, get(t, store, order))
	})
}

// A commit that requires the absence of an object and a commit that creates it come one
// after the other, also in a transaction of the caller that has read before.
func TestExistingTableAbsence(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the engine has one writer at a time")
		}
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		a, b := orderA, lifecycle.Key{Machine: "order", ID: "b"}
		create := next(get(t, store, a), 0)
		create.Require = []lifecycle.Precondition{{Key: b, States: []string{""}}}
		second := next(get(t, store, b), 0)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		require.NoError(t, store.WithTx(tx).Commit(t.Context(), create))

		done := make(chan error)
		go func() { done <- store.Commit(t.Context(), second) }()
		select {
		case err := <-done:
			t.Fatalf("the creation did not wait: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		require.NoError(t, tx.Commit())
		require.NoError(t, <-done)
		create = next(get(t, store, a), 0)
		create.Require = []lifecycle.Precondition{{Key: b, States: []string{""}}}
		require.ErrorIs(t, store.Commit(t.Context(), create), lifecycle.ErrPrecondition)
	})
}

// Two existing tables, and the objects of other machines, in one store. Trim trims the
// histories of all of them.
func TestTwoExistingTables(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		first, second := users(t, db, e, "a_"), users(t, db, e, "b_")
		first.Machine, second.Machine, second.ExistingHistory = "order", "crane", sqlstore.ExistingHistory{}
		_, err := openTable(t, db, e, first, first)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `two existing tables for machine "order"`)
		same := first
		same.Machine = "crane"
		_, err = openTable(t, db, e, first, same)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `two machines in the table a_`)
		if e.dialect != sqlstore.SQLite { // has no schemas
			same.Table = "a_schema." + first.Table
			_, err = openTable(t, db, e, first, same)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.ErrorContains(t, err, `two machines in the table a_schema.a_`)
		}
		same.Table, same.ExistingHistory.Machine = second.Table, ""
		_, err = openTable(t, db, e, first, same)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `without a column for Machine`)
		store := existing(t, db, e, first, second)
		const changes = 2 * leastKept
		for _, machine := range []string{"order", "crane", "truck"} {
			for range changes {
				require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: machine, ID: "x"}), 0)))
			}
			list, err := store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 9})
			require.NoError(t, err)
			require.Len(t, list, 1)
		}
		n, err := store.Trim(t.Context(), time.Microsecond, 0)
		require.NoError(t, err)
		require.Equal(t, 3*(changes-leastKept), n)
	})
}
