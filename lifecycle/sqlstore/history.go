package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// History implements [lifecycle.Historian]. Rows are kept until the caller deletes
// them, for example by [Store.Trim].
func (s *Store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	l := s.of(key.Machine)
	h := &l.history
	b := &builder{engine: s.e, layout: l}
	st := b.statement("SELECT ", b.read(h, h.all()), " FROM ", h.name, " WHERE ", b.key(h), " AND ",
		h.col(vSequence), " > ", b.literal(int64(min(after, maxNumber))), " ORDER BY ", h.col(vSequence), " LIMIT ", b.literal(int64(max(limit, 0))))
	of := &row{StoredRecord: lifecycle.StoredRecord{Key: key}}
	return collect(ctx, s, st, of, func(rows *sql.Rows) (lifecycle.HistoryRow, error) {
		h, err := st.historyRow(rows)
		h.Key = key
		return h, err
	})
}

// Requested implements [lifecycle.Historian]. It returns [errors.ErrUnsupported] for an
// [ExistingHistory].
func (s *Store) Requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	if s.of(machine).history.existing {
		return row, errRequests
	}
	err = s.call(ctx, func() (err error) {
		row, err = s.requested(ctx, machine, request)
		return err
	})
	return row, s.refusal(ctx, err)
}

var errRequests = fmt.Errorf("%w: a request id: the history has no column for it", errors.ErrUnsupported)

// requested returns the row with a request, or the zero row.
func (s *Store) requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	l := s.of(machine)
	h := &l.history
	b := &builder{engine: s.e, layout: l}
	st := b.statement("SELECT ", b.read(h, h.all()), " FROM ", h.name, " WHERE ", h.col(vMachine), " = ", b.literal(machine),
		" AND ", h.col(vRequest), " = ", b.literal(request))
	err = s.query(ctx, st, nil, func(rows *sql.Rows) (err error) {
		row, err = st.historyRow(rows)
		return err
	})
	return row, err
}

// historyRow reads a history row.
func (st *statement) historyRow(rows *sql.Rows) (h lifecycle.HistoryRow, err error) {
	r, err := st.scan(rows)
	if err != nil {
		return h, err
	}
	h = lifecycle.HistoryRow{
		Key: lifecycle.Key{Machine: cmp.Or(r.Machine, st.layout.machine), ID: r.ID}, Sequence: r.Sequence,
		Revision: st.layout.revision(r.number, r.token), Operation: r.Operation,
		From: r.from, FromOrigin: r.fromOrigin, To: r.to, Origin: r.toOrigin, Event: r.Event, Actor: r.Actor, Reason: r.Reason,
		At: r.at, Version: r.Version, Request: r.request.String, Fingerprint: r.fingerprint.String,
	}
	copy(h.Token[:], r.token)
	if st.from.col(vFromOrigin) == "" {
		h.FromOrigin = h.From
	}
	if st.from.col(vToOrigin) == "" {
		h.Origin = h.To
	}
	return h, nil
}

// Recent implements [lifecycle.Follower]. It reads the history rows of all machines since
// that time, by the index on their time; an [ExistingHistory] needs an index of its own
// for that. An index on machine and time would make every commit write more, to save a query
// the few milliseconds for thousands of rows of other machines. Ids are in bytewise order; in
// an ExistingHistory whose ids have a [Type], in the order of the column.
//
// PostgreSQL has no index hints: it might read the whole history in order of id, in the hope
// that the page is full soon. The rows are therefore found in a subquery of its own.
func (s *Store) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) ([]lifecycle.ChangedObject, error) {
	l := s.of(machine)
	h := &l.history
	if err := s.e.checkCursor(&h.column[vID], after); err != nil {
		return nil, err
	}
	b := &builder{engine: s.e, layout: l, from: h, reads: []value{vID, vSequence}}
	text := "found.id" // PostgreSQL takes a bare id in ORDER BY for the text of the result
	if c := &h.column[vID]; c.typ != nil {
		text = b.text(c, text)
	}
	text = "SELECT " + text + ", MAX(sequence) FROM (SELECT " + b.ordered(h, vID, h.col(vID)) + " AS id, " + h.col(vSequence) +
		" AS sequence FROM " + h.name + b.useIndex(h, "_at") + " WHERE " + h.col(vNow) + " >= " + b.ago(h, within)
	if h.col(vMachine) != "" {
		text += " AND " + b.ordered(h, vMachine, h.col(vMachine)) + " = " + b.literal(machine)
	}
	text += s.e.fence + ") found"
	if after != "" {
		text += " WHERE found.id > " + b.placeIn(h, vID, after)
	}
	st := b.statement(text, " GROUP BY found.id ORDER BY found.id LIMIT ", b.literal(int64(max(limit, 0))))
	return collect(ctx, s, st, nil, func(rows *sql.Rows) (lifecycle.ChangedObject, error) {
		r, err := st.scan(rows)
		return lifecycle.ChangedObject{ID: r.ID, Sequence: r.Sequence}, err
	})
}
