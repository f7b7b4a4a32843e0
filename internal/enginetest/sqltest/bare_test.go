package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bare is the compare-and-set that a program without the library would make, in
// the same tables, with statements prepared where the driver gains by it.
type bare struct {
	db                   *sql.DB
	read, update, insert *sql.Stmt
	rev                  [benchObjects]int64 // by object
	single               int64               // of the one without a history
}

func newBare(b *testing.B, e engine, db *sql.DB) *bare {
	prepare := func(text string) *sql.Stmt {
		if e.name == "postgres" {
			for n := 1; strings.Contains(text, "?"); n++ {
				text = strings.Replace(text, "?", fmt.Sprint("$", n), 1)
			}
		}
		st, err := db.PrepareContext(b.Context(), text)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, st.Close()) })
		return st
	}
	ids := []string{"won", "one"}
	for i := range benchObjects {
		ids = append(ids, fmt.Sprint("o", i))
	}
	for _, id := range ids {
		exec(b, db, fmt.Sprintf("INSERT INTO interlock_objects (machine, id, state, origin, target, revision, sequence, operation, owner, epoch, work, changed_at, actor, event, reason, token) VALUES ('bare', '%s', 'open', 'open', '', 0, 0, 0, '', 0, '', 0, '', '', '', 'sixteen bytes ok')", id))
	}
	return &bare{
		db:     db,
		read:   prepare("SELECT state, revision FROM interlock_objects WHERE machine = 'bare' AND id = ?"),
		update: prepare("UPDATE interlock_objects SET state = ?, revision = revision + 1, sequence = sequence + 1, changed_at = ?, actor = ?, event = ?, token = ? WHERE machine = 'bare' AND id = ? AND revision = ? AND state = ?"),
		insert: prepare("INSERT INTO interlock_history VALUES ('bare', ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, '', ?)"),
	}
}

var token16 = make([]byte, 16)

// tx changes an object whose revision is known.
func (x *bare) tx(object int) {
	if !x.change(fmt.Sprint("o", object), "open", x.rev[object]) {
		panic("somebody else has changed it")
	}
	x.rev[object]++
}

// win reads and changes one object until nobody came between.
func (x *bare) win(int) {
	for {
		var state string
		var rev int64
		must(x.read.QueryRow("won").Scan(&state, &rev))
		if x.change("won", state, rev) {
			return
		}
	}
}

func (x *bare) change(id, state string, rev int64) bool {
	tx, err := x.db.BeginTx(context.Background(), nil)
	must(err)
	now := time.Now().UnixMicro()
	result, err := tx.Stmt(x.update).Exec("open", now, "customer", "note", token16, id, rev, state)
	must(err)
	n, err := result.RowsAffected()
	must(err)
	if n == 0 {
		must(tx.Rollback())
		return false
	}
	_, err = tx.Stmt(x.insert).Exec(id, rev+1, rev+1, token16, state, state, "open", "open", "note", "customer", now)
	must(err)
	must(tx.Commit())
	return true
}

// one is the same without a history: the single statement.
func (x *bare) one(int) {
	_, err := x.update.Exec("open", time.Now().UnixMicro(), "customer", "note", token16, "one", x.single, "open")
	must(err)
	x.single++
}
