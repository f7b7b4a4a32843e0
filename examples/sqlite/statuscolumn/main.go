// Statuscolumn is a guide for programs with a status column. Such a program has a table,
// and an UPDATE for each action, with the states that it may start from:
//
//	UPDATE vms SET status = 'stopped' WHERE id = 7 AND status = 'running'
//
// The example adopts such a table, in five steps:
//
//  1. The states and the UPDATEs become the table of a machine.
//  2. The table gets columns for the library. Open returns the statements.
//  3. Adopt takes over the rows, and returns those that fit no state.
//  4. Fire replaces the UPDATEs.
//  5. Programs that still send an UPDATE also write another revision.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // driver sqlite

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "statuscolumn:", err)
		os.Exit(1)
	}
}

// before is the table of the program, and its rows. The status of one is misspelt.
const before = `
	CREATE TABLE vms (id INTEGER PRIMARY KEY, region TEXT NOT NULL, status TEXT NOT NULL);
	INSERT INTO vms VALUES (7, 'eu', 'running'), (8, 'eu', 'stopped'), (9, 'us', 'runing');`

// vm has the columns that guards and changes use.
type vm struct {
	Region string `json:"region"`
}

// Step 1. The event of each action, and the states that it may start from.
var machine = fsm.Must[vm](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "absent", Kind: fsm.Absent}, {Name: "running"}, {Name: "stopped"}},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "running").By("user"),
		fsm.Move("running", "stop", "stopped").By("user"),
		fsm.Move("stopped", "start", "running").By("user"),
		fsm.Move("stopped", "delete", "absent").By("user"),
	),
})

// table has the columns of the program, and names for those that it lacks. States with work
// need more of them, see [sqlstore.ExistingTable].
var table = sqlstore.ExistingTable{
	Machine: "vm", Table: "vms",
	Columns: sqlstore.ColumnMap{ID: "id", State: "status", Revision: "revision", Sequence: "sequence", Operation: "operation", Token: "token"},
	Fields:  map[string]string{"region": "region"},
	Types:   map[string]sqlstore.Type{"id": sqlstore.Integer},
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "interlock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "vms.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, before); err != nil {
		return err
	}
	store, err := adapt(ctx, out, db)
	if err != nil {
		return err
	}
	defer store.Close()
	vms, err := lifecycle.New(machine, store, nil)
	if err != nil {
		return err
	}
	if err := adopt(ctx, out, db, vms); err != nil {
		return err
	}
	return use(ctx, out, db, vms)
}

// adapt is step 2. A program with a migration tool copies the statements into it.
func adapt(ctx context.Context, out io.Writer, db *sql.DB) (*sqlstore.Store, error) {
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil); err != nil {
		return nil, err
	}
	config := &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}}
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, config)
	unfit, ok := errors.AsType[*sqlstore.TableError](err)
	if !ok {
		return store, err
	}
	fmt.Fprint(out, unfit.Fix)
	if _, err := db.ExecContext(ctx, unfit.Fix); err != nil {
		return nil, err
	}
	return sqlstore.Open(ctx, db, sqlstore.SQLite, config)
}

type manager = lifecycle.Manager[string, string, vm]

// adopt is step 3. Adopt may be called again: it leaves adopted rows unchanged.
func adopt(ctx context.Context, out io.Writer, db *sql.DB, vms *manager) error {
	for range 2 {
		adopted, unplaced, err := lifecycle.Adopt(ctx, vms, "migration", "the library comes")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, adopted, "adopted")
		for _, row := range unplaced {
			fmt.Fprintln(out, "not placed:", row.Err)
		}
		if _, err := db.ExecContext(ctx, "UPDATE vms SET status = 'running' WHERE status = 'runing'"); err != nil {
			return err
		}
	}
	return nil
}

// use is steps 4 and 5.
func use(ctx context.Context, out io.Writer, db *sql.DB, vms *manager) error {
	stopped, err := vms.Fire(ctx, "7", "stop", "user", nil)
	if err != nil {
		return err
	}
	_, err = vms.Fire(ctx, "7", "stop", "user", nil)
	fmt.Fprintln(out, err)

	// An older program starts the VM. What was decided before is then a conflict. The history
	// does not have this change.
	if _, err := db.ExecContext(ctx, "UPDATE vms SET status = 'running', revision = revision + 1 WHERE id = 7"); err != nil {
		return err
	}
	_, err = vms.Fire(ctx, "7", "delete", "user", &lifecycle.Change[vm]{Expect: stopped.Revision})
	fmt.Fprintln(out, "delete is a conflict:", errors.Is(err, lifecycle.ErrConflict))

	rows, err := vms.History(ctx, "7", 0, 0)
	for _, row := range rows {
		fmt.Fprintln(out, row)
	}
	if err != nil {
		return err
	}
	var running int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM vms WHERE status = 'running'").Scan(&running)
	fmt.Fprintln(out, "running:", running)
	return err
}
