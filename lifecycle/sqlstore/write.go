package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// missedError: the row of a change is not as it is to be.
type missedError struct {
	change int
	err    error // of a key that exists, or nil
}

func (e *missedError) Error() string {
	return fmt.Sprintf("change %d has met another record", e.change)
}

// errAgain: what was read and what was written contradict each other, because
// another commit came between; the next attempt sees it.
var errAgain = errors.New("others were in the way")

// errTaken: nobody has the key, and yet the user's table takes no row for it.
var errTaken = errors.New("the table has a row which its unique index takes for this one")

// errRows: the table of a user's lacks a unique index.
var errRows = errors.New("more rows than one have a key, which needs a unique index")

// unsureError: nobody has said whether it was written.
type unsureError struct{ err error }

func (e *unsureError) Error() string { return e.err.Error() }

func (e *unsureError) Unwrap() error { return e.err }

// write makes all changes of a job, with their history and messages, inside of
// a transaction, or, for one change that is whole in itself, without.
func (s *session) write(ctx context.Context, j *job) error {
	if err := s.begin(ctx, j); err != nil {
		return err
	}
	if s.l.foreign {
		if err := s.holdPlaces(ctx, j); err != nil {
			return err
		}
	}
	order := make([]int, len(j.steps))
	for i := range order {
		order[i] = i
	}
	if len(j.keys) > 0 {
		if err := s.compare(ctx, j); err != nil {
			return err
		}
		slices.SortFunc(order, func(a, b int) int { return compareKeys(j.steps[a].ch.To.Key, j.steps[b].ch.To.Key) })
	}
	for _, i := range order {
		n, err := s.change(ctx, j, &j.steps[i])
		switch {
		case err != nil && judge(err) == duplicate && !s.foreign:
			return &missedError{i, err} // the row is there, or its place in the history is taken
		case err != nil:
			return err
		case n == 0 && len(j.keys) > 0:
			return errAgain // it was compared, and is not what it was
		case n == 0:
			return &missedError{i, j.steps[i].stands}
		case n > 1:
			return fmt.Errorf("%w: %d have that of %q", errRows, n, j.steps[i].ch.To.ID)
		}
	}
	if s.st.row != nil {
		for _, i := range order {
			if st := &j.steps[i]; !st.ch.MetadataOnly {
				if _, err := s.exec(ctx, s.st.row, st.vals.of(s.st.row)); err != nil {
					if judge(err) == duplicate && !s.foreign {
						return &missedError{i, err}
					}
					return err
				}
			}
		}
	}
	return s.append(ctx, j.c.Messages)
}

// begin sets the time, where the statements themselves do not tell it.
func (s *session) begin(ctx context.Context, j *job) error {
	j.forgetNow()
	switch {
	case !s.e.ownClock:
		j.now(processNow())
	case s.l.column[vChangedAt] == "", s.l.foreign && !s.e.returning && (s.l.deletes || j.creates()):
		// A row with an AUTO_INCREMENT of the user's tells that, and not the time.
		var now int64
		rows, err := s.query(ctx, s.st.clock, nil)
		if err := each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&now) }); err != nil {
			return err
		}
		j.now(now)
	}
	return nil
}

// change makes one change and returns how many rows it has changed.
func (s *session) change(ctx context.Context, j *job, st *step) (int64, error) {
	if st.alien {
		return 0, nil
	}
	switch ch := st.ch; {
	case ch.MetadataOnly && ch.Timeout > 0:
		return s.one(ctx, j, st, s.st.metadataWithDeadline)
	case ch.MetadataOnly:
		return s.one(ctx, j, st, s.st.metadata)
	case ch.Remove && s.l.deletes:
		return s.one(ctx, j, st, s.st.remove)
	case !s.first(st):
		return s.one(ctx, j, st, s.st.update)
	case s.l.deletes && s.st.numbers != nil && len(j.keys) == 0:
		// There is no row to compare with: the history has what is expected. Who
		// comes between has the change's place in it, which is unique.
		if now, err := s.record(ctx, ch.To.Key, s.st.get); err != nil || now.Exists() || now.Revision != ch.Expect {
			return 0, err
		}
	}
	n, err := s.one(ctx, j, st, s.st.insert)
	st.stands = nil
	switch {
	case err == nil && n == 0 && s.l.foreign:
		st.stands = errTaken
	case err != nil && judge(err) == duplicate && !s.e.upsert && !s.l.deletes:
		// There is a row, perhaps one without numbers.
		st.stands = err
		return s.one(ctx, j, st, s.st.update)
	}
	return n, err
}

// one executes a statement that changes one row.
func (s *session) one(ctx context.Context, j *job, st *step, text *statement) (n int64, err error) {
	if s.e.returning {
		rows, err := s.query(ctx, text, st.vals.of(text))
		err = each(rows, err, func(rows *sql.Rows) error {
			n++
			var now int64
			defer func() { j.now(now) }()
			return rows.Scan(&now)
		})
		return n, err
	}
	result, err := s.exec(ctx, text, st.vals.of(text))
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil || n == 0 || st.vals[vNow] != nil {
		return n, err
	}
	now, err := result.LastInsertId() // see builder.told
	if err == nil && now != 0 {
		j.now(now)
	}
	return n, err
}

// refusal is the answer to a commit that has missed a row: nil if it was written
// before, errAgain if the row is as it is to be after all.
func (s *session) refusal(ctx context.Context, j *job, i int) error {
	ch := &j.c.Changes[i]
	st := s.st.get
	if s.foreign {
		st = s.st.locked
	}
	now, err := s.record(ctx, ch.To.Key, st)
	if err != nil {
		return err
	}
	if now.Revision == ch.Expect && now.State == ch.From {
		return errAgain
	}
	switch written, err := s.written(ctx, j, &now); {
	case err != nil:
		return err
	case written:
		return nil
	}
	return &lifecycle.ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now.StoredRecord}
}

// append writes messages.
func (s *session) append(ctx context.Context, messages []lifecycle.Message) error {
	const atOnce = 100
	for len(messages) > 0 {
		n := min(len(messages), atOnce)
		b := &builder{e: s.e}
		args := make([]any, 0, 3*n)
		b.write("INSERT INTO ", s.l.messages, " (", s.e.quoted("topic"), ", ", s.e.quoted("subject"), ", ", s.e.quoted("payload"), ") VALUES ")
		for i, m := range messages[:n] {
			if i > 0 {
				b.write(", ")
			}
			b.write("(", b.arg(vTo), ", ", b.arg(vTo), ", ", b.arg(vPayload), ")")
			args = append(args, prose(m.Topic), prose(m.Key), m.Payload)
		}
		if _, err := s.q.ExecContext(ctx, b.text.String(), args...); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}
