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
// Errors: [ErrHistory] if the objects and their history are not from one backup. The
// history of a machine that has no record in the store's own tables is taken for that of an
// existing table, and is not compared. [lifecycle.ErrInvalid] if lost is above 2^40; the errors of [Open].
func AfterRestore(ctx context.Context, db *sql.DB, d Dialect, config *Config, lost uint64) error {
	c, err := config.resolved()
	if err != nil {
		return err
	}
	if err := d.check(db); err != nil {
		return err
	}
	if lost > 1<<40 {
		return fmt.Errorf("%w: %d lost commits", lifecycle.ErrInvalid, lost)
	}
	layouts, err := d.verified(ctx, db, &c)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return failed(ctx, err)
	}
	r := &restoration{
		session: &session{shared: &shared{e: d.engine, own: layouts[0], layouts: layouts, messages: d.quoted(c.Prefix + "messages")}, q: tx},
		step:    int64(cmp.Or(lost, 1_000_000)), schema: d.quoted(c.Prefix + "schema"),
	}
	if err = r.run(ctx); err == nil {
		err = tx.Commit()
	}
	if err != nil {
		_ = tx.Rollback()
	}
	return failed(ctx, err)
}

// restoration raises the numbers of one store's tables.
type restoration struct {
	*session
	step   int64
	schema string // the quoted table
}

func (r *restoration) run(ctx context.Context) error {
	if err := r.raiseFloor(ctx); err != nil {
		return err
	}
	if err := r.checkHistory(ctx); err != nil {
		return err
	}
	// A row that only reserves a key becomes a key that the tables do not have.
	if err := r.write(ctx, "DELETE FROM "+r.own.objects.name+" WHERE state = '' AND changed_at = 0"); err != nil {
		return err
	}
	for _, l := range r.layouts {
		o := &l.objects
		err := r.do(ctx, l, nil, func(b *builder) {
			b.add("UPDATE ", o.name, " SET ", literals(o.named(vRevision, vOperation, vToken), func(v value) string {
				if v == vToken {
					token := lifecycle.NewToken()
					return o.col(v) + " = " + b.literal(token[:])
				}
				return o.col(v) + " = COALESCE(" + o.col(v) + ", 0) + " + b.literal(r.step)
			}))
		})
		if err != nil {
			return err
		}
	}
	return r.raiseMessages(ctx)
}

func (r *restoration) write(ctx context.Context, text string) error {
	_, err := r.exec(ctx, &statement{text: text}, nil)
	return err
}

// raiseFloor raises the numbers of keys that the tables do not have above all that they
// have. The next Trim reads the whole history.
func (r *restoration) raiseFloor(ctx context.Context) error {
	// The lock of this row, before a read: two restorations come one after the other.
	if err := r.write(ctx, "UPDATE "+r.schema+" SET trimmed_at = 0"); err != nil {
		return err
	}
	floor := int64(r.own.floor)
	for _, l := range r.layouts {
		for _, t := range []*table{&l.objects, &l.history} {
			for _, v := range t.named(vRevision, vSequence, vOperation) {
				st := &statement{text: "SELECT COALESCE(MAX(" + t.col(v) + "), 0) FROM " + t.name}
				err := r.query(ctx, st, nil, func(rows *sql.Rows) error {
					c, err := t.scan(rows, []value{v})
					if err == nil {
						floor = max(floor, c.number(v))
					}
					return err
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return r.write(ctx, fmt.Sprintf("UPDATE %[1]s SET %[2]s = CASE WHEN %[2]s > %[3]d THEN %[2]s ELSE %[3]d END + %[4]d",
		r.schema, r.e.quoted("floor"), floor, r.step))
}

// raiseMessages leaves numbers of messages unused. A program that delivers messages may
// discard one by a number that it has received before the loss.
func (r *restoration) raiseMessages(ctx context.Context) error {
	if r.e.raiseNumbers != "" {
		st := &statement{text: fmt.Sprintf(r.e.raiseNumbers, r.e.placeholder(1, ofText), r.e.placeholder(2, ofNumber)), args: []any{r.messages, r.step}}
		return r.query(ctx, st, nil, func(*sql.Rows) error { return nil })
	}
	result, err := r.q.ExecContext(ctx, "INSERT INTO "+r.messages+" (topic, subject) VALUES ('', '')")
	if err != nil {
		return err
	}
	last, err := result.LastInsertId()
	if err != nil {
		return err
	}
	if err := r.write(ctx, fmt.Sprintf("INSERT INTO %s (number, topic, subject) VALUES (%d, '', '')", r.messages, last+r.step)); err != nil {
		return err
	}
	return r.write(ctx, fmt.Sprintf("DELETE FROM %s WHERE number >= %d", r.messages, last))
}

// checkHistory refuses objects without their newest history row, and history rows that
// are newer than their objects. The history may have rows of objects in existing tables.
func (r *restoration) checkHistory(ctx context.Context) error {
	const same = "h.machine = o.machine AND h.id = o.id AND "
	objects, history := r.own.objects.name, r.own.history.name
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
		err := r.query(ctx, &statement{text: c.query}, nil, func(rows *sql.Rows) error {
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
