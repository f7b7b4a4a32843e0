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
	b.selectHistory(hSequence, hRevision, hToken, hOperation, hFrom, hFromOrigin, hTo, hOrigin, hEvent, hActor, hReason, hAt)
	sequence := s.l.historyColumn[hSequence]
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
			if s.l.historyColumn[hRevision] != "" {
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
	if s.l.history == "" {
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
// Trim reads the whole history once, by its key, and deletes a few hundred rows per
// statement. Other calls go on meanwhile, and several processes may trim at once. A
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
	machines := []string{s.l.machine}
	if s.l.machine == "" {
		if machines, err = s.machines(ctx); err != nil {
			return 0, err
		}
	}
	for _, machine := range machines {
		n, err := s.trimMachine(ctx, machine, age, max(keep, LeastKept))
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// machines returns the machines that the history has rows of.
func (s *Store) machines(ctx context.Context) (list []string, err error) {
	st := &statement{text: "SELECT DISTINCT " + s.l.historyColumn[hMachine] + " FROM " + s.l.history + " ORDER BY 1"}
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, nil, func(rows *sql.Rows) error {
			var machine string
			err := rows.Scan(&machine)
			list = append(list, machine)
			return err
		})
	})
	return list, err
}

// excess are the rows of an object that may be deleted: sequence numbers from first
// to below end.
type excess struct {
	id         string
	first, end int64
}

func (s *Store) trimMachine(ctx context.Context, machine string, age time.Duration, keep int) (deleted int, err error) {
	const objects, rows = 200, 500 // per statement
	for after := ""; ; {
		list, err := s.excesses(ctx, machine, after, age, keep, objects)
		if err != nil {
			return deleted, err
		}
		for _, x := range list {
			for ; x.first < x.end; x.first += rows {
				n, err := s.deleteRows(ctx, lifecycle.Key{Machine: machine, ID: x.id}, min(x.end, x.first+rows))
				deleted += n
				if err != nil {
					return deleted, err
				}
			}
		}
		if len(list) < objects {
			return deleted, nil
		}
		after = list[len(list)-1].id
	}
}

// excesses finds objects with rows to delete. Rows that are added meanwhile are newer
// than all of these.
func (s *Store) excesses(ctx context.Context, machine, after string, age time.Duration, keep, limit int) (list []excess, err error) {
	l, b := s.l, &builder{e: s.e, l: s.l}
	id, sequence := l.historyColumn[hID], l.historyColumn[hSequence]
	if l.existingHistory {
		id = fmt.Sprintf(s.e.bytewise, id)
	}
	young := func() string {
		return l.historyColumn[hAt] + " >= " + b.time(l.existingHistory && l.nativeTimes, b.now()+" - "+b.literal(micros(age)))
	}
	b.add("SELECT ", id, ", MIN(", sequence, "), MAX(", sequence, ")",
		", COALESCE(MIN(CASE WHEN ", young(), " THEN ", sequence, " END), ", b.literal(int64(maxNumber)), ") FROM ", l.history, " WHERE ")
	if l.historyColumn[hMachine] != "" {
		b.add(b.same(l.historyColumn[hMachine], l.existingHistory, vMachine), " AND ")
	}
	b.add(id, " > ", b.literal(after), " GROUP BY ", id,
		" HAVING MAX(", sequence, ") - MIN(", sequence, ") >= ", b.literal(int64(keep)),
		" AND MAX(CASE WHEN ", young(), " THEN 0 ELSE 1 END) = 1 ORDER BY ", id, " LIMIT ", b.literal(int64(limit)))
	st, vals := b.statement(), &vector{vMachine: machine}
	now := int64(0)
	if !s.e.ownClock {
		now = time.Now().UnixMicro()
	}
	err = s.call(ctx, func(in *session) error {
		list = nil
		return in.query(ctx, st, vals.args(st, now), func(rows *sql.Rows) error {
			var x excess
			var last, young int64
			err := rows.Scan(&x.id, &x.first, &last, &young)
			x.end = min(young, last-int64(keep)+1)
			list = append(list, x)
			return err
		})
	})
	return list, err
}

// deleteRows deletes the rows of an object below a sequence number.
func (s *Store) deleteRows(ctx context.Context, key lifecycle.Key, below int64) (deleted int, err error) {
	b := &builder{e: s.e, l: s.l}
	b.add("DELETE FROM ", s.l.history, " WHERE ", b.historyOf(), " AND ", s.l.historyColumn[hSequence], " < ", b.literal(below))
	st, vals := b.statement(), &vector{vMachine: key.Machine, vID: key.ID}
	err = s.call(ctx, func(in *session) error {
		result, err := in.exec(ctx, st, vals.args(st, 0))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		deleted = int(n)
		return err
	})
	return deleted, err
}
