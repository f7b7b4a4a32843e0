// Package sqlstore keeps the records of a [lifecycle.Manager] in PostgreSQL,
// MariaDB, MySQL or SQLite, over database/sql. The driver is the user's: pgx's
// stdlib, go-sql-driver/mysql and modernc.org/sqlite are those it is tested with.
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
// [Store] has tables of its own. [ExistingTable] makes a store of a table that
// exists already, and [ExistingHistory] describes the history of such a table.
// [Store.WithTx] returns the store inside a transaction of the user's.
//
// What it guarantees in addition to [lifecycle.Store]:
//   - A commit is one transaction, or one statement. The expected revision and
//     state stand in its condition, and its history, unique in object and
//     sequence number, and its messages are written with it. A statement that
//     would change more than one row is rolled back.
//   - No two commits give one revision, also where an engine that was killed has
//     lost what somebody had read already: it has the token of the commit in it.
//   - Several objects and preconditions are locked in the order of their keys.
//     Required objects that never existed are given a row that can be locked.
//   - Deadlocks, serialization failures and locked databases are tried again, by
//     [Config.RetryFor] at most, and are never taken for a conflict. Whether an
//     isolation level, a time zone, a character set or the way of counting rows
//     is the driver's default makes no difference.
//   - An answer that was lost, because a connection was cut or a context ended
//     during COMMIT, is looked for in the history, and the commit sent again
//     under its token while the context lasts. Who cannot be answered gets
//     [lifecycle.ErrUnknownOutcome] with the token.
//   - Times are the database's, in microseconds; on SQLite those of this process.
//   - Names are compared byte by byte.
//   - An index answers queries by key, by state, by state and age, and by the three
//     conditions of a sweep: Overdue; NotOwnedBy; States with NoDeadline and Unowned.
//     NotOwnedBy reads the ranges between the named owners, so that the objects of
//     these owners are not read; with more than 20 owners it reads all owned objects.
//     A query by age alone reads all objects of the machine.
//   - SQL has nothing in it but what is written here and identifiers that were
//     validated; everything else is an argument.
//
// What it does not guarantee:
//   - Anything on a replica, or with several primaries: reads and writes belong
//     on one primary. How durable a commit is, is the engine's to set up.
//   - That MySQL is like MariaDB. MySQL is supported, MariaDB is what is tested.
//   - That tables stay small. History is kept until somebody calls [Store.Trim], or
//     deletes it: the rows of an object below its newest eight may go at any time,
//     oldest first. Of a removed object a row of numbers stays for good.
//   - That a conflict is reported if a row was changed past the library under its
//     old revision and state. Such a change is overwritten. Write another revision.
//   - That a commit which waits inside of a driver ends with its context where
//     the driver does not look at it; the call does, and says that it does not
//     know the outcome.
//
// # Engines
//
// PostgreSQL: the encoding is UTF8. A change of one object is one statement and
// one round trip.
//
// MariaDB and MySQL: the tables are InnoDB, and names in them bytes. A change is
// two statements in a transaction.
//
// SQLite: WAL is recommended, and a busy_timeout where other programs use the
// file. Who writes takes the lock of the database with the first statement, so
// that no transaction is refused in its middle. One store lets its callers write
// one at a time, whoever is running first and nobody last for more than ten
// milliseconds; between processes the engine's lock decides, and waits are tried
// again. A database in memory belongs to one connection: set MaxOpenConns to 1,
// and its idle time to for ever.
//
// # Without history
//
// With [Config.NoHistory] a change is a single statement. Whether a commit was
// written is then known by the token in the record, until the next change of it.
// Numbers and conflicts are as exact as ever.
//
// # Rejected
//
// A compound statement of MariaDB, which updates and notes in one round trip, takes
// longer than the two statements do. Triggers and procedures need privileges that
// many users do not have.
//
// Timestamps in the engines' own types were tried by others, and are read
// differently by drivers, sessions and settings; a number is not. Listening for
// changes is the engines' own, and polling the messages is enough. A lock on
// reading would make conflicts rare inside of the user's transactions, and
// everybody wait.
package sqlstore
