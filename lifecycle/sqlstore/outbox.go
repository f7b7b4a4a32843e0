package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/interlock-go/interlock/lifecycle"
)

// Messages implements [lifecycle.Outbox].
func (s *Store) Messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	err = s.call(ctx, func(in *session) error {
		list, err = in.messages(ctx, limit)
		return err
	})
	return list, err
}

// Discard implements [lifecycle.Outbox]. After an error some may be discarded.
func (s *Store) Discard(ctx context.Context, numbers ...uint64) error {
	return s.call(ctx, func(in *session) error { return in.discard(ctx, numbers) })
}

// messages reads in order of number. Numbers are drawn after the rows of the
// objects are locked, so that those of one object, and those of commits one of
// which began after the other was acknowledged, are in the order of the commits.
func (s *session) messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	if s.l.messages == "" {
		return nil, errors.ErrUnsupported
	}
	if limit <= 0 {
		return nil, nil
	}
	b := &builder{e: s.e}
	q := s.e.quoted
	b.write("SELECT ", q("number"), ", ", q("topic"), ", ", q("subject"), ", ", q("payload"), " FROM ", s.l.messages,
		" ORDER BY ", q("number"), " LIMIT ", b.arg(vNow))
	rows, err := s.q.QueryContext(ctx, b.text.String(), int64(limit))
	err = each(rows, err, func(rows *sql.Rows) error {
		var m lifecycle.OutboxMessage
		var number int64
		err := rows.Scan(&number, &m.Topic, &m.Key, &m.Payload)
		m.Number = uint64(number)
		list = append(list, m)
		return err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	return list, nil
}

func (s *session) discard(ctx context.Context, numbers []uint64) error {
	const atOnce = 500
	if s.l.messages == "" {
		return errors.ErrUnsupported
	}
	for len(numbers) > 0 {
		n := min(len(numbers), atOnce)
		b := &builder{e: s.e}
		b.write("DELETE FROM ", s.l.messages, " WHERE ", s.e.quoted("number"), " IN (")
		args := make([]any, n)
		for i, number := range numbers[:n] {
			if i > 0 {
				b.write(", ")
			}
			b.write(b.arg(vNow))
			args[i] = int64(min(number, maxNumber)) // there is none beyond
		}
		b.write(")")
		if _, err := s.q.ExecContext(ctx, b.text.String(), args...); err != nil {
			return failed(ctx, err)
		}
		numbers = numbers[n:]
	}
	return nil
}
