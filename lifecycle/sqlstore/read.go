package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (r lifecycle.StoredRecord, err error) {
	err = s.call(ctx, func(in *session) error {
		r, err = in.read(ctx, key)
		return err
	})
	if err == nil {
		s.recallRead(r)
	}
	return r, err
}

// List implements [lifecycle.Store].
func (s *Store) List(ctx context.Context, q lifecycle.Query) (list []lifecycle.StoredRecord, err error) {
	err = s.call(ctx, func(in *session) error {
		list, err = in.list(ctx, q)
		return err
	})
	return list, err
}

// call makes a call that may be made twice, until it is answered: as a commit,
// it is tried again where others are in the way, or its connection has ended.
func (s *Store) call(ctx context.Context, run func(*session) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	end, broken := time.Now().Add(s.config.RetryFor), 0
	for try := 0; ; try++ {
		err := run(s.session(s.db))
		if err == nil || ctx.Err() != nil || answered(err) {
			return err
		}
		switch v := judge(err); {
		case v == again && time.Now().Before(end):
		case v == lostAnswer && broken < mostBroken:
			broken++
		default:
			return err
		}
		if !wait(ctx, try) {
			return failed(ctx, err)
		}
	}
}

func (s *session) read(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := s.checkKey(key); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	r, err := s.record(ctx, key, s.st.get)
	if err != nil {
		return lifecycle.StoredRecord{}, failed(ctx, err)
	}
	return r.StoredRecord, nil
}

// found is a record with the token of the commit that wrote it.
type found struct {
	lifecycle.StoredRecord
	token []byte
}

// record reads a record. One that is not there has the numbers with which a new
// one goes on.
func (s *session) record(ctx context.Context, key lifecycle.Key, st *statement) (r found, err error) {
	var vals vector
	vals[vMachine], vals[vID] = key.Machine, key.ID
	for {
		there := false
		rows, err := s.query(ctx, st, vals.of(st))
		err = each(rows, err, func(rows *sql.Rows) error {
			there = true
			r, err = s.scan(rows, &key)
			return err
		})
		if err != nil || there {
			return r, err
		}
		r = found{StoredRecord: lifecycle.StoredRecord{Key: key, Revision: absent}}
		if s.st.numbers == nil {
			return r, nil
		}
		// Between the two queries it may have been made: what the history says last
		// is then of an object that exists. Where the history is empty it was when
		// there was no row, too.
		exists, err := s.lastNumbers(ctx, &r, vals)
		if err != nil || !exists || st == s.st.locked {
			return r, err
		}
	}
}

// lastNumbers reads what the history has of an object without a row, and whether
// it has a row after all.
func (s *session) lastNumbers(ctx context.Context, r *found, vals vector) (exists bool, err error) {
	rows, err := s.query(ctx, s.st.numbers, vals.of(s.st.numbers))
	err = each(rows, err, func(rows *sql.Rows) error {
		var rev, sequence, operation, at, there int64
		if err := rows.Scan(&rev, &sequence, &operation, (*string)(&r.Actor), &r.Event, &r.Reason, &at, &r.token, &there); err != nil {
			return err
		}
		exists = there != 0
		r.Revision, r.Sequence, r.Operation, r.ChangedAt = s.l.revision(rev, r.token), uint64(sequence), lifecycle.OpID(operation), clock(at)
		return nil
	})
	return exists, err
}

// scan reads a row of builder.list, with the key or, if it is known, without.
func (s *session) scan(rows *sql.Rows, key *lifecycle.Key) (r found, err error) {
	var rev, sequence, operation, epoch, saved int64
	var deadline, changed sql.NullInt64
	var payload, before []byte
	into := [...]any{
		&r.Machine, &r.ID, &r.State, &r.Origin, &r.Target, &rev, &sequence, &operation, &r.Owner, &epoch,
		&r.Work, &r.Args, &r.Steps, &deadline, &changed, (*string)(&r.Actor), &r.Event, &r.Reason, &payload, &before, &r.token, &saved,
	}
	first := vMachine
	if key != nil {
		r.Key, first = *key, vState
	}
	if err := rows.Scan(into[first:]...); err != nil {
		return r, err
	}
	switch {
	case r.State == s.l.removed:
		r.State, r.Origin = "", ""
	case r.Origin == "": // of a row that somebody else made
		r.Origin = r.State
	}
	r.Revision, r.Sequence, r.Operation, r.Epoch = s.l.revision(rev, r.token), uint64(sequence), lifecycle.OpID(operation), uint64(epoch)
	if s.l.column[vRevision] == "" {
		r.Revision = stateRevision(r.State)
	}
	if changed.Valid && changed.Int64 != 0 {
		r.ChangedAt = clock(changed.Int64)
	}
	if deadline.Valid {
		r.Deadline = clock(deadline.Int64)
	}
	if payload != nil {
		r.Payload = lifecycle.RawPayload(payload)
	}
	if saved != 0 {
		r.Saved = lifecycle.RawPayload(before)
	}
	return r, nil
}

