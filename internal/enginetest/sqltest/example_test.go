package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An order in a file survives the end of the process.
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

	_, err = orders.Fire(ctx, "4711", pay, customer, nil)
	must(err)

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

// The user has a table of VMs with an integer key and business columns. It gets columns for
// the library, and its rows are adopted. The guard sees the business columns, and SELECT
// stays useful.
func ExampleExistingTable() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "interlock")
	must(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "fleet.db"))
	must(err)
	defer db.Close()
	for _, text := range []string{
		"CREATE TABLE vms (id INTEGER PRIMARY KEY, region TEXT NOT NULL, cpus INTEGER NOT NULL, spot BOOLEAN NOT NULL DEFAULT FALSE, status TEXT NOT NULL)",
		"INSERT INTO vms (id, region, cpus, status) VALUES (7, 'eu', 4, 'open'), (8, 'eu', 2, 'broken')",
	} {
		_, err = db.Exec(text)
		must(err)
	}
	table := sqlstore.ExistingTable{
		Machine: "vm", Table: "vms",
		Columns: sqlstore.ColumnMap{
			ID: "id", State: "status", Origin: "origin", Revision: "rev", Sequence: "seq", Operation: "op", Deadline: "due", Token: "token",
		},
		Fields: map[string]string{"region": "region", "cpus": "cpus", "spot": "spot"},
		Types:  map[string]sqlstore.Type{"id": sqlstore.Integer, "cpus": sqlstore.Integer, "spot": sqlstore.Bool},
	}
	config := &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}}
	must(sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil))
	_, err = sqlstore.Open(ctx, db, sqlstore.SQLite, config)
	unfit, _ := errors.AsType[*sqlstore.TableError](err)
	fmt.Print(unfit.Fix)
	for text := range strings.SplitSeq(unfit.Fix, ";\n") {
		_, err = db.Exec(text)
		must(err)
	}

	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, config)
	must(err)
	defer store.Close()
	m := lifecycle.Must(vms, store, nil)
	adopted, unplaced, err := lifecycle.Adopt(ctx, m, "migration", "the library comes")
	must(err)
	fmt.Println(adopted, "adopted, not placed:", unplaced[0].Err)
	_, err = m.Fire(ctx, "7", resize, customer, &lifecycle.Change[vmSpec]{Edit: func(vm *vmSpec) error { vm.CPUs = 16; return nil }})
	fmt.Println(err)
	_, err = m.Fire(ctx, "7", resize, customer, &lifecycle.Change[vmSpec]{Edit: func(vm *vmSpec) error { vm.CPUs = 8; return nil }})
	must(err)
	var line string
	must(db.QueryRow("SELECT id || ' ' || region || ' ' || cpus || ' ' || status FROM vms WHERE cpus > 4").Scan(&line))
	fmt.Println(line)
	// Output:
	// ALTER TABLE `vms` ADD COLUMN `origin` TEXT;
	// ALTER TABLE `vms` ADD COLUMN `rev` INTEGER NOT NULL DEFAULT 0;
	// ALTER TABLE `vms` ADD COLUMN `seq` INTEGER NOT NULL DEFAULT 0;
	// ALTER TABLE `vms` ADD COLUMN `op` INTEGER;
	// ALTER TABLE `vms` ADD COLUMN `due` INTEGER;
	// ALTER TABLE `vms` ADD COLUMN `token` BLOB;
	// 1 adopted, not placed: lifecycle: adopt vm "8": foreign record: fsm: unknown state: vm: in "broken": not declared
	// lifecycle: fire vm "7": resize by customer in open: refused by a guard: quota: more than 8 CPUs
	// 7 eu 8 open
}
