package pgqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"time"
)

// lease is an action that this worker has claimed, until its end is written.
type lease struct {
	Task
	lastError string // of the attempt before
	ctx       context.Context
	cancel    context.CancelCauseFunc
	timer     *time.Timer // ends ctx when the lease is over on this worker's clock
}

// left returns how long a lease is valid whose claim or renewal was sent at a time. It ends
// here before another worker can claim the action: the server begins to count later, and a
// tenth is for a late timer and for clocks whose rates differ. The clocks of the server and
// of this process need not have the same time.
func (w *Worker) left(sent time.Time) time.Duration {
	return time.Until(sent.Add(w.config.Lease / 10 * 9))
}

// leases returns the actions of a claim.
func leases(ctx context.Context, on Tx, args ...any) (list []*lease, err error) {
	err = query(ctx, on, claim, args, func(rows *sql.Rows) error {
		l := new(lease)
		var keys []byte
		err := rows.Scan(&l.ID, &l.Token, &keys, &l.Name, &l.Args, &l.Class, &l.Attempt,
			&l.Retries.Attempts, &l.Timeout, &l.Retries.Delay, &l.Retries.MaxDelay, &l.lastError)
		list = append(list, l)
		return errors.Join(err, json.Unmarshal(keys, &l.Keys))
	})
	return list, err
}

// hold notes an action whose claim was sent at a time.
func (w *Worker) hold(ctx context.Context, l *lease, sent time.Time) {
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(w.left(sent), func() { l.cancel(ErrLost) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[l.Token] = l
}

// drop forgets an action that has ended here. There is room for another one.
func (w *Worker) drop(l *lease) {
	l.timer.Stop()
	l.cancel(nil)
	w.mu.Lock()
	delete(w.held, l.Token)
	w.mu.Unlock()
	w.wake()
}

// renew extends the leases. One that the answer does not have is lost, or about to end: its
// timer decides. After an error the timers of all decide.
func (w *Worker) renew(ctx context.Context) (time.Duration, error) {
	interval := w.config.Lease / 3
	w.mu.Lock()
	leases := maps.Clone(w.held)
	w.mu.Unlock()
	var ids, held []int64
	for token, l := range leases {
		ids, held = append(ids, l.ID), append(held, token)
	}
	limited, stop := context.WithTimeout(ctx, interval)
	defer stop()
	before := time.Now()
	renewed, err := tokens(limited, w.db, renew, w.config.Lease.Microseconds(), ids, held)
	for _, token := range renewed {
		leases[token].timer.Reset(w.left(before))
	}
	return interval - time.Since(before), err
}
