package pgnotify

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

// Install makes the trigger that notifies of every change in the store's own history, in one
// transaction. It may be called again, and by several processes at once: what exists is only
// read. The prefix is that of sqlstore.Config, and empty for its default. The role needs the
// right to create functions in the schema of the store's tables, and owns the history.
//
// The error is that of the driver. Nothing has changed then.
func Install(ctx context.Context, db *sql.DB, prefix string) error {
	prefix = cmp.Or(prefix, defaultPrefix)
	if err := install(ctx, db, prefix+function, quoted(prefix+"history")); err != nil {
		return fmt.Errorf("pgnotify: install: %w", err)
	}
	return nil
}

func install(ctx context.Context, db *sql.DB, name, history string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// The bad schedule without the look: a process starts and installs, a slow transaction has
	// written the history, and all others that write it wait behind the lock.
	var exists bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
		WHERE t.tgrelid = to_regclass($1) AND t.tgname = $2 AND t.tgenabled = 'O' AND p.prosrc = $3)`,
		history, name, body).Scan(&exists)
	if err != nil || exists {
		return err
	}
	for _, text := range []string{
		// Two transactions that replace a function at once would be refused.
		"LOCK TABLE " + history + " IN SHARE ROW EXCLUSIVE MODE",
		"CREATE OR REPLACE FUNCTION " + quoted(name) + "() RETURNS trigger LANGUAGE plpgsql AS $$" + body + "$$",
		"DROP TRIGGER IF EXISTS " + quoted(name) + " ON " + history,
		"CREATE TRIGGER " + quoted(name) + " AFTER INSERT ON " + history + " FOR EACH ROW EXECUTE FUNCTION " + quoted(name) + "()",
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// body is that of the function. The payload of a notification has less than 8,000 bytes. A
// payload that is cut is not JSON, and Listen then wakes everything.
const body = ` BEGIN
	PERFORM pg_notify(TG_NAME, left(json_build_object('machine', NEW.machine, 'id', NEW.id)::text, 1900));
	RETURN NULL;
END `

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// Listen calls wake after every commit that the trigger of [Install] notifies of, by
// any process, until ctx ends; it then returns the context's error. The key is that of an
// object that may have changed; an empty ID means any object of the machine, an empty
// Machine any object. As a rule, wake calls [lifecycle.Wake]; it must not wait. Listen holds one
// connection and starts no goroutine. If the connection is lost or cannot be made, it
// connects again, after pauses of 50 milliseconds that double up to 5 seconds, and wakes
// for all objects when it listens. The prefix is that of Install.
//
// If the server refuses the user, its password or the database of the configuration,
// Listen returns the error of the driver, because no further attempt can mend that.
func Listen(ctx context.Context, config *pgx.ConnConfig, prefix string, wake func(lifecycle.Key)) error {
	pause := firstPause
	for ctx.Err() == nil {
		listened, err := listen(ctx, config, cmp.Or(prefix, defaultPrefix)+function, wake)
		if refused(err) {
			return fmt.Errorf("pgnotify: listen: %w", err)
		}
		if listened {
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

// refused reports whether the server has refused the user or the database: by its rules of
// authorization (28), because the database does not exist (3D), or by the rights of the
// user (42501).
func refused(err error) bool {
	var state interface{ SQLState() string } // of pgx
	return errors.As(err, &state) && (strings.HasPrefix(state.SQLState(), "28") || strings.HasPrefix(state.SQLState(), "3D") || state.SQLState() == "42501")
}

// listen wakes until the connection is lost. It reports whether there was one, and why it
// is lost: the next connection covers what it has missed.
func listen(ctx context.Context, config *pgx.ConnConfig, channel string, wake func(lifecycle.Key)) (listened bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer stop()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+quoted(channel)); err != nil {
		return false, err
	}
	var changed lifecycle.Key // at first: there may have been any change
	for {
		wake(changed)
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		changed = lifecycle.Key{}
		if json.Unmarshal([]byte(n.Payload), &changed) != nil {
			changed = lifecycle.Key{}
		}
	}
}
