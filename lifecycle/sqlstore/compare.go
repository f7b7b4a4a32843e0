package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// seen is what a locked row says.
type seen struct {
	state    string
	revision lifecycle.Revision
}

// compare locks all objects of a commit in the order of their keys, and checks
// what the commit expects of them as of one moment.
func (s *session) compare(ctx context.Context, j *job) error {
	if s.e.oneWriter {
		// The lock of the whole database, before anything is read.
		if _, err := s.q.ExecContext(ctx, "UPDATE "+s.l.table+" SET "+s.l.column[vID]+" = "+s.l.column[vID]+" WHERE 1 = 0"); err != nil {
			return err
		}
	}
	there := make(map[lifecycle.Key]seen, len(j.keys))
	if err := s.lock(ctx, j.keys, there); err != nil {
		return err
	}
	for i := range j.steps {
		st := &j.steps[i]
		now, ok := there[st.ch.To.Key]
		switch {
		case !ok && s.l.deletes:
			r, err := s.record(ctx, st.ch.To.Key, s.st.get)
			if err != nil {
				return err
			}
			now = seen{revision: r.Revision}
		case !ok:
			now = seen{revision: absent}
		}
		if now.state != st.ch.From || now.revision != st.ch.Expect {
			return &missedError{change: i}
		}
	}
	if err := s.required(ctx, j, there); err != nil || !s.e.ghosts || s.l.foreign {
		return err
	}
	return s.hold(ctx, j, there)
}

func (s *session) required(ctx context.Context, j *job, there map[lifecycle.Key]seen) error {
	for _, p := range j.c.Require {
		if slices.Contains(p.States, there[p.Key].state) {
			continue
		}
		now, err := s.record(ctx, p.Key, s.st.get)
		if err != nil {
			return err
		}
		return &lifecycle.PreconditionError{Precondition: p, Current: now.StoredRecord}
	}
	return nil
}

// missingError: required objects have no row that could be locked.
type missingError struct{ keys []lockKey }

func (e *missingError) Error() string { return "required objects have no rows" }

// hold sees to it that required objects that have no row stay absent. Only a row
// can be locked: it is made before the transaction is begun again, so that all
// rows of the commit are locked in the order of their keys. In a transaction of
// the user's it is made at once, and two of them may deadlock.
func (s *session) hold(ctx context.Context, j *job, there map[lifecycle.Key]seen) error {
	var missing []lockKey
	required := false
	for _, key := range j.keys {
		if _, ok := there[key.Key]; !ok {
			missing = append(missing, key)
			required = required || !key.changes
		}
	}
	switch {
	case !required:
		return nil
	case !s.foreign:
		return &missingError{missing}
	}
	missing = slices.DeleteFunc(missing, func(key lockKey) bool { return key.changes })
	if err := s.makeRows(ctx, missing); err != nil {
		return err
	}
	if err := s.lock(ctx, missing, there); err != nil {
		return err
	}
	return s.required(ctx, j, there)
}

// makeRows makes rows without a state. To whoever reads, nothing has changed.
func (s *session) makeRows(ctx context.Context, keys []lockKey) error {
	st := s.e.ghost(s.l)
	for _, key := range keys {
		vals := vector{vMachine: key.Machine, vID: key.ID, vState: s.l.removed, vToken: make([]byte, len(lifecycle.Token{}))}
		if _, err := s.exec(ctx, st, vals.of(st)); err != nil {
			return err
		}
	}
	return nil
}

// lock locks rows and reads them, run by run of keys that are locked alike.
func (s *session) lock(ctx context.Context, keys []lockKey, there map[lifecycle.Key]seen) error {
	const atOnce = 100
	for len(keys) > 0 {
		n := 1
		for n < min(len(keys), atOnce) && keys[n].changes == keys[0].changes {
			n++
		}
		mode := s.e.forShare
		if keys[0].changes {
			mode = s.e.forUpdate
		}
		st := s.e.locking(s.l, n, mode)
		var args []any
		if s.l.column[vMachine] == "" {
			args = append(args, keys[0].Machine) // what the list says
		}
		ofOne := st.args[len(args):][:(len(st.args)-len(args))/n] // those of one key
		for _, key := range keys[:n] {
			for _, v := range ofOne {
				if v == vMachine {
					args = append(args, key.Machine)
				} else {
					args = append(args, key.ID)
				}
			}
		}
		rows, err := s.q.QueryContext(ctx, st.text, args...)
		err = each(rows, err, func(rows *sql.Rows) error {
			var key lifecycle.Key
			var now seen
			var rev int64
			var token []byte
			if err := rows.Scan(&key.Machine, &key.ID, &now.state, &rev, &token); err != nil {
				return err
			}
			if now.state == s.l.removed {
				now.state = ""
			}
			now.revision = s.l.revision(rev, token)
			if s.l.column[vRevision] == "" {
				now.revision = stateRevision(now.state)
			}
			there[key] = now
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// written reports whether a commit was written before, and notes the time of it. A
// MetadataOnly change is known by its token in the record only.
func (s *session) written(ctx context.Context, j *job, now *found) (bool, error) {
	j.gone = false
	if j.metadataOnly() && !j.unsure {
		return false, nil
	}
	if s.st.written == nil || j.metadataOnly() || s.next(j, now) {
		return s.last(ctx, j, now)
	}
	for i := range j.steps {
		token, at, err := s.place(ctx, &j.steps[i])
		if err != nil || !bytes.Equal(token, j.c.Token[:]) {
			j.gone = err == nil && len(token) == 0
			return false, err
		}
		j.at[i] = at
	}
	return true, nil
}

// next reports whether no more than one commit has come after what a job of one
// object expects: the record itself then has the token of that one, and the
// history need not be asked. So it is most often where many callers are after one
// object.
func (s *session) next(j *job, now *found) bool {
	return len(j.steps) == 1 && s.l.column[vToken] != "" && s.l.column[vChangedAt] != "" &&
		s.l.number(now.Revision) == j.steps[0].expect+1
}

// place reads the row of the history that a change would have written.
func (s *session) place(ctx context.Context, st *step) (token []byte, at int64, err error) {
	text := s.st.written
	if s.foreign && !s.e.returning { // elsewhere a statement sees what is committed, or fails
		text = s.st.writtenNow
	}
	rows, err := s.query(ctx, text, st.vals.of(text))
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&token, &at) })
	return token, at, err
}

// last reports whether the last change of every object was this commit's: all
// that is known without a history. One of the records is known already.
func (s *session) last(ctx context.Context, j *job, known *found) (bool, error) {
	if s.l.column[vToken] == "" || s.l.column[vRevision] == "" {
		return false, nil
	}
	for i := range j.steps {
		st, now := &j.steps[i], known
		if now.Key != st.ch.To.Key {
			r, err := s.record(ctx, st.ch.To.Key, s.st.get)
			if err != nil {
				return false, err
			}
			now = &r
		}
		if !bytes.Equal(now.token, j.c.Token[:]) || s.l.number(now.Revision) != st.expect+1 {
			return false, nil
		}
		j.at[i] = now.ChangedAt.UnixMicro()
		if st.ch.MetadataOnly {
			j.at[i] = now.Deadline.UnixMicro() - micros(st.ch.Timeout)
		}
	}
	return true, nil
}
