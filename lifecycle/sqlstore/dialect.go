package sqlstore

import (
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is the SQL of one engine: [Postgres], [MySQL] or [SQLite]. It is
// immutable and comparable. [Open] and [Migrate] refuse the zero Dialect.
type Dialect struct{ *engine }

// The dialects. MySQL is the dialect of MariaDB and MySQL; the tests run on MariaDB.
var (
	Postgres = Dialect{postgres}
	MySQL    = Dialect{mysql}
	SQLite   = Dialect{sqlite}
)

// String returns the name of the engine.
func (d Dialect) String() string {
	if d.engine == nil {
		return "none"
	}
	return d.name
}

// engine holds the differences between the engines. A %s stands for the expression
// that the text applies to.
type engine struct {
	name     string
	quote    string // around identifiers
	numbered bool   // placeholders are $1, $2 and have types

	ownClock   bool   // the times are of the database's clock, not of the process
	now        string // the clock in microseconds since 1970, constant within a statement
	report     string // a time that the driver returns from a write without RETURNING
	fromMicros string // microseconds as a time of the engine's type
	toMicros   string // a time of the engine's type as microseconds
	timeType   string // that type; empty: the engine has none
	asText     string // %s of any other type as text
	numberText string // %s of a type of misread as text: all digits, no zeros before, the number of bits
	misread    []string
	asTheyAre  []string // how the types of columns begin whose bytes need not be text

	newTypes     [3]string   // the types of columns of a new table, by kind
	oldTypes     [3][]string // how the types of columns begin that keep values unchanged, by kind
	tokenType    string      // the type of tokens in a new table; empty: that of bytes
	tableOptions string      // ends the statement that makes a table
	alterType    string      // changes table %s, column %s, to type %s; empty: the engine cannot
	alterNull    string      // makes table %s, column %s, of type %s, %[4]s %[5]s; empty: the engine cannot

	isolation sql.IsolationLevel // of the transaction of a commit
	forShare  string             // ends a query that locks its rows against changes
	// returning: UPDATE ... RETURNING inside of WITH, so that one statement writes a
	// change and its history row.
	returning bool
	oneWriter bool // the whole database has one writer at a time
	prepares  bool // a prepared statement saves time
	readsLock bool // a plain read locks at the isolation SERIALIZABLE

	insertNew string // ends an INSERT that inserts nothing if the key (%s) exists; empty: a duplicate is an error
	// claim ends an INSERT that writes an existing row without a change. Empty: the engine
	// needs no row to lock an absent object.
	claim string

	// definite: the names of the types of columns in which equal values have the same text, but
	// for zeros at an end of a number. Other types may ignore the case of letters, also those
	// that are declared in the database. SQLite keeps any text in any column but the row id.
	definite []string
	exact    string // a condition that compares %s with %s byte by byte
	bytewise string // %s for comparisons byte by byte
	zeroByte string // the literal of one byte 0
	hint     string // selects the index %s
	fence    string // ends a subquery that is planned separately
	pairs    string // begins the list of pairs in (a, b) IN (...)

	// Queries about a table; the arguments are its name and its schema, NULL for the default schema.
	columns   string // of each column: its name, its type, whether it may be NULL, whether a row without it gets a value
	storage   string // "view", or what keeps the table if that has no transactions, or ""
	indexes   string // of each column of an index, in order: the index, whether it is unique, the column
	elsewhere string // the schema of the table and that of new tables, if they differ; empty: they do not

	// raiseNumbers advances the counter of the table of messages %s by %d. Empty: a row with
	// a number advances it.
	raiseNumbers string

	// sessionProbe queries the SQL mode, whether each statement commits, and the argument as the
	// server received it.
	sessionProbe string
	// isolationProbe queries the name and the value of the variables with the isolation level of
	// the session, which are equal. Empty: no level permits to read uncommitted rows.
	isolationProbe string

	beginMigration              []string // each waits for the end of another migration, or fails
	endMigration, undoMigration string
}

// visible is the table that a statement with this name uses on PostgreSQL: without a
// schema it is the first one in search_path.
const visible = "to_regclass(COALESCE(quote_ident(%[2]s) || '.', '') || quote_ident(%[1]s))"

var postgres = &engine{
	name: "postgres", quote: `"`, numbered: true,
	ownClock: true,
	// statement_timestamp, because a transaction of the caller may have begun long ago.
	now:        "(extract(epoch from statement_timestamp()) * 1000000)::bigint",
	report:     "%s",
	fromMicros: "('epoch'::timestamptz + (%s) * interval '1 microsecond')",
	toMicros:   "(extract(epoch from CASE WHEN isfinite(%[1]s) THEN %[1]s END) * 1000000)::bigint",
	timeType:   "timestamp with time zone",
	asText:     "%s::text",

	newTypes:  [3]string{"text", "bigint", "bytea"},
	oldTypes:  [3][]string{{"text", "character varying"}, {"bigint"}, {"bytea"}},
	alterType: "ALTER TABLE %[1]s ALTER COLUMN %[2]s TYPE %[3]s USING %[2]s::%[3]s",
	alterNull: "ALTER TABLE %[1]s ALTER COLUMN %[2]s %[4]s NOT NULL",

	isolation: sql.LevelReadCommitted,
	forShare:  " FOR SHARE",
	returning: true,

	insertNew: " ON CONFLICT (%s) DO NOTHING",
	claim:     " ON CONFLICT (machine, id) DO UPDATE SET id = EXCLUDED.id",

	definite: []string{"smallint", "integer", "bigint", "numeric", "uuid"},
	exact:    ` AND %s::text COLLATE "C" = %s::text`,
	bytewise: `%s COLLATE "C"`,
	zeroByte: "decode('00', 'hex')", // without a backslash, see standard_conforming_strings
	fence:    " OFFSET 0",
	pairs:    "VALUES ",

	// The length of a text does not matter, but a time has microseconds.
	columns: "SELECT attname, format_type(atttypid, CASE WHEN atttypid = 'timestamptz'::regtype AND atttypmod < 6 THEN atttypmod ELSE -1 END)," +
		" CASE WHEN attnotnull THEN 0 ELSE 1 END," +
		" CASE WHEN atthasdef OR attidentity <> '' THEN 1 ELSE 0 END FROM pg_attribute" +
		" WHERE attrelid = " + visible + " AND attnum > 0 AND NOT attisdropped",
	storage: "SELECT CASE WHEN relkind IN ('r', 'p') THEN '' ELSE 'view' END FROM pg_class WHERE oid = " + visible,
	indexes: "SELECT c.relname, CASE WHEN i.indisunique AND i.indimmediate AND i.indpred IS NULL THEN 1 ELSE 0 END, a.attname" +
		" FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid" +
		" CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)" +
		" LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number" +
		" WHERE i.indrelid = " + visible + " AND k.place <= i.indnkeyatts AND i.indisvalid ORDER BY c.relname, k.place",
	elsewhere: "SELECT n.nspname, COALESCE(current_schema(), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace" +
		" WHERE c.oid = " + visible + " AND n.nspname IS DISTINCT FROM current_schema()",

	raiseNumbers: "SELECT setval(pg_get_serial_sequence('%[1]s', 'number'), nextval(pg_get_serial_sequence('%[1]s', 'number')) + %[2]d)",

	// At a higher level, which may be the default, it would not see what another one has made
	// while it waited for the lock.
	beginMigration: []string{"BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT pg_advisory_xact_lock(6001973320)"},
	endMigration:   "COMMIT", undoMigration: "ROLLBACK",
}

var mysql = &engine{
	name: "mysql", quote: "`",
	ownClock:   true,
	now:        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", // independent of the session's time zone
	report:     "LAST_INSERT_ID(%s)",
	fromMicros: "TIMESTAMPADD(MICROSECOND, %s, '1970-01-01')",
	toMicros:   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)",
	timeType:   "datetime(6)",
	asText:     "CAST(%s AS CHAR)",
	numberText: "CAST(%s + 0 AS CHAR)",
	misread:    []string{"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit"},
	asTheyAre:  []string{"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"},

	newTypes: [3]string{"varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "bigint", "longblob"},
	oldTypes: [3][]string{
		{"varchar", "varbinary", "tinytext", "text", "mediumtext", "longtext", "enum"},
		{"bigint"},
		{"tinyblob", "blob", "mediumblob", "longblob", "varbinary", "binary(16)"},
	},
	tokenType: "binary(16)", tableOptions: " ENGINE=InnoDB",
	alterType: "ALTER TABLE %[1]s MODIFY %[2]s %[3]s",
	alterNull: "ALTER TABLE %[1]s MODIFY %[2]s %[3]s %[5]s",

	forShare:  " LOCK IN SHARE MODE",
	prepares:  true,
	readsLock: true,

	claim: " ON DUPLICATE KEY UPDATE id = id",

	definite: []string{
		"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "date", "time", "datetime",
		"timestamp", "year", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "uuid", "inet4", "inet6",
	},
	exact:    " AND CAST(CONVERT(%s USING utf8mb4) AS BINARY) = CAST(%s AS BINARY)",
	bytewise: "CAST(CONVERT(%s USING utf8mb4) AS BINARY)",
	zeroByte: "x'00'",
	hint:     " FORCE INDEX (%s)",

	columns: "SELECT column_name, column_type, is_nullable = 'YES'," +
		" column_default IS NOT NULL OR extra LIKE '%%auto_increment%%' OR extra LIKE '%%GENERATED%%' FROM information_schema.columns" +
		" WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
	storage: "SELECT CASE WHEN table_type = 'VIEW' THEN 'view' WHEN engine = 'InnoDB' THEN '' ELSE engine END FROM information_schema.tables" +
		" WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
	indexes: "SELECT index_name, 1 - non_unique, CASE WHEN sub_part IS NULL THEN column_name END FROM information_schema.statistics" +
		" WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE()) ORDER BY index_name, seq_in_index",

	sessionProbe: "SELECT @@SESSION.sql_mode, @@SESSION.autocommit AND @@SESSION.completion_type <> 'CHAIN', HEX(CONVERT(? USING utf8mb4))",
	// MySQL 8 has the second name only, MariaDB before 11.1 the first one.
	isolationProbe: "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')",

	// GET_LOCK returns NULL if the wait ends early: by max_statement_time, or by KILL.
	beginMigration: []string{"SELECT COALESCE(GET_LOCK('interlock schema', 60), 0)"},
	endMigration:   "SELECT RELEASE_LOCK('interlock schema')", undoMigration: "SELECT RELEASE_LOCK('interlock schema')",
}

var sqlite = &engine{
	name: "sqlite", quote: "`", // in double quotes, an unknown column is a text
	now: "NULL", report: "%s", fromMicros: "%s", toMicros: "%s", // every statement gets the time of the process

	prepares: true, oneWriter: true,

	insertNew: " ON CONFLICT (%s) DO NOTHING",

	definite: []string{"integer primary key"},
	exact:    " AND %s = %s COLLATE BINARY",
	bytewise: "%s COLLATE BINARY",
	zeroByte: "x'00'",
	hint:     " INDEXED BY %s",
	pairs:    "VALUES ",

	asText:   "CAST(%s AS TEXT)",
	newTypes: [3]string{"TEXT", "INTEGER", "BLOB"},
	// With hidden > 1 the column is generated. A single INTEGER in the primary key is the row id,
	// unless the primary key has an index: WITHOUT ROWID or DESC.
	columns: "WITH x AS (SELECT %s AS t, %s AS s), f AS (" +
		"SELECT c.*, c.pk > 0 AND upper(c.type) = 'INTEGER' AND max(c.pk) OVER () = 1" +
		" AND NOT EXISTS (SELECT 1 FROM pragma_index_list(x.t, 'main') WHERE origin = 'pk') AS is_row_id" +
		" FROM x JOIN pragma_table_xinfo(x.t, 'main') c WHERE x.s IS NULL AND c.hidden <> 1)" +
		" SELECT name, CASE WHEN is_row_id THEN 'INTEGER PRIMARY KEY' ELSE type END, \"notnull\" = 0," +
		" dflt_value IS NOT NULL OR hidden > 1 OR is_row_id FROM f",
	storage: "SELECT CASE type WHEN 'view' THEN type ELSE '' END FROM sqlite_master WHERE name = %s COLLATE NOCASE AND type IN ('table', 'view') AND %s IS NULL",
	// An INTEGER PRIMARY KEY has no index.
	indexes: "WITH x AS (SELECT %s AS t, %s AS s), f AS (" +
		"SELECT l.name, l.\"unique\" AND NOT l.partial AS u, i.name AS c, i.seqno AS n" +
		" FROM x JOIN pragma_index_list(x.t, 'main') l JOIN pragma_index_info(l.name, 'main') i WHERE x.s IS NULL UNION ALL" +
		" SELECT 'the row id', 1, k.name, 0 FROM x JOIN pragma_table_info(x.t, 'main') k WHERE x.s IS NULL AND k.pk > 0 AND upper(k.type) = 'INTEGER'" +
		" AND (SELECT count(*) FROM pragma_table_info(x.t, 'main') o WHERE o.pk > 0) = 1)" +
		" SELECT name, u, c FROM f ORDER BY name, n",

	beginMigration: []string{"BEGIN IMMEDIATE"}, endMigration: "COMMIT", undoMigration: "ROLLBACK",
}

// kind is the type of an argument.
type kind uint8

const (
	ofText kind = iota
	ofNumber
	ofBytes
)

// placeholder stands for argument n of a statement, from 1. PostgreSQL takes an
// argument without a type for text if a SELECT lists it.
func (e *engine) placeholder(n int, sqlType string) string {
	if !e.numbered {
		return "?"
	}
	return "$" + strconv.Itoa(n) + "::" + sqlType
}

// quoted returns a valid identifier in quotes.
func (e *engine) quoted(name string) string { return e.quote + name + e.quote }

func (e *engine) unquoted(name string) string { return strings.ReplaceAll(name, e.quote, "") }

// bare returns the unquoted name of a column, in lower case if the engine ignores its case.
func (e *engine) bare(name string) string {
	if e == postgres {
		return e.unquoted(name)
	}
	return strings.ToLower(e.unquoted(name))
}
