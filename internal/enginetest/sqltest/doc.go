// Package sqltest tests lifecycle/sqlstore against the engines: SQLite always,
// PostgreSQL and MariaDB or MySQL where INTERLOCK_POSTGRES_DSN and
// INTERLOCK_MYSQL_DSN name them. With REQUIRE_ENGINES=1 a missing one is a
// failure.
package sqltest
