package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (r lifecycle.StoredRecord, err error) {
	err = s.call(ctx, func(in *session) error {
		r, err = in.read(ctx, key)
		return err
	})
	return r, err
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
	into := [...]any{
		&r.Machine, &r.ID, &r.State, &r.Origin, &r.Target, &rev, &sequence, &operation, &r.Owner, &epoch,
		&r.Work, &r.Args, &r.WorkOptions, &deadline, &changed, (*string)(&r.Actor), &r.Event, &r.Reason, &r.Payload, &r.Saved, &r.token, &saved,
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
	switch {
	case saved == 0:
		r.Saved = nil
	case r.Saved == nil:
		r.Saved = []byte{}
	}
	return r, nil
}

// clock is a time of the store.
func clock(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros is a duration as the tables keep it, rounded up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
