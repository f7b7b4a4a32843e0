package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

var (
	// ErrSchema: the tables do not exist, are of another version, or do not fit.
	ErrSchema = errors.New("sqlstore: unsuitable tables")
	// ErrHistory: an object has a record without its history, or a history without its
	// record: one of the tables was restored without the other, or another program has
	// deleted and inserted a row of an [ExistingTable]. Nothing was written.
	ErrHistory = errors.New("sqlstore: record and history do not fit")
	// ErrRollback: a transaction of the caller cannot continue, because of a deadlock, a
	// serialization failure or a concurrent commit that it may not see, or because an earlier call
	// in it has failed. Roll it back and run it again from its beginning. The error matches
	// [lifecycle.ErrUnavailable], and wraps the driver's error unless an earlier call had it.
	ErrRollback = errors.New("sqlstore: the transaction must be rolled back and run again")
)

var (
	// errBusy: the records contradict a failed write, because another commit came in
	// between. The next attempt sees its result.
	errBusy = errors.New("other commits interfere")
	// errMissed: a change has found no row with the expected revision and state, or a
	// precondition does not hold. It wraps the reason if the driver reported one.
	errMissed = errors.New("no row was written")
	// errHidden: a row is in the way that the caller's transaction may not see. It wraps the reason.
	errHidden = errors.New("another row is in the way")
	// errLost: the engine may or may not have committed.
	errLost = errors.New("the answer was lost")
	// errEnded: the engine may have ended the caller's transaction.
	errEnded = fmt.Errorf("%w: %w: an earlier call in it has failed", ErrRollback, lifecycle.ErrUnavailable)
	// errTaken: no record has the key, but a unique index of the existing table
	// rejects the row.
	errTaken = errors.New("a unique index of the table takes another row for this one")
	// errRows: the existing table lacks a unique index.
	errRows = errors.New("more rows than one have the key, which needs a unique index")
	// errRead: a row has a value that the store cannot read. The statement was executed.
	errRead = errors.New("a row has a value of another form")
	// errLocked: the engine has waited for the end of another migration. Further attempts
	// would wait as long each.
	errLocked = errors.New("migrate: another migration holds the lock")
)

// isVerdict reports whether an error is about what the commit requires.
func isVerdict(err error) bool {
	return matches(err, lifecycle.ErrConflict, lifecycle.ErrPrecondition, lifecycle.ErrStale, lifecycle.ErrRepeated)
}

func matches(err error, sentinels ...error) bool {
	return slices.ContainsFunc(sentinels, func(sentinel error) bool { return errors.Is(err, sentinel) })
}

// class is what an error shows about the statement that failed.
type class uint8

const (
	noAnswer  class = iota // nothing: the engine may have executed it, or may execute it later
	busy                   // it was not executed, because other transactions were in the way
	duplicate              // it was not executed, because the key exists

	// It was not executed.
	refused     // for any other reason
	unable      // the engine lacks resources or time, or takes no writes now
	otherRow    // another row is needed, or is in the way
	unfit       // a column, a check or a trigger refuses the values
	unknownName // there is no such table or column
	executed    // a table of MySQL, which has no transactions for tables, has the column or the index already
)

// refused reports whether the engine refuses the statement as long as the reason lasts.
func (c class) refused() bool { return c >= refused }

// The SQLSTATEs of PostgreSQL, and the first two characters of others.
var postgresCodes = map[string]class{
	"40001": busy, "40P01": busy, "55P03": busy, // serialization failure, deadlock, lock not available
	"23505": duplicate,
	// The server shuts down, starts, or ends a session or a transaction after a time.
	"40003": noAnswer, "57P01": noAnswer, "57P02": noAnswer, "57P03": noAnswer, "57P04": noAnswer, "57P05": noAnswer,
	"25P03": noAnswer, "25P04": noAnswer,
	"08": noAnswer,             // connection
	"53": unable, "58": unable, // resources, among them the disk and the number of connections
	"57014": unable, // the time-out of a statement
	"25006": unable, // a transaction that may only read, as on a standby
	"23001": otherRow, "23503": otherRow, "23P01": otherRow,
	"22": unfit, "23": unfit, "P0001": unfit,
	"428C9": unfit, "44": unfit, // a generated column, the check of a view
	"42P01": unknownName, "42703": unknownName,
}

