package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// write executes the statements of a commit: one compare-and-set per change, in the
// order of the keys, with its history row; a locking read per required object; the
// messages. A *missedError reports a change without its expected record, or a
// precondition that does not hold; see explain.
func (s *session) write(ctx context.Context, p *plan) error {
	if err := s.begin(ctx, p); err != nil {
		return err
	}
	states := make(map[lifecycle.Key]string, len(p.commit.Require))
	for _, t := range p.targets {
		var err error
		if t.change != nil {
			err = s.change(ctx, p, t.change)
			states[t.Key] = t.change.From
		} else {
			states[t.Key], err = s.hold(ctx, t.Key)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range p.commit.Require {
		if !slices.Contains(r.States, states[r.Key]) {
			return &missedError{}
		}
	}
	return s.addMessages(ctx, p.commit.Messages)
}

// begin sets the time if the statements do not report it, and takes the locks that
// come before those of rows.
func (s *session) begin(ctx context.Context, p *plan) error {
	p.forgetTime()
	switch {
	case !s.e.ownClock:
		p.setTime(time.Now().UnixMicro())
	case s.l.existing && !s.e.returning: // see builder.reported
		var now int64
		if err := s.query(ctx, s.st.clock, nil, func(rows *sql.Rows) error { return rows.Scan(&now) }); err != nil {
			return err
		}
		p.setTime(now)
	}
	if s.e.oneWriter && len(p.targets) > 1 {
		// The lock of the database, before a read: the engine refuses a transaction that
		// reads first, and writes after another writer has committed.
		id := s.l.column[vID]
		_, err := s.q.ExecContext(ctx, "UPDATE "+s.l.table+" SET "+id+" = "+id+" WHERE 1 = 0")
		return err
	}
	if s.l.existing {
		return s.lockAbsent(ctx, p)
	}
	return nil
}

// change writes one change and its history row.
func (s *session) change(ctx context.Context, p *plan, ch *change) error {
	n, err := s.writeRecord(ctx, p, ch)
	switch {
	case err == nil && n == 0:
		return &missedError{}
	case err == nil && n > 1:
		return fmt.Errorf("%w: %d rows of %q", errRows, n, ch.To.ID)
	case err == nil && s.st.addRow != nil && !ch.MetadataOnly:
		_, err = s.exec(ctx, s.st.addRow, ch.vals.args(s.st.addRow))
	}
	if err != nil && classify(err) == duplicate && !s.callTx {
		return &missedError{err} // another commit has written the row, or the history row
	}
	return err
}

// writeRecord writes the record of a change and returns the number of rows.
func (s *session) writeRecord(ctx context.Context, p *plan, ch *change) (int64, error) {
	switch {
	case ch.MetadataOnly && ch.Timeout > 0:
		return s.writeRow(ctx, p, ch, s.st.setMetadataDeadline)
	case ch.MetadataOnly:
		return s.writeRow(ctx, p, ch, s.st.setMetadata)
	case ch.Remove && s.l.deletes:
		return s.writeRow(ctx, p, ch, s.st.remove)
	case !s.l.first(ch):
		return s.writeRow(ctx, p, ch, s.st.update)
	case s.st.lastRow != nil:
		// No row to compare with: the history has the expected revision. If another
		// commit comes in between, it takes the place of this one's history row.
		r, err := s.record(ctx, ch.To.Key, s.st.get)
		if err != nil || r.Exists() || r.Revision != ch.Expect {
			return 0, err
		}
	}
	n, err := s.writeRow(ctx, p, ch, s.st.insert)
	switch {
	case err == nil && n > 0, err != nil && classify(err) != duplicate:
		return n, err
	case s.l.deletes && err == nil:
		return 0, errTaken
	case s.l.deletes:
		return 0, err
	}
	// The object has a row already: a reserved or a removed one.
	n, updateErr := s.writeRow(ctx, p, ch, s.st.update)
	switch {
	case updateErr != nil || n > 0:
		return n, updateErr
	case err == nil:
		err = errTaken
	}
	return 0, err
}

// writeRow executes a statement that writes one row, and returns the number of rows.
func (s *session) writeRow(ctx context.Context, p *plan, ch *change, st *statement) (n int64, err error) {
	if s.e.returning {
		err = s.query(ctx, st, ch.vals.args(st), func(rows *sql.Rows) error {
			n++
			var now int64
			err := rows.Scan(&now)
			p.setTime(now)
			return err
		})
		return n, err
	}
	result, err := s.exec(ctx, st, ch.vals.args(st))
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil || n == 0 || p.at != 0 {
		return n, err
	}
	now, err := result.LastInsertId() // see builder.reported
	if err == nil && now != 0 {
		p.setTime(now)
	}
	return n, err
}

// hold locks the row of a required object until the end of the transaction, and
// returns the state. An object that never existed gets a row that can be locked.
func (s *session) hold(ctx context.Context, key lifecycle.Key) (state string, err error) {
	r, err := s.record(ctx, key, s.st.getLocked)
	if err == nil && !r.row && s.st.reserve != nil {
		vals := &vector{vMachine: key.Machine, vID: key.ID}
		if _, err = s.exec(ctx, s.st.reserve, vals.args(s.st.reserve)); err == nil {
			r, err = s.record(ctx, key, s.st.getLocked)
		}
	}
	return r.State, err
}