// clock is a time of the store.
func clock(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros is a duration as the tables keep it, rounded up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func (s *session) list(ctx context.Context, q lifecycle.Query) (records []lifecycle.StoredRecord, err error) {
	if q.Limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d of a query", lifecycle.ErrInvalid, q.Limit)
	}
	if err := s.l.answers(&q); err != nil {
		return nil, err
	}
	if s.l.machine != "" && q.Machine != s.l.machine {
		return nil, nil
	}
	if len(q.States) > 0 { // an absent object is in no state
		q.States = slices.DeleteFunc(slices.Clone(q.States), func(state string) bool { return state == "" || state == s.l.removed })
		if len(q.States) == 0 {
			return nil, nil
		}
	}
	query, args := s.listing(&q)
	rows, err := s.q.QueryContext(ctx, query, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		r, err := s.scan(rows, nil)
		records = append(records, r.StoredRecord)
		return err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	return records, nil
}

// listing is the statement of a query.
func (s *session) listing(q *lifecycle.Query) (string, []any) {
	l, b := s.l, &builder{e: s.e}
	var args []any
	arg := func(v value, x any) string {
		args = append(args, x)
		return b.arg(v)
	}
	list := func(states []string) string {
		places := make([]string, len(states))
		for i, state := range states {
			places[i] = arg(vState, state)
		}
		return strings.Join(places, ", ")
	}
	b.write("SELECT ")
	b.list(l, vMachine)
	if l.column[vMachine] == "" {
		args = append(args, q.Machine)
	}
	b.write(" FROM ", l.table)
	if index := l.index(q); index != "" && s.e.hint != "" {
		b.write(fmt.Sprintf(s.e.hint, s.e.quoted(index)))
	}
	b.write(" WHERE ")
	if l.column[vMachine] != "" {
		b.write(l.column[vMachine], " = ", arg(vMachine, q.Machine), " AND ")
	}
	if q.After != "" || !l.foreign {
		b.write(b.id(l), " > ", arg(vID, q.After), " AND ")
	}
	if len(q.States) == 0 {
		b.write(l.column[vState], " <> ", arg(vState, l.removed))
	} else {
		b.write(l.column[vState], " IN (", list(q.States), ")")
		if l.foreign && s.e.exact != "" {
			b.write(" AND ", fmt.Sprintf(s.e.bytewise, l.column[vState]), " IN (", list(q.States), ")")
		}
	}
	// The clock of the process, where the engine has none of its own.
	now := func() string {
		if s.e.ownClock {
			return s.e.now
		}
		return arg(vNow, time.Now().UnixMicro())
	}
	if q.UnchangedFor > 0 {
		b.write(" AND ", l.column[vChangedAt], " <= ", b.stored(l, now()+" - "+arg(vWithin, micros(q.UnchangedFor))))
	}
	if q.Overdue {
		b.write(" AND ", l.column[vDeadline], " < ", b.stored(l, now()))
	}
	if q.Owner != "" {
		// The second condition lets the index be used that has owned records only.
		b.write(" AND ", l.column[vOwner], " = ", arg(vOwner, q.Owner), " AND ", l.column[vOwner], " <> ''")
	}
	b.write(" ORDER BY ", b.id(l), " LIMIT ", arg(vNow, int64(q.Limit)))
	return b.text.String(), args
}

// index is that of the store's own tables which finds the fewest rows. Two of the
// engines would rather walk through all of a machine's, since they come sorted.
func (l *layout) index(q *lifecycle.Query) string {
	switch {
	case l.foreign:
		return ""
	case q.Overdue:
		return l.indexes + "_deadline"
	case q.Owner != "":
		return l.indexes + "_owner"
	case len(q.States) > 0 && q.UnchangedFor > 0:
		return l.indexes + "_age"
	case len(q.States) > 0:
		return l.indexes + "_state"
	}
	return ""
}
