package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// A process opens the locker of a tree once, and uses it for as long as it runs.
func ExampleOpen() {
	run := func(ctx context.Context, dsn string) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		listen, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		if err := sqllock.Migrate(ctx, db); err != nil {
			return err
		}
		locker, err := sqllock.Open(ctx, db, listen, "shop", nil)
		if err != nil {
			return err
		}
		defer locker.Close()
		web := lock.Request{Path: lock.MustParse("/web"), Mode: lock.X}
		return lock.Do(ctx, locker, web, &lock.Options{Owner: "deploy-7"}, func(ctx context.Context, g *lock.Grant) error {
			return g.Check()
		})
	}
	_ = run // needs a database
	// Output:
}

// Bad settings are refused before the database is used.
func ExampleOpen_settings() {
	_, err := sqllock.Open(context.Background(), nil, nil, "shop", &sqllock.Config{TTL: time.Millisecond})
	fmt.Println(err)
	fmt.Println(errors.Is(err, lock.ErrInvalid))
	// Output:
	// lock: TTL "1ms" is below 1s or above 24h
	// true
}