// The error numbers of MySQL and MariaDB.
var mysqlCodes = map[int]class{
	1020: busy, 1205: busy, 1213: busy, // snapshot isolation, lock wait timeout, deadlock
	1412: busy, // the table was changed after the transaction began
	1615: busy, // or after the statement was prepared
	3101: busy, // another member of a group has written the rows: COMMIT rolls back
	1062: duplicate,
	// A proxy does not reach the server, or has lost it.
	2003: noAnswer, 2006: noAnswer, 2013: noAnswer, 9001: noAnswer,
	// The disk or a member of the group fails, perhaps in COMMIT.
	1026: noAnswer, 1030: noAnswer, 3100: noAnswer,
	// The server shuts down, COMMIT fails half-way, the statement takes too long, or the
	// connection breaks or is killed.
	1053: noAnswer, 1077: noAnswer, 1079: noAnswer, 1158: noAnswer, 1159: noAnswer, 1160: noAnswer, 1161: noAnswer,
	1180: noAnswer, 1184: noAnswer, 1317: noAnswer, 1927: noAnswer, 1969: noAnswer, 3169: noAnswer, 4031: noAnswer,
	// Resources; a server that may only read, or that has no quorum in its cluster (1047); the
	// time-out of a statement.
	1047: unable, 1021: unable, 1037: unable, 1038: unable, 1040: unable, 1041: unable, 1114: unable, 1203: unable, 1206: unable,
	1226: unable, 1290: unable, 1792: unable, 1836: unable, 3024: unable,
	1135: unable, 1461: unable, 1637: unable, // threads, prepared statements, transactions
	1451: otherRow, 1452: otherRow,
	1153: unfit,                                        // more than max_allowed_packet
	1267: unfit,                                        // a name has characters that the column lacks
	1369: unfit, 1526: unfit, 1906: unfit, 3105: unfit, // a view, the partitions, a generated column
	1048: unfit, 1264: unfit, 1265: unfit, 1292: unfit, 1366: unfit, 1406: unfit, 1644: unfit, 3819: unfit, 4025: unfit,
	1054: unknownName, 1146: unknownName,
	1060: executed, 1061: executed,
}

// The result codes of SQLite: extended ones, and the last byte of others.
var sqliteCodes = map[int]class{
	1555: duplicate, 2067: duplicate, // primary key, unique index
	5: busy, 6: busy, // busy, locked
	9: noAnswer, 10: noAnswer, // interrupted, input or output
	7: unable, 8: unable, 13: unable, 14: unable, // no memory, read-only, the disk is full, the file cannot be opened
	787: otherRow, // foreign key
	19:  unfit,
	1:   unknownName, // or another fault of the statement
}

// The errors of PostgreSQL drivers are a postgresError, and those of modernc.org/sqlite a
// sqliteError.
type (
	postgresError interface{ SQLState() string }
	sqliteError   interface{ Code() int }
)

// classify reads an error without knowledge of the driver. The errors of MySQL drivers are
// structs with a field Number, those of mattn/go-sqlite3 structs with a field ExtendedCode, and
// those of PostgreSQL drivers have fields Severity and Routine. A driver's own opinion about its
// connection does not count: pgx can call a COMMIT safe to retry that the engine has received and
// executed.
func classify(err error) class {
	var state postgresError
	var code sqliteError
	switch {
	case errors.Is(err, errBusy):
		return busy
	case errors.Is(err, errTaken):
		return duplicate
	case errors.Is(err, errLocked):
		return unable
	case isVerdict(err), matches(err, lifecycle.ErrInvalid, lifecycle.ErrForeign, errors.ErrUnsupported, ErrSchema, ErrHistory):
		return refused
	case err == errMissed, matches(err, errRows, errRead, sql.ErrTxDone):
		return refused
	case errors.As(err, &state) && panicked(state):
		return noAnswer
	case errors.As(err, &state) && field(state, "Routine").String() == stalePlan:
		return busy
	case errors.As(err, &state):
		s := state.SQLState()
		return classOf(postgresCodes, s, s[:min(2, len(s))])
	case errors.As(err, &code):
		return classOf(sqliteCodes, code.Code(), code.Code()&0xff)
	}
	if n, ok := numberOf(err, "Number"); ok {
		return classOf(mysqlCodes, n)
	}
	if n, ok := numberOf(err, "ExtendedCode"); ok {
		return classOf(sqliteCodes, n, n&0xff)
	}
	return noAnswer
}

