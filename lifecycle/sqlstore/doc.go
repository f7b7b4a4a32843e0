// Package sqlstore keeps the records of a [lifecycle.Manager] in PostgreSQL,
// MariaDB, MySQL or SQLite, over database/sql. The caller chooses the driver: pgx/stdlib,
// lib/pq, go-sql-driver/mysql, modernc.org/sqlite or mattn/go-sqlite3. The store cannot read the
// errors of other drivers, and takes their refusals for outages. The tests use the first, the third
// and the fourth.
//
//	db, err := sql.Open("sqlite", "file:fleet.db?_pragma=journal_mode(WAL)")
//	...
//	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil); err != nil {
//		return err
//	}
//	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
//	if err != nil {
//		return err
//	}
//	cranes := lifecycle.Must(Cranes, store, nil)
//
// [Open] makes a store in tables of its own. An [ExistingTable] in the configuration
// keeps the records of one machine in a table of the caller, and an [ExistingHistory] their
// history. One commit covers both kinds of tables. [Store.WithTx] returns the store inside
// a transaction of the caller.
//
// # Guarantees
//
// In addition to the guarantees of [lifecycle.Store]:
//   - A commit is one transaction, or one statement. Its condition has the expected
//     revision and state. It also writes the history rows, unique in object and sequence
//     number, and the messages. A statement that would change more than one row is
//     rolled back.
//   - A unique index of the history keeps every request id of a client once in a machine,
//     until [Store.Trim] deletes its row. An [ExistingHistory] keeps none.
//   - No two commits write the same revision, also if an engine that was killed has lost
//     a record that was read: the revision contains the token of the commit.
//   - A commit locks its objects and preconditions in the order of their keys, so that
//     commits do not wait for each other in a circle. A required object that does not
//     exist gets a row in the store's own tables that can be locked.
//   - Deadlocks, serialization failures and locked databases are retried, for
//     [Config.RetryFor] at most, and are never reported as a conflict. The driver's
//     defaults for isolation level, time zone, character set and counting of rows make
//     no difference, except that [Open] refuses READ UNCOMMITTED, autocommit=0 and
//     completion_type=CHAIN on MySQL and MariaDB.
//   - If an answer is lost, because a connection breaks or a context ends during COMMIT,
//     the store searches the history for the commit, and sends it again with its token
//     while the context lasts. If the engine does not answer, or if all changes are
//     MetadataOnly, which have no history, and a record has changed, the error is
//     [lifecycle.ErrUnknownOutcome] with the token.
//   - A commit of an owner ([lifecycle.Commit.Owner]) reads the owner's record in the same
//     transaction, after its own writes and without a lock: heartbeats and commits do not
//     wait for each other.
//   - A commit under a lock of the same database ([lifecycle.Precondition].Grant) locks the
//     row of the grant in its own transaction: the grant is lost after the commit, or the
//     commit is refused. The driver of such a grant (lock.GrantDriver) has a method
//     GuardStatement() (query string, args []any): the query returns a row and locks it
//     for share if the grant is held, and returns none otherwise.
//   - Times are the database's, in microseconds; on SQLite they are the process'.
//   - Names are compared byte by byte.
//   - An index answers queries by key, by state, by state and age, and by the three
//     conditions of a sweep: Overdue; NotOwnedBy; States with NoDeadline and Unowned.
//     NotOwnedBy reads the ranges between the named owners, and none of their objects;
//     with more than 20 owners it reads all owned objects. A query by age alone reads
//     all objects of the machine. Indexes of an existing table are the caller's: a sweep of
//     a large one needs them on State, on Deadline and on Owner.
//   - The text of a statement contains identifiers that were validated, and no other
//     data. All data are arguments.
//
// # Limits
//
//   - Reads and writes belong on one primary. Replicas, and several primaries, have no
//     guarantee. The engine's configuration decides how durable a commit is.
//   - A process that is stopped, or cut off, inside a commit of several statements keeps
//     the locks of its rows, and the sweeps of other processes wait for them. Limit that on
//     the server: on PostgreSQL, set idle_in_transaction_session_timeout to about the TTL of
//     the owners.
//   - MySQL is supported; the tests run on MariaDB.
//   - The history grows until the caller calls [Store.Trim] or deletes rows: those of an
//     object below its newest eight may be deleted at any time, oldest first. A removed
//     object keeps its newest eight rows for ever and, in the store's own tables, one row of
//     numbers.
//   - If another program changes a row and keeps its revision and state, the next commit
//     overwrites the change. Such a program must write another revision.
//   - A driver may ignore the context of a commit. Commit then returns
//     [lifecycle.ErrUnknownOutcome] while the driver still waits.
//   - A table without a revision column is not supported: the state alone cannot show
//     that an object left a state and came back. Add the column first.
//
// # An existing table
//
//  1. Call [Migrate]: owners, messages and the history are in the store's own tables.
//  2. Describe the table by an [ExistingTable]: the columns that it has, and names for those
//     that it lacks. Name business columns in Fields, and types in Types.
//  3. Call [Open] with it in [Config.Tables]. A [TableError] has every fault and the ALTER
//     statements. [ExistingTable.Schema] makes a new table instead.
//  4. Create the manager. [lifecycle.New] names every field that it needs and the table lacks.
//  5. Call [lifecycle.Adopt] once. It returns the rows that fit no state.
//
// The program examples/sqlite/statuscolumn shows the steps, and examples/service is a
// service with such a table.
//
// # Versions of the tables
//
// The table interlock_schema has one row, with the version of the tables and the oldest
// version of a program that can use them. Processes of adjacent versions run side by side
// during a rolling upgrade; see [Version]. [Migrate] makes and migrates the tables. The
// same migrations are plain SQL files, one per version and engine, for a migration tool of
// the caller: see [Dialect.Schema]. Run them with a user that may change tables; the store
// itself only reads and writes rows. The view interlock_readable shows the objects with
// times and payloads as text, for psql and other clients; the store does not use it.
//
// # After a restore
//
// A database that lost its newest commits repeats operation ids, revisions, owner epochs
// and message numbers. It may lose them in a restore from a backup, in a failover to a
// replica that lagged, or in the crash of an engine that acknowledges commits before they
// are on disk. A worker that still executes a lost operation could then end another one.
// The token of the commit that started the operation ([lifecycle.Record].Admission)
// prevents that for the outcomes of this library's own work, and for reports that carry it
// ([lifecycle.Change].Admission). For everything else:
//
//  1. Stop all processes that use the tables.
//  2. Restore all tables from one backup: objects, history, messages and schema.
//  3. Call [AfterRestore] once.
//  4. Start the processes. They join as owners again, and sweeps find the operations that
//     were in progress in the backup: their owners are dead.
//
// Reports about operations from before the restore are then stale, even if the backup has
// these operations. Compare the outside world by [lifecycle.Reconcile]. Changes that were
// lost stay lost.
//
// # Life of a read and of a commit
//
// A row (row.go) is a record with what the history keeps of its last change. Queries read into
// a row, and statements get their arguments from one. The texts of the statements are written
// once, by Open (statements.go).
//
// [Store.Get] (get.go) executes one query: it binds the key to the statement of the object's
// tables, and scans the result into a row, which has the record.
//
// [Store.Commit] computes a plan (commit.go): the row of every change, and the objects in the
// order of their keys. An attempt (write.go) runs the plan in a transaction, or on PostgreSQL in
// a single statement, see Engines. Per change it executes one compare-and-set and one insert of
// the history row, and per required object one locking read. If a row is not as expected, the
// store reads the records and returns the conflict or the precondition (resolve.go). It
// classifies errors by their numbers (errors.go), and repeats the call where other transactions
// were in the way (store.go). If the answer was lost, it searches the history (resolve.go).
//
// # Engines
//
// PostgreSQL: the encoding is UTF8. A change of one object in the store's own tables is one
// statement and one round trip, if the commit has no precondition, no message and no owner, and
// is not in a transaction of the caller.
// The admissions and outcomes of operations of an owner are transactions. With the simple
// protocol, bytea_output must be hex, which is the default: the driver pgx reads no other
// form, and every read then fails. If fields of a payload have columns of fractions or times
// ([ExistingTable].Fields), leave extra_float_digits and DateStyle at their defaults. Otherwise
// the text of such a value may be another value, which the next commit writes.
//
// MariaDB and MySQL: the tables are InnoDB tables, and names in them are bytes. A change
// is two statements in a transaction. A field of a payload in a TIMESTAMP column is text in the
// time zone of the connection: use one without daylight saving time. A statement with more than
// max_allowed_packet, 16 MiB by default in MariaDB, is refused with [lifecycle.ErrInvalid]. The
// server may instead cut the connection before the driver reads the answer, above all if the
// statement is much larger. That is [lifecycle.ErrUnavailable]. With sql_safe_updates=1 the
// server refuses statements of [Migrate], [Store.Trim] and [AfterRestore], which return its
// error 1175. All other calls work.
//
// SQLite: use WAL, and a busy_timeout if other programs use the file. A commit acquires the
// lock of the database with its first statement, so that no transaction is refused
// half-way. The callers of one Store write one after the other, first come first served.
// Between processes the lock of the engine decides, and the store retries a commit that
// finds the database locked. A database in memory belongs to one connection: set
// MaxOpenConns to 1, and its idle time to unlimited. Not supported, and not refused: a
// database in UTF-16, whose names have another order, and a shared cache with
// read_uncommitted, where a read sees changes that are rolled back later.
//
// # Rejected
//
// A compound statement of MariaDB that writes the record and the history row in one round
// trip takes longer than two statements. Triggers and procedures need privileges that many
// users do not have. Times in the engines' own types depend on drivers, sessions and
// settings; an integer does not. A check of the version in every commit would make every
// commit slower, for an event that happens once in years. A lock on every read would make
// conflicts rare inside transactions of the caller, and make all other callers wait.
package sqlstore
