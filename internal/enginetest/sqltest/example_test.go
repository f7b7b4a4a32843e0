package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An order in a file: opened again, it is what it was. The status and a row of
// the user's own are committed together.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "interlock")
	must(err)
	defer os.RemoveAll(dir)

	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	must(err)
	defer db.Close()
	must(sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil))
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
	must(err)
	defer store.Close()
	orders := lifecycle.New(order, store, nil)
	_, err = orders.Create(ctx, "4711", place, customer, "two lamps")
	must(err)

	_, err = db.Exec("CREATE TABLE ledger (entry TEXT)")
	must(err)
	tx, err := db.BeginTx(ctx, nil)
	must(err)
	_, err = lifecycle.New(order, store.WithTx(tx), nil).Fire(ctx, "4711", pay, customer, nil)
	must(err)
	_, err = tx.Exec("INSERT INTO ledger (entry) VALUES ('4711')")
	must(err)
	must(tx.Commit())

	_, err = orders.Fire(ctx, "4711", pay, customer, nil)
	fmt.Println(errors.Is(err, lifecycle.ErrBusy))
	rows, err := orders.History(ctx, "4711", 0, 0)
	must(err)
	for _, row := range rows {
		fmt.Println(row)
	}
	// Output:
	// true
	// order "4711" #1 operation 0: absent -place-> open by customer
	// order "4711" #2 operation 1: open -pay-> paying by customer
}
