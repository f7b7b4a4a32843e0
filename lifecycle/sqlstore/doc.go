// Package sqlstore keeps the records of a [lifecycle.Manager] in PostgreSQL,
// MariaDB, MySQL or SQLite, over database/sql. The driver is the user's.
package sqlstore
