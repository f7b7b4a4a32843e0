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

// Commit implements [lifecycle.Store]. The whole commit is one transaction, or one
// statement if the engine can do it. Deadlocks, serialization failures and a locked
// database are retried for [Config.RetryFor]; after that Commit returns
// [lifecycle.ErrUnavailable], and nothing is written. If the answer of the engine is lost, the store
// searches the history for the commit, and sends it again with the same token while
// the context lasts.
//
// Errors, in addition to those of the interface: [lifecycle.ErrInvalid] for names
// that are not up to 255 bytes of UTF-8 without NUL, and for values that a check, a
// trigger or a column of an existing table refuses, with the engine's error;
// [lifecycle.ErrPrecondition] if a foreign key or another unique index of it refuses them,
// because of another row, with the engine's error;
// [errors.ErrUnsupported] for values that an existing table, or the store's own table of an
// older version, has no column for;
// [ErrRollback] in a transaction of the caller; [ErrHistory] if a table was restored without
// the other. In a Reason, and in topics and keys of messages, U+FFFD replaces what is not
// UTF-8.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	for r := (retry{most: s.config.RetryFor}); ; {
		err := s.send(ctx, p)
		if errors.Is(err, errMissed) {
			err = s.explain(ctx, p, err)
		}
		if errors.Is(err, errLost) {
			p.lost = err
			err = s.resolve(ctx, p)
		}
		switch {
		case err == nil:
			p.stamp()
			return nil
		case errors.Is(err, lifecycle.ErrConflict) && (p.lost == nil || p.superseded):
			return err
		case s.tx == nil && r.again(ctx, err):
			continue
		case p.lost != nil:
			return unknown(ctx, p, err)
		case isVerdict(err):
			return err
		case s.tx != nil && !errors.Is(err, errMissed) && (classify(err) == busy || classify(err) == duplicate):
			return fmt.Errorf("%w: %w: %w", ErrRollback, lifecycle.ErrUnavailable, err)
		}
		return s.refusal(ctx, err)
	}
}

