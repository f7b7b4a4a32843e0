package pgnotify

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	defaultPrefix = "interlock_" // as of sqlstore.Config
	function      = "notify"     // the name of the function, the trigger and the channel, after the prefix

	firstPause   = 50 * time.Millisecond // before Listen connects again
	longestPause = 5 * time.Second
	closeWithin  = 5 * time.Second
)

// Waker is woken by [Listen]. Every [lifecycle.Manager] is one.
type Waker interface {
	// Wake reports that an object may have changed. An empty ID means any object of
	// the machine, an empty Machine any object. It does not wait.
	Wake(key lifecycle.Key)
}

// Install makes the trigger on the history table that notifies of every change, in one
// transaction. It may be called again, and by several processes at once. The prefix is that
// of [sqlstore.Config], and empty for its default. The role needs the right to create
// functions in the schema of the tables, and owns the history table.
//
// The error is that of the driver. Nothing has changed then.
//
// [sqlstore.Config]: https://pkg.go.dev/github.com/interlock-go/interlock/lifecycle/sqlstore#Config
func Install(ctx context.Context, db *sql.DB, prefix string) error {
	prefix = cmp.Or(prefix, defaultPrefix)
	name, history := quoted(prefix+function), quoted(prefix+"history")
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("pgnotify: install: %w", err)
	}
	defer tx.Rollback()
	for _, text := range []string{
		// Two transactions that replace a function at once would be refused.
		"LOCK TABLE " + history + " IN SHARE ROW EXCLUSIVE MODE",
		// The payload of a notification has less than 8,000 bytes. A payload that is
		// cut is no JSON, and Listen then wakes everything.
		"CREATE OR REPLACE FUNCTION " + name + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN" +
			" PERFORM pg_notify(TG_ARGV[0], left(json_build_object('machine', NEW.machine, 'id', NEW.id)::text, 1900));" +
			" RETURN NULL; END $$",
		"DROP TRIGGER IF EXISTS " + name + " ON " + history,
		"CREATE TRIGGER " + name + " AFTER INSERT ON " + history + " FOR EACH ROW EXECUTE FUNCTION " + name + "(" + literal(prefix+function) + ")",
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("pgnotify: install: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("pgnotify: install: %w", err)
	}
	return nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Listen wakes the wakers after every commit that the trigger of [Install] notifies of, by
// any process, until ctx ends; it then returns the context's error. It holds one
// connection and starts no goroutine. If the connection is lost or cannot be made, it
// connects again, after pauses of 50 milliseconds that double up to 5 seconds, and wakes
// for all objects when it listens. The prefix is that of Install.
func Listen(ctx context.Context, config *pgx.ConnConfig, prefix string, wakers ...Waker) error {
	pause := firstPause
	for ctx.Err() == nil {
		if listen(ctx, config, cmp.Or(prefix, defaultPrefix)+function, wakers) {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("pgnotify: listen: %w", lifecycle.Ended(ctx))
}

// listen wakes until the connection is lost. It reports whether there was one. The reason
// why it is lost does not matter: the next connection covers it.
func listen(ctx context.Context, config *pgx.ConnConfig, channel string, wakers []Waker) (listened bool) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer stop()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+quoted(channel)); err != nil {
		return false
	}
	var changed lifecycle.Key // at first: there may have been any change
	for {
		for _, w := range wakers {
			w.Wake(changed)
		}
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		changed = lifecycle.Key{}
		if json.Unmarshal([]byte(n.Payload), &changed) != nil {
			changed = lifecycle.Key{}
		}
	}
}
