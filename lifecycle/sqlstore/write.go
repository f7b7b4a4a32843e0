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
	p.at = 0
	if s.e.oneWriter || s.l.objects.existing {
		if err := s.begin(ctx, p); err != nil {
			return err
		}
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
	if err := s.checkOwner(ctx, p.commit.Owner); err != nil || len(p.commit.Messages) == 0 {
		return err
	}
	return s.addMessages(ctx, p.commit.Messages)
}

// checkOwner refuses a commit of an owner that is not alive. It comes after the changes,
// so that a commit that is sent again is found first, and a conflict is reported as one.
// It takes no lock: heartbeats of the owner wait for no commit.
func (s *session) checkOwner(ctx context.Context, owner lifecycle.OwnerRef) error {
	if owner.Name == "" {
		return nil
	}
	now, err := s.record(ctx, owner.Key(), s.st.get)
	if err == nil && !owner.Alive(&now.StoredRecord) {
		err = &lifecycle.OwnerError{Owner: owner}
	}
	return err
}

// begin sets the time if the statements do not report it, and acquires the locks that
// come before those of rows.
func (s *session) begin(ctx context.Context, p *plan) error {
	switch {
	case !s.e.ownClock:
		p.at = time.Now().UnixMicro()
	case !s.e.returning: // see builder.reported
		if err := s.query(ctx, s.st.clock, nil, func(rows *sql.Rows) error { return rows.Scan(&p.at) }); err != nil {
			return err
		}
	}
	if s.e.oneWriter && p.several {
		// The lock of the database, before a read: the engine refuses a transaction that
		// reads first, and writes after another writer has committed.
		id := s.l.objects.column[vID]
		_, err := s.q.ExecContext(ctx, "UPDATE "+s.l.objects.name+" SET "+id+" = "+id+" WHERE 1 = 0")
		return err
	}
	if s.l.objects.existing && !s.e.oneWriter {
		return s.lockAbsent(ctx, p)
	}
	return nil
}

// change writes one change and its history row.
func (s *session) change(ctx context.Context, p *plan, ch *change) error {
	write := s.writeRow
	if ch.first {
		write = s.create
	}
	n, err := write(ctx, p, ch, ch.write)
	switch {
	case err == nil && n == 0:
		return &missedError{}
	case err == nil && n > 1:
		return fmt.Errorf("%w: %d rows of %q", errRows, n, ch.To.ID)
	case err == nil && s.st.addRow != nil && !ch.MetadataOnly:
		_, err = s.exec(ctx, s.st.addRow, ch.vals.args(s.st.addRow, p.at))
	}
	if err != nil && classify(err) == duplicate && !s.callTx {
		return &missedError{err} // another commit has written the row, or the history row
	}
	return err
}

// create writes the record of an object that may have no row.
func (s *session) create(ctx context.Context, p *plan, ch *change, insert *statement) (int64, error) {
	if s.st.lastRow != nil {
		// No row to compare with: the history has the expected revision. If another
		// commit comes in between, it takes the place of this one's history row.
		r, err := s.record(ctx, ch.To.Key, s.st.get)
		if err != nil || r.Exists() || r.Revision != ch.Expect {
			return 0, err
		}
	}
	n, err := s.writeRow(ctx, p, ch, insert)
	switch {
	case err == nil && n > 0:
		return n, nil
	case err == nil:
		err = errTaken
	case s.l.deletes, s.e.insertNew != "", classify(err) != duplicate:
		return 0, err
	}
	if !s.l.deletes { // the object may have a row already: a reserved or a removed one
		if n, updateErr := s.writeRow(ctx, p, ch, s.st.update); updateErr != nil || n > 0 {
			return n, updateErr
		}
	}
	return 0, &missedError{err}
}

// writeRow executes a statement that writes one row, and returns the number of rows.
func (s *session) writeRow(ctx context.Context, p *plan, ch *change, st *statement) (n int64, err error) {
	if s.e.returning {
		err = s.query(ctx, st, ch.vals.args(st, p.at), func(rows *sql.Rows) error {
			n++
			return rows.Scan(&p.at)
		})
		return n, err
	}
	result, err := s.exec(ctx, st, ch.vals.args(st, p.at))
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil || n == 0 || p.at != 0 {
		return n, err
	}
	p.at, err = result.LastInsertId() // see builder.reported; 0: not reported
	return n, err
}

// hold locks the row of a required object until the end of the transaction, and
// returns the state. An object that never existed gets a row that can be locked.
func (s *session) hold(ctx context.Context, key lifecycle.Key) (state string, err error) {
	r, err := s.record(ctx, key, s.st.getLocked)
	if err == nil && !r.row && s.st.reserve != nil {
		vals := &vector{vMachine: key.Machine, vID: key.ID}
		if _, err = s.exec(ctx, s.st.reserve, vals.args(s.st.reserve, 0)); err == nil {
			r, err = s.record(ctx, key, s.st.getLocked)
		}
	}
	return r.State, err
}
