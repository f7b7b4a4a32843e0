package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

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
//     numbers of messages, by at least as much;
//   - closes the tables to programs of version 1, which do not know these numbers.
//
// Objects, sequence numbers and history stay as they are; the operation ids of later
// history rows follow after a gap. After an error the tables are as before, except that
// numbers of messages may be unused. A second call does no harm.
//
// Errors: [ErrHistory] if the objects and their history are not from one backup. The
// history of a machine that has no record in the store's own tables is taken for that of an
// existing table, and is not compared. [ErrSchema] also for tables of version 1, which
// [Migrate] changes; [lifecycle.ErrInvalid] if lost is above 2^40; the errors of [Open].
func AfterRestore(ctx context.Context, db *sql.DB, d Dialect, config *Config, lost uint64) error {
	c, err := config.resolved()
	if err != nil {
		return err
	}
	if err := d.check(db); err != nil {
		return err
	}
	own, tables, err := d.verified(ctx, db, &c)
	switch {
	case err != nil:
		return err
	case own.version == 1:
		return fmt.Errorf("%w: the tables %s* are of version 1: call Migrate first", ErrSchema, c.Prefix)
	case lost > 1<<40:
		return fmt.Errorf("%w: %d lost commits", lifecycle.ErrInvalid, lost)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return failed(ctx, err)
	}
	r := &restoration{
		session: &session{shared: &shared{e: d.engine, own: own, tables: tables, messages: d.quoted(c.Prefix + "messages")}, q: tx},
		step:    int64(cmp.Or(lost, 1_000_000)), schema: d.quoted(c.Prefix + "schema"),
	}
	if err = r.run(ctx); err == nil {
		err = failed(ctx, tx.Commit())
	}
	if err != nil {
		_ = tx.Rollback()
	}
	return err
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
	o := &r.own.objects
	if err := r.do(ctx, r.own, func(b *builder) {
		b.add("DELETE FROM ", o.name, " WHERE ", o.column[vState], " = '' AND ", o.column[vChangedAt], " = 0")
	}); err != nil {
		return err
	}
	for l := range r.layouts() {
		if err := r.raiseObjects(ctx, l); err != nil {
			return err
		}
	}
	return r.raiseMessages(ctx)
}

func (r *restoration) do(ctx context.Context, l *layout, write func(*builder)) error {
	b := &builder{e: r.e, l: l}
	write(b)
	_, err := r.exec(ctx, b.statement(), b.args)
	return failed(ctx, err)
}

// raiseFloor raises the numbers of keys that the tables do not have above all that they
// have. The next Trim reads the whole history.
func (r *restoration) raiseFloor(ctx context.Context) error {
	q := r.e.quoted
	// The lock of this row, before a read: two restorations come one after the other.
	if err := r.do(ctx, r.own, func(b *builder) {
		b.add("UPDATE ", r.schema, " SET ", q("trimmed_at"), " = 0, ", q("compatible"),
			" = CASE WHEN ", q("compatible"), " > 2 THEN ", q("compatible"), " ELSE 2 END")
	}); err != nil {
		return err
	}
	var floor int64
	read := func(expression, table string) error {
		st := &statement{text: "SELECT COALESCE(MAX(" + expression + "), 0) FROM " + table}
		return failed(ctx, r.query(ctx, st, nil, func(rows *sql.Rows) error {
			var n int64
			err := rows.Scan(&n)
			floor = max(floor, n)
			return err
		}))
	}
	if err := read(q("floor"), r.schema); err != nil {
		return err
	}
	for l := range r.layouts() {
		for _, t := range []*table{&l.objects, &l.history} {
			for _, v := range t.named(vRevision, vSequence, vOperation) {
				if err := read(t.column[v], t.name); err != nil {
					return err
				}
			}
		}
	}
	return r.do(ctx, r.own, func(b *builder) {
		b.add("UPDATE ", r.schema, " SET ", q("floor"), " = ", b.literal(floor), " + ", b.literal(r.step))
	})
}

