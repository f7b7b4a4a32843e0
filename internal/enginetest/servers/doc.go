// Package servers provides the engines that tests run against.
//
// Every test gets a database of its own, which is empty and is dropped at the end:
//
//   - [SQLite] runs in the test's own process.
//   - [Postgres] and [MySQL] use the servers of INTERLOCK_POSTGRES_DSN and
//     INTERLOCK_MYSQL_DSN, a URL and the form of go-sql-driver/mysql. The user of
//     either must be able to create databases. Their names are interlock_ and 26 letters
//     and digits. A test process that was killed leaves its databases.
//   - [PrivatePostgres] and [PrivateMariaDB] start a server of the test's own from the
//     installed binaries. A test that kills a server uses these.
//
// Where an engine is missing, its tests are skipped with a line that explains how to run
// them. With REQUIRE_ENGINES=1 they fail instead. If an engine is named and does not
// answer, its tests fail.
package servers
