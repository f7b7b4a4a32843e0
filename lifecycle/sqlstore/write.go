package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// send writes a commit once. After errLost it may have been written; after any other error it
// was not.
func (s *Store) send(ctx context.Context, p *plan) error {
	switch {
	case s.tx != nil:
		return s.inCallersTx(ctx, p)
	case !p.single:
		return s.transaction(ctx, p)
	}
	// The statement commits itself. It has a connection of its own: an error before
	// that is not the statement's, and database/sql does not send the statement twice.
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = (&Store{shared: s.shared, q: conn}).write(ctx, p)
	if err != nil && (classify(err) == noAnswer || errors.Is(err, errRead)) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// transaction writes any commit.
func (s *Store) transaction(ctx context.Context, p *plan) error {
	if s.e.oneWriter { // a wait here ends when the engine is free; a wait in the engine polls
		if s.writer.Acquire(ctx, 1) != nil {
			return lifecycle.Ended(ctx)
		}
		defer s.writer.Release(1)
	}
	options := &sql.TxOptions{Isolation: s.e.isolation}
	if s.e.readsLock && p.commit.Owner.Name != "" {
		// The owner's record is read without a lock, also where the connection's default is
		// SERIALIZABLE, and as of the transaction or later.
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	accepted := false
	defer func() {
		if !accepted { // write returned an error, or a Type of the caller panicked in it
			// A rollback that fails ends the connection, and the transaction with it.
			_ = finish(ctx, tx.Rollback)
		}
	}()
	if err := (&Store{shared: s.shared, q: tx}).write(ctx, p); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	accepted = true
	err = finish(ctx, tx.Commit)
	if err != nil && classify(err) == noAnswer { // sql.ErrTxDone is none: COMMIT was not sent
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// finish commits a transaction or rolls it back. It waits for the driver until
// shortly after the end of the context: some drivers ignore the context here. The
// goroutine ends when the driver has the answer or drops the connection.
func finish(ctx context.Context, end func() error) error {
	const grace = 20 * time.Millisecond // most answers are on their way
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return lifecycle.Ended(ctx)
	}
}

// inCallersTx writes a commit in the caller's transaction. A savepoint takes back what a commit has
// written before it is refused, or fails for want of resources. It is released: PostgreSQL keeps
// every one until the end of the transaction, and slows down with their number. After any other
// error the caller rolls back.
func (s *Store) inCallersTx(ctx context.Context, p *plan) error {
	if _, err := s.tx.ExecContext(ctx, "SAVEPOINT interlock_commit"); err != nil {
		return err
	}
	s.ended = true // until the savepoint is released: the driver, or a Type of the caller, may panic
	err := s.write(ctx, p)
	if err != nil {
		c := classify(err)
		if !matches(err, errMissed, errHidden) && !c.refused() {
			return err
		}
		if _, back := s.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT interlock_commit"); back != nil {
			if c == unable {
				return err // the engine may have ended the transaction, and the savepoint with it
			}
			return fmt.Errorf("%w, after: %v", back, err)
		}
	}
	if _, err := s.tx.ExecContext(ctx, "RELEASE SAVEPOINT interlock_commit"); err != nil {
		return err
	}
	s.ended = false
	return err
}

// write executes the statements of a commit: one compare-and-set per change, in the
// order of the keys, with its history row; a locking read per required object; the
// messages. It returns errMissed for a change without its expected record, and for a
// precondition that does not hold, and errHidden; see explain.
func (s *Store) write(ctx context.Context, p *plan) (err error) {
	p.at = time.Time{}
	if !s.e.returning && (s.e.oneWriter || p.existing) { // the statements do not report it: see builder.reported
		if p.at, err = s.now(ctx); err != nil {
			return err
		}
	}
	if s.e.oneWriter && (p.several || p.existing) {
		// The lock of the database, before a read: the engine refuses a transaction that
		// reads first, and writes after another writer has committed.
		if _, err := s.q.ExecContext(ctx, "UPDATE "+s.own.objects.name+" SET id = id WHERE 1 = 0"); err != nil {
			return err
		}
	}
	states := make(map[lifecycle.Key]string, len(p.commit.Require))
	for _, t := range p.targets {
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
	// These come after the changes, so that a commit that is sent again is found first, and a
	// conflict is reported as one.
	for _, r := range p.commit.Require {
		if r.Grant != nil {
			err = s.checkGrant(ctx, r)
		} else if !slices.Contains(r.States, states[r.Key]) {
			err = errMissed
		}
		if err != nil {
			return err
		}
	}
	if owner := p.commit.Owner; owner.Name != "" {
		// Without a lock: heartbeats of the owner wait for no commit.
		now, _, err := s.record(ctx, s.own, owner.Key(), false)
		if err != nil {
			return err
		}
		if !owner.Alive(&now) {
			return &lifecycle.OwnerError{Owner: owner}
		}
	}
	for list := range slices.Chunk(p.commit.Messages, perStatement) {
		if err := s.addMessages(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// guarded is the driver of a grant that is a row of this database. The query returns a row
// if the grant is held, and locks the row until the end of the transaction: the grant is
// lost after this commit, or the commit is refused.
type guarded interface {
	GuardStatement() (query string, args []any)
}

// checkGrant refuses a commit under a grant that is lost.
func (s *Store) checkGrant(ctx context.Context, r lifecycle.Precondition) error {
	query, args := r.Grant.Driver().(guarded).GuardStatement() // see plan
	held := false
	err := s.query(ctx, &statement{text: query, args: args}, nil, func(*sql.Rows) error { held = true; return nil })
	if err == nil && !held {
		err = &lifecycle.PreconditionError{Precondition: r}
	}
	return err
}

// change writes one change and its history row.
func (s *Store) change(ctx context.Context, p *plan, ch *change) (err error) {
	st, existing := ch.l.st, ch.l.objects.existing
	creates, writes := ch.write == st.insert, []*statement{ch.write}
	switch {
	case creates && existing:
		if err := s.reserve(ctx, ch); err != nil {
			return err
		}
	case creates: // unless the object has a row already: a reserved or a removed one
		writes = append(writes, st.update)
	}
	var n int64 // rows
	for _, write := range writes {
		ch.row.at = p.at
		if s.e.returning {
			err = s.query(ctx, write, &ch.row, func(rows *sql.Rows) error {
				n++
				return rows.Scan(&cell{in: &p.at})
			})
		} else {
			n, err = s.execRow(ctx, p, ch, write)
		}
		if err == nil && n > 0 || err != nil && (s.e.insertNew != "" || classify(err) != duplicate) {
			break
		}
	}
	switch {
	case err == nil && n == 0 && creates && existing:
		err = errTaken
	case err == nil && n == 0:
		return errMissed
	case err == nil && n > 1:
		return fmt.Errorf("%w: %d rows of %q", errRows, n, ch.To.ID)
	case err == nil && st.addRow != nil && !ch.MetadataOnly:
		ch.row.at = p.at
		_, err = s.exec(ctx, st.addRow, &ch.row)
	}
	if err == nil || classify(err) != duplicate {
		return err
	}
	// Another commit has written the row, or the history row, or an index of the caller's is in the way.
	missed := errMissed
	if s.tx != nil && (!existing || ch.Request != "") {
		missed = errHidden
	}
	return fmt.Errorf("%w: %w", missed, err)
}

// execRow executes a statement that writes one row, and returns the number of rows. The engine
// may report the time of the commit.
func (s *Store) execRow(ctx context.Context, p *plan, ch *change, write *statement) (n int64, err error) {
	result, err := s.exec(ctx, write, &ch.row)
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil || n == 0 || !p.at.IsZero() {
		return n, err
	}
	micros, err := result.LastInsertId() // see builder.reported
	if err != nil || micros != 0 {
		p.at = time.UnixMicro(micros).UTC()
		return n, err
	}
	// The table has a trigger of the caller, which hides what the statement reports.
	now, _, err := s.record(ctx, ch.l, ch.To.Key, false)
	switch {
	case !ch.MetadataOnly:
		p.at = now.ChangedAt
	case ch.Timeout > 0:
		p.at = now.Deadline.Add(-ch.Timeout.Truncate(time.Microsecond))
	}
	return n, err
}

// reserve returns errMissed if an object of an existing table cannot be created. Commits wait
// that require the absence of the object: both lock the key's row in the store's own tables, see
// hold. The row is written, so that a transaction of the caller whose reads are older is refused.
//
// There is no row to compare with: the history has the expected revision. If another commit
// comes in between, it takes the place of this one's history row.
func (s *Store) reserve(ctx context.Context, ch *change) error {
	if claim := s.own.st.claim; claim != nil {
		if _, err := s.exec(ctx, claim, &ch.row); err != nil {
			return err
		}
	}
	r, _, err := s.record(ctx, ch.l, ch.To.Key, false)
	if err == nil && (r.Exists() || r.Revision != ch.Expect) {
		err = errMissed
	}
	return err
}

// hold locks the row of a required object until the end of the transaction, and returns the
// state. An object that does not exist has no row in an existing table: its row in the store's
// own tables is locked, before the existing table is read. There an object that never existed
// gets a row that can be locked.
func (s *Store) hold(ctx context.Context, t target) (state string, err error) {
	layouts := []*layout{s.of(t.Machine)}
	if layouts[0].objects.existing && t.absent {
		layouts = []*layout{s.own, layouts[0]}
	}
	for _, l := range layouts {
		r, exists, err := s.record(ctx, l, t.Key, true)
		if err == nil && !exists && l.st.claim != nil {
			if _, err = s.exec(ctx, l.st.claim, &row{StoredRecord: lifecycle.StoredRecord{Key: t.Key}}); err == nil {
				r, _, err = s.record(ctx, l, t.Key, true)
			}
		}
		if err != nil {
			return "", err
		}
		state = r.State
	}
	return state, nil
}

// addMessages writes messages of a commit.
func (s *Store) addMessages(ctx context.Context, list []lifecycle.Message) error {
	return s.do(ctx, s.own, func(b *builder) string {
		rows := literals(list, func(m lifecycle.Message) string {
			return "(" + b.literal(m.Topic) + ", " + b.literal(m.Key) + ", " + b.literal(m.Payload) + ")"
		})
		return "INSERT INTO " + s.table("messages") + " (topic, subject, payload) VALUES " + rows
	})
}
