package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// In a user's table nobody makes rows but for objects, and a row that is not
// there cannot be locked. What keeps a required object absent until the commit
// is the engine's:
//
//   - PostgreSQL: an advisory lock of the transaction, on a number made of the key.
//     Who requires absence shares it, who makes a row has it alone. All of them
//     are taken before any row is locked, in the order of the numbers, so that
//     they never wait in a circle; and each statement after them sees what was
//     committed before they were had.
//   - MySQL: the gap in the unique index, which a locking read of a missing row
//     locks at REPEATABLE READ, and into which nobody else can insert. Two who
//     require what the other makes are a deadlock, which the engine ends.
//   - SQLite: one writer at a time.

// absent reports whether a commit requires that an object does not exist.
func (j *job) absent() bool {
	return slices.ContainsFunc(j.c.Require, func(p lifecycle.Precondition) bool { return slices.Contains(p.States, "") })
}

// isolation is that of the transaction of a commit.
func (s *Store) isolation(j *job) sql.IsolationLevel {
	if s.l.foreign && s.e.gaps && j.absent() {
		return sql.LevelRepeatableRead
	}
	return s.e.isolate
}

// holdPlaces sees to it that objects that are required to be absent stay so.
func (s *session) holdPlaces(ctx context.Context, j *job) error {
	if s.e.oneWriter {
		return nil
	}
	if s.foreign && j.absent() {
		if err := s.seesAbsence(ctx); err != nil {
			return err
		}
	}
	if s.e.gaps {
		return nil
	}
	alone := make(map[int64]bool)
	for i := range j.c.Require {
		if p := &j.c.Require[i]; slices.Contains(p.States, "") {
			alone[placeOf(p.Key)] = false
		}
	}
	for i := range j.steps {
		if ch := j.steps[i].ch; ch.From == "" {
			alone[placeOf(ch.To.Key)] = true
		}
	}
	places := make([]int64, 0, len(alone))
	for place := range alone {
		places = append(places, place)
	}
	slices.Sort(places)
	const atOnce = 100
	for len(places) > 0 {
		n := min(len(places), atOnce)
		list, args := make([]string, n), make([]any, n)
		for i, place := range places[:n] {
			lock := "pg_advisory_xact_lock_shared"
			if alone[place] {
				lock = "pg_advisory_xact_lock"
			}
			list[i], args[i] = lock+"("+s.e.placeholder(i+1, ofNumber)+")", place
		}
		if _, err := s.q.ExecContext(ctx, "SELECT "+strings.Join(list, ", "), args...); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// seesAbsence refuses a transaction of the user's in which an object may look
// absent that is not: one whose reads are older than the locks that it takes, or
// one of which nobody can tell.
func (s *session) seesAbsence(ctx context.Context) error {
	level := "unknown"
	if !s.e.gaps {
		rows, err := s.q.QueryContext(ctx, "SELECT current_setting('transaction_isolation')")
		err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&level) })
		if err != nil || strings.HasPrefix(level, "read ") {
			return err
		}
	}
	return fmt.Errorf("%w: in a transaction of isolation %q no object can be required to be absent from a user's table", errors.ErrUnsupported, level)
}

// placeOf is a number for a key. That two keys may have one is no harm: they wait
// for each other.
func placeOf(key lifecycle.Key) int64 {
	sum := sha256.Sum256([]byte("interlock\x00" + key.Machine + "\x00" + key.ID))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
