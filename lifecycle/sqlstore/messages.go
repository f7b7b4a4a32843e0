package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// perStatement is the number of messages that one statement writes or deletes.
const perStatement = 100

// Messages implements [lifecycle.Outbox]. The messages come in order of their
// numbers. A commit draws its numbers after it has locked the rows of its objects:
// messages of one object, and of commits one of which began after the other was
// acknowledged, are in the order of the commits.
func (s *Store) Messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	if limit <= 0 {
		return nil, nil
	}
	b, q := &builder{e: s.e, l: s.own}, s.e.quoted
	b.add("SELECT ", q("number"), ", ", q("topic"), ", ", q("subject"), ", ", q("payload"), " FROM ", s.messages,
		" ORDER BY ", q("number"), " LIMIT ", b.literal(int64(limit)))
	st := b.statement()
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, st.args, func(rows *sql.Rows) error {
			var m lifecycle.OutboxMessage
			var number int64
			err := rows.Scan(&number, &m.Topic, &m.Key, &m.Payload)
			m.Number = uint64(number)
			list = append(list, m)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Discard implements [lifecycle.Outbox]. After an error some messages may be
// discarded.
func (s *Store) Discard(ctx context.Context, numbers ...uint64) error {
	return s.call(ctx, func(in *session) error {
		for list := range slices.Chunk(numbers, perStatement) {
			b := &builder{e: s.e, l: s.own}
			places := make([]string, len(list))
			for i, number := range list {
				places[i] = b.literal(int64(min(number, maxNumber))) // no message has that number
			}
			b.add("DELETE FROM ", s.messages, " WHERE ", s.e.quoted("number"), " IN (", strings.Join(places, ", "), ")")
			st := b.statement()
			if _, err := in.exec(ctx, st, st.args); err != nil {
				return err
			}
		}
		return nil
	})
}

// addMessages writes the messages of a commit.
func (s *session) addMessages(ctx context.Context, messages []lifecycle.Message) error {
	q := s.e.quoted
	for list := range slices.Chunk(messages, perStatement) {
		b := &builder{e: s.e, l: s.own}
		rows := make([]string, len(list))
		for i, m := range list {
			rows[i] = "(" + b.literal(cleaned(m.Topic)) + ", " + b.literal(cleaned(m.Key)) + ", " + b.literal(m.Payload) + ")"
		}
		b.add("INSERT INTO ", s.messages, " (", q("topic"), ", ", q("subject"), ", ", q("payload"), ") VALUES ", strings.Join(rows, ", "))
		st := b.statement()
		if _, err := s.exec(ctx, st, st.args); err != nil {
			return err
		}
	}
	return nil
}
