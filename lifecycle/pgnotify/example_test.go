package pgnotify_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/pgnotify"
)

// A process installs the trigger and listens for as long as it runs. The wakers are its
// managers.
func ExampleListen() {
	run := func(ctx context.Context, db *sql.DB, dsn string, managers ...pgnotify.Waker) error {
		if err := pgnotify.Install(ctx, db, ""); err != nil {
			return err
		}
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		return pgnotify.Listen(ctx, config, "", managers...)
	}
	_ = run // needs a database
	// Output:
}

// printed is a Waker that prints.
type printed struct{}

func (printed) Wake(key lifecycle.Key) { fmt.Println(key.Machine, key.ID) }

// A program may wake more than managers.
func ExampleWaker() {
	var w pgnotify.Waker = printed{}
	w.Wake(lifecycle.Key{Machine: "vm", ID: "vm-001"})
	// Output: vm vm-001
}

// Listen returns when its context has ended.
func ExampleListen_ended() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := pgnotify.Listen(ctx, nil, "")
	fmt.Println(err)
	fmt.Println(pgnotify.Install(ctx, sql.OpenDB(nil), ""))
	// Output:
	// pgnotify: listen: context canceled
	// pgnotify: install: context canceled
}
