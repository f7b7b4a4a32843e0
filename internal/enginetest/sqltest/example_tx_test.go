package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The examples commit the change of an order's state and a row of the user's table in one
// transaction of the user: with database/sql, with sqlx, and with bun. Every library whose
// transaction has a *sql.Tx inside works like these.

// shop is an open order in a file, beside a table of the user.
type shop struct {
	dir   string
	db    *sql.DB
	store *sqlstore.Store
}

func openShop(ctx context.Context) *shop {
	dir, err := os.MkdirTemp("", "interlock")
	must(err)
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	must(err)
	must(sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil))
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
	must(err)
	_, err = db.Exec("CREATE TABLE ledger (entry TEXT)")
	must(err)
	_, err = lifecycle.Must(order, store, nil).Create(ctx, "4711", place, customer, "two lamps", nil)
	must(err)
	return &shop{dir, db, store}
}

func (s *shop) close() {
	must(s.store.Close())
	must(s.db.Close())
	must(os.RemoveAll(s.dir))
}

// pay moves the order inside the transaction.
func (s *shop) pay(ctx context.Context, tx *sql.Tx) error {
	_, err := lifecycle.Must(order, s.store.WithTx(tx), nil).Fire(ctx, "4711", pay, customer, nil)
	return err
}

// print prints the state of the order and the number of entries.
func (s *shop) print(ctx context.Context) {
	rec, err := lifecycle.Must(order, s.store, nil).Get(ctx, "4711")
	must(err)
	var entries int
	must(s.db.QueryRow("SELECT COUNT(*) FROM ledger").Scan(&entries))
	fmt.Println(rec.State, entries)
}

func Example_tx() {
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := s.db.BeginTx(ctx, nil)
		must(err)
		must(s.pay(ctx, tx))
		_, err = tx.Exec("INSERT INTO ledger (entry) VALUES ('4711')")
		must(err)
		must(end(tx))
		s.print(ctx)
	}
	// Output:
	// open 0
	// paying 1
}

func Example_sqlx() {
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()
	db := sqlx.NewDb(s.db, "sqlite")
	for _, end := range []func(*sqlx.Tx) error{func(tx *sqlx.Tx) error { return tx.Rollback() }, func(tx *sqlx.Tx) error { return tx.Commit() }} {
		tx, err := db.BeginTxx(ctx, nil)
		must(err)
		must(s.pay(ctx, tx.Tx))
		_, err = tx.NamedExec("INSERT INTO ledger (entry) VALUES (:entry)", map[string]any{"entry": "4711"})
		must(err)
		must(end(tx))
		s.print(ctx)
	}
	// Output:
	// open 0
	// paying 1
}

func Example_bun() {
	type ledger struct {
		bun.BaseModel `bun:"table:ledger"`
		Entry         string
	}
	ctx := context.Background()
	s := openShop(ctx)
	defer s.close()
	db := bun.NewDB(s.db, sqlitedialect.New())
	for range 2 {
		err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.NewInsert().Model(&ledger{Entry: "4711"}).Exec(ctx); err != nil {
				return err
			}
			return s.pay(ctx, tx.Tx) // its error rolls the entry back
		})
		fmt.Println(err)
		s.print(ctx)
	}
	// Output:
	// <nil>
	// paying 1
	// lifecycle: fire order "4711": pay by customer in paying: cannot execute action at this time
	// paying 1
}
