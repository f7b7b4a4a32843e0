package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
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

// lostError: the engine may or may not have committed.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }

func (e *lostError) Unwrap() error { return e.err }

// class is what an error shows about the statement that failed.
type class uint8

const (
	noAnswer  class = iota // nothing: the engine may have executed it, or may execute it later
	refused                // it was not executed
	busy                   // it was not executed, because other transactions were in the way
	duplicate              // it was not executed, because the key exists
)

// The errors of PostgreSQL drivers are a postgresError, and those of SQLite drivers a
// sqliteError.
type (
	postgresError interface {
		error
		SQLState() string
	}
	sqliteError interface {
		error
		Code() int
	}
)

// classify reads an error without knowledge of the driver. The errors of MySQL drivers
// are structs with a field Number. A driver's own opinion about its
// connection does not count: pgx can call a COMMIT safe to retry that the engine has
// received and executed.
func classify(err error) class {
	var state postgresError
	var code sqliteError
	switch {
	case errors.Is(err, errBusy):
		return busy
	case errors.Is(err, errTaken):
		return duplicate
	case errors.Is(err, errRows), errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrPrecondition), errors.Is(err, lifecycle.ErrStale),
		errors.Is(err, lifecycle.ErrRepeated), errors.Is(err, errors.ErrUnsupported), errors.Is(err, ErrSchema), errors.Is(err, ErrHistory):
		return refused
	case errors.As(err, &state):
		return classifyPostgres(state.SQLState())
	case errors.As(err, &code):
		return classifySQLite(code.Code())
	}
	if n, ok := numberOf(err); ok {
		return classifyMySQL(n)
	}
	return noAnswer
}

// numberOf finds a struct with a field Number in an error and the errors it wraps.
func numberOf(err error) (uint64, bool) {
	if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return n.Uint(), true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return numberOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if n, ok := numberOf(err); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// classifyPostgres reads an SQLSTATE.
func classifyPostgres(state string) class {
	switch state {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return busy
	case "23505": // unique violation
		return duplicate
	// The server shuts down, starts, or ends a session or a transaction after a time.
	case "40003", "57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04":
		return noAnswer
	}
	if strings.HasPrefix(state, "08") { // connection
		return noAnswer
	}
	return refused
}

// classifyMySQL reads an error number.
func classifyMySQL(number uint64) class {
	switch number {
	case 1020, 1205, 1213: // snapshot isolation, lock wait timeout, deadlock
		return busy
	case 1062: // duplicate entry
		return duplicate
	// The server shuts down, COMMIT fails half-way, the statement takes too long, or
	// the connection breaks or is killed.
	case 1053, 1077, 1079, 1158, 1159, 1160, 1161, 1180, 1184, 1317, 1927, 1969, 3169, 4031:
		return noAnswer
	}
	return refused
}

// classifySQLite reads an extended result code.
func classifySQLite(code int) class {
	switch code {
	case 1555, 2067: // primary key, unique index
		return duplicate
	}
	switch code & 0xff {
	case 5, 6: // busy, locked
		return busy
	case 9, 10: // interrupted, input or output
		return noAnswer
	}
	return refused
}

// failed returns the error of a call that has written nothing.
func failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return lifecycle.Ended(ctx)
	}
	if unavailable(err) {
		err = fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, err)
	} else if sentinel := unfit(err); sentinel != nil {
		err = fmt.Errorf("%w: %w", sentinel, err)
	}
	return fmt.Errorf("sqlstore: %w", err)
}

// unfit returns why the engine refuses the values of a row, or nil if it does not.
// [lifecycle.ErrPrecondition]: another row is needed, or is in the way, by a foreign key or by
// another unique index of the existing table. The same values fit when that row has changed.
// [lifecycle.ErrInvalid]: a column, a check or a trigger refuses them.
func unfit(err error) error {
	var state postgresError
	var code sqliteError
	switch {
	case errors.Is(err, errTaken):
		return lifecycle.ErrPrecondition
	case errors.As(err, &state):
		switch s := state.SQLState(); {
		case s == "23001", s == "23503", s == "23505", s == "23P01":
			return lifecycle.ErrPrecondition
		case strings.HasPrefix(s, "22"), strings.HasPrefix(s, "23"), s == "P0001":
			return lifecycle.ErrInvalid
		}
		return nil
	case errors.As(err, &code):
		switch c := code.Code(); {
		case c == 787, c == 1555, c == 2067: // foreign key, primary key, unique index
			return lifecycle.ErrPrecondition
		case c&0xff == 19:
			return lifecycle.ErrInvalid
		}
		return nil
	}
	switch n, _ := numberOf(err); n {
	case 1062, 1451, 1452:
		return lifecycle.ErrPrecondition
	case 1048, 1264, 1265, 1292, 1366, 1406, 1644, 3819, 4025:
		return lifecycle.ErrInvalid
	}
	return nil
}

// unavailable reports whether a call that has written nothing may succeed later: the
// engine does not answer, other transactions are in the way, or it lacks resources.
func unavailable(err error) bool {
	var state postgresError
	var code sqliteError
	switch c := classify(err); {
	case stays(err):
		return false
	case c != refused:
		return c != duplicate && !errors.Is(err, lifecycle.ErrInvalid) && !errors.Is(err, lifecycle.ErrForeign) &&
			!errors.Is(err, lifecycle.ErrStale)
	case errors.As(err, &state):
		// Resources, among them the disk and the number of connections; the time-out of
		// a statement; a transaction that may only read, as on a standby.
		return strings.HasPrefix(state.SQLState(), "53") || state.SQLState() == "57014" || state.SQLState() == "25006"
	case errors.As(err, &code):
		return code.Code()&0xff == 13 || code.Code()&0xff == 7 // the disk is full, no memory
	}
	switch n, _ := numberOf(err); n {
	case 1021, 1037, 1038, 1040, 1041, 1114, 1203, 1206, 1226, // resources, as above
		1290, 1792, 1836, 3024: // a server that may only read, the time-out of a statement
		return true
	}
	return false
}

// stays reports whether an error without an answer of the engine stays the same: a row
// cannot be read, or the caller's transaction has ended.
func stays(err error) bool { return errors.Is(err, errRead) || errors.Is(err, sql.ErrTxDone) }

// refusal returns the error of a call that has written nothing. If the engine does not
// know a name in the statement, a migration may have made the tables incompatible.
func (s *Store) refusal(ctx context.Context, err error) error {
	if s.tx == nil && unknownName(err) {
		if _, schema := s.on(s.db).schema(ctx, s.config.Prefix); errors.Is(schema, ErrSchema) {
			return fmt.Errorf("%w: %w", schema, err)
		}
	}
	return failed(ctx, err)
}

// unknownName reports whether the engine does not know a table or a column.
func unknownName(err error) bool {
	var state postgresError
	var code sqliteError
	switch {
	case errors.As(err, &state):
		return state.SQLState() == "42P01" || state.SQLState() == "42703"
	case errors.As(err, &code):
		return code.Code() == 1 // or another fault of the statement
	}
	n, _ := numberOf(err)
	return n == 1054 || n == 1146
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
	switch classify(err) {
	case refused:
		return false
	case busy:
		if !time.Now().Before(r.until) {
			return false
		}
	case noAnswer, duplicate:
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
