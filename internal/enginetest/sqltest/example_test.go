package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An order in a file survives the end of the process. The status and a row of the user's
// table are committed together.
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
	orders := lifecycle.Must(order, store, nil)
	_, err = orders.Create(ctx, "4711", place, customer, "two lamps", nil)
	must(err)

	_, err = db.Exec("CREATE TABLE ledger (entry TEXT)")
	must(err)
	tx, err := db.BeginTx(ctx, nil)
	must(err)
	_, err = lifecycle.Must(order, store.WithTx(tx), nil).Fire(ctx, "4711", pay, customer, nil)
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

// The user has a table of orders and a table of their history. The library changes the
// status and writes the history row in one transaction. Only the newest rows are kept for
// more than a month.
func ExampleExistingTable() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "interlock")
	must(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	must(err)
	defer db.Close()
	for _, text := range []string{
		"CREATE TABLE orders (no TEXT PRIMARY KEY, lamps INTEGER, status TEXT NOT NULL, rev INTEGER NOT NULL, seq INTEGER NOT NULL)",
		"CREATE TABLE journal (no TEXT, seq INTEGER, token BLOB, was TEXT, status TEXT, what TEXT, who TEXT, at INTEGER, PRIMARY KEY (no, seq))",
		"INSERT INTO orders VALUES ('4711', 2, 'open', 0, 0)",
	} {
		_, err = db.Exec(text)
		must(err)
	}

	store, err := sqlstore.ExistingTable{
		Machine: "order", Table: "orders", Removed: "none",
		Columns: sqlstore.ColumnMap{ID: "no", State: "status", Revision: "rev", Sequence: "seq"},
		ExistingHistory: sqlstore.ExistingHistory{
			Table: "journal", ID: "no", Sequence: "seq", Token: "token", From: "was", To: "status", Event: "what", Actor: "who", At: "at",
		},
	}.Open(ctx, db, sqlstore.SQLite, nil)
	must(err)
	defer store.Close()
	orders := lifecycle.Must(order, store, nil)
	_, err = orders.Fire(ctx, "4711", note, customer, nil)
	must(err)
	_, err = orders.Fire(ctx, "4711", pay, customer, nil)
	fmt.Println("an operation has no column:", errors.Is(err, errors.ErrUnsupported))
	_, err = store.Trim(ctx, 30*24*time.Hour, 100)
	must(err)

	var line string
	must(db.QueryRow("SELECT no || ' ' || was || ' ' || what || ' ' || status || ' by ' || who FROM journal").Scan(&line))
	fmt.Println(line)
	// Output:
	// an operation has no column: true
	// 4711 open note open by customer
}
