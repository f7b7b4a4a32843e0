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
	_, err = orders.Create(ctx, "4711", place, customer, "two lamps")
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
		"CREATE TABLE orders (no TEXT PRIMARY KEY, lamps INTEGER, status TEXT NOT NULL, was TEXT, rev INTEGER NOT NULL, seq INTEGER NOT NULL, op INTEGER, due INTEGER, note BLOB)",
		"CREATE TABLE journal (no TEXT, seq INTEGER, token BLOB, was TEXT, status TEXT, what TEXT, who TEXT, at INTEGER, PRIMARY KEY (no, seq))",
		"INSERT INTO orders (no, lamps, status, rev, seq) VALUES ('4711', 2, 'open', 0, 0)",
	} {
		_, err = db.Exec(text)
		must(err)
	}

	table := sqlstore.ExistingTable{
		Machine: "order", Table: "orders", Removed: "none",
		Columns: sqlstore.ColumnMap{
			ID: "no", State: "status", Origin: "was", Revision: "rev", Sequence: "seq", Operation: "op", Deadline: "due", Payload: "note",
		},
		ExistingHistory: sqlstore.ExistingHistory{
			Table: "journal", ID: "no", Sequence: "seq", Token: "token", From: "was", To: "status", Event: "what", Actor: "who", At: "at",
		},
	}
	must(sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil))
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}})
	must(err)
	defer store.Close()
	orders := lifecycle.Must(order, store, nil)
	_, err = orders.Fire(ctx, "4711", note, customer, nil)
	must(err)
	paying, err := orders.Fire(ctx, "4711", pay, customer, nil)
	must(err)
	_, err = orders.Report(ctx, "4711", paying.Operation, settled, bank, nil)
	must(err)
	_, err = store.Trim(ctx, 30*24*time.Hour, 100)
	must(err)

	var line string
	must(db.QueryRow("SELECT group_concat(was || ' ' || what || ' ' || status || ' by ' || who, '; ') FROM journal WHERE no = '4711'").Scan(&line))
	fmt.Println(line)
	// Output:
	// open note open by customer; open pay paying by customer; paying settled paid by bank
}
