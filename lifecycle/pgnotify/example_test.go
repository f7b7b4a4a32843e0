package pgnotify_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/pgnotify"
)

// A process installs the trigger, and wakes its managers for as long as it runs.
func ExampleListen() {
	run := func(ctx context.Context, db *sql.DB, dsn string, managers ...lifecycle.AnyManager) error {
		if err := pgnotify.Install(ctx, db, ""); err != nil {
			return err
		}
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		return pgnotify.Listen(ctx, config, "", func(changed lifecycle.Key) { lifecycle.Wake(changed, managers...) })
	}
	_ = run // needs a database
	// Output:
}

// Listen returns when its context has ended.
func ExampleListen_ended() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := pgnotify.Listen(ctx, nil, "", nil)
	fmt.Println(err)
	fmt.Println(pgnotify.Install(ctx, sql.OpenDB(nil), ""))
	// Output:
	// pgnotify: listen: context canceled
	// pgnotify: install: context canceled
}
