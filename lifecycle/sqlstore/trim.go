package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// leastKept is the least number of newest rows that [Store.Trim] keeps of every object. The
// store needs them to find a commit by its token.
const leastKept = 8

// mostKept is more rows than any object has: the sum of it and a sequence number fits into a
// column.
const mostKept = math.MaxInt64 / 2

// Trim deletes history rows that are older than age by the store's clock. It keeps
// the newest rows of every object: keep of them, or eight if that is more. The
// rows of an object are deleted from the oldest on, without a gap. Trim returns the
// number of deleted rows, also with an error; another Trim deletes the rest.
//
// Trim reads the rows that were written, and those that have become old, since the last
// Trim that ended without an error, and no others. It reads the whole history the first
// time, with a smaller keep than the last time, after [AfterRestore], and always in an
// [ExistingHistory]. It deletes a few hundred rows per statement. Other calls continue
// meanwhile, and several processes may trim at once. A commit whose row is deleted cannot
// be found by its token: sent again it is a conflict, or an unknown outcome if an answer
// was lost, but it is never written twice. Choose an age longer than any caller retries a
// commit, and longer than any client repeats a request: the request of a deleted row is a
// new one. Messages stay. Rows of a transaction that took longer than ten minutes are
// deleted after the next change of the object.
//
// Errors: [lifecycle.ErrInvalid] for an age that is not above 0;
// the errors of the driver and the context.
func (s *Store) Trim(ctx context.Context, age time.Duration, keep int) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("%w: trim history: age %v is not above 0", lifecycle.ErrInvalid, age)
	}
	var last, now trimmed
	err = s.call(ctx, func() (err error) {
		at, err := s.now(ctx)
		if err != nil {
			return err
		}
		now.at = at.UnixMicro()
		st := &statement{text: "SELECT trimmed_at, trimmed_to, trimmed_keep FROM " + s.table("schema")}
		return s.query(ctx, st, nil, into(&last.at, &last.to, &last.keep))
	})
	if err != nil {
		return 0, s.refusal(ctx, err)
	}
	now.to, now.keep = now.at-age.Microseconds(), min(max(int64(keep), leastKept), mostKept)
	for _, l := range s.layouts {
		if l != s.own && !l.history.existing {
			continue
		}
		find := []*statement{s.excess(l, &now, "older", 0)}
		if l == s.own && last.at != 0 && last.keep <= now.keep {
			find = []*statement{s.excess(l, &now, "older", last.to), s.excess(l, &now, "newer", last.at)}
		}
		n := 0 // rows of this table
		for _, st := range find {
			if err := s.trim(ctx, l, st, &n); err != nil {
				return deleted + n, err
			}
		}
		deleted += n
	}
	err = s.call(ctx, func() error {
		return s.do(ctx, s.own, func(b *builder) string {
			return "UPDATE " + s.table("schema") + " SET trimmed_at = " + b.literal(now.at) +
				", trimmed_to = " + b.literal(now.to) + ", trimmed_keep = " + b.literal(now.keep)
		})
	})
	return deleted, s.refusal(ctx, err)
}

const (
	trimObjects = 10_000 // objects per query
	trimRows    = 500    // rows per statement
	// trimOverlap is how long before the last Trim rows are read again: they have the time
	// of their statement, and are seen only after the end of their transaction.
	trimOverlap = 10 * time.Minute
)

// trimmed is a Trim that has ended: at the time at, no row older than the time to was
// left but the newest of every object, keep of them. Zero: there was none.
type trimmed struct{ at, to, keep int64 }

// now returns the time of the store's clock.
func (s *Store) now(ctx context.Context) (at time.Time, err error) {
	if !s.e.ownClock {
		return time.Now().UTC().Truncate(time.Microsecond), nil
	}
	err = s.query(ctx, &statement{text: "SELECT " + s.e.now}, nil, into(&cell{in: &at}))
	return at, err
}

