package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The user's writes and the status are committed together, or neither.
func TestWithTx(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		exec(t, db, "CREATE TABLE ledger (entry varchar(20))")
		create(t, manage(store), "a")

		book := func(end func(*sql.Tx) error) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			r, err := manage(store.WithTx(tx)).Fire(t.Context(), "a", pay, customer, &lifecycle.Change[string]{
				Messages: []lifecycle.Message{{Topic: "paid", Payload: []byte("a")}},
			})
			require.NoError(t, err)
			require.Equal(t, paying, r.State)
			inside, err := manage(store.WithTx(tx)).Get(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, paying, inside.State)
			exec(t, tx, "INSERT INTO ledger (entry) VALUES ('a')")
			require.NoError(t, end(tx))
		}
		look := func(want state, entries, rows, messages int) {
			r, err := manage(store).Get(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, want, r.State)
			var n int
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM ledger").Scan(&n))
			require.Equal(t, entries, n)
			history, err := store.History(t.Context(), orderA, 0, 100)
			require.NoError(t, err)
			require.Len(t, history, rows)
			list, err := store.Messages(t.Context(), 100)
			require.NoError(t, err)
			require.Len(t, list, messages)
		}
		look(open, 0, 1, 0)
		book((*sql.Tx).Rollback)
		look(open, 0, 1, 0)
		book((*sql.Tx).Commit)
		look(paying, 1, 2, 1)
	})
}

// A conflict is returned at once, with the current record and not with that of the
// transaction's snapshot. The transaction can still be used.
func TestWithTxConflict(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		exec(t, db, "CREATE TABLE ledger (entry varchar(20))")
		m := manage(store)
		create(t, m, "a")
		before := get(t, store, orderA)
		after := fire(t, m, "a", note, customer)

		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		var conflict *lifecycle.ConflictError
		require.ErrorAs(t, store.WithTx(tx).Commit(t.Context(), next(before, 0)), &conflict)
		require.Equal(t, after.Revision, conflict.Current.Revision)
		exec(t, tx, "INSERT INTO ledger (entry) VALUES ('a')")
		require.NoError(t, tx.Commit())
	})
}

// At every isolation, a transaction that has read before another commit cannot write.
func TestWithTxIsolation(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			onEach(t, func(t *testing.T, e engine) {
				options := &sql.TxOptions{Isolation: level}
				if e.name == "sqlite" {
					options = nil
				}
				store, db := fresh(t, e)
				create(t, manage(store), "a")
				tx, err := db.BeginTx(t.Context(), options)
				require.NoError(t, err)
				defer func() { _ = tx.Rollback() }()
				before := get(t, store.WithTx(tx), orderA)
				if e.name == "mysql" && level == sql.LevelSerializable {
					t.Skip("skipped: a read locks the row there, so that no commit comes between")
				}
				fire(t, manage(store), "a", note, customer)
				err = store.WithTx(tx).Commit(t.Context(), next(before, 0))
				if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
					require.EqualValues(t, 2, conflict.Current.Sequence)
				} else {
					require.ErrorIs(t, err, sqlstore.ErrRollback)
				}
			})
		})
	}
}

// A deadlock of a read ends the transaction: MySQL would commit what the view writes after it.
func TestWithTxDeadlockOfARead(t *testing.T) {
	e := engines()[2]
	require.Equal(t, "mysql", e.name)
	store, db := fresh(t, e)
	m := manage(store)
	for _, id := range []string{"a", "b", "c", "d"} {
		create(t, m, id)
	}
	before := get(t, store, orderA)
	exec(t, db, "CREATE TABLE ledger (entry bigint)")
	begin := func() *sql.Tx {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		require.NoError(t, err)
		return tx
	}
	tx, other := begin(), begin()
	defer tx.Rollback()
	defer other.Rollback()
	lock := "SELECT id FROM interlock_objects WHERE machine = 'order' AND id = ? FOR UPDATE"
	_, err := tx.ExecContext(t.Context(), lock, "b")
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), lock, "a")
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), "INSERT INTO ledger SELECT 1 FROM interlock_objects") // the engine keeps the larger one
	require.NoError(t, err)
	waits := make(chan error)
	go func() {
		_, err := other.ExecContext(t.Context(), lock, "b")
		waits <- err
	}()
	view := store.WithTx(tx)
	_, err = view.Get(t.Context(), orderA)
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.NoError(t, <-waits)
	require.NoError(t, other.Rollback())
	require.ErrorIs(t, view.Commit(t.Context(), next(before, 0)), sqlstore.ErrRollback)
	require.NoError(t, tx.Rollback())
	require.Equal(t, before, get(t, store, orderA))
}

// A table that is changed while processes use it interrupts what began before: a call is made
// again, and a transaction of the caller has to be.
func TestTableIsChangedMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		switch e.name {
		case "postgres":
			db := pool(t, e.open(t))
			table := fourColumns(t, db, "plain", "")
			exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'open', 1, 1)")
			store := existing(t, db, e, table)
			db.SetMaxOpenConns(1)
			before := get(t, store, orderA) // the connection keeps the plan
			exec(t, db, "ALTER TABLE plain ALTER COLUMN state TYPE varchar(60)")
			require.Equal(t, before, get(t, store, orderA))
		case "mysql":
			store, db := fresh(t, e)
			exec(t, db, "CREATE TABLE ledger (entry varchar(20))")
			create(t, manage(store), "a")
			before := get(t, store, orderA)
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			require.NoError(t, err)
			defer tx.Rollback()
			var n int
			require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ledger").Scan(&n))
			exec(t, db, "ALTER TABLE interlock_objects FORCE")
			_, err = store.WithTx(tx).Get(t.Context(), orderA)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
			c := next(before, 0)
			c.Owner = lifecycle.OwnerRef{Name: "process", Epoch: 1} // its record is read
			require.ErrorIs(t, store.WithTx(tx).Commit(t.Context(), c), sqlstore.ErrRollback)
		}
	})
}

