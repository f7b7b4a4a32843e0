package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// LeastKept is the least number of newest rows that [Store.Trim] keeps of every
// object. The store needs them to find a commit by its token.
const LeastKept = 8

// Trim deletes history rows that are older than age by the store's clock. It keeps
// the newest rows of every object: keep of them, or [LeastKept] if that is more. The
// rows of an object are deleted from the oldest on, without a gap. Trim returns the
// number of deleted rows, also with an error; another Trim deletes the rest.
//
// Trim reads the rows that were written, and those that have become old, since the last
// Trim that ended without an error, and no others. It reads the whole history the first
// time, with a smaller keep than the last time, after [AfterRestore], always in tables of
// version 1, and always in an [ExistingHistory]. It deletes a few hundred rows per
// statement. Other calls go on meanwhile, and several processes may trim at once. A
// commit whose row is deleted cannot be found by its token: sent again it is a
// conflict, or an unknown outcome if an answer was lost, but it is never written
// twice. Choose an age longer than any caller retries a commit, and longer than any
// client repeats a request: the request of a deleted row is a new one. Messages stay. Rows of a
// transaction that took longer than ten minutes are deleted after the next change of the
// object.
//
// Errors: [lifecycle.ErrInvalid] for an age that is not above 0;
// the errors of the driver and the context.
func (s *Store) Trim(ctx context.Context, age time.Duration, keep int) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("%w: trim history: age %v is not above 0", lifecycle.ErrInvalid, age)
	}
	var last, now trimmed
	err = s.call(ctx, func(in *session) (err error) {
		if now.at, err = in.now(ctx); err == nil {
			last, err = in.lastTrim(ctx)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	now.to, now.keep = now.at-micros(age), int64(max(keep, LeastKept))
	for l := range s.layouts() {
		if l != s.own && !l.history.existing {
			continue
		}
		n, err := s.trimHistory(ctx, l, &now, &last)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, s.noteTrim(ctx, &now)
}

// trimHistory trims one table. The last Trim counts for the store's own history only.
func (s *Store) trimHistory(ctx context.Context, l *layout, now, last *trimmed) (deleted int, err error) {
	if l.history.existing {
		last = &trimmed{}
	}
	find := []*statement{s.agedRows(l, now, last)}
	if last.at != 0 && last.keep <= now.keep {
		find = append(find, s.newRows(l, now, last))
	}
	for _, st := range find {
		if deleted, err = s.trim(ctx, l, st, deleted); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
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

// marksTrims reports whether the tables have a place for the last Trim.
func (s *shared) marksTrims() bool { return s.own.version >= 2 }

// now returns the time of the store's clock.
func (s *session) now(ctx context.Context) (micros int64, err error) {
	if !s.e.ownClock {
		return time.Now().UnixMicro(), nil
	}
	err = s.query(ctx, s.own.st.clock, nil, func(rows *sql.Rows) error { return rows.Scan(&micros) })
	return micros, err
}

func (s *session) lastTrim(ctx context.Context) (last trimmed, err error) {
	if !s.marksTrims() {
		return last, nil
	}
	st := &statement{text: "SELECT trimmed_at, trimmed_to, trimmed_keep FROM " + s.e.quoted(s.config.Prefix+"schema")}
	err = s.query(ctx, st, nil, func(rows *sql.Rows) error { return rows.Scan(&last.at, &last.to, &last.keep) })
	return last, err
}

func (s *Store) noteTrim(ctx context.Context, now *trimmed) error {
	if !s.marksTrims() {
		return nil
	}
	b := &builder{e: s.e, l: s.own}
	b.add("UPDATE ", s.e.quoted(s.config.Prefix+"schema"), " SET trimmed_at = ", b.literal(now.at), ", trimmed_to = ", b.literal(now.to),
		", trimmed_keep = ", b.literal(now.keep))
	st := b.statement()
	return s.call(ctx, func(in *session) error {
		_, err := in.exec(ctx, st, st.args)
		return err
	})
}

// agedRows returns a query of the objects with rows that are old and not among the newest,
// and of the number below which rows may be deleted. If there was a Trim, older rows were
// examined then.
func (s *Store) agedRows(l *layout, now, last *trimmed) *statement {
	b := &builder{e: s.e, l: l}
	h := &l.history
	since := last.at != 0 && last.keep <= now.keep
	b.outerRows("MAX("+h.column[vSequence]+") + 1", since)
	b.add(" WHERE ", h.column[vNow], " < ", b.time(h, b.literal(now.to)))
	if since {
		b.add(" AND ", h.column[vNow], " >= ", b.time(h, b.literal(last.to-trimOverlap.Microseconds())))
	}
	b.add(" AND EXISTS (SELECT 1")
	b.innerRow(now.keep)
	b.add(")")
	b.groups()
	return b.statement()
}

// newRows returns a query of the objects with rows that are no longer among the newest,
// because of rows that were written since the last Trim.
func (s *Store) newRows(l *layout, now, last *trimmed) *statement {
	b := &builder{e: s.e, l: l}
	h := &l.history
	b.outerRows("MAX("+h.column[vSequence]+") + 1 - "+b.literal(now.keep), true)
	b.add(" WHERE ", h.column[vNow], " >= ", b.time(h, b.literal(last.at-trimOverlap.Microseconds())), " AND (SELECT inside.", h.column[vNow])
	b.innerRow(-now.keep)
	b.add(") < ", b.time(h, b.literal(now.to)))
	b.groups()
	return b.statement()
}

// outerRows begins a query of history rows, which is grouped by object.
func (b *builder) outerRows(end string, byTime bool) {
	h := &b.l.history
	machine := h.column[vMachine]
	if b.l.machine != "" {
		machine = b.literal(b.l.machine)
	}
	id := b.ordered(h, vID, h.column[vID])
	if h.types[vID] != nil {
		id = b.read(h, vID)
	}
	b.add("SELECT ", end, ", ", machine, ", ", id, " FROM ", h.name, " outside")
	if byTime {
		b.hintIndex(h, vNow)
	}
}

// innerRow writes the selection of the row of the same object at a distance. It is one
// look-up by the key.
func (b *builder) innerRow(distance int64) {
	h := &b.l.history
	b.add(" FROM ", h.name, " inside WHERE inside.", h.column[vSequence], " = outside.", h.column[vSequence], " + ", b.literal(distance))
	for _, v := range h.named(vMachine, vID) {
		inside, outside := "inside."+h.column[v], "outside."+h.column[v]
		b.add(" AND ", inside, " = ", outside)
		if h.existing {
			b.add(" AND ", b.ordered(h, v, inside), " = ", b.ordered(h, v, outside))
		}
	}
}

// groups ends the query.
func (b *builder) groups() {
	h := &b.l.history
	if b.l.machine != "" && h.column[vMachine] != "" {
		b.add(" AND ", h.column[vMachine], " = ", b.literal(b.l.machine))
	}
	b.add(" GROUP BY ")
	if b.l.machine == "" {
		b.add(h.column[vMachine], ", ")
	}
	b.add(b.ordered(h, vID, h.column[vID]), " LIMIT ", b.literal(int64(trimObjects)))
}

// excess are the rows of an object that may be deleted: sequence numbers below end.
type excess struct {
	lifecycle.Key
	end int64
}

// trim deletes the rows of the objects that a query finds, and returns the number of deleted
// rows of the table, with those before. Rows that are added meanwhile are newer than all of
// these. It ends when a query finds the same objects again: another Trim may have deleted the
// rows of a whole page.
func (s *Store) trim(ctx context.Context, l *layout, find *statement, before int) (deleted int, err error) {
	deleted = before
	for last := []excess(nil); ; {
		var list []excess
		err := s.call(ctx, func(in *session) error {
			list = nil
			return in.query(ctx, find, find.args, func(rows *sql.Rows) error {
				var x excess
				err := rows.Scan(&x.end, &x.Machine, &x.ID)
				l.history.readTyped(vID, &x.ID)
				list = append(list, x)
				return err
			})
		})
		if err != nil {
			return deleted, err
		}
		if len(list) > 0 && slices.Equal(list, last) {
			return deleted, nil
		}
		last = list
		for _, x := range list {
			n, err := s.deleteRows(ctx, l, x)
			deleted += n
			if err != nil {
				return deleted, err
			}
			s.config.Progress("delete rows of "+s.e.unquoted(l.history.name), deleted, 0)
		}
		if len(list) < trimObjects {
			return deleted, nil
		}
	}
}

// deleteRows deletes the excess rows of an object.
func (s *Store) deleteRows(ctx context.Context, l *layout, x excess) (deleted int, err error) {
	h, vals := &l.history, &vector{vMachine: x.Machine, vID: x.ID}
	b := &builder{e: s.e, l: l}
	b.add("SELECT COALESCE(MIN(", h.column[vSequence], "), 0) FROM ", h.name, " WHERE ", b.key(h))
	oldest, first := b.statement(), int64(0)
	err = s.call(ctx, func(in *session) error {
		return in.query(ctx, oldest, vals.args(oldest, 0), func(rows *sql.Rows) error { return rows.Scan(&first) })
	})
	for ; err == nil && first < x.end; first += trimRows {
		b := &builder{e: s.e, l: l}
		b.add("DELETE FROM ", h.name, " WHERE ", b.key(h), " AND ", h.column[vSequence], " < ", b.literal(min(x.end, first+trimRows)))
		st := b.statement()
		err = s.call(ctx, func(in *session) error {
			result, err := in.exec(ctx, st, vals.args(st, 0))
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			deleted += int(n)
			return err
		})
	}
	return deleted, err
}
