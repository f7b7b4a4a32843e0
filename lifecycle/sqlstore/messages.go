package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// perStatement is the number of messages that one statement writes or deletes.
const perStatement = 100

// Messages implements [lifecycle.Outbox]. The messages come in order of their
// numbers. A commit draws its numbers after it has locked the rows of its objects:
// messages of one object, and of commits one of which began after the other was
// acknowledged, are in the order of the commits.
func (s *Store) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	b := &builder{engine: s.e, layout: s.own}
	st := b.statement("SELECT number, topic, subject, payload FROM ", s.table("messages"),
		" ORDER BY number LIMIT ", b.literal(int64(max(limit, 0))))
	return collect(ctx, s, st, nil, func(rows *sql.Rows) (m lifecycle.OutboxMessage, err error) {
		err = rows.Scan(&m.Number, &m.Topic, &m.Key, &m.Payload)
		return m, err
	})
}

// Discard implements [lifecycle.Outbox]. After an error some messages may be
// discarded.
func (s *Store) Discard(ctx context.Context, numbers ...uint64) error {
	err := s.call(ctx, func() error {
		for list := range slices.Chunk(numbers, perStatement) {
			err := s.do(ctx, s.own, func(b *builder) string {
				return "DELETE FROM " + s.table("messages") + " WHERE number IN (" + literals(list, func(number uint64) string {
					return b.literal(int64(min(number, maxNumber))) // no message has that number
				}) + ")"
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s.refusal(ctx, err)
}
