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

var (
	// ErrSchema: the tables do not exist, are of another version, or do not fit.
	ErrSchema = errors.New("sqlstore: unsuitable tables")
	// ErrIdentifier: the name of a table, a column or a prefix is not a valid
	// identifier.
	ErrIdentifier = errors.New("sqlstore: invalid identifier")
	// ErrHistory: an object has a record without its history, or a history without its
	// record: one of the tables was restored without the other. Nothing was written.
	ErrHistory = errors.New("sqlstore: record and history do not fit")
	// ErrRollback: a transaction of the caller cannot go on, because of a deadlock, a
	// serialization failure or a concurrent commit. Roll it back and run it again from
	// its beginning. The error wraps the driver's error and matches
	// [lifecycle.ErrUnavailable].
	ErrRollback = errors.New("sqlstore: the transaction must be rolled back and run again")
)

var (
	// errBusy: the records contradict a failed write, because another commit came in
	// between. The next attempt sees its result.
	errBusy = errors.New("other commits interfere")
	// errTaken: no record has the key, but a unique index of the existing table
	// rejects the row.
	errTaken = errors.New("a unique index of the table takes another row for this one")
	// errRows: the existing table lacks a unique index.
	errRows = errors.New("more rows than one have the key, which needs a unique index")
	// errRead: a row has a value that the store cannot read. The statement was executed.
	errRead = errors.New("a row has a value of another form")
)

// missedError: a change has found no row with the expected revision and state.
type missedError struct {
	err error // the reason, if the driver reported one
}

func (e *missedError) Error() string { return "the record is not as expected" }

// isVerdict reports whether an error is about what the commit requires.
func isVerdict(err error) bool {
	return errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrPrecondition) ||
		errors.Is(err, lifecycle.ErrStale) || errors.Is(err, lifecycle.ErrRepeated)
}

// lostError: the engine may or may not have committed.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }

func (e *lostError) Unwrap() error { return e.err }

// failed returns the error of a call that has written nothing.
func failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return lifecycle.Ended(ctx)
	}
	if sentinel := reaction(err); sentinel != nil {
		err = fmt.Errorf("%w: %w", sentinel, err)
	}
	return fmt.Errorf("sqlstore: %w", err)
}

// reaction returns the sentinel for an error of a call that has written nothing; nil: there is
// none, or the error matches its own.
func reaction(err error) error {
	switch classify(err) {
	case noAnswer, busy:
		if stays(err) || errors.Is(err, lifecycle.ErrInvalid) || errors.Is(err, lifecycle.ErrForeign) || errors.Is(err, lifecycle.ErrStale) {
			return nil
		}
		return lifecycle.ErrUnavailable
	case unable:
		return lifecycle.ErrUnavailable
	case duplicate, otherRow: // the same values fit when that row has changed
		return lifecycle.ErrPrecondition
	case unfit:
		return lifecycle.ErrInvalid
	case refused, unknownName:
	}
	return nil
}

// stays reports whether an error without an answer of the engine stays the same: a row
// cannot be read, or the caller's transaction has ended.
func stays(err error) bool { return errors.Is(err, errRead) || errors.Is(err, sql.ErrTxDone) }

// refusal returns the error of a call that has written nothing. If the engine does not
// know a name in the statement, a migration may have made the tables incompatible.
func (s *Store) refusal(ctx context.Context, err error) error {
	if s.tx == nil && classify(err) == unknownName {
		if _, schema := s.on(s.db).schema(ctx, s.config.Prefix); errors.Is(schema, ErrSchema) {
			return fmt.Errorf("%w: %w", schema, err)
		}
	}
	return failed(ctx, err)
}

// unknown returns the error of a commit whose answer was lost, and which the store
// could neither find nor send again. The error of the last attempt becomes text: it
// does not show that the first attempt failed.
func unknown(ctx context.Context, p *plan, lost, last error) error {
	switch {
	case ctx.Err() != nil:
		lost = lifecycle.Ended(ctx)
	case !errors.Is(last, errBusy):
		lost = fmt.Errorf("%w; sent again: %v", lost, last)
	}
	return &lifecycle.UnknownOutcomeError{Token: p.commit.Token, Err: fmt.Errorf("sqlstore: %w", lost)}
}

// mostBroken is the number of attempts after errors that time alone does not heal:
// broken connections (a pool may keep connections that ended long ago), and keys of
// another unique index, which may belong to a row that is being removed.
const mostBroken = 3

// retry decides whether a call is made again. It is the only place that does.
type retry struct {
	most     time.Duration // how long attempts are made while other transactions are in the way
	until    time.Time     // the end of that time, after the first error
	attempts int
	broken   int
}

// again waits before the next attempt. It reports false if the error is final, the
// time is over, or the context ends.
func (r *retry) again(ctx context.Context, err error) bool {
	if r.attempts == 0 {
		r.until = time.Now().Add(r.most)
	}
	switch c := classify(err); {
	case c.refused():
		return false
	case c == busy:
		if !time.Now().Before(r.until) {
			return false
		}
	default:
		if r.broken++; r.broken > mostBroken || stays(err) {
			return false
		}
	}
	r.attempts++
	return pause(ctx, r.attempts)
}

// pause waits for a random time that grows with the attempts, up to about 60 ms. It
// reports whether the context lasts.
func pause(ctx context.Context, attempts int) bool {
	most := min(time.Millisecond<<min(attempts-1, 10), 50*time.Millisecond)
	timer := time.NewTimer(rand.N(most) + most/4)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
