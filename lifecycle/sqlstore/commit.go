package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Commit implements [lifecycle.Store]. The whole commit is one transaction, or
// one statement where that is enough. Deadlocks, serialization failures and a
// database that is locked are tried again for [Config.RetryFor]; then the
// driver's error is returned, and nothing is written. An answer that is lost is
// looked for in the history, and the commit sent again under its token while
// the context lasts.
//
// Errors, beside those of the interface: [lifecycle.ErrInvalid] for names that
// are not up to 255 bytes of UTF-8 without NUL. In a Reason, in topics and in
// keys of messages what is not UTF-8 is replaced by U+FFFD.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	j, err := s.job(c)
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	err = s.commit(ctx, j)
	if err == nil {
		s.stamp(j)
	}
	return err
}

// commit tries until the outcome is known.
func (s *Store) commit(ctx context.Context, j *job) error {
	end := time.Now().Add(s.config.RetryFor)
	var unsure *unsureError // of the last attempt that nobody has answered
	broken := 0             // attempts that came to nothing with their connection
	for try := 0; ; try++ {
		err := s.attempt(ctx, j)
		if err == nil {
			return nil
		}
		if u, ok := errors.AsType[*unsureError](err); ok {
			j.unsure = true
			if err, unsure = s.settle(ctx, j), u; err == nil {
				return nil
			}
		}
		conflict, refused := errors.AsType[*lifecycle.ConflictError](err)
		switch {
		case refused && (unsure == nil || s.disproved(j, conflict)):
			return conflict
		case ctx.Err() == nil && (err == errAgain || judge(err) == again) && time.Now().Before(end):
			if wait(ctx, try) {
				continue
			}
		case ctx.Err() == nil && broken < mostBroken && judge(err) == lostAnswer && !answered(err):
			// A pool may have connections that ended long ago.
			if broken++; wait(ctx, try) {
				continue
			}
		case ctx.Err() == nil && broken < mostBroken && (judge(err) == duplicate || err == errTaken):
			// The record is as it is to be: a row came and went, or it is another
			// index of a user's table, and stays that.
			if broken++; wait(ctx, try) {
				continue
			}
		}
		switch _, unmet := errors.AsType[*lifecycle.PreconditionError](err); {
		case unsure != nil && ctx.Err() != nil:
			return unknown(j, lifecycle.Ended(ctx))
		case unsure != nil && err == errAgain:
			return unknown(j, unsure)
		case unsure != nil:
			return unknown(j, afterwards(unsure, err))
		case unmet:
			return err
		}
		return failed(ctx, err)
	}
}

const mostBroken = 3

// answered reports whether an error is the answer to a call, and no failure.
func answered(err error) bool {
	_, unmet := errors.AsType[*lifecycle.PreconditionError](err)
	return unmet || errors.Is(err, errRows) || errors.Is(err, lifecycle.ErrInvalid) || errors.Is(err, errors.ErrUnsupported)
}

// afterwards joins two answers to one commit. What would be certain, had nothing
// been sent before, is kept as text only: nobody is to act on it.
func afterwards(unsure, err error) error {
	if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrPrecondition) {
		return fmt.Errorf("%w; sent again: %v", unsure, err)
	}
	return fmt.Errorf("%w; sent again: %w", unsure, err)
}

func unknown(j *job, err error) error {
	return &lifecycle.UnknownOutcomeError{Token: j.c.Token, Err: wrapped(err)}
}

