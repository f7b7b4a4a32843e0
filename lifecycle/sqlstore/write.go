package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// write executes the statements of a commit: one compare-and-set per change, in the
// order of the keys, with its history row; a locking read per required object; the
// messages. A *missedError reports a change without its expected record, or a
// precondition that does not hold; see explain.
func (s *session) write(ctx context.Context, p *plan) error {
	p.at = 0
	if s.e.oneWriter || p.existing {
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
			states[t.Key], err = s.hold(ctx, t)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range p.commit.Require {
		if r.Grant == nil && !slices.Contains(r.States, states[r.Key]) {
			return &missedError{}
		}
	}
	if err := s.checkGrants(ctx, p.commit.Require); err != nil {
		return err
	}
	if err := s.checkOwner(ctx, p.commit.Owner); err != nil || len(p.commit.Messages) == 0 {
		return err
	}
	return s.addMessages(ctx, p.commit.Messages)
}

// guarded is the driver of a grant that is a row of this database. The query returns a row
// if the grant is held, and locks the row until the end of the transaction: the grant is
// lost after this commit, or the commit is refused.
type guarded interface {
	GuardStatement() (query string, args []any)
}

// checkGrants refuses a commit under a grant that is lost. It comes after the changes, as
// checkOwner does.
func (s *session) checkGrants(ctx context.Context, require []lifecycle.Precondition) error {
	for _, r := range require {
		if r.Grant == nil {
			continue
		}
		query, args := r.Grant.Driver().(guarded).GuardStatement() // see plan
		held := false
		if err := s.query(ctx, &statement{text: query, args: args}, nil, func(*sql.Rows) error { held = true; return nil }); err != nil {
			return err
		}
		if !held {
			return &lifecycle.PreconditionError{Precondition: r}
		}
	}
	return nil
}

// checkOwner refuses a commit of an owner that is not alive. It comes after the changes,
// so that a commit that is sent again is found first, and a conflict is reported as one.
// It takes no lock: heartbeats of the owner wait for no commit.
func (s *session) checkOwner(ctx context.Context, owner lifecycle.OwnerRef) error {
	if owner.Name == "" {
		return nil
	}
	now, err := s.record(ctx, owner.Key(), false)
	if err == nil && !owner.Alive(&now.StoredRecord) {
		err = &lifecycle.OwnerError{Owner: owner}
	}
	return err
}

// begin sets the time if the statements do not report it, and acquires the locks that
// come before those of rows.
func (s *session) begin(ctx context.Context, p *plan) (err error) {
	if !s.e.returning { // see builder.reported
		if p.at, err = s.now(ctx); err != nil {
			return err
		}
	}
	if s.e.oneWriter && (p.several || p.existing) {
		// The lock of the database, before a read: the engine refuses a transaction that
		// reads first, and writes after another writer has committed.
		_, err = s.q.ExecContext(ctx, "UPDATE "+s.own.objects.name+" SET id = id WHERE 1 = 0")
	}
	return err
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
	case err == nil && ch.l.st.addRow != nil && !ch.MetadataOnly:
		_, err = s.exec(ctx, ch.l.st.addRow, ch.at(p))
	}
	if err != nil && classify(err) == duplicate && !s.callTx {
		return &missedError{err} // another commit has written the row, or the history row
	}
	return err
}

// create writes the record of an object that may have no row.
func (s *session) create(ctx context.Context, p *plan, ch *change, insert *statement) (int64, error) {
	if ch.l.objects.existing {
		// Commits wait that require the absence of this object: both lock the key's row in
		// the store's own tables, see hold. The row is written, so that a transaction of the
		// caller whose reads are older is refused.
		if claim := s.own.st.claim; claim != nil {
			if _, err := s.exec(ctx, claim, ch.vals); err != nil {
				return 0, err
			}
		}
		// No row to compare with: the history has the expected revision. If another
		// commit comes in between, it takes the place of this one's history row.
		r, err := s.record(ctx, ch.To.Key, false)
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
	case ch.l.objects.existing, s.e.insertNew != "", classify(err) != duplicate:
		return 0, err
	}
	if !ch.l.objects.existing { // the object may have a row already: a reserved or a removed one
		if n, updateErr := s.writeRow(ctx, p, ch, ch.l.st.update); updateErr != nil || n > 0 {
			return n, updateErr
		}
	}
	return 0, &missedError{err}
}

// at returns the values of a change with the time of the commit; nil: the statement reads the
// clock.
func (ch *change) at(p *plan) vector {
	ch.vals[vNow] = nil // that of an earlier attempt
	if p.at != 0 {
		ch.vals[vNow] = p.at
	}
	return ch.vals
}

// writeRow executes a statement that writes one row, and returns the number of rows.
func (s *session) writeRow(ctx context.Context, p *plan, ch *change, st *statement) (n int64, err error) {
	if s.e.returning {
		err = s.query(ctx, st, ch.at(p), func(rows *sql.Rows) error {
			n++
			return rows.Scan(&p.at)
		})
		return n, err
	}
	result, err := s.exec(ctx, st, ch.at(p))
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
// returns the state. An object that does not exist has no row in an existing table: its
// row in the store's own tables is locked, before the existing table is read.
func (s *session) hold(ctx context.Context, t target) (state string, err error) {
	l := s.of(t.Machine)
	if l.objects.existing && t.absent {
		if _, err := s.holdRow(ctx, s.own, t.Key); err != nil {
			return "", err
		}
	}
	r, err := s.holdRow(ctx, l, t.Key)
	return r.State, err
}

// holdRow locks the row of a key in the tables of a layout. In the store's own tables an
// object that never existed gets a row that can be locked.
func (s *session) holdRow(ctx context.Context, l *layout, key lifecycle.Key) (record, error) {
	r, err := s.recordIn(ctx, l, key, true)
	if err != nil || r.row || l.st.claim == nil {
		return r, err
	}
	if _, err := s.exec(ctx, l.st.claim, ofKey(key)); err != nil {
		return r, err
	}
	return s.recordIn(ctx, l, key, true)
}