// panicked reports whether a server of PostgreSQL has crashed with an error. If that was a COMMIT,
// its record may be on the disk. A server in another language translates Severity.
func panicked(state postgresError) bool {
	return field(state, "Severity").String() == "PANIC" || field(state, "SeverityUnlocalized").String() == "PANIC"
}

// stalePlan is the routine of PostgreSQL that reports that a table was changed after the plan of the
// statement was made. The same SQLSTATE, 0A000, is that of statements that it never executes.
const stalePlan = "RevalidateCachedQuery"

// field returns a field of an error that is a struct, and otherwise the zero Value.
func field(err any, name string) reflect.Value {
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// classOf returns the class of the first code that the engine's list has.
func classOf[C comparable](list map[C]class, codes ...C) class {
	for _, code := range codes {
		if c, ok := list[code]; ok {
			return c
		}
	}
	return refused
}

// numberOf finds a struct with a field of this name in an error and the errors it wraps.
func numberOf(err error, name string) (int, bool) {
	switch n := field(err, name); {
	case n.CanUint():
		return int(n.Uint()), true
	case n.CanInt():
		return int(n.Int()), true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return numberOf(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if n, ok := numberOf(err, name); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// reactions are the sentinels for errors of a call that has written nothing, by class. The other
// classes have none, or the errors match their own.
var reactions = map[class]error{
	noAnswer:  lifecycle.ErrUnavailable,
	busy:      lifecycle.ErrUnavailable,
	unable:    lifecycle.ErrUnavailable,
	duplicate: lifecycle.ErrPrecondition, // the same values fit when the other row has changed
	otherRow:  lifecycle.ErrPrecondition,
	unfit:     lifecycle.ErrInvalid,
}

// failed returns the error of a call that has written nothing.
func failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return lifecycle.Ended(ctx)
	case matches(err, ErrHistory, ErrSchema, ErrRollback, lifecycle.ErrClosed):
		return err
	}
	if sentinel := reactions[classify(err)]; sentinel != nil {
		err = &engineError{fmt.Errorf("%w: %w", sentinel, err)}
	}
	return fmt.Errorf("sqlstore: %w", err)
}

// engineError has the words of the engine. They are not for clients, see [lifecycle.Problem].
type engineError struct{ error }

func (e *engineError) Internal() {}

func (e *engineError) Unwrap() error { return e.error }

// refusal is failed, but it returns [ErrSchema] if the engine does not find a table or column,
// because a migration has made the tables incompatible.
func (s *Store) refusal(ctx context.Context, err error) error {
	if err != nil && s.tx == nil && classify(err) == unknownName {
		var schema error
		_ = s.call(ctx, func() error { _, schema = s.schema(ctx); return nil })
		if errors.Is(schema, ErrSchema) {
			return fmt.Errorf("%w: %w", schema, err)
		}
	}
	return failed(ctx, err)
}

// unknown returns the error of a commit whose answer was lost, and which the store
// could neither find nor send again. The error of the last attempt becomes text: it
// does not show that the first attempt failed.
func unknown(ctx context.Context, p *plan, last error) error {
	lost := p.lost
	switch {
	case ctx.Err() != nil:
		lost = lifecycle.Ended(ctx)
	case !errors.Is(last, errBusy):
		lost = fmt.Errorf("%w; sent again: %v", lost, last)
	}
	return &lifecycle.UnknownOutcomeError{Token: p.commit.Token, Err: fmt.Errorf("sqlstore: %w", lost)}
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
