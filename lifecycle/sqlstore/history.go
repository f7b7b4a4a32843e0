package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
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
	b.add("SELECT ", b.read(h, h.all()), " FROM ", h.name, " WHERE ", b.key(h), " AND ",
		h.col(vSequence), " > ", b.literal(int64(min(after, maxNumber))), " ORDER BY ", h.col(vSequence), " LIMIT ", b.literal(int64(max(limit, 0))))
	return collect(ctx, s, b.statement(), ofKey(key), func(rows *sql.Rows) (lifecycle.HistoryRow, error) {
		row, err := l.scanRow(rows)
		row.Key = key
		return row, err
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
	return row, err
}

var errRequests = fmt.Errorf("%w: a request id: the history has no column for it", errors.ErrUnsupported)

// requested returns the row with a request, or the zero row.
func (s *Store) requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	l := s.of(machine)
	h := &l.history
	b := &builder{engine: s.e, layout: l}
	b.add("SELECT ", b.read(h, h.all()), " FROM ", h.name, " WHERE ", h.col(vMachine), " = ", b.literal(machine),
		" AND ", h.col(vRequest), " = ", b.literal(request))
	err = s.query(ctx, b.statement(), nil, func(rows *sql.Rows) (err error) {
		row, err = l.scanRow(rows)
		return err
	})
	return row, err
}

// scanRow reads a history row.
func (l *layout) scanRow(rows *sql.Rows) (row lifecycle.HistoryRow, err error) {
	h := &l.history
	c, err := h.scan(rows, h.all())
	if err != nil {
		return row, err
	}
	row = lifecycle.HistoryRow{
		Key: lifecycle.Key{Machine: cmp.Or(c.text(vMachine), l.machine), ID: c.text(vID)}, Sequence: uint64(c.number(vSequence)),
		Revision: l.revision(c.number(vRevision), c.data[vToken]), Token: c.token(vToken), Operation: lifecycle.OpID(c.number(vOperation)),
		From: c.text(vFromState), FromOrigin: c.text(vFromOrigin), To: c.text(vTo), Origin: c.text(vToOrigin),
		Event: c.text(vEvent), Actor: fsm.Actor(c.text(vActor)), Reason: c.text(vReason), At: c.time(vNow),
		Version: c.text(vVersion), Request: c.text(vRequest), Fingerprint: c.text(vFingerprint),
	}
	if h.col(vFromOrigin) == "" {
		row.FromOrigin = row.From
	}
	if h.col(vToOrigin) == "" {
		row.Origin = row.To
	}
	return row, nil
}

// Recent implements [lifecycle.Follower]. It reads the history rows of all machines since
// that time, by the index on their time; an [ExistingHistory] needs an index of its own
// for that. Ids are in the order of [Store.List]. An index on machine and time would make
// every commit write more, to save a query the few milliseconds for thousands of rows of
// other machines.
//
// PostgreSQL has no index hints: it might read the whole history in order of id, in the hope
// that the page is full soon. The rows are therefore found in a subquery of its own.
func (s *Store) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) ([]lifecycle.ChangedObject, error) {
	l := s.of(machine)
	h := &l.history
	b := &builder{engine: s.e, layout: l}
	text := "found.id" // PostgreSQL takes a bare id in ORDER BY for the text of the result
	if h.column[vID].typ != nil {
		text = fmt.Sprintf(s.e.asText, text)
	}
	b.add("SELECT ", text, ", MAX(sequence) FROM (SELECT ", b.ordered(h, vID, h.col(vID)), " AS id, ", h.col(vSequence), " AS sequence FROM ",
		h.name, b.useIndex(h, "_at"), " WHERE ", h.col(vNow), " >= ", b.ago(h, within))
	if h.col(vMachine) != "" {
		b.add(" AND ", b.ordered(h, vMachine, h.col(vMachine)), " = ", b.literal(machine))
	}
	b.add(s.e.fence, ") found")
	if after != "" {
		b.add(" WHERE found.id > ", b.placeIn(h, vID, param{name: after}))
	}
	b.add(" GROUP BY found.id ORDER BY found.id LIMIT ", b.literal(int64(max(limit, 0))))
	return collect(ctx, s, b.statement(), nil, func(rows *sql.Rows) (o lifecycle.ChangedObject, err error) {
		c, err := h.scan(rows, []value{vID, vSequence})
		if err == nil {
			o = lifecycle.ChangedObject{ID: c.text(vID), Sequence: uint64(c.number(vSequence))}
		}
		return o, err
	})
}
