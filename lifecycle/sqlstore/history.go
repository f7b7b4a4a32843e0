package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// History implements [lifecycle.Historian]. Rows are kept until the caller deletes
// them, for example by [Store.Trim].
func (s *Store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) (list []lifecycle.HistoryRow, err error) {
	if err := s.checkHistory(); err != nil {
		return nil, err
	}
	if err := s.checkKey(key); err != nil || limit <= 0 || after > maxNumber {
		return nil, err
	}
	b := &builder{e: s.e, l: s.l}
	b.selectHistory(vSequence, vRevision, vToken, vOperation, vFromState, vFromOrigin, vTo, vToOrigin, vEvent, vActor, vReason, vNow)
	sequence := s.l.history.column[vSequence]
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
			if s.l.history.column[vRevision] != "" {
				h.Revision = s.l.revision(rev, token)
			}
			copy(h.Token[:], token)
			list = append(list, h)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s *shared) checkHistory() error {
	if s.l.history.name == "" {
		return fmt.Errorf("%w: the store keeps no history", errors.ErrUnsupported)
	}
	return nil
}

// LeastKept is the least number of newest rows that [Store.Trim] keeps of every
// object. The store needs them to find a commit by its token.
const LeastKept = 8

// Trim deletes history rows that are older than age by the store's clock. It keeps
// the newest rows of every object: keep of them, or [LeastKept] if that is more. The
// rows of an object are deleted from the oldest on, without a gap. Trim returns the
// number of deleted rows, also with an error; another Trim deletes the rest.
//
// Trim reads the whole history by its key, once for every 10,000 objects with rows to
// delete, and deletes a few hundred rows per statement. Other calls go on meanwhile, and several processes may trim at once. A
// commit whose row is deleted cannot be found by its token: sent again it is a
// conflict, or an unknown outcome if an answer was lost, but it is never written
// twice. Choose an age longer than any caller retries a commit. Messages stay.
//
// Errors: [lifecycle.ErrInvalid] for an age that is not above 0;
// [errors.ErrUnsupported] without a history; the errors of the driver and the context.
func (s *Store) Trim(ctx context.Context, age time.Duration, keep int) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("%w: trim history: age %v is not above 0", lifecycle.ErrInvalid, age)
	}
	if err := s.checkHistory(); err != nil {
		return 0, err
	}
	for {
		list, err := s.excesses(ctx, age, max(keep, LeastKept))
		if err != nil {
			return deleted, err
		}
		before := deleted
		for _, x := range list {
			n, err := s.deleteRows(ctx, x)
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
		if len(list) < trimObjects || deleted == before {
			return deleted, nil
		}
	}
}

const (
	trimObjects = 10_000 // objects per query
	trimRows    = 500    // rows per statement
)

// excess are the rows of an object that may be deleted: sequence numbers from first
// to below end.
type excess struct {
	lifecycle.Key
	first, end int64
}

// excesses finds objects with rows to delete. Rows that are added meanwhile are newer
// than all of these.
func (s *Store) excesses(ctx context.Context, age time.Duration, keep int) (list []excess, err error) {
	h, b := &s.l.history, &builder{e: s.e, l: s.l}
	id, sequence := b.ordered(h, h.column[vID]), h.column[vSequence]
	machine, group := h.column[vMachine], h.column[vMachine]+", "+id
	if s.l.machine != "" {
		machine, group = b.literal(s.l.machine), id
	}
	young := func() string {
		return h.column[vNow] + " >= " + b.time(h, b.now()+" - "+b.literal(micros(age)))
	}
	b.add("SELECT ", machine, ", ", id, ", MIN(", sequence, "), MAX(", sequence, ")",
		", COALESCE(MIN(CASE WHEN ", young(), " THEN ", sequence, " END), ", b.literal(int64(maxNumber)), ") FROM ", h.name)
	if s.l.machine != "" && h.column[vMachine] != "" {
		b.add(" WHERE ", b.same(h, vMachine, vMachine))
	}
	b.add(" GROUP BY ", group, " HAVING MAX(", sequence, ") - MIN(", sequence, ") >= ", b.literal(int64(keep)),
		" AND MAX(CASE WHEN ", young(), " THEN 0 ELSE 1 END) = 1 LIMIT ", b.literal(int64(trimObjects)))
	st, vals, now := b.statement(), &vector{vMachine: s.l.machine}, int64(0)
	if !s.e.ownClock {
		now = time.Now().UnixMicro()
	}
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, vals.args(st, now), func(rows *sql.Rows) error {
			var x excess
			var last, young int64
			err := rows.Scan(&x.Machine, &x.ID, &x.first, &last, &young)
			x.end = min(young, last-int64(keep)+1)
			list = append(list, x)
			return err
		})
	})
	return list, err
}

// deleteRows deletes the excess rows of an object.
func (s *Store) deleteRows(ctx context.Context, x excess) (deleted int, err error) {
	for ; x.first < x.end; x.first += trimRows {
		b := &builder{e: s.e, l: s.l}
		b.add("DELETE FROM ", s.l.history.name, " WHERE ", b.key(&s.l.history), " AND ", s.l.history.column[vSequence],
			" < ", b.literal(min(x.end, x.first+trimRows)))
		st, vals := b.statement(), &vector{vMachine: x.Machine, vID: x.ID}
		if err := s.call(ctx, func(in *session) error {
			result, err := in.exec(ctx, st, vals.args(st, 0))
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			deleted += int(n)
			return err
		}); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}