// Values that another unique index of the caller's table refuses are refused in a transaction
// too: it would not end well when it runs again.
func TestWithTxOtherUniqueIndex(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := fourColumns(t, db, "named", ", last varchar(9) UNIQUE")
		table.Columns.Reason = "last"
		store := existing(t, db, e, table)
		named := func(id, last string) *lifecycle.Commit {
			c := next(get(t, store, lifecycle.Key{Machine: "order", ID: id}), 0)
			c.Changes[0].To.Reason = last
			return c
		}
		require.NoError(t, store.Commit(t.Context(), named("a", "x")))
		require.NoError(t, store.Commit(t.Context(), named("b", "y")))
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		for _, id := range []string{"c", "b"} {
			err = store.WithTx(tx).Commit(t.Context(), named(id, "x"))
			require.ErrorIs(t, err, lifecycle.ErrPrecondition, id)
			require.NotErrorIs(t, err, sqlstore.ErrRollback, id)
		}
		require.NoError(t, store.WithTx(tx).Commit(t.Context(), named("c", "z")), "the transaction can still be used")
		require.NoError(t, tx.Commit())
	})
}

// A commit that the table refuses after it has written a part leaves the transaction as it was.
func TestWithTxRefusedHalfWay(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, fourColumns(t, db, "named", ", CHECK (state <> 'open')"))
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		in := store.WithTx(tx)
		first, second := lifecycle.Key{Machine: "first", ID: "a"}, orderA
		c := next(get(t, in, first), 0)
		c.Changes = append(c.Changes, next(get(t, in, second), 0).Changes...)
		require.ErrorIs(t, in.Commit(t.Context(), c), lifecycle.ErrInvalid)
		require.NoError(t, in.Commit(t.Context(), next(get(t, in, first), 0)), "the transaction can still be used")
		require.NoError(t, tx.Commit())
		require.EqualValues(t, 1, get(t, store, first).Sequence)
	})
}

// A history row that a trigger refuses takes the record back, which the engine has written.
func TestWithTxWithoutHistoryRow(t *testing.T) {
	refusal := map[string]string{
		"mysql":    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'",
		"postgres": "EXECUTE FUNCTION refuse()",
		"sqlite":   "BEGIN SELECT RAISE(ABORT, 'no'); END",
	}
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		if e.name == "postgres" {
			exec(t, db, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
		}
		exec(t, db, "CREATE TRIGGER refuse BEFORE INSERT ON interlock_history FOR EACH ROW "+refusal[e.name])
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		in := store.WithTx(tx)
		require.ErrorIs(t, in.Commit(t.Context(), next(get(t, in, orderA), 0)), lifecycle.ErrInvalid)
		require.NoError(t, tx.Commit())
		require.Zero(t, get(t, store, orderA).Sequence)
	})
}

// SQLite ends the transaction of the caller when the disk is full, and its savepoint with it: the
// error is an outage.
func TestWithTxFullDisk(t *testing.T) {
	store, db := fresh(t, onSQLite())
	db.SetMaxOpenConns(1)
	exec(t, db, "PRAGMA max_page_count = 200")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	in := store.WithTx(tx)
	c := next(get(t, in, orderA), 0)
	c.Changes[0].To.Payload = make([]byte, 2<<20)
	c.Messages = []lifecycle.Message{{Topic: "large"}}
	require.ErrorIs(t, in.Commit(t.Context(), c), lifecycle.ErrUnavailable)
}

// The error of a trigger that ends the transaction of the caller is in that of the commit.
func TestWithTxEndedByTrigger(t *testing.T) {
	store, db := fresh(t, onSQLite())
	exec(t, db, "CREATE TRIGGER refuse BEFORE INSERT ON interlock_history FOR EACH ROW BEGIN SELECT RAISE(ROLLBACK, 'no quota'); END")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	in := store.WithTx(tx)
	err = in.Commit(t.Context(), next(get(t, in, orderA), 0))
	require.ErrorContains(t, err, "no quota")
	require.NotErrorIs(t, err, lifecycle.ErrInvalid) // which would leave the transaction as it was
}

// A transaction whose pool has no second connection does not wait for one.
func TestWithTxOneConnection(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		create(t, manage(store), "a")
		db.SetMaxOpenConns(1)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		m := manage(store.WithTx(tx))
		for range 2 {
			fire(t, m, "a", note, customer)
		}
		_, err = m.List(t.Context(), lifecycle.Select[state]{})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		r, err := manage(store).Get(t.Context(), "a")
		require.NoError(t, err)
		require.EqualValues(t, 3, r.Sequence)
	})
}

// A commit of several objects with a precondition runs in the user's transaction.
func TestWithTxBatch(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		in := store.WithTx(tx)
		commit := &lifecycle.Commit{
			Token: lifecycle.NewToken(),
			Require: []lifecycle.Precondition{
				{Key: lifecycle.Key{Machine: "order", ID: "never"}, States: []string{""}},
			},
		}
		for _, id := range []string{"b", "a"} {
			commit.Changes = append(commit.Changes, next(get(t, in, lifecycle.Key{Machine: "order", ID: id}), 0).Changes...)
		}
		require.NoError(t, in.Commit(t.Context(), commit))
		require.NoError(t, in.Commit(t.Context(), commit), "the same token again")
		require.NoError(t, tx.Commit())
		list, err := store.List(context.Background(), lifecycle.Query{Machine: "order", Limit: 10})
		require.NoError(t, err)
		require.Len(t, list, 2)
	})
}
