package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Commit implements [lifecycle.Store]. The whole commit is one transaction, or one
// statement if the engine can do it. Deadlocks, serialization failures and a locked
// database are retried for [Config.RetryFor]; after that Commit returns
// [lifecycle.ErrUnavailable], and nothing is written. If the answer of the engine is lost, the store
// searches the history for the commit, and sends it again with the same token while
// the context lasts.
//
// Errors, in addition to those of the interface: [lifecycle.ErrInvalid] for names
// that are not up to 255 bytes of UTF-8 without NUL, and for values that a check, a
// trigger or a column of an existing table refuses, with the engine's error;
// [lifecycle.ErrPrecondition] if a foreign key or another unique index of it refuses them,
// because of another row, with the engine's error;
// [errors.ErrUnsupported] for values that an existing table, or the store's own table of an
// older version, has no column for;
// [ErrRollback] in a transaction of the caller; [ErrHistory] if a table was restored without
// the other. In a Reason, and in topics and keys of messages, U+FFFD replaces what is not
// UTF-8.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if s.tx != nil {
		return s.commitIn(ctx, p)
	}
	r := retry{most: s.config.RetryFor}
	var lost *lostError // the last lost answer
	for {
		err := s.attempt(ctx, p)
		if l, ok := errors.AsType[*lostError](err); ok {
			lost, p.lost = l, true
			err = s.resolve(ctx, p)
		}
		switch {
		case err == nil:
			p.stamp()
			return nil
		case errors.Is(err, lifecycle.ErrConflict) && (lost == nil || p.superseded):
			return err
		case r.again(ctx, err):
			continue
		case lost != nil:
			return unknown(ctx, p, lost.err, err)
		case isVerdict(err):
			return err
		}
		return s.refusal(ctx, err)
	}
}

// attempt sends a commit once. After a *lostError it may have been written; after any
// other error it was not.
func (s *Store) attempt(ctx context.Context, p *plan) error {
	send := s.transaction
	if s.e.returning && !p.existing && !p.several && len(p.commit.Messages) == 0 && p.commit.Owner.Name == "" {
		send = s.statement
	}
	err := send(ctx, p)
	if missed, ok := errors.AsType[*missedError](err); ok {
		return s.on(s.db).explain(ctx, p, missed)
	}
	return err
}

// statement writes one change by one statement, which commits itself. It has a
// connection of its own: an error before that is not the statement's, and
// database/sql does not send the statement twice.
func (s *Store) statement(ctx context.Context, p *plan) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = s.on(conn).write(ctx, p)
	if _, missed := errors.AsType[*missedError](err); err != nil && !missed && classify(err) == noAnswer {
		return &lostError{err}
	}
	return err
}

// transaction writes any commit.
func (s *Store) transaction(ctx context.Context, p *plan) error {
	if s.e.oneWriter { // a wait here ends when the engine is free; a wait in the engine polls
		select {
		case s.writer <- struct{}{}:
			defer func() { <-s.writer }()
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation(p)})
	if err != nil {
		return err
	}
	accepted := false
	defer func() {
		if !accepted { // write returned an error, or a Type of the caller panicked in it
			// A rollback that fails ends the connection, and the transaction with it.
			_ = finish(ctx, tx.Rollback)
		}
	}()
	if err := s.on(tx).write(ctx, p); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	accepted = true
	err = finish(ctx, tx.Commit)
	if err != nil && !errors.Is(err, sql.ErrTxDone) && classify(err) == noAnswer { // ErrTxDone: COMMIT was not sent
		return &lostError{err}
	}
	return err
}

// isolation returns the level of the transaction of a commit. The owner's record is read
// without a lock, also where the connection's default is SERIALIZABLE, and as of the
// transaction or later.
func (s *shared) isolation(p *plan) sql.IsolationLevel {
	if s.e.readsLock && p.commit.Owner.Name != "" {
		return sql.LevelRepeatableRead
	}
	return s.e.isolation
}

// finish commits a transaction or rolls it back. It waits for the driver until
// shortly after the end of the context: some drivers ignore the context here. The
// goroutine ends when the driver has the answer or drops the connection.
func finish(ctx context.Context, end func() error) error {
	if ctx.Done() == nil {
		return end()
	}
	const grace = 20 * time.Millisecond // most answers are on their way
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return lifecycle.Ended(ctx)
	}
}

// WithTx returns the store inside a transaction of the caller: what it commits is
// written when, and only if, the caller's COMMIT succeeds. The caller's own writes
// and the records change together:
//
//	orders := lifecycle.Must(machine, store.WithTx(tx), nil)
//	_, err := orders.Fire(ctx, id, Pay, Customer, nil)
//
// The transaction of an ORM has a *sql.Tx inside: tx.Tx with sqlx and bun, and
// tx.Statement.ConnPool.(*sql.Tx) with gorm.
//
// The store sends neither COMMIT nor ROLLBACK, and retries nothing. A conflict is
// reported at once and leaves the transaction as it was. After any other error, except
// a refusal of the request itself, roll back. The caller's COMMIT decides whether the
// commit was written, and the history has its token. Reads see what the transaction
// sees: at isolation levels above READ COMMITTED that may be older than the records,
// and the commit is then the conflict. The owner that writes ([lifecycle.Commit.Owner])
// must be alive in what the transaction sees. If the transaction is SERIALIZABLE, MySQL
// locks the owner's record until its end, and heartbeats wait.
//
// A [lifecycle.Manager] calls its observer, and wakes callers that wait for a change,
// when the change is in the transaction, before the caller's COMMIT. Messages are
// delivered only after the COMMIT. Do not call Manager.Do with this store: its work
// would start before the COMMIT.
//
// The view is as safe for concurrent use as the transaction, and fails after its end.
// It needs no Close.
func (s *Store) WithTx(tx *sql.Tx) *Store { return &Store{shared: s.shared, tx: tx} }

// commitIn writes a commit in the caller's transaction. A savepoint takes back what a
// commit has written before it is refused.
func (s *Store) commitIn(ctx context.Context, p *plan) error {
	savepoint := p.several || p.existing || p.commit.Owner.Name != ""
	if savepoint {
		if _, err := s.tx.ExecContext(ctx, "SAVEPOINT interlock_commit"); err != nil {
			return failed(ctx, err)
		}
	}
	in := s.on(s.tx)
	err := in.write(ctx, p)
	missed, isMissed := errors.AsType[*missedError](err)
	if savepoint && (isMissed || errors.Is(err, lifecycle.ErrStale) || errors.Is(err, lifecycle.ErrPrecondition)) {
		if _, err := s.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT interlock_commit"); err != nil {
			return failed(ctx, err)
		}
	}
	if isMissed {
		err = in.explain(ctx, p, missed)
	}
	switch {
	case err == nil:
		p.stamp()
		return nil
	case isVerdict(err):
		return err
	case classify(err) == busy, classify(err) == duplicate:
		return fmt.Errorf("%w: %w: %w", ErrRollback, lifecycle.ErrUnavailable, err)
	}
	return failed(ctx, err)
}
