package pgqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The functions are in schema.sql. Their comments and those below argue the races.
const (
	enqueue = "SELECT interlock_queue_enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	// enterDue lets one delayed action enter its lanes. false: none is due.
	enterDue = "SELECT interlock_queue_enter_due()"
	// limitSilence makes the server end the transaction if it gets no statement for so many
	// microseconds. Otherwise the locks of a process that is cut off, or stopped, stay.
	limitSilence = `SELECT set_config('idle_in_transaction_session_timeout', least($1::bigint / 1000, 2147483647)::text, true)`
	// leave removes an action. false: it does not have the token.
	leave = "SELECT interlock_queue_leave($1, $2)"
	// leaveAll removes actions whose lanes no producer holds, and returns their tokens.
	leaveAll = "SELECT interlock_queue_leave_all($1, $2)"

	// claim starts actions.
	claim = `SELECT id, token, array_to_json(keys), name, args, class, attempt, attempts, timeout, delay, max_delay, error
		FROM interlock_queue_claim($1, $2, $3, $4, $5)`

	// renew extends leases. Tokens are unique: a row with another token is not this worker's
	// any more. A row that is locked is about to end, and the other leases need not wait for
	// that.
	renew = `UPDATE interlock_queue_actions SET at = statement_timestamp() + $1 * interval '1 microsecond'
		WHERE id = ANY (ARRAY(SELECT id FROM interlock_queue_actions WHERE id = ANY ($2) AND token = ANY ($3) FOR UPDATE SKIP LOCKED))
		RETURNING token`

	// putBack ends an attempt. false: the action does not have the token.
	putBack = "SELECT interlock_queue_put_back($1, $2, $3, $4, $5)"

	notify = "SELECT pg_notify('interlock_queue', '')"
	listen = "LISTEN interlock_queue"

	// migrated fails if Migrate has not run.
	migrated = "SELECT id FROM interlock_queue LIMIT 0"
)

// Tx is where a statement runs: a *sql.Tx, or a *sql.DB or *sql.Conn for a transaction of
// its own. The driver is pgx.
type Tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// transact calls do in a transaction. It is READ COMMITTED, whatever the default of the
// connection: a statement after a lock is to see what was committed before the lock.
func transact(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return prefixed(err)
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return prefixed(tx.Commit())
}

// query calls read for every row.
func query(ctx context.Context, on Tx, text string, args []any, read func(*sql.Rows) error) error {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return prefixed(withHint(err))
	}
	defer rows.Close()
	for err == nil && rows.Next() {
		err = read(rows)
	}
	return prefixed(withHint(errors.Join(err, rows.Err())))
}

const (
	undefinedFunction = "42883"
	undefinedTable    = "42P01"
)

// withHint adds what to do if the server does not find a table or function of the queue.
func withHint(err error) error {
	var state interface{ SQLState() string } // of pgx
	if errors.As(err, &state) && (state.SQLState() == undefinedFunction || state.SQLState() == undefinedTable) {
		return fmt.Errorf("%w: call Migrate first", err)
	}
	return err
}

// queryRow scans the last row. The values stay as they are if there is none.
func queryRow(ctx context.Context, on Tx, text string, args []any, values ...any) error {
	return query(ctx, on, text, args, func(rows *sql.Rows) error { return rows.Scan(values...) })
}

// tokens returns the tokens that a statement returns. After an error there are none: the rows
// may belong to a transaction that was not committed.
func tokens(ctx context.Context, on Tx, text string, args ...any) (list []int64, err error) {
	err = query(ctx, on, text, args, func(rows *sql.Rows) error {
		var token int64
		err := rows.Scan(&token)
		list = append(list, token)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgqueue: %w", err)
}
