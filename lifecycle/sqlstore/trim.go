package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// LeastKept is how many of its newest rows an object keeps in the history at least,
// so that what has just been written can be told from what has not.
const LeastKept = 8

// Trim deletes rows of the history that are older than age by the store's clock,
// but the newest ones of every object, as many as keep says, or [LeastKept] if that
// is more. An object's rows go from the oldest on, so that what stays has no gap.
// It returns how many rows were deleted, also with an error; what it has not come
// to, the next call does.
//
// It reads the whole history once, by its key, and deletes a few hundred rows in a
// statement, beside which others go on writing; several processes may do it at
// once. A commit that was written, and whose row is gone, cannot be told by its
// token any more: sent again it is a conflict, or an unknown outcome if an answer
// was lost before, and never written twice. So age is to be longer than anybody
// comes back with a token. Messages are not touched.
//
// Errors: [lifecycle.ErrInvalid] for an age that is not above 0,
// [errors.ErrUnsupported] without a history; those of the driver, and of the
// context.
func (s *Store) Trim(ctx context.Context, age time.Duration, keep int) (deleted int, err error) {
	switch {
	case age <= 0:
		return 0, fmt.Errorf("%w: rows are not trimmed by age %v", lifecycle.ErrInvalid, age)
	case s.l.history == "":
		return 0, fmt.Errorf("%w: this store keeps no history", errors.ErrUnsupported)
	}
	machine, more := s.l.machine, true
	if machine == "" {
		machine, more, err = s.nextMachine(ctx, "")
	}
	for err == nil && more {
		var n int
		n, err = s.trimMachine(ctx, machine, age, max(keep, LeastKept))
		deleted += n
		if s.l.machine != "" || err != nil {
			break
		}
		machine, more, err = s.nextMachine(ctx, machine)
	}
	return deleted, err
}

// nextMachine returns the first machine after another one that the history has.
func (s *Store) nextMachine(ctx context.Context, after string) (next string, more bool, err error) {
	err = s.call(ctx, func(in *session) error {
		b := &builder{e: s.e}
		b.write("SELECT MIN(", s.l.historyColumn[hMachine], ") FROM ", s.l.history, " WHERE ", s.l.historyColumn[hMachine], " > ", b.arg(vMachine))
		var found sql.NullString
		rows, err := in.q.QueryContext(ctx, b.text.String(), after)
		err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&found) })
		next, more = found.String, found.Valid
		return failed(ctx, err)
	})
	return next, more, err
}

// excess are the rows of an object that may go: those from the first one to before
// the end.
type excess struct {
	id         string
	first, end int64
}

func (s *Store) trimMachine(ctx context.Context, machine string, age time.Duration, keep int) (deleted int, err error) {
	const objects, rows = 200, 500 // at once
	for after := ""; ; {
		var list []excess
		if err := s.call(ctx, func(in *session) error {
			list, err = in.excesses(ctx, machine, after, age, keep, objects)
			return err
		}); err != nil {
			return deleted, err
		}
		for _, x := range list {
			for ; x.first < x.end; x.first += rows {
				if err := s.call(ctx, func(in *session) error {
					n, err := in.forget(ctx, lifecycle.Key{Machine: machine, ID: x.id}, min(x.end, x.first+rows))
					deleted += n
					return err
				}); err != nil {
					return deleted, err
				}
			}
		}
		if len(list) < objects {
			return deleted, nil
		}
		after = list[len(list)-1].id
	}
}

// excesses finds objects with rows that may go. Rows that come meanwhile are newer
// than all that are found.
func (s *session) excesses(ctx context.Context, machine, after string, age time.Duration, keep, limit int) (list []excess, err error) {
	l, b := s.l, &builder{e: s.e}
	id, sequence, at := l.historyColumn[hID], l.historyColumn[hSequence], l.historyColumn[hAt]
	if l.foreignHistory {
		id = fmt.Sprintf(s.e.bytewise, id)
	}
	young := func() string {
		cutoff := b.now() + " - " + b.arg(vWithin)
		if l.foreignHistory {
			cutoff = b.stored(l, cutoff)
		}
		return at + " >= " + cutoff
	}
	b.write("SELECT ", id, ", MIN(", sequence, "), MAX(", sequence, "), COALESCE(MIN(CASE WHEN ", young(), " THEN ", sequence, " END), ", b.arg(vSequence),
		") FROM ", l.history, " WHERE ")
	if name := l.historyColumn[hMachine]; name != "" {
		b.write(name, " = ", b.arg(vMachine))
		if l.foreignHistory && s.e.exact != "" {
			b.write(fmt.Sprintf(s.e.exact, name, b.arg(vMachine)))
		}
		b.write(" AND ")
	}
	b.write(id, " > ", b.arg(vID), " GROUP BY ", id, " HAVING MAX(", sequence, ") - MIN(", sequence, ") >= ", b.arg(vExpect),
		" AND MAX(CASE WHEN ", young(), " THEN 0 ELSE 1 END) = 1 ORDER BY ", id, " LIMIT ", b.arg(vRevision))
	vals := vector{
		vMachine: machine, vID: after, vWithin: micros(age), vSequence: int64(maxNumber), vExpect: int64(keep), vRevision: int64(limit),
	}
	if !s.e.ownClock {
		vals[vNow] = processNow()
	}
	st := b.statement()
	rows, err := s.q.QueryContext(ctx, st.text, vals.of(st)...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var x excess
		var last, young int64
		err := rows.Scan(&x.id, &x.first, &last, &young)
		x.end = min(young, last-int64(keep)+1)
		list = append(list, x)
		return err
	})
	return list, failed(ctx, err)
}

// forget deletes the rows of an object before one of its numbers.
func (s *session) forget(ctx context.Context, key lifecycle.Key, before int64) (int, error) {
	b := &builder{e: s.e}
	b.write("DELETE FROM ", s.l.history, " WHERE ")
	b.historyOf(s.l)
	b.write(s.l.historyColumn[hSequence], " < ", b.arg(vSequence))
	st := b.statement()
	vals := vector{vMachine: key.Machine, vID: key.ID, vSequence: before}
	result, err := s.q.ExecContext(ctx, st.text, vals.of(st)...)
	if err != nil {
		return 0, failed(ctx, err)
	}
	n, err := result.RowsAffected()
	return int(n), failed(ctx, err)
}
