package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// A store makes no rows in an existing table but for objects, and a missing row
// cannot be locked. The engine keeps a required object absent until the commit:
//
//   - PostgreSQL: an advisory lock of the transaction, with a number made of the key.
//     Commits that require absence share it, and a commit that makes a row holds it
//     alone. A commit acquires all of them before it locks a row, in the order of the
//     numbers, so that commits never wait in a circle. Every statement after them
//     sees what was committed before they were acquired.
//   - MySQL: a locking read of a missing row at REPEATABLE READ locks the gap in the
//     unique index, and no other transaction can insert into it. Two commits each of
//     which requires what the other one makes are a deadlock, which the engine ends.
//   - SQLite: there is one writer at a time.

// isolation returns the level of the transaction of a commit.
func (s *shared) isolation(p *plan) sql.IsolationLevel {
	// The owner's record is read without a lock, also where the connection's default is
	// SERIALIZABLE, and only as committed. The read is the first one without a lock in the
	// transaction, and sees the newest version.
	if s.e.gapLocks && (s.l.objects.existing && p.requiresAbsence() || p.commit.Owner.Name != "") {
		return sql.LevelRepeatableRead
	}
	return s.e.isolation
}

// lockAbsent acquires the locks that keep required objects absent.
func (s *session) lockAbsent(ctx context.Context, p *plan) error {
	if s.callTx && p.requiresAbsence() {
		if err := s.checkIsolation(ctx); err != nil {
			return err
		}
	}
	if s.e.gapLocks {
		return nil
	}
	locks := make(map[int64]string)
	for _, r := range p.commit.Require {
		if slices.Contains(r.States, "") {
			locks[lockNumber(r.Key)] = "pg_advisory_xact_lock_shared"
		}
	}
	for i := range p.changes {
		if p.changes[i].From == "" {
			locks[lockNumber(p.changes[i].To.Key)] = "pg_advisory_xact_lock"
		}
	}
	for _, number := range slices.Sorted(maps.Keys(locks)) {
		if _, err := s.q.ExecContext(ctx, "SELECT "+locks[number]+"("+s.e.placeholder(1, ofNumber)+")", number); err != nil {
			return err
		}
	}
	return nil
}

// checkIsolation refuses a transaction of the caller whose reads may be older than
// the locks that it acquires: an object could look absent that exists.
func (s *session) checkIsolation(ctx context.Context) error {
	level := "unknown"
	if !s.e.gapLocks {
		st := &statement{text: "SELECT current_setting('transaction_isolation')"}
		err := s.query(ctx, st, nil, func(rows *sql.Rows) error { return rows.Scan(&level) })
		if err != nil || strings.HasPrefix(level, "read ") {
			return err
		}
	}
	return fmt.Errorf("%w: absence of an object in an existing table: the transaction has isolation %q", errors.ErrUnsupported, level)
}

// lockNumber returns a number for a key. Two keys with one number only wait for each
// other.
func lockNumber(key lifecycle.Key) int64 {
	sum := sha256.Sum256([]byte("interlock\x00" + key.Machine + "\x00" + key.ID))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
