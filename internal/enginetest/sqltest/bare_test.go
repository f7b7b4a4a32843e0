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

// bare makes the change of one object that a program without the library would
// make, in the same tables, with prepared statements.
type bare struct {
	db                   *sql.DB
	read, update, insert *sql.Stmt
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
	exec(b, db, "INSERT INTO interlock_objects (machine, id, state, origin, target, revision, sequence, operation, owner, epoch, work, changed_at, actor, event, reason, token) VALUES ('bare', 'a', 'open', 'open', '', 0, 0, 0, '', 0, '', 0, '', '', '', 'sixteen bytes ok')")
	return &bare{
		db:     db,
		read:   prepare("SELECT state, revision FROM interlock_objects WHERE machine = 'bare' AND id = ?"),
		update: prepare("UPDATE interlock_objects SET state = ?, revision = revision + 1, sequence = sequence + 1, changed_at = ?, actor = ?, event = ?, token = ? WHERE machine = 'bare' AND id = ? AND revision = ? AND state = ?"),
		insert: prepare("INSERT INTO interlock_history (machine, id, sequence, revision, token, operation, from_state, from_origin, to_state, origin, event, actor, reason, at) " +
			"VALUES ('bare', ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, '', ?)"),
	}
}

var token16 = make([]byte, 16)

// fire reads the object, and writes its state and a history row in one transaction.
func (x *bare) fire() {
	var state string
	var rev int64
	must(x.read.QueryRow("a").Scan(&state, &rev))
	tx, err := x.db.BeginTx(context.Background(), nil)
	must(err)
	now := time.Now().UnixMicro()
	result, err := tx.Stmt(x.update).Exec("open", now, "customer", "note", token16, "a", rev, state)
	must(err)
	n, err := result.RowsAffected()
	must(err)
	if n != 1 {
		panic("another writer has changed the object")
	}
	_, err = tx.Stmt(x.insert).Exec("a", rev+1, rev+1, token16, state, state, "open", "open", "note", "customer", now)
	must(err)
	must(tx.Commit())
}