// send writes a commit once. After errLost it may have been written; after any other error it
// was not.
func (s *Store) send(ctx context.Context, p *plan) error {
	switch {
	case s.tx != nil:
		return s.part(ctx, p)
	case !s.e.returning || p.existing || p.several || len(p.commit.Messages) > 0 || p.commit.Owner.Name != "":
		return s.transaction(ctx, p)
	}
	// One statement, which commits itself. It has a connection of its own: an error before
	// that is not the statement's, and database/sql does not send the statement twice.
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = s.on(conn).write(ctx, p)
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
	if err := s.on(tx).write(ctx, p); err != nil {
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

// part writes a commit in the caller's transaction. A savepoint takes back what a commit has
// written before it is refused.
func (s *Store) part(ctx context.Context, p *plan) error {
	savepoint := p.several || p.existing || p.commit.Owner.Name != ""
	if savepoint {
		if _, err := s.tx.ExecContext(ctx, "SAVEPOINT interlock_commit"); err != nil {
			return err
		}
	}
	err := s.write(ctx, p)
	if savepoint && (errors.Is(err, errMissed) || errors.Is(err, lifecycle.ErrStale) || errors.Is(err, lifecycle.ErrPrecondition)) {
		if _, err := s.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT interlock_commit"); err != nil {
			return err
		}
	}
	return err
}

// write executes the statements of a commit: one compare-and-set per change, in the
// order of the keys, with its history row; a locking read per required object; the
// messages. It returns errMissed for a change without its expected record, and for a
// precondition that does not hold; see explain.
func (s *Store) write(ctx context.Context, p *plan) (err error) {
	p.at = sql.NullInt64{}
	if !s.e.returning && (s.e.oneWriter || p.existing) { // the statements do not report it: see builder.reported
		if p.at.Int64, err = s.now(ctx); err != nil {
			return err
		}
		p.at.Valid = true
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
		now, err := s.record(ctx, owner.Key(), false)
		if err != nil {
			return err
		}
		if !owner.Alive(&now) {
			return &lifecycle.OwnerError{Owner: owner}
		}
	}
	return s.addMessages(ctx, p.commit.Messages)
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
func (s *Store) change(ctx context.Context, p *plan, ch *change) error {
	st := ch.l.st
	creates, existing := ch.write == st.insert, ch.l.objects.existing
	if creates && existing {
		if err := s.reserve(ctx, ch); err != nil {
			return err
		}
	}
	n, err := s.writeRow(ctx, p, ch, ch.write)
	if creates && (err == nil && n == 0 || s.e.insertNew == "" && classify(err) == duplicate) {
		if !existing { // the object has a row already: a reserved or a removed one
			n, err = s.writeRow(ctx, p, ch, st.update)
		} else if err == nil {
			err = errTaken
		}
	}
	switch {
	case err == nil && n == 0:
		return errMissed
	case err == nil && n > 1:
		return fmt.Errorf("%w: %d rows of %q", errRows, n, ch.To.ID)
	case err == nil && st.addRow != nil && !ch.MetadataOnly:
		_, err = s.exec(ctx, st.addRow, ch.vals)
	}
	if err == nil || classify(err) != duplicate || s.tx != nil && (!existing || ch.Request != "") {
		return err // without a savepoint, or the transaction may not see the row that has the request
	}
	// Another commit has written the row, or the history row, or an index of the caller's is in the way.
	return fmt.Errorf("%w: %w", errMissed, err)
}

// reserve returns errMissed if an object of an existing table cannot be created. Commits wait
// that require the absence of the object: both lock the key's row in the store's own tables, see
// hold. The row is written, so that a transaction of the caller whose reads are older is refused.
//
// There is no row to compare with: the history has the expected revision. If another commit
// comes in between, it takes the place of this one's history row.
func (s *Store) reserve(ctx context.Context, ch *change) error {
	if claim := s.own.st.claim; claim != nil {
		if _, err := s.exec(ctx, claim, ch.vals); err != nil {
			return err
		}
	}
	r, err := s.record(ctx, ch.To.Key, false)
	if err == nil && (r.Exists() || r.Revision != ch.Expect) {
		err = errMissed
	}
	return err
}

// writeRow executes a statement that writes one row, and returns the number of rows. The engine
// may report the time of the commit.
func (s *Store) writeRow(ctx context.Context, p *plan, ch *change, st *statement) (n int64, err error) {
	if s.e.returning {
		err = s.query(ctx, st, ch.vals, func(rows *sql.Rows) error {
			n++
			return rows.Scan(&p.at)
		})
		return n, err
	}
	result, err := s.exec(ctx, st, ch.vals)
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil || n == 0 || p.at.Valid {
		return n, err
	}
	p.at.Int64, err = result.LastInsertId() // see builder.reported; 0: not reported
	p.at.Valid = p.at.Int64 != 0
	return n, err
}

// hold locks the row of a required object until the end of the transaction, and
// returns the state. An object that does not exist has no row in an existing table: its
// row in the store's own tables is locked, before the existing table is read.
func (s *Store) hold(ctx context.Context, t target) (state string, err error) {
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
func (s *Store) holdRow(ctx context.Context, l *layout, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, row, err := s.recordIn(ctx, l, key, true)
	if err != nil || row || l.st.claim == nil {
		return r, err
	}
	if _, err := s.exec(ctx, l.st.claim, ofKey(key)); err != nil {
		return r, err
	}
	r, _, err = s.recordIn(ctx, l, key, true)
	return r, err
}

// addMessages writes the messages of a commit.
func (s *Store) addMessages(ctx context.Context, messages []lifecycle.Message) error {
	for list := range slices.Chunk(messages, perStatement) {
		err := s.do(ctx, s.own, func(b *builder) {
			b.add("INSERT INTO ", s.table("messages"), " (topic, subject, payload) VALUES ", literals(list, func(m lifecycle.Message) string {
				return "(" + b.literal(cleaned(m.Topic)) + ", " + b.literal(cleaned(m.Key)) + ", " + b.literal(m.Payload) + ")"
			}))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
