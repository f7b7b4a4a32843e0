package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Recent implements [lifecycle.Follower]. It reads the history rows of all machines since
// that time, by the index on their time; an [ExistingHistory] needs an index of its own
// for that. Ids are in the order of [Store.List]. An index on machine and time would make
// every commit write more, to save a query the few milliseconds for thousands of rows of
// other machines.
func (s *Store) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) (list []lifecycle.ChangedObject, err error) {
	l := s.of(machine)
	if err := l.history.checkTyped(vID, after); err != nil || limit <= 0 {
		return nil, err
	}
	st := s.recent(l, machine, within, after, limit)
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, st.args, func(rows *sql.Rows) error {
			var o lifecycle.ChangedObject
			var sequence int64
			err := rows.Scan(&o.ID, &sequence)
			o.Sequence = uint64(sequence)
			l.history.readTyped(vID, &o.ID)
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
func (s *shared) recent(l *layout, machine string, within time.Duration, after string, limit int) *statement {
	b := &builder{e: s.e, l: l}
	h := &l.history
	text := "found.id" // PostgreSQL takes a bare id in ORDER BY for the text of the result
	if h.types[vID] != nil {
		text = fmt.Sprintf(s.e.asText, text)
	}
	b.add("SELECT ", text, ", MAX(sequence) FROM (SELECT ", b.ordered(h, vID, h.column[vID]), " AS id, ", h.column[vSequence], " AS sequence FROM ", h.name)
	b.hintIndex(h, vNow)
	b.add(" WHERE ", h.column[vNow], " >= ", b.time(h, b.clock()+" - "+b.literal(micros(within))))
	if h.column[vMachine] != "" {
		b.add(" AND ", b.ordered(h, vMachine, h.column[vMachine]), " = ", b.literal(machine))
	}
	b.add(s.e.fence, ") found")
	if after != "" {
		b.add(" WHERE found.id > ", b.literalIn(h, vID, after))
	}
	b.add(" GROUP BY found.id ORDER BY found.id LIMIT ", b.literal(int64(limit)))
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
