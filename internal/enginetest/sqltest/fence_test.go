package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// The highest token of an object is in its record: another process refuses a lower one, and
// a removed object keeps it. A table without a column for it refuses tokens.
func TestFence(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		bare := userTable(t, db, e)
		bare.Columns.Fence = ""
		store := existing(t, db, e)
		m := manage(store)
		with := func(token lock.Token) *lifecycle.Change[string] { return &lifecycle.Change[string]{Fence: token} }
		_, err := m.Create(t.Context(), "a", place, customer, "one", with(7))
		require.NoError(t, err)
		other := existing(t, db, e)
		_, err = manage(other).Fire(t.Context(), "a", note, customer, with(6))
		require.ErrorIs(t, err, lock.ErrStaleToken)
		require.EqualValues(t, 7, get(t, other, orderA).Fence)
		fire(t, m, "a", drop, customer)
		_, err = m.Create(t.Context(), "a", place, customer, "two", with(6))
		require.ErrorIs(t, err, lock.ErrStaleToken)

		over := existing(t, db, e, bare)
		_, err = manage(over).Create(t.Context(), "b", place, customer, "one", with(7))
		require.ErrorContains(t, err, "the table has no column for fence")
	})
}

// rowGrant is the driver of a grant that is a row of a table of the test.
type rowGrant struct {
	lock.GrantDriver
	query string
}

func (g *rowGrant) Token() lock.Token               { return 5 }
func (g *rowGrant) Check() error                    { return nil } // this process does not know yet
func (g *rowGrant) GuardStatement() (string, []any) { return g.query, []any{5} }

// A commit compares a grant in its own transaction: it is refused after the grant was
// deleted, and the deletion waits for a commit that was first.
func TestGrantInTheSameDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE grants (token bigint NOT NULL PRIMARY KEY)")
		exec(t, db, "INSERT INTO grants VALUES (5)")
		query := map[string]string{
			"postgres": "SELECT token FROM grants WHERE token = $1 FOR SHARE",
			"mysql":    "SELECT token FROM grants WHERE token = ? LOCK IN SHARE MODE",
			"sqlite":   "SELECT token FROM grants WHERE token = ?", // one writer at a time
		}[e.name]
		require.NotEmpty(t, query, e.name)
		store := existing(t, db, e)
		m := manage(store)
		create(t, m, "a")
		grant, _ := lock.NewGrant(&rowGrant{query: query})
		under := func(store lifecycle.Store) error {
			_, err := manage(store).Fire(t.Context(), "a", note, customer, &lifecycle.Change[string]{Require: []lifecycle.Precondition{{Grant: grant}}})
			return err
		}
		inTx := func(do func(tx *sql.Tx) error) error {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer tx.Rollback()
			return do(tx)
		}
		deletes := func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "DELETE FROM grants")
			return err
		}

		if e.name != "sqlite" { // its transactions wait for each other anyway
			require.NoError(t, inTx(func(tx *sql.Tx) error {
				require.NoError(t, under(store.WithTx(tx)))
				ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer stop()
				require.Error(t, deletes(ctx), "the deletion waits for the commit")
				return nil
			}))
		}
		require.NoError(t, deletes(t.Context()))
		require.ErrorIs(t, under(store), lock.ErrLost)
		require.NoError(t, inTx(func(tx *sql.Tx) error {
			require.ErrorIs(t, under(store.WithTx(tx)), lifecycle.ErrPrecondition)
			_, err := tx.ExecContext(t.Context(), fmt.Sprint("INSERT INTO grants VALUES (", 6, ")"))
			require.NoError(t, err, "a refused commit leaves the transaction usable")
			return tx.Commit()
		}))
		var tree lock.Tree
		foreign, err := tree.TryLock(t.Context(), lock.Request{Path: lock.Root(), Mode: lock.X}, nil)
		require.NoError(t, err)
		grant = foreign
		before := get(t, store, orderA)
		require.ErrorContains(t, under(store), "the grant with token 1 is not of a lock in this database")
		require.NoError(t, inTx(func(tx *sql.Tx) error {
			require.ErrorIs(t, under(store.WithTx(tx)), errors.ErrUnsupported)
			return tx.Commit()
		}))
		require.Equal(t, before, get(t, store, before.Key), "nothing is written")
	})
}
