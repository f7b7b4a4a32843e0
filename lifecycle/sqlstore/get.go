package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (r lifecycle.StoredRecord, err error) {
	if err := checkKey(key); err != nil {
		return r, err
	}
	err = s.call(ctx, func() (err error) {
		r, _, err = s.record(ctx, s.of(key.Machine), key, false)
		return err
	})
	if err != nil {
		return r, s.refusal(ctx, err)
	}
	return r, nil
}

// record reads the record of a key in the tables of a layout, and locks its row on demand. The
// record of an object without a row has the numbers with which a new record continues.
func (s *Store) record(
	ctx context.Context, l *layout, key lifecycle.Key, locked bool,
) (r lifecycle.StoredRecord, exists bool, err error) {
	st := l.st.get
	if locked {
		st = l.st.getLocked
	}
	of := &row{StoredRecord: lifecycle.StoredRecord{Key: key}}
	for {
		err := s.query(ctx, st, of, func(rows *sql.Rows) (err error) {
			exists = true
			r, err = st.record(rows)
			r.Key = key
			return err
		})
		if err != nil || exists {
			return r, exists, err
		}
		// A key that has neither a row nor a history.
		operation := lifecycle.OpID(l.floor)
		if l.objects.col(vOperation) == "" { // a new object could not have a number that continues
			operation = 0
		}
		r = lifecycle.StoredRecord{Key: key, Sequence: l.floor, Operation: operation, Revision: l.revision(l.floor, nil)}
		if l.st.lastRow == nil {
			return r, false, nil
		}
		// Another commit may create the object between the two queries. The last
		// history row then belongs to an object that exists, and the loop reads again.
		created := false
		err = s.query(ctx, l.st.lastRow, of, func(rows *sql.Rows) error {
			h, err := l.st.lastRow.scan(rows, &created)
			if err != nil {
				return err
			}
			r.Revision, r.Sequence = l.revision(max(h.number, l.floor), h.token), h.Sequence
			r.Operation, r.ChangedAt = max(h.Operation, operation), h.at
			r.Actor, r.Event, r.Reason = h.Actor, h.Event, h.Reason
			return nil
		})
		if err != nil || !created || locked {
			return r, false, err
		}
	}
}

// statement is the text of a statement and its arguments. A param stands for a value; any
// other argument is literal.
type statement struct {
	text string
	args []any

	layout *layout
	from   *table  // what a query of rows reads, and
	reads  []value // the columns that begin its result
}

// param is a value of a row.
type param struct {
	v  value
	in *column // whose type it gets; nil: it stays
}

// query executes a query and calls scan for every row. An engine may report an error
// after the last row.
func (s *Store) query(ctx context.Context, st *statement, of *row, scan func(*sql.Rows) error) error {
	args, err := st.bind(of)
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if p := s.prepared[st]; p != nil && s.tx == nil {
		rows, err = s.stmt(ctx, p).QueryContext(ctx, args...)
	} else {
		rows, err = s.q.QueryContext(ctx, st.text, args...)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			if ctx.Err() == nil && classify(err) == noAnswer {
				err = fmt.Errorf("%w: %w", errRead, err)
			}
			return err
		}
	}
	return cmp.Or(rows.Err(), rows.Close())
}

// exec executes a statement without a result. A transaction of the caller has no prepared
// statements: to prepare one there may need a second connection.
func (s *Store) exec(ctx context.Context, st *statement, of *row) (sql.Result, error) {
	args, err := st.bind(of)
	if err != nil {
		return nil, err
	}
	if p := s.prepared[st]; p != nil && s.tx == nil {
		return s.stmt(ctx, p).ExecContext(ctx, args...)
	}
	return s.q.ExecContext(ctx, st.text, args...)
}

// stmt returns a prepared statement in the transaction of the store, if it has one.
func (s *Store) stmt(ctx context.Context, p *sql.Stmt) *sql.Stmt {
	if tx, ok := s.q.(*sql.Tx); ok {
		return tx.StmtContext(ctx, p)
	}
	return p
}

// bind returns the arguments of a statement for a row. It matches [lifecycle.ErrInvalid] if
// the type of a column refuses a value.
func (st *statement) bind(of *row) (args []any, err error) {
	args = slices.Clone(st.args)
	var cells []any
	if of != nil {
		cells = of.cells()
	}
	for i, a := range args {
		p, ok := a.(param)
		if !ok {
			continue
		}
		args[i] = nil
		switch x := cells[p.v].(type) {
		case *string:
			args[i] = *x
		case *uint64:
			args[i] = int64(*x)
		case *[]byte:
			args[i] = *x
		case *lifecycle.Token:
			if *x != (lifecycle.Token{}) {
				args[i] = x[:]
			}
		case *time.Time:
			if !x.IsZero() {
				args[i] = x.UnixMicro()
			}
		case driver.Valuer: // NULL, a string or a number
			args[i], _ = x.Value()
		}
		if p.in != nil {
			var refused error
			args[i], refused = p.in.write(args[i])
			err = cmp.Or(err, refused)
		}
	}
	return args, err
}

// scan reads the columns of a query into a row, and the values that follow them.
func (st *statement) scan(rows *sql.Rows, after ...any) (*row, error) {
	r := &row{fields: make([]sql.NullString, len(st.from.column)-int(values))}
	in, cells := r.cells(), make([]cell, len(st.reads))
	dest := make([]any, 0, len(st.reads)+len(after))
	for i, v := range st.reads {
		cells[i].in = in[v]
		dest = append(dest, &cells[i])
	}
	err := rows.Scan(append(dest, after...)...)
	if err == nil && st.from.existing {
		st.convert(in)
	}
	return r, err
}

// record reads a record from a row of builder.record.
func (st *statement) record(rows *sql.Rows) (lifecycle.StoredRecord, error) {
	saved, l := false, st.layout
	r, err := st.scan(rows, &saved)
	if err != nil {
		return lifecycle.StoredRecord{}, err
	}
	r.Machine, r.Revision = cmp.Or(r.Machine, l.machine), l.revision(r.number, r.token)
	if len(r.fields) > 0 {
		l.objects.join(r)
	}
	switch {
	case r.State == "": // removed
		r.Version = ""
	case r.Origin == "": // another program has written the row
		r.Origin = r.State
	}
	if saved {
		r.Saved = append([]byte{}, r.Saved...)
	}
	return r.StoredRecord, nil
}

// collect returns the rows of a query.
func collect[T any](ctx context.Context, s *Store, st *statement, of *row, scan func(*sql.Rows) (T, error)) (list []T, err error) {
	err = s.call(ctx, func() error {
		list = nil
		return s.query(ctx, st, of, func(rows *sql.Rows) error {
			x, err := scan(rows)
			list = append(list, x)
			return err
		})
	})
	if err != nil {
		return nil, s.refusal(ctx, err)
	}
	return list, nil
}

// into returns the scan of the columns of a row into variables.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// do builds a statement and executes it.
func (s *Store) do(ctx context.Context, l *layout, write func(*builder) string) error {
	_, err := s.exec(ctx, s.e.build(l, write), nil)
	return err
}
