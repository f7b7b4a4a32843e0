package pgqueue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// A request changes the state of a machine and enqueues the action in one transaction. Each
// process runs a worker, which records the outcome in the transaction that ends the action.
func Example() {
	request := func(ctx context.Context, db *sql.DB, id string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		result, err := tx.ExecContext(ctx, "UPDATE vm SET state = 'starting' WHERE id = $1 AND state = 'stopped'", id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errors.New("the machine is not stopped"))
		}
		if _, err := pgqueue.Enqueue(ctx, tx, &pgqueue.Action{
			Keys: []string{id}, Name: "start", Class: "aws/seoul",
			Timeout: time.Minute, Retries: pgqueue.Retries{Attempts: 3},
		}); err != nil {
			return err
		}
		return tx.Commit()
	}
	serve := func(ctx context.Context, db *sql.DB, start func(ctx context.Context, id string, token int64) error) error {
		w, err := pgqueue.New(db, map[string]pgqueue.Handler{"start": {
			Run: func(ctx context.Context, t *pgqueue.Task) error { return start(ctx, t.Keys[0], t.Token) },
			Settle: func(ctx context.Context, tx *sql.Tx, t *pgqueue.Task, outcome queue.Outcome, _ error) error {
				state := "running"
				if outcome != queue.OK {
					state = "error"
				}
				_, err := tx.ExecContext(ctx, "UPDATE vm SET state = $2 WHERE id = $1", t.Keys[0], state)
				return err
			},
		}}, &pgqueue.Config{Classes: map[string]int{"aws": 100, "aws/*": 10}})
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}
	_, _ = request, serve // need a database
	// Output:
}

// A wrong action is refused before anything is sent.
func ExampleEnqueue() {
	_, err := pgqueue.Enqueue(context.Background(), nil, &pgqueue.Action{Name: "start"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, queue.ErrInvalid))
	// Output:
	// queue: invalid Keys: none
	// true
}

// A wrong configuration is refused.
func ExampleNew() {
	_, err := pgqueue.New(nil, nil, &pgqueue.Config{Classes: map[string]int{"aws/": 1}})
	fmt.Println(err)
	// Output: queue: invalid Classes: an empty part, or one below *, in path aws/
}
