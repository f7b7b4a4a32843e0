package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// statement is the text of a statement and its arguments. A param stands for a value; any
// other argument is literal.
type statement struct {
	text string
	args []any
}

// param is a value of a change, or a name.
type param struct {
	v    value
	name any     // a string: the name; nil: it is v
	in   *column // whose type it gets; nil: it stays
}

// vector has the values of one change for every statement.
type vector []any

// ofKey returns the values of a key.
func ofKey(key lifecycle.Key) vector {
	vals := make(vector, values)
	vals[vMachine], vals[vID] = key.Machine, key.ID
	return vals
}

// collect returns the rows of a query.
func collect[T any](ctx context.Context, s *Store, st *statement, vals vector, scan func(*sql.Rows) (T, error)) (list []T, err error) {
	err = s.call(ctx, func() error {
		list = nil
		return s.query(ctx, st, vals, func(rows *sql.Rows) error {
			x, err := scan(rows)
			list = append(list, x)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// query executes a query and calls scan for every row. An engine may report an error
// after the last row.
func (s *Store) query(ctx context.Context, st *statement, vals vector, scan func(*sql.Rows) error) error {
	args, err := st.bind(vals)
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if p := s.stmt(ctx, st); p != nil {
		rows, err = p.QueryContext(ctx, args...)
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
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// into returns the scan of the columns of a row into variables.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// do builds a statement and executes it.
func (s *Store) do(ctx context.Context, l *layout, write func(*builder)) error {
	_, err := s.exec(ctx, s.e.build(l, write), nil)
	return err
}

func (s *Store) exec(ctx context.Context, st *statement, vals vector) (sql.Result, error) {
	args, err := st.bind(vals)
	if err != nil {
		return nil, err
	}
	if p := s.stmt(ctx, st); p != nil {
		return p.ExecContext(ctx, args...)
	}
	return s.q.ExecContext(ctx, st.text, args...)
}

// stmt returns the prepared form of a statement, or nil. A transaction of the caller
// has none: to prepare a statement there may need a second connection.
func (s *Store) stmt(ctx context.Context, st *statement) *sql.Stmt {
	p := s.prepared[st]
	if p == nil || s.tx != nil {
		return nil
	}
	if tx, ok := s.q.(*sql.Tx); ok {
		return tx.StmtContext(ctx, p)
	}
	return p
}

// bind returns the arguments of a statement. It matches [lifecycle.ErrInvalid] if the type
// of a column refuses a value.
func (st *statement) bind(vals vector) (args []any, err error) {
	args = slices.Clone(st.args)
	for i, a := range args {
		p, ok := a.(param)
		switch {
		case !ok:
			continue
		case p.name != nil:
			args[i] = p.name
		default:
			args[i] = vals[p.v]
		}
		if p.in != nil {
			var refused error
			args[i], refused = p.in.write(args[i])
			err = cmp.Or(err, refused)
		}
	}
	return args, err
}