func (r *restoration) raiseObjects(ctx context.Context, l *layout) error {
	token := lifecycle.NewToken()
	return r.do(ctx, l, func(b *builder) {
		var assigned []string
		for _, v := range l.objects.named(vRevision, vOperation) {
			assigned = append(assigned, l.objects.column[v]+" = "+b.read(&l.objects, v)+" + "+b.literal(r.step))
		}
		if column := l.objects.column[vToken]; column != "" {
			assigned = append(assigned, column+" = "+b.literal(token[:]))
		}
		b.add("UPDATE ", l.objects.name, " SET ", strings.Join(assigned, ", "))
	})
}

// raiseMessages leaves numbers of messages unused. A program that delivers messages may
// discard one by a number that it has received before the loss.
func (r *restoration) raiseMessages(ctx context.Context) error {
	number, m := r.e.quoted("number"), r.messages
	if r.e.raiseNumbers != "" {
		st := &statement{text: fmt.Sprintf(r.e.raiseNumbers, r.e.placeholder(1, ofText), r.e.placeholder(2, ofNumber))}
		return failed(ctx, r.query(ctx, st, []any{m, r.step}, func(*sql.Rows) error { return nil }))
	}
	columns := r.e.quoted("topic") + ", " + r.e.quoted("subject")
	result, err := r.q.ExecContext(ctx, "INSERT INTO "+m+" ("+columns+") VALUES ('', '')")
	if err != nil {
		return failed(ctx, err)
	}
	last, err := result.LastInsertId()
	if err != nil {
		return failed(ctx, err)
	}
	for _, write := range []func(*builder){
		func(b *builder) {
			b.add("INSERT INTO ", m, " (", number, ", ", columns, ") VALUES (", b.literal(last+r.step), ", '', '')")
		},
		func(b *builder) { b.add("DELETE FROM ", m, " WHERE ", number, " >= ", b.literal(last)) },
	} {
		if err := r.do(ctx, r.own, write); err != nil {
			return err
		}
	}
	return nil
}

// checkHistory refuses objects without their newest history row, and history rows that
// are newer than their objects. The history may have rows of objects in existing tables.
func (r *restoration) checkHistory(ctx context.Context) error {
	o, h := &r.own.objects, &r.own.history
	on := func(inner *table, condition string) string {
		parts := []string{condition}
		for _, v := range []value{vMachine, vID} {
			parts = append(parts, "inside."+inner.column[v]+" = outside."+inner.column[v])
		}
		return "SELECT 1 FROM " + inner.name + " inside WHERE " + strings.Join(parts, " AND ")
	}
	sequence := o.column[vSequence]
	for _, c := range []struct {
		outside *table
		where   string
		missing string
	}{
		{o, o.column[vChangedAt] + " > 0 AND NOT EXISTS (" + on(h, "inside."+sequence+" = outside."+sequence) + ")", "has no history row"},
		{h, "NOT EXISTS (" + on(o, "inside."+sequence+" >= outside."+sequence) + ") AND EXISTS (SELECT 1 FROM " + o.name + " other WHERE other." +
			o.column[vChangedAt] + " > 0 AND other." + o.column[vMachine] + " = outside." + h.column[vMachine] + ")", "has a history row and no record"},
	} {
		st := &statement{text: "SELECT " + o.column[vMachine] + ", " + o.column[vID] + ", " + sequence +
			" FROM " + c.outside.name + " outside WHERE " + c.where + " LIMIT 1"}
		err := r.query(ctx, st, nil, func(rows *sql.Rows) error {
			var key lifecycle.Key
			var n uint64
			if err := rows.Scan(&key.Machine, &key.ID, &n); err != nil {
				return err
			}
			return notOneBackup(key, fmt.Sprintf("%s of sequence number %d", c.missing, n))
		})
		if errors.Is(err, ErrHistory) {
			return err
		}
		if err != nil {
			return failed(ctx, err)
		}
	}
	return nil
}

// notOneBackup returns the error of an object whose record and history do not fit.
func notOneBackup(key lifecycle.Key, what string) error {
	return fmt.Errorf("%w: %s %.300q %s: restore all tables from one backup", ErrHistory, key.Machine, key.ID, what)
}
