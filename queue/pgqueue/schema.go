package pgqueue

import (
	"context"
	"database/sql"
	_ "embed"
)

//go:embed schema.sql
var schema string

// Migrate makes the tables and functions, or replaces the functions, in one transaction. They
// are in the first schema of search_path. It may be called again, and by several processes at
// once. A migration tool of the caller may run the file schema.sql of this package instead.
// The errors are the driver's.
func Migrate(ctx context.Context, db *sql.DB) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, schema)
		return prefixed(err)
	})
}
