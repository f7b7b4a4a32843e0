package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := checkKey(key); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	var r lifecycle.StoredRecord
	err := s.call(ctx, func() (err error) {
		r, err = s.record(ctx, key, false)
		return err
	})
	return r, err
}

// record reads a record, and locks its row on demand. The record of an object without a
// row has the numbers with which a new record continues.
func (s *Store) record(ctx context.Context, key lifecycle.Key, locked bool) (lifecycle.StoredRecord, error) {
	r, _, err := s.recordIn(ctx, s.of(key.Machine), key, locked)
	return r, err
}

// recordIn reads the record of a key in the tables of a layout. row: the table has a row for it.
func (s *Store) recordIn(
	ctx context.Context, l *layout, key lifecycle.Key, locked bool,
) (r lifecycle.StoredRecord, row bool, err error) {
	st := l.st.get
	if locked {
		st = l.st.getLocked
	}
	for {
		err := s.query(ctx, st, ofKey(key), func(rows *sql.Rows) (err error) {
			row = true
			r, err = l.scan(rows, l.objects.all())
			r.Key = key
			return err
		})
		if err != nil || row {
			return r, row, err
		}
		// A key that has neither a row nor a history.
		operation := lifecycle.OpID(l.floor)
		if l.objects.col(vOperation) == "" { // a new object could not have a number that continues
			operation = 0
		}
		r = lifecycle.StoredRecord{Key: key, Sequence: l.floor, Operation: operation, Revision: l.revision(int64(l.floor), nil)}
		if l.st.lastRow == nil {
			return r, false, nil
		}
		// Another commit may create the object between the two queries. The last
		// history row then belongs to an object that exists, and the loop reads again.
		exists := false
		err = s.query(ctx, l.st.lastRow, ofKey(key), func(rows *sql.Rows) error {
			c, err := l.history.scan(rows, l.history.all(), &exists)
			if err != nil {
				return err
			}
			floor := int64(l.floor)
			r.Revision, r.Sequence = l.revision(max(c.number(vRevision), floor), c.data[vToken]), uint64(c.number(vSequence))
			r.Operation, r.ChangedAt = max(lifecycle.OpID(c.number(vOperation)), operation), c.time(vNow)
			r.Actor, r.Event, r.Reason = fsm.Actor(c.text(vActor)), c.text(vEvent), c.text(vReason)
			return nil
		})
		if err != nil || !exists || locked {
			return r, false, err
		}
	}
}

// scan reads a row of builder.record.
func (l *layout) scan(rows *sql.Rows, list []value) (r lifecycle.StoredRecord, err error) {
	saved := false
	c, err := l.objects.scan(rows, list, &saved)
	if err != nil {
		return r, err
	}
	r = lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: cmp.Or(c.text(vMachine), l.machine), ID: c.text(vID)}, State: c.text(vState), Origin: c.text(vOrigin),
		Target: c.text(vTarget), Revision: l.revision(c.number(vRevision), c.data[vToken]), Sequence: uint64(c.number(vSequence)),
		Operation: lifecycle.OpID(c.number(vOperation)), Admission: c.token(vAdmission), ChangeToken: c.token(vChangeToken),
		Fence: lock.Token(c.number(vFence)), Version: c.text(vVersion), Owner: c.text(vOwner), Epoch: uint64(c.number(vEpoch)),
		Work: c.text(vWork), Args: c.data[vArgs], WorkOptions: c.data[vWorkOptions], Deadline: c.time(vDeadline), ChangedAt: c.time(vChangedAt),
		Actor: fsm.Actor(c.text(vActor)), Event: c.text(vEvent), Reason: c.text(vReason), Payload: l.objects.join(c),
	}
	switch {
	case r.State == "": // removed
		r.Version = ""
	case r.Origin == "": // another program has written the row
		r.Origin = r.State
	}
	if saved {
		r.Saved = append([]byte{}, c.data[vSaved]...)
	}
	return r, nil
}

// cells are the values of a row, by column. NULL, and a column that the table lacks, is as
// if no commit had written it.
type cells struct {
	texts   []sql.NullString
	numbers []sql.NullInt64
	data    [][]byte
}

func (c *cells) text(v value) string { return c.texts[v].String }

func (c *cells) number(v value) int64 { return c.numbers[v].Int64 }

// token returns a token, zero if there is none.
func (c *cells) token(v value) (token lifecycle.Token) {
	copy(token[:], c.data[v])
	return token
}

func (c *cells) time(v value) time.Time { return clock(c.number(v)) }

// scan reads the columns of a list from a row, and values that follow them. A value that its
// type cannot read stays as the engine has converted it.
func (t *table) scan(rows *sql.Rows, list []value, after ...any) (*cells, error) {
	n := len(t.column)
	c := &cells{make([]sql.NullString, n), make([]sql.NullInt64, n), make([][]byte, n)}
	var into []any
	for _, v := range list {
		switch {
		case v.kind() == ofText || t.column[v].typ != nil:
			into = append(into, &c.texts[v])
		case v.kind() == ofNumber:
			into = append(into, &c.numbers[v])
		default:
			into = append(into, &c.data[v])
		}
	}
	if err := rows.Scan(append(into, after...)...); err != nil {
		return nil, err
	}
	for _, v := range list {
		typ := t.column[v].typ
		if typ == nil || v >= values || c.text(v) == "" { // see table.join
			continue
		}
		if text, err := typ.Read(c.text(v)); err == nil {
			c.texts[v].String = text
		}
		if v.kind() == ofBytes {
			c.data[v] = []byte(c.text(v))
		}
	}
	return c, nil
}
