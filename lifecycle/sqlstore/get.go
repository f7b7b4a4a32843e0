package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := checkKey(key); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	var r record
	err := s.call(ctx, func(in *session) (err error) {
		r, err = in.record(ctx, key, false)
		return err
	})
	if err != nil {
		return lifecycle.StoredRecord{}, err
	}
	return r.StoredRecord, nil
}

// record is a record with the token of the commit that wrote it.
type record struct {
	lifecycle.StoredRecord
	token []byte
	row   bool // the table has a row for it
}

// record reads a record, and locks its row on demand. The record of an object without a
// row has the numbers with which a new record continues.
func (s *session) record(ctx context.Context, key lifecycle.Key, locked bool) (record, error) {
	return s.recordIn(ctx, s.of(key.Machine), key, locked)
}

func (s *session) recordIn(ctx context.Context, l *layout, key lifecycle.Key, locked bool) (r record, err error) {
	st := l.st.get
	if locked {
		st = l.st.getLocked
	}
	for {
		err := s.query(ctx, st, ofKey(key), func(rows *sql.Rows) (err error) {
			r, err = l.scan(rows, l.objects.all())
			r.Key = key
			return err
		})
		if err != nil || r.row {
			return r, err
		}
		r = l.unknown(key)
		if l.st.lastRow == nil {
			return r, nil
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
			r.token = c.data[vToken]
			r.Revision, r.Sequence = l.revision(max(c.number(vRevision), floor), r.token), uint64(c.number(vSequence))
			r.Operation, r.ChangedAt = lifecycle.OpID(max(c.number(vOperation), floor)), c.time(vNow)
			r.Actor, r.Event, r.Reason = fsm.Actor(c.text(vActor)), c.text(vEvent), c.text(vReason)
			return nil
		})
		if err != nil || !exists || locked {
			return r, err
		}
	}
}

// recordColumns returns the columns of a query of records.
func (t *table) recordColumns(withoutPayload bool) []value {
	return slices.DeleteFunc(t.all(), func(v value) bool {
		return withoutPayload && (v == vPayload || v == vSaved || v == vArgs || v >= values)
	})
}

// scan reads a row of builder.record.
func (l *layout) scan(rows *sql.Rows, list []value) (record, error) {
	saved := false
	c, err := l.objects.scan(rows, list, &saved)
	if err != nil {
		return record{}, err
	}
	r := record{token: c.data[vToken], row: true, StoredRecord: lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: cmp.Or(c.text(vMachine), l.machine), ID: c.text(vID)}, State: c.text(vState), Origin: c.text(vOrigin),
		Target: c.text(vTarget), Revision: l.revision(c.number(vRevision), c.data[vToken]), Sequence: uint64(c.number(vSequence)),
		Operation: lifecycle.OpID(c.number(vOperation)), Admission: c.token(vAdmission), ChangeToken: c.token(vChangeToken),
		Fence: lock.Token(c.number(vFence)), Version: c.text(vVersion), Owner: c.text(vOwner), Epoch: uint64(c.number(vEpoch)),
		Work: c.text(vWork), Args: c.data[vArgs], WorkOptions: c.data[vWorkOptions], Deadline: c.time(vDeadline), ChangedAt: c.time(vChangedAt),
		Actor: fsm.Actor(c.text(vActor)), Event: c.text(vEvent), Reason: c.text(vReason), Payload: l.objects.join(c),
	}}
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
