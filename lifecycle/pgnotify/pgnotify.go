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
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

const (
	defaultPrefix = "interlock_" // as of sqlstore.Config
	function      = "notify"     // the name of the function, the trigger and the channel, after the prefix

	firstPause   = 50 * time.Millisecond // before Listen connects again
	longestPause = 5 * time.Second
	closeWithin  = 5 * time.Second
)

// Install makes the trigger that notifies of every change, in one transaction: on the
// store's own history, and on each ExistingHistory of the tables, which are those of
// [sqlstore.Config]. It may be called again, and by several processes at once: what exists
// is only read. The prefix is that of the same configuration, and empty for its default.
// The role needs the right to create functions in the schema of the store's tables, and
// owns the histories.
//
// The error is that of the driver. Nothing has changed then.
func Install(ctx context.Context, db *sql.DB, prefix string, tables ...sqlstore.ExistingTable) error {
	name := cmp.Or(prefix, defaultPrefix) + function
	triggers := []trigger{{
		table: quoted(cmp.Or(prefix, defaultPrefix) + "history"), args: []string{name, "", "machine", "id"},
	}}
	for _, t := range tables {
		h := t.ExistingHistory
		if h.Table == "" { // its history is the store's own
			continue
		}
		if h.Machine != "" { // other tables may have the same history
			t.Machine = ""
		}
		triggers = append(triggers, trigger{quoted(strings.Split(h.Table, ".")...), []string{name, t.Machine, h.Machine, h.ID}})
	}
	if err := install(ctx, db, name, triggers); err != nil {
		return fmt.Errorf("pgnotify: install: %w", err)
	}
	return nil
}

// trigger is one that [Install] makes.
type trigger struct {
	table string   // quoted
	args  []string // of the function: the channel, the machine, and the columns of machine and id
}

func install(ctx context.Context, db *sql.DB, name string, triggers []trigger) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// The bad schedule without the look: a process starts and installs, a slow transaction has
	// written the history, and all others that write it wait behind the lock.
	exist := true
	for _, t := range triggers {
		var found bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
			WHERE t.tgrelid = to_regclass($1) AND t.tgname = $2 AND t.tgargs = $3 AND t.tgenabled = 'O' AND p.prosrc = $4)`,
			t.table, name, []byte(strings.Join(t.args, "\x00")+"\x00"), body).Scan(&found)
		if err != nil {
			return err
		}
		exist = exist && found
	}
	if exist {
		return nil
	}
	list := []string{
		// Two transactions that replace a function at once would be refused.
		"LOCK TABLE " + triggers[0].table + " IN SHARE ROW EXCLUSIVE MODE",
		"CREATE OR REPLACE FUNCTION " + quoted(name) + "() RETURNS trigger LANGUAGE plpgsql AS $$" + body + "$$",
	}
	for _, t := range triggers {
		var args []string
		for _, arg := range t.args {
			args = append(args, literal(arg))
		}
		list = append(list,
			"DROP TRIGGER IF EXISTS "+quoted(name)+" ON "+t.table,
			"CREATE TRIGGER "+quoted(name)+" AFTER INSERT ON "+t.table+
				" FOR EACH ROW EXECUTE FUNCTION "+quoted(name)+"("+strings.Join(args, ", ")+")")
	}
	for _, text := range list {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// body is that of the function of all triggers, with the arguments of a trigger. The payload of
// a notification has less than 8,000 bytes. A payload that is cut is not JSON, and Listen
// then wakes everything.
const body = ` DECLARE added jsonb := to_jsonb(NEW); BEGIN
	PERFORM pg_notify(TG_ARGV[0], left(json_build_object(
		'machine', COALESCE(added ->> TG_ARGV[2], TG_ARGV[1]), 'id', added ->> TG_ARGV[3])::text, 1900));
	RETURN NULL;
END `

func quoted(name ...string) string { return pgx.Identifier(name).Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

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
