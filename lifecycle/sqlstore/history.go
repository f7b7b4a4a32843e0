package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
	b.selectHistory(rowColumns...)
	sequence := l.history.column[vSequence]
	b.add(" AND ", sequence, " > ", b.literal(int64(after)), " ORDER BY ", sequence, " LIMIT ", b.literal(int64(limit)))
	st := b.statement()
	vals := &vector{vMachine: key.Machine, vID: key.ID}
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, vals.args(st, 0), func(rows *sql.Rows) error {
			h, err := l.scanRow(rows)
			h.Key = key
			list = append(list, h)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Requested implements [lifecycle.Historian]. It returns [errors.ErrUnsupported] for
// tables of versions before 3, and for an [ExistingHistory].
func (s *Store) Requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	if s.of(machine).history.column[vRequest] == "" {
		return row, errRequests
	}
	err = s.call(ctx, func(in *session) (err error) {
		row, err = in.requested(ctx, machine, request)
		return err
	})
	return row, err
}

var errRequests = fmt.Errorf("%w: a request id: the history has no column for it", errors.ErrUnsupported)

// requested returns the row with a request, or the zero row.
func (s *session) requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	l := s.of(machine)
	h := &l.history
	b := &builder{e: s.e, l: l}
	b.fromHistory(append([]value{vID}, rowColumns...)...)
	b.add(" WHERE ", b.same(h, vMachine, vMachine), " AND ", b.same(h, vRequest, vRequest))
	st := b.statement()
	vals := &vector{vMachine: machine, vRequest: request}
	err = s.query(ctx, st, vals.args(st, 0), func(rows *sql.Rows) (err error) {
		var id string
		row, err = l.scanRow(rows, &id)
		row.Key = lifecycle.Key{Machine: machine, ID: id}
		return err
	})
	return row, err
}

// rowColumns are the columns that scanRow reads.
var rowColumns = []value{
	vSequence, vRevision, vToken, vOperation, vFromState, vFromOrigin, vTo, vToOrigin, vEvent, vActor, vReason, vNow,
	vRequest, vFingerprint,
}

// scanRow reads a history row without its key, after the given columns.
func (l *layout) scanRow(rows *sql.Rows, before ...any) (h lifecycle.HistoryRow, err error) {
	var sequence, rev, operation, at int64
	var token []byte
	err = rows.Scan(append(before, &sequence, &rev, &token, &operation, &h.From, &h.FromOrigin, &h.To, &h.Origin,
		&h.Event, (*string)(&h.Actor), &h.Reason, &at, &h.Request, &h.Fingerprint)...)
	h.Sequence, h.Operation, h.At = uint64(sequence), lifecycle.OpID(operation), clock(at)
	if l.history.column[vRevision] != "" {
		h.Revision = l.revision(rev, token)
	}
	copy(h.Token[:], token)
	for v, name := range map[value]*string{vFromState: &h.From, vFromOrigin: &h.FromOrigin, vTo: &h.To, vToOrigin: &h.Origin} {
		l.history.readTyped(v, name)
	}
	return h, err
}
