package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := s.checkKey(key); err != nil {
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
	vals := &vector{vMachine: key.Machine, vID: key.ID}
	for {
		err := s.query(ctx, st, vals.args(st, 0), func(rows *sql.Rows) (err error) {
			r, err = l.scan(rows, &key)
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
		exists, err := s.lastNumbers(ctx, l, &r, vals)
		if err != nil || !exists || locked {
			return r, err
		}
	}
}

// lastNumbers reads the numbers of an object without a row from its history. It
// reports whether the object has a row now.
func (s *session) lastNumbers(ctx context.Context, l *layout, r *record, vals *vector) (exists bool, err error) {
	err = s.query(ctx, l.st.lastRow, vals.args(l.st.lastRow, 0), func(rows *sql.Rows) error {
		var rev, sequence, operation, at int64
		if err := rows.Scan(&rev, &sequence, &operation, (*string)(&r.Actor), &r.Event, &r.Reason, &at, &r.token, &exists); err != nil {
			return err
		}
		r.Revision = l.revision(max(rev, int64(l.floor)), r.token)
		r.Sequence, r.Operation = uint64(sequence), lifecycle.OpID(max(operation, int64(l.floor)))
		r.ChangedAt = clock(at)
		return nil
	})
	return exists, err
}

// scan reads a row of builder.record: without the key if the caller has it.
func (l *layout) scan(rows *sql.Rows, key *lifecycle.Key) (r record, err error) {
	var rev, sequence, operation, fence, epoch int64
	var saved bool
	var admission, changeToken []byte
	var deadline, changed sql.NullInt64
	into := [...]any{
		&r.Machine, &r.ID, &r.State, &r.Origin, &r.Target, &rev, &sequence, &operation, &admission, &changeToken,
		&fence, &r.Version,
		&r.Owner, &epoch, &r.Work, &r.Args, &r.WorkOptions,
		&deadline, &changed, (*string)(&r.Actor), &r.Event, &r.Reason, &r.Payload, &r.Saved, &r.token, &saved,
	}
	fields := make([]sql.NullString, len(l.objects.fields))
	first := vMachine
	if key != nil {
		r.Key, first = *key, vState
	}
	list := into[first:]
	for i := range fields {
		list = append(list, &fields[i])
	}
	if err := rows.Scan(list...); err != nil {
		return r, err
	}
	r.row = true
	l.readTyped(&r, fields)
	copy(r.Admission[:], admission)
	copy(r.ChangeToken[:], changeToken)
	switch {
	case r.State == l.removed:
		r.State, r.Origin, r.Version = "", "", ""
	case r.Origin == "": // another program has written the row
		r.Origin = r.State
	}
	r.Revision, r.Sequence = l.revision(rev, r.token), uint64(sequence)
	r.Operation, r.Fence, r.Epoch = lifecycle.OpID(operation), lock.Token(fence), uint64(epoch)
	if changed.Int64 != 0 {
		r.ChangedAt = clock(changed.Int64)
	}
	if deadline.Valid {
		r.Deadline = clock(deadline.Int64)
	}
	switch {
	case !saved:
		r.Saved = nil
	case r.Saved == nil:
		r.Saved = []byte{}
	}
	return r, nil
}

// readTyped replaces the values of columns that have a type by their texts.
func (l *layout) readTyped(r *record, fields []sql.NullString) {
	o := &l.objects
	o.readTyped(vID, &r.ID)
	o.readTyped(vState, &r.State)
	o.readTyped(vOrigin, &r.Origin)
	o.readTyped(vTarget, &r.Target)
	for v, data := range map[value]*[]byte{vPayload: &r.Payload, vSaved: &r.Saved} {
		if text := string(*data); o.types[v] != nil && text != "" {
			o.readTyped(v, &text)
			*data = []byte(text)
		}
	}
	if len(fields) > 0 {
		r.Payload = o.join(r.Payload, fields)
	}
}

// clock returns a time of the store.
func clock(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros returns a duration in microseconds, rounded up.
func micros(d time.Duration) int64 {
	if d%time.Microsecond > 0 {
		return d.Microseconds() + 1
	}
	return d.Microseconds()
}
