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
	State    string // waiting, delayed, running, expired (its lease is over), retrying or halted
	Ahead    int    // the number of its keys for which another action is first
	Owner    string // the worker that runs it, or did before its lease expired; empty: none
	Error    string // of the last attempt
	Enqueued time.Time
	Started  time.Time // the last attempt; zero: none
	// At is the end of the lease, the pause or the delay. While the action waits, it is the
	// time since when it is first, or since its Enqueue. Zero: it is halted.
	At time.Time
}

// Inspect lists the actions of a key in their order, delayed ones last. The view
// interlock_queue shows the same in SQL.
func Inspect(ctx context.Context, on Tx, key string) ([]*Info, error) {
	return infos(ctx, on, inspectKey, key)
}

// Heads lists actions that are first for all their keys: those that run, could run, or halt
// their keys. The first is the one that has been ready for the longest time, or whose lease
// ended first. It lists at most limit.
func Heads(ctx context.Context, on Tx, limit int) ([]*Info, error) {
	return infos(ctx, on, inspectHeads, limit)
}

// infos reads rows with infoColumns.
func infos(ctx context.Context, on Tx, text string, args ...any) (list []*Info, err error) {
	err = query(ctx, on, text, args, func(rows *sql.Rows) error {
		i := new(Info)
		var keys []byte
		var started, at sql.NullTime
		err := rows.Scan(&i.State, &i.ID, &i.Token, &keys, &i.Name, &i.Args, &i.Class,
			&i.Attempt, &i.Retries.Attempts, &i.Timeout, &i.Retries.Delay, &i.Retries.MaxDelay,
			&i.Error, &i.Ahead, &i.Owner, &i.Enqueued, &started, &at)
		i.Started, i.At = started.Time, at.Time // NULL is the zero time
		list = append(list, i)
		return errors.Join(err, json.Unmarshal(keys, &i.Keys))
	})
	return list, err
}

// Cancel removes an action that does not run, when the transaction commits. It locks the
// lanes as [Enqueue] does. It returns false, and nothing has changed, if the action runs or
// is gone. Settle is not called.
func Cancel(ctx context.Context, tx Tx, id int64) (removed bool, err error) {
	return remove(ctx, tx, leave, id, 0)
}

// Resume lets the actions of a halted key continue, by removing the action that has failed.
// The other keys of that action continue too. It returns false if the key is not halted.
func Resume(ctx context.Context, tx Tx, key string) (resumed bool, err error) {
	return remove(ctx, tx, resume, key)
}

// remove removes an action, and wakes the workers for the next ones.
func remove(ctx context.Context, tx Tx, text string, args ...any) (removed bool, err error) {
	if err := queryRow(ctx, tx, text, args, &removed); err != nil || !removed {
		return false, err
	}
	return true, queryRow(ctx, tx, notify, nil, new(string))
}
