package pgqueue

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
)

// Version is the version of the tables that [Migrate] makes. A [Worker] also accepts newer
// tables, if the column compatible of the table interlock_queue_schema is not above Version.
const Version = 1

//go:embed schema/*.sql
var schemas embed.FS

// Migrate brings the tables to [Version] from any version before, in one transaction, with
// the files of the directory schema of this package. A migration tool of the caller may run
// these files instead, each once and in order: the last statement writes the version. They
// are made in the first schema of search_path. Several processes may migrate at once. It does
// nothing if the tables are newer and compatible.
//
// Errors: [ErrSchema] if the tables are newer and not compatible; the driver's errors. The
// tables are as before then.
func Migrate(ctx context.Context, db *sql.DB) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		if err := queryRow(ctx, tx, lockMigration, nil, new(string)); err != nil {
			return err
		}
		version, err := schemaVersion(ctx, tx)
		for version++; err == nil && version <= Version; version++ {
			text, _ := schemas.ReadFile(fmt.Sprintf("schema/postgres_%d.sql", version)) // it is embedded
			_, err = tx.ExecContext(ctx, string(text))
		}
		return err
	})
}

// schemaVersion returns the version of the tables, 0 if there are none. It refuses tables
// that this version cannot use.
func schemaVersion(ctx context.Context, on Tx) (version int, err error) {
	var exists bool
	if err := queryRow(ctx, on, schemaExists, nil, &exists); err != nil || !exists {
		return 0, err
	}
	var compatible int
	err = queryRow(ctx, on, readSchema, nil, &version, &compatible)
	if err == nil && compatible > Version {
		err = fmt.Errorf("%w: they are of version %d, for programs of version %d and later; this one is of version %d",
			ErrSchema, version, compatible, Version)
	}
	return version, err
}
