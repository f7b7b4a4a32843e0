package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// AfterRestore makes everything stale that was handed out before the database lost its
// newest commits: operation ids, revisions, and epochs of owners. Without it the store
// would hand out the same numbers again. Call it once after the database was restored
// from a backup, after a failover to a replica that lagged, and after a crash of an
// engine that acknowledges commits before they are on disk. No process may use the
// tables meanwhile: a store that was opened before must be opened again. The
// package documentation has the steps under "After a restore". The configuration names the
// existing tables as for [Open].
//
// Lost is a number that no object has lost more commits than; 0 is 1,000,000. If the same
// backup is restored a second time, add the number of the first call to it. In one
// transaction, AfterRestore
//
//   - adds lost to the revision and the operation of every record, of removed objects and
//     owners too, and gives it a new commit token, also in existing tables;
//   - raises the numbers with which a key begins that the tables do not have, and the
//     numbers of messages, by at least as much.
//
// Objects, sequence numbers and history stay as they are; the operation ids of later
// history rows follow after a gap. After an error the tables are as before, except that
// numbers of messages may be unused. A second call does no harm.
//
// Errors: [ErrHistory] if the objects and their history are not from one backup. The history of a
// machine that has no record in the store's own tables is taken for that of an existing table,
// and is not compared. [lifecycle.ErrInvalid] if lost is above 2^40; the errors of [Open].
func AfterRestore(ctx context.Context, db *sql.DB, d Dialect, config *Config, lost uint64) error {
	s, err := newStore(db, d, config)
	if err != nil {
		return err
	}
	if lost > 1<<40 {
		return fmt.Errorf("%w: %d lost commits", lifecycle.ErrInvalid, lost)
	}
	if err := s.openTables(ctx); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return failed(ctx, err)
	}
	defer tx.Rollback() // does nothing after Commit
	if err = (&Store{shared: s.shared, q: tx}).raise(ctx, int64(cmp.Or(lost, 1_000_000))); err == nil {
		err = tx.Commit()
	}
	return failed(ctx, err)
}

// raise raises the numbers of the tables by step.
func (s *Store) raise(ctx context.Context, step int64) error {
	if err := s.raiseFloor(ctx, step); err != nil {
		return err
	}
	if err := s.checkHistory(ctx); err != nil {
		return err
	}
	// A row that only reserves a key becomes a key that the tables do not have.
	if err := s.execText(ctx, "DELETE FROM %s WHERE state = '' AND changed_at = 0", s.own.objects.name); err != nil {
		return err
	}
	for _, l := range s.layouts {
		o := &l.objects
		err := s.do(ctx, l, func(b *builder) string {
			return "UPDATE " + o.name + " SET " + literals(o.named(vRevision, vOperation, vToken), func(v value) string {
				if v == vToken {
					token := lifecycle.NewToken()
					return o.col(v) + " = " + b.literal(token[:])
				}
				return o.col(v) + " = COALESCE(" + o.col(v) + ", 0) + " + b.literal(step)
			})
		})
		if err != nil {
			return err
		}
	}
	return s.raiseMessages(ctx, step)
}

func (s *Store) execText(ctx context.Context, format string, args ...any) error {
	_, err := s.q.ExecContext(ctx, fmt.Sprintf(format, args...))
	return err
}

// raiseFloor raises the numbers of keys that the tables do not have above all that they
// have. The next Trim reads the whole history.
func (s *Store) raiseFloor(ctx context.Context, step int64) error {
	// The lock of this row, before a read: two restorations come one after the other.
	if err := s.execText(ctx, "UPDATE %s SET trimmed_at = 0", s.table("schema")); err != nil {
		return err
	}
	floor := int64(s.own.floor)
	for _, l := range s.layouts {
		for _, t := range []*table{&l.objects, &l.history} {
			for _, v := range t.named(vRevision, vSequence, vOperation) {
				var most int64
				st := &statement{text: "SELECT COALESCE(MAX(" + t.col(v) + "), 0) FROM " + t.name}
				if err := s.query(ctx, st, nil, into(&most)); err != nil {
					return err
				}
				floor = max(floor, most)
			}
		}
	}
	return s.execText(ctx, "UPDATE %[1]s SET %[2]s = CASE WHEN %[2]s > %[3]d THEN %[2]s ELSE %[3]d END + %[4]d",
		s.table("schema"), s.e.quoted("floor"), floor, step)
}

// raiseMessages leaves numbers of messages unused. A program that delivers messages may
// discard one by a number that it has received before the loss.
func (s *Store) raiseMessages(ctx context.Context, step int64) error {
	messages := s.table("messages")
	if s.e.raiseNumbers != "" {
		return s.execText(ctx, s.e.raiseNumbers, messages, step)
	}
	result, err := s.q.ExecContext(ctx, "INSERT INTO "+messages+" (topic, subject) VALUES ('', '')")
	if err != nil {
		return err
	}
	last, err := result.LastInsertId()
	if err != nil {
		return err
	}
	if err := s.execText(ctx, "INSERT INTO %s (number, topic, subject) VALUES (%d, '', '')", messages, last+step); err != nil {
		return err
	}
	return s.execText(ctx, "DELETE FROM %s WHERE number >= %d", messages, last)
}

// checkHistory refuses objects without their newest history row, and history rows that
// are newer than their objects. The history may have rows of objects in existing tables.
func (s *Store) checkHistory(ctx context.Context) error {
	const same = "h.machine = o.machine AND h.id = o.id AND "
	objects, history := s.own.objects.name, s.own.history.name
	for _, c := range []struct{ query, missing string }{
		{
			"SELECT machine, id, sequence FROM " + objects + " o WHERE changed_at > 0 AND NOT EXISTS (SELECT 1 FROM " + history +
				" h WHERE " + same + "h.sequence = o.sequence) LIMIT 1",
			"has no history row",
		},
		{
			"SELECT machine, id, sequence FROM " + history + " h WHERE NOT EXISTS (SELECT 1 FROM " + objects +
				" o WHERE " + same + "h.sequence <= o.sequence) AND EXISTS (SELECT 1 FROM " + objects +
				" other WHERE other.changed_at > 0 AND other.machine = h.machine) LIMIT 1",
			"has a history row and no record",
		},
	} {
		err := s.query(ctx, &statement{text: c.query}, nil, func(rows *sql.Rows) error {
			var key lifecycle.Key
			var n uint64
			if err := rows.Scan(&key.Machine, &key.ID, &n); err != nil {
				return err
			}
			return notOneBackup(key, fmt.Sprintf("%s of sequence number %d", c.missing, n))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notOneBackup returns the error of an object whose record and history do not fit.
func notOneBackup(key lifecycle.Key, what string) error {
	return fmt.Errorf("%w: %s %.300q %s: restore all tables from one backup", ErrHistory, key.Machine, key.ID, what)
}