// excess returns a query of the objects with an older row that may be deleted, because it is
// old, and a newer one that is keep changes later; and of the number below which rows may be
// deleted. since: one of the two rows, which side names, has at least this time. After a Trim,
// only these were not examined then: rows that have become old, and rows that were written.
func (s *Store) excess(l *layout, now *trimmed, side string, since int64) *statement {
	h := &l.history
	b := &builder{engine: s.e, layout: l, from: h, reads: []value{vID}}
	hints := map[string]string{}
	if since != 0 {
		hints[side] = b.useIndex(h, "_at")
	}
	id, machine := "older."+h.col(vID), "older."+h.col(vMachine)
	text := b.ordered(h, vID, id)
	if c := &h.column[vID]; c.typ != nil {
		text = b.text(c, id)
	}
	if l.machine != "" {
		machine = b.literal(l.machine)
	}
	text = "SELECT " + text + ", MAX(older." + h.col(vSequence) + ") + 1, " + machine +
		" FROM " + h.name + " older" + hints["older"] + " JOIN " + h.name + " newer" + hints["newer"] +
		" ON newer." + h.col(vSequence) + " = older." + h.col(vSequence) + " + " + b.literal(now.keep)
	for _, v := range h.named(vMachine, vID) {
		newer, older := "newer."+h.col(v), "older."+h.col(v)
		text += " AND " + newer + " = " + older
		if h.existing {
			text += " AND " + b.ordered(h, v, newer) + " = " + b.ordered(h, v, older)
		}
	}
	text += " WHERE older." + h.col(vNow) + " < " + b.time(h, b.literal(now.to))
	if since != 0 {
		text += " AND " + side + "." + h.col(vNow) + " >= " + b.time(h, b.literal(since-trimOverlap.Microseconds()))
	}
	if l.machine != "" && h.col(vMachine) != "" {
		text += " AND older." + h.col(vMachine) + " = " + b.literal(l.machine)
	}
	text += " GROUP BY "
	if l.machine == "" {
		text += machine + ", "
	}
	return b.statement(text, b.ordered(h, vID, id), " LIMIT ", b.literal(int64(trimObjects)))
}

// excessive are the rows of an object that may be deleted: sequence numbers below end.
type excessive struct {
	lifecycle.Key
	end int64
}

// trim deletes the rows of the objects that a query finds, and adds their number to deleted.
// Rows that are added meanwhile are newer than all of these. It ends when a query finds the same
// objects again: another Trim may have deleted the rows of a whole page.
func (s *Store) trim(ctx context.Context, l *layout, find *statement, deleted *int) error {
	for last := []excessive(nil); ; {
		list, err := collect(ctx, s, find, nil, func(rows *sql.Rows) (x excessive, err error) {
			r, err := find.scan(rows, &x.end, &x.Machine)
			x.ID = r.ID
			return x, err
		})
		if err != nil || len(list) > 0 && slices.Equal(list, last) {
			return err
		}
		last = list
		for _, x := range list {
			if _, err := l.history.column[vID].write(x.ID); err != nil {
				continue // the rows are from before the library, see UUID
			}
			if err := s.deleteRows(ctx, l, x, deleted); err != nil {
				return err
			}
			s.config.Progress("delete rows of "+s.e.unquoted(l.history.name), *deleted, 0)
		}
		if len(list) < trimObjects {
			return nil
		}
	}
}

// deleteRows deletes the excessive rows of an object.
func (s *Store) deleteRows(ctx context.Context, l *layout, x excessive, deleted *int) error {
	h, of := &l.history, &row{StoredRecord: lifecycle.StoredRecord{Key: x.Key}}
	oldest := s.e.build(l, func(b *builder) string {
		return "SELECT COALESCE(MIN(" + h.col(vSequence) + "), 0) FROM " + h.name + " WHERE " + b.key(h)
	})
	var first int64
	err := s.call(ctx, func() error { return s.query(ctx, oldest, of, into(&first)) })
	for ; err == nil && first < x.end; first += trimRows {
		st := s.e.build(l, func(b *builder) string {
			end := min(x.end, first+trimRows)
			return "DELETE FROM " + h.name + " WHERE " + b.key(h) + " AND " + h.col(vSequence) + " < " + b.literal(end)
		})
		err = s.call(ctx, func() error {
			result, err := s.exec(ctx, st, of)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			*deleted += int(n)
			return err
		})
	}
	return s.refusal(ctx, err)
}
