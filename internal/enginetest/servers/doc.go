// Package servers gives tests the engines that they run against, and says what
// happens where one is missing.
//
// Every test gets a database of its own, empty and dropped at its end:
//
//   - [SQLite] is always there, in the test's own process.
//   - [Postgres] and [MySQL] are found by INTERLOCK_POSTGRES_DSN and
//     INTERLOCK_MYSQL_DSN, in the form of pgx and of go-sql-driver/mysql. The
//     user of either may create databases. They are called interlock_ and
//     twelve hexadecimal digits; a test process that was killed leaves its own.
//   - [PrivatePostgres] and [PrivateMariaDB] start a server of the test's own
//     from the installed binaries. A test that kills, stops or pauses a server
//     uses these, because the servers behind the variables are other people's
//     too.
//
// Where an engine is missing, its tests are skipped with a line that says how to
// run them. With REQUIRE_ENGINES=1 they fail instead. An engine that is named and
// does not answer is not missing: its tests fail always.
//
// MySQL takes a DSN of MySQL and of MariaDB. MariaDB is what the project requires
// and tests; MySQL is tested by who gives its DSN.
package servers
