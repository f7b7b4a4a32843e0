package sqlstore

import (
	"errors"
	"reflect"
	"strings"
)

// verdict is what an error of a driver says about the statement that it answers.
type verdict uint8

const (
	lostAnswer verdict = iota // nothing: the engine may have done it, or may do it yet
	refused                   // it was not done
	again                     // it was not done, for others were in the way
	duplicate                 // it was not done, because the key exists
)

// judge reads an error without knowing the driver. PostgreSQL's tell their
// SQLState, SQLite's their Code, by a method; MySQL's is a struct with a Number.
// What a driver itself says of its connection is not believed: pgx has been seen
// to call a COMMIT safe to retry that the engine had received and done.
func judge(err error) verdict {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return judgeState(e.SQLState())
	}
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return judgeSQLite(e.Code())
	}
	if n, ok := numberOf(err); ok {
		return judgeMySQL(n)
	}
	return lostAnswer
}

// numberOf looks for a struct with a Number in an error and what it wraps.
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

func judgeState(state string) verdict {
	switch state {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return again
	case "23505":
		return duplicate
	case "40003", "57P01", "57P02", "57P03", "57P04", "57P05": // the answer of an engine that goes down
		return lostAnswer
	}
	if strings.HasPrefix(state, "08") { // connection
		return lostAnswer
	}
	return refused
}

func judgeMySQL(number uint64) verdict {
	switch number {
	// Snapshot isolation, lock wait timeout, deadlock.
	case 1020, 1205, 1213:
		return again
	case 1062:
		return duplicate
	// The engine goes down, COMMIT fails half way, the statement takes too long, or
	// the connection breaks or is killed.
	case 1053, 1077, 1079, 1158, 1159, 1160, 1161, 1180, 1184, 1317, 1927, 1969, 3169, 4031:
		return lostAnswer
	}
	return refused
}

func judgeSQLite(code int) verdict {
	switch code {
	case 1555, 2067: // a primary key, a unique index
		return duplicate
	}
	switch code & 0xff {
	case 5, 6: // busy, locked
		return again
	case 9, 10: // interrupted, input or output
		return lostAnswer
	}
	return refused
}
