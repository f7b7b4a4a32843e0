package pgqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"
)

// Info is the state of an action at one moment.
type Info struct {
	Task            // its Attempt is 0 before the first one, and its Token 0 while it does not run
	State    string // waiting, delayed, running, expired (its lease is over) or retrying
	Ahead    int    // the number of its keys for which another action is first
	Owner    string // the worker that runs it, or did before its lease expired; empty: none
	Error    string // of the last attempt
	Enqueued time.Time
	Started  time.Time // the last attempt; zero: none
	// At is the end of the lease, the pause or the delay. While the action waits, it is when it
	// last advanced in one of its lanes; before that, when it entered them.
	At time.Time
}

// Inspect lists the actions of a key in their order, delayed ones last. The view
// interlock_queue shows the same in SQL.
func Inspect(ctx context.Context, on Tx, key string) ([]*Info, error) {
	return infos(ctx, on, inspectKey, key)
}

// infos reads rows with infoColumns.
func infos(ctx context.Context, on Tx, text string, args ...any) (list []*Info, err error) {
	err = query(ctx, on, text, args, func(rows *sql.Rows) error {
		i := new(Info)
		var keys []byte
		var started sql.NullTime
		err := rows.Scan(&i.State, &i.ID, &i.Token, &keys, &i.Name, &i.Args, &i.Class,
			&i.Attempt, &i.Retries.Attempts, &i.Timeout, &i.Retries.Delay, &i.Retries.MaxDelay,
			&i.Error, &i.Ahead, &i.Owner, &i.Enqueued, &started, &i.At)
		i.Started = started.Time // NULL is the zero time
		list = append(list, i)
		return errors.Join(err, json.Unmarshal(keys, &i.Keys))
	})
	return list, err
}

// Cancel removes an action that does not run, when the transaction commits. It locks the
// lanes as [Enqueue] does. It returns false, and nothing has changed, if the action runs,
// also if its lease is over, or is gone. Settle is not called.
func Cancel(ctx context.Context, tx Tx, id int64) (removed bool, err error) {
	if err := queryRow(ctx, tx, leave, []any{id, 0}, &removed); err != nil || !removed {
		return false, err
	}
	return true, queryRow(ctx, tx, notify, nil, new(string)) // for the next actions of its keys
}
