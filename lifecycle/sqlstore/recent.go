package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Recent implements [lifecycle.Follower]. It reads the history rows of all machines since
// that time, by the index on their time. An [ExistingHistory] needs such an index of its
// own, and a column for At; without the column the error is [errors.ErrUnsupported].
func (s *Store) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) (list []lifecycle.ChangedObject, err error) {
	if err := s.checkHistory(); err != nil {
		return nil, err
	}
	if s.l.history.column[vNow] == "" {
		return nil, fmt.Errorf("%w: recent changes: the history has no column for their time", errors.ErrUnsupported)
	}
	none := limit <= 0 || s.l.machine != "" && machine != s.l.machine
	err = s.call(ctx, func(in *session) error {
		list = nil
		if none {
			return nil
		}
		st := s.recent(machine, within, after, limit)
		return in.query(ctx, st, st.args, func(rows *sql.Rows) error {
			var o lifecycle.ChangedObject
			var sequence int64
			err := rows.Scan(&o.ID, &sequence)
			o.Sequence = uint64(sequence)
			list = append(list, o)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// recent returns the query of Recent. All its arguments are literals. PostgreSQL has no
// index hints: it might read the whole history in order of id, in the hope that the page
// is full soon. The rows are therefore found in a subquery of its own.
func (s *shared) recent(machine string, within time.Duration, after string, limit int) *statement {
	b := &builder{e: s.e, l: s.l}
	h := &s.l.history
	b.add("SELECT id, MAX(sequence) FROM (SELECT ", b.ordered(h, h.column[vID]), " AS id, ", h.column[vSequence], " AS sequence FROM ", h.name)
	b.hintIndex(h, vNow)
	b.add(" WHERE ", h.column[vNow], " >= ", b.time(h, b.clock()+" - "+b.literal(micros(within))))
	if h.column[vMachine] != "" {
		b.add(" AND ", b.ordered(h, h.column[vMachine]), " = ", b.literal(machine))
	}
	b.add(s.e.fence, ") found WHERE id > ", b.literal(after), " GROUP BY id ORDER BY id LIMIT ", b.literal(int64(limit)))
	return b.statement()
}

// hintIndex makes the engine use the index that begins with a column, if the table has
// one of the store's own.
func (b *builder) hintIndex(t *table, first value) {
	for name, columns := range t.indexes {
		if b.e.hint != "" && columns[0] == first {
			b.add(fmt.Sprintf(b.e.hint, b.e.quoted(name)))
		}
	}
}