// wait lets others go first, and reports whether the context lasts.
func wait(ctx context.Context, try int) bool {
	most := min(time.Millisecond<<min(try, 10), 50*time.Millisecond)
	timer := time.NewTimer(rand.N(most) + most/4)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// attempt sends a commit once. An *unsureError means that it may have been
// written; after any other, it was not.
func (s *Store) attempt(ctx context.Context, j *job) error {
	if s.turn != nil {
		ok, err := s.turn.take(ctx, j)
		if err != nil {
			return err
		}
		if !ok {
			j.looked = true // if the record is as it is to be after all, it is tried
			return s.session(s.db).refusal(ctx, j, 0)
		}
	}
	var err error
	if s.whole && len(j.keys) == 0 && len(j.c.Messages) == 0 {
		err = s.statement(ctx, j)
	} else {
		err = s.transaction(ctx, j)
		if missing, ok := errors.AsType[*missingError](err); ok {
			if err = s.session(s.db).makeRows(ctx, missing.keys); err == nil {
				err = s.transaction(ctx, j)
			}
		}
	}
	if s.turn != nil {
		s.turn.give(j, err == nil && s.l.column[vToken] != "")
	}
	if missed, ok := errors.AsType[*missedError](err); ok {
		if err = s.session(s.db).refusal(ctx, j, missed.change); err == errAgain && missed.err != nil {
			return missed.err
		}
	}
	return err
}

// statement writes one change by one statement, which commits itself.
func (s *Store) statement(ctx context.Context, j *job) error {
	var q querier = s.db
	if !s.e.prepares {
		// On a connection of its own: an error before it is there is none of the
		// statement, and nothing sends the statement twice.
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		q = conn
	}
	err := s.session(q).write(ctx, j)
	if _, ok := errors.AsType[*missedError](err); ok || err == nil || judge(err) != lostAnswer {
		return err
	}
	return &unsureError{err}
}

// transaction writes any commit.
func (s *Store) transaction(ctx context.Context, j *job) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation(j)})
	if err != nil {
		return err
	}
	err = s.session(tx).write(ctx, j)
	if err == nil && ctx.Err() != nil {
		err = lifecycle.Ended(ctx)
	}
	if err != nil {
		// What goes wrong with it ends the connection, and with it the transaction.
		_ = finish(ctx, tx.Rollback)
		return err
	}
	switch err := finish(ctx, tx.Commit); {
	case err == nil || errors.Is(err, sql.ErrTxDone): // ended by the context before it was sent
		return err
	case judge(err) == lostAnswer:
		return &unsureError{err}
	default:
		return err
	}
}

// finish commits a transaction or rolls it back, and waits for the answer no longer
// than the context lasts: not every driver looks at it here. The goroutine ends
// when the driver has the answer, or gives up the connection.
func finish(ctx context.Context, end func() error) error {
	if ctx.Done() == nil {
		return end()
	}
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(20 * time.Millisecond) // most answers are on their way
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return lifecycle.Ended(ctx)
	}
}

// settle asks whether a commit was written whose answer was lost: nil if so, a
// conflict if it was not and never will be, errAgain if nobody can tell.
func (s *Store) settle(ctx context.Context, j *job) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.config.SettleFor)
	defer stop()
	for try := 4; ; try++ {
		err := s.ask(ctx, j)
		if err == nil || err == errAgain {
			return err
		}
		if _, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
			return err
		}
		if !wait(ctx, try) {
			return err
		}
	}
}

func (s *Store) ask(ctx context.Context, j *job) error {
	q := s.session(s.db)
	for i := range j.steps {
		if err := q.refusal(ctx, j, i); err != errAgain {
			return err
		}
	}
	return errAgain
}

// disproved reports whether a conflict proves that a commit whose answer was lost
// was not written and never will be. There are two proofs:
//   - The history has the row of another commit at this commit's place. The history
//     was read before the conflict was found. A missing row proves nothing: it may
//     have been trimmed. A MetadataOnly change writes no row.
//   - The record has this commit's number and another token. This holds for one
//     object only, because the records of several are read one after the other.
func (s *Store) disproved(j *job, conflict *lifecycle.ConflictError) bool {
	if s.l.history != "" && !j.metadataOnly() {
		return !j.gone
	}
	return s.l.column[vToken] != "" && len(j.steps) == 1 && s.l.number(conflict.Current.Revision) == j.steps[0].expect+1
}
