package sqlstore

import (
	"database/sql"
	"fmt"
	"strconv"
)

// Dialect is the SQL of one engine: [Postgres], [MySQL] or [SQLite]. It is
// immutable.
type Dialect struct{ *engine }

// The dialects. MySQL is that of MariaDB, against which it is tested, and of
// MySQL.
var (
	Postgres = Dialect{postgres}
	MySQL    = Dialect{mysql}
	SQLite   = Dialect{sqlite}
)

// engine is what a dialect differs in.
type engine struct {
	name      string
	quote     string // around identifiers
	numbered  bool   // placeholders are $1, $2 and have types
	now       string // the clock, in microseconds since 1970, the same in all of one statement
	isolate   sql.IsolationLevel
	forUpdate string
	forShare  string
	upsert    bool // INSERT ... ON CONFLICT DO UPDATE ... WHERE
	returning bool // UPDATE ... RETURNING inside of WITH
	// Locking a row that is not there locks nothing, or too much: a row without
	// a state is made first.
	ghosts    bool
	ownClock  bool
	prepares  bool // statements cost a round trip, or parsing, that preparing them saves
	oneWriter bool // at a time, in the whole database

	fromMicros, toMicros string // a time of the engine's own type, both ways
	exact, bytewise      string // a comparison whatever the collation; a name for order by bytes
	hint                 string // which index to use
	zero                 string // a byte 0
	columns              string // names of a table's columns

	begin, lock, end, undo string // of a migration
}

var (
	postgres = &engine{
		name: "postgres", quote: `"`, numbered: true,
		// Of the statement: transactions of users may be old when they come to us.
		now:     "(extract(epoch from statement_timestamp()) * 1000000)::bigint",
		isolate: sql.LevelReadCommitted, forUpdate: " FOR UPDATE", forShare: " FOR SHARE",
		upsert: true, returning: true, ghosts: true, ownClock: true,
		fromMicros: "('epoch'::timestamptz + (%s) * interval '1 microsecond')",
		toMicros:   "(extract(epoch from %s) * 1000000)::bigint",
		bytewise:   `%s COLLATE "C"`, zero: `'\x00'::bytea`,
		columns: "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = COALESCE(%s, current_schema())",
		begin:   "BEGIN", lock: "SELECT pg_advisory_xact_lock(6001973320)", end: "COMMIT", undo: "ROLLBACK",
	}
	mysql = &engine{
		name: "mysql", quote: "`",
		now:       "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", // whatever the session's time zone
		forUpdate: " FOR UPDATE", forShare: " LOCK IN SHARE MODE",
		ghosts: true, ownClock: true, prepares: true,
		fromMicros: "TIMESTAMPADD(MICROSECOND, %s, '1970-01-01')",
		toMicros:   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)",
		hint:       " FORCE INDEX (%s)",
		exact:      " AND CAST(CONVERT(%s USING utf8mb4) AS BINARY) = CAST(%s AS BINARY)",
		bytewise:   "CAST(CONVERT(%s USING utf8mb4) AS BINARY)", zero: "x'00'",
		columns: "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
		lock:    "SELECT GET_LOCK('interlock schema', 60)", end: "SELECT RELEASE_LOCK('interlock schema')",
		undo: "SELECT RELEASE_LOCK('interlock schema')",
	}
	sqlite = &engine{
		name: "sqlite", quote: `"`, now: "NULL", // the process' clock is the engine's
		upsert: true, prepares: true, oneWriter: true,
		fromMicros: "%s", toMicros: "%s",
		hint:  " INDEXED BY %s",
		exact: " AND %s = %s COLLATE BINARY", bytewise: "%s COLLATE BINARY", zero: "x'00'",
		columns: "SELECT name FROM pragma_table_info(%s) WHERE %s IS NULL",
		begin:   "BEGIN IMMEDIATE", end: "COMMIT", undo: "ROLLBACK",
	}
)

// String returns the engine's name.
func (d Dialect) String() string {
	if d.engine == nil {
		return "none"
	}
	return d.name
}

// kind is the type of a value.
type kind uint8

const (
	ofText kind = iota
	ofNumber
	ofBytes
)

// placeholder stands for argument n of a statement, from 1.
func (e *engine) placeholder(n int, k kind) string {
	if !e.numbered {
		return "?"
	}
	// Without a type PostgreSQL takes what a SELECT lists for text.
	return "$" + strconv.Itoa(n) + [...]string{"::text", "::bigint", "::bytea"}[k]
}

// quoted is an identifier that was validated, for a statement.
func (e *engine) quoted(name string) string { return e.quote + name + e.quote }

// ErrIdentifier: a name of a table, a column or a prefix is not one that may
// stand in a statement.
var ErrIdentifier = fmt.Errorf("sqlstore: not an identifier")

const maxIdentifier = 63 // PostgreSQL's, the shortest of the three

// identifier refuses what is not a letter or _, followed by letters, digits
// and _.
func identifier(name string) error {
	bad := name == "" || len(name) > maxIdentifier
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		bad = bad || !letter && (i == 0 || c < '0' || c > '9')
	}
	if bad {
		return fmt.Errorf("%w: %q", ErrIdentifier, name)
	}
	return nil
}
