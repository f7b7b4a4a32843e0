package sqlstore

import (
	"context"
	"database/sql"

	"github.com/interlock-go/interlock/lifecycle"
)

// History implements [lifecycle.Historian]. Rows are kept until the caller deletes
// them, for example by [Store.Trim].
func (s *Store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) (list []lifecycle.HistoryRow, err error) {
	if err := s.checkKey(key); err != nil || limit <= 0 || after > maxNumber {
		return nil, err
	}
	l := s.of(key.Machine)
	b := &builder{e: s.e, l: l}
	b.selectHistory(vSequence, vRevision, vToken, vOperation, vFromState, vFromOrigin, vTo, vToOrigin, vEvent, vActor, vReason, vNow)
	sequence := l.history.column[vSequence]
	b.add(" AND ", sequence, " > ", b.literal(int64(after)), " ORDER BY ", sequence, " LIMIT ", b.literal(int64(limit)))
	st := b.statement()
	vals := &vector{vMachine: key.Machine, vID: key.ID}
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, vals.args(st, 0), func(rows *sql.Rows) error {
			h := lifecycle.HistoryRow{Key: key}
			var sequence, rev, operation, at int64
			var token []byte
			err := rows.Scan(&sequence, &rev, &token, &operation, &h.From, &h.FromOrigin, &h.To, &h.Origin,
				&h.Event, (*string)(&h.Actor), &h.Reason, &at)
			h.Sequence, h.Operation, h.At = uint64(sequence), lifecycle.OpID(operation), clock(at)
			if l.history.column[vRevision] != "" {
				h.Revision = l.revision(rev, token)
			}
			copy(h.Token[:], token)
			for v, name := range map[value]*string{vFromState: &h.From, vFromOrigin: &h.FromOrigin, vTo: &h.To, vToOrigin: &h.Origin} {
				l.history.readTyped(v, name)
			}
			list = append(list, h)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
