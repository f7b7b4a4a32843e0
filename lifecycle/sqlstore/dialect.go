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
	gaps      bool // a locking read of a missing row keeps it missing, see holdPlaces
	ownClock  bool
	prepares  bool // statements cost a round trip, or parsing, that preparing them saves
	oneWriter bool // at a time, in the whole database

	fromMicros, toMicros string // a time of the engine's own type, both ways
	exact, bytewise      string // a comparison whatever the collation; a name for order by bytes
	hint                 string // which index to use
	pairs                string // begins the pairs of (a, b) IN (...)
	fence                string // ends a query that is to be planned by itself
	zero                 string // a byte 0
	columns              string // names and types of a table's columns
	made                 string // what a table is: the name of its storage, or view
	unique               string // names and columns of its unique indexes
	stores               string // what the storage of a table is to be
	moment               string // the type of a time of the engine's own
	probe                string // its way with an argument of text, see honest

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
		bytewise:   `%s COLLATE "C"`, zero: `'\x00'::bytea`, fence: " OFFSET 0", pairs: "VALUES ",
		exact:   ` AND %s COLLATE "C" = %s`,
		columns: "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s AND table_schema = COALESCE(%s, current_schema())",
		made: "SELECT CASE WHEN c.relkind IN ('r', 'p') THEN 'table' ELSE 'view' END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace" +
			" WHERE c.relname = %s AND n.nspname = COALESCE(%s, current_schema())",
		unique: "SELECT i.indexrelid::text, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace" +
			" CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place) LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number" +
			" WHERE c.relname = %s AND n.nspname = COALESCE(%s, current_schema()) AND k.place <= i.indnkeyatts" +
			" AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL",
		stores: "table", moment: "timestamp with time zone",
		begin: "BEGIN", lock: "SELECT pg_advisory_xact_lock(6001973320)", end: "COMMIT", undo: "ROLLBACK",
	}
	mysql = &engine{
		name: "mysql", quote: "`",
		now:       "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", // whatever the session's time zone
		forUpdate: " FOR UPDATE", forShare: " LOCK IN SHARE MODE",
		ghosts: true, gaps: true, ownClock: true, prepares: true,
		fromMicros: "TIMESTAMPADD(MICROSECOND, %s, '1970-01-01')",
		toMicros:   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)",
		hint:       " FORCE INDEX (%s)",
		exact:      " AND CAST(CONVERT(%s USING utf8mb4) AS BINARY) = CAST(%s AS BINARY)",
		bytewise:   "CAST(CONVERT(%s USING utf8mb4) AS BINARY)", zero: "x'00'",
		columns: "SELECT column_name, column_type FROM information_schema.columns WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
		made:    "SELECT CASE table_type WHEN 'VIEW' THEN 'view' ELSE engine END FROM information_schema.tables WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
		unique: "SELECT index_name, CASE WHEN sub_part IS NULL THEN column_name END FROM information_schema.statistics" +
			" WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE()) AND non_unique = 0",
		stores: "InnoDB", moment: "datetime(6)",
		probe: "SELECT @@SESSION.sql_mode, HEX(CONVERT(? USING utf8mb4))",
		lock:  "SELECT GET_LOCK('interlock schema', 60)", end: "SELECT RELEASE_LOCK('interlock schema')",
		undo: "SELECT RELEASE_LOCK('interlock schema')",
	}
	sqlite = &engine{
		name: "sqlite", quote: `"`, now: "NULL", // the process' clock is the engine's
		upsert: true, prepares: true, oneWriter: true,
		fromMicros: "%s", toMicros: "%s",
		hint: " INDEXED BY %s", pairs: "VALUES ",
		exact: " AND %s = %s COLLATE BINARY", bytewise: "%s COLLATE BINARY", zero: "x'00'",
		columns: "SELECT name, type FROM pragma_table_info(%s) WHERE %s IS NULL",
		made:    "SELECT type FROM sqlite_master WHERE name = %s COLLATE NOCASE AND type IN ('table', 'view') AND %s IS NULL",
		unique: "SELECT l.name, i.name FROM pragma_index_list(%s) l JOIN pragma_index_info(l.name) i" +
			" WHERE l.\"unique\" = 1 AND l.partial = 0 AND %s IS NULL",
		stores: "table",
		begin:  "BEGIN IMMEDIATE", end: "COMMIT", undo: "ROLLBACK",
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
