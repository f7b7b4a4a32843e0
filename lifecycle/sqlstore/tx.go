package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrRollback: the engine has given the transaction up, for a deadlock, a
// serialization failure or another commit in the way. Roll it back and run it
// again from its beginning. The error wraps the driver's.
var ErrRollback = errors.New("sqlstore: the transaction is lost, roll it back and run it again")

// TxStore is a [Store] inside of a transaction of the user's: what it commits is
// written when, and only if, the user's COMMIT succeeds. [Store.WithTx] makes
// one. It is as safe for concurrent use as the transaction, and is of no use
// after its end.
type TxStore struct {
	s *session
	p *Store
}

var (
	_ lifecycle.Historian = (*TxStore)(nil)
	_ lifecycle.Outbox    = (*TxStore)(nil)
)

// WithTx returns the store as it is inside of a transaction, so that the user's
// own writes and the records change together:
//
//	orders := lifecycle.Must(machine, store.WithTx(tx), nil)
//	_, err := orders.Fire(ctx, id, Pay, Customer, nil)
//
// The transaction stays the user's: nothing is tried again in it, and neither
// COMMIT nor ROLLBACK is sent. A conflict is reported at once, and leaves the
// transaction as it was; after any other error but a refusal of the request
// itself, roll back. Whether it was written in the end is the answer to the
// user's COMMIT, and the history has the token. Reads see what the transaction
// sees: below READ COMMITTED that may be older than the records are, and then
// the commit is the conflict.
//
// A [lifecycle.Manager] calls its observer, and wakes callers that wait for a change,
// when the change is in the transaction, before the user's COMMIT. Messages are
// delivered after the COMMIT only. Do not call Manager.Do with this store: its work
// would start before the COMMIT.
func (s *Store) WithTx(tx *sql.Tx) *TxStore {
	return &TxStore{p: s, s: &session{keeper: s.keeper, q: theirs{tx}, foreign: true}}
}

// theirs hides from session.exec that this is a transaction in which prepared
// statements could be used: to prepare one may need a second connection.
type theirs struct{ *sql.Tx }

// Capabilities implements [lifecycle.Store].
func (t *TxStore) Capabilities() lifecycle.Capabilities { return t.s.has }

// Get implements [lifecycle.Store].
func (t *TxStore) Get(ctx context.Context, key lifecycle.Key) (r lifecycle.StoredRecord, err error) {
	err = t.call(ctx, func() error {
		r, err = t.s.read(ctx, key)
		return err
	})
	return r, err
}

// List implements [lifecycle.Store].
func (t *TxStore) List(ctx context.Context, q lifecycle.Query) (list []lifecycle.StoredRecord, err error) {
	err = t.call(ctx, func() error {
		list, err = t.s.list(ctx, q)
		return err
	})
	return list, err
}

// History implements [lifecycle.Historian].
func (t *TxStore) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) (list []lifecycle.HistoryRow, err error) {
	err = t.call(ctx, func() error {
		list, err = t.s.history(ctx, key, after, limit)
		return err
	})
	return list, err
}

// Messages implements [lifecycle.Outbox].
func (t *TxStore) Messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	err = t.call(ctx, func() error {
		list, err = t.s.messages(ctx, limit)
		return err
	})
	return list, err
}

// Discard implements [lifecycle.Outbox].
func (t *TxStore) Discard(ctx context.Context, numbers ...uint64) error {
	return t.call(ctx, func() error { return t.s.discard(ctx, numbers) })
}

// Commit implements [lifecycle.Store]. Beside its errors there is [ErrRollback].
func (t *TxStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	j, err := t.s.job(c)
	if err != nil {
		return err
	}
	err = t.call(ctx, func() error {
		err := t.s.write(ctx, j)
		if missed, ok := errors.AsType[*missedError](err); ok {
			err = t.s.refusal(ctx, j, missed.change)
		}
		_, conflict := errors.AsType[*lifecycle.ConflictError](err)
		_, unmet := errors.AsType[*lifecycle.PreconditionError](err)
		if err == nil || conflict || unmet {
			return err
		}
		if v := judge(err); err == errAgain || v == again || v == duplicate {
			return fmt.Errorf("%w: %w", ErrRollback, err)
		}
		return failed(ctx, err)
	})
	if err == nil {
		t.s.stamp(j)
	}
	return err
}

func (t *TxStore) call(ctx context.Context, run func() error) error {
	if err := t.p.enter(ctx); err != nil {
		return err
	}
	defer t.p.leave()
	return run()
}
