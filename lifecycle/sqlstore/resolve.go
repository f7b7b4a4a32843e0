package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// searchFor bounds the search for a commit whose answer was lost. The end of the caller's
// context does not shorten it.
const searchFor = time.Second

// resolve finds out whether a commit was written whose answer was lost. It returns
// nil if it was; a conflict if its objects have moved on; errBusy if they have not,
// so that the commit can be sent again; another error if the engine does not answer.
func (s *Store) resolve(ctx context.Context, p *plan) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), searchFor)
	defer stop()
	for attempts := 1; ; attempts++ {
		err := s.compare(ctx, p)
		if err == nil || classify(err) == busy || classify(err).refused() || !pause(ctx, attempts) {
			return err
		}
	}
}

// explain returns the result of a commit that has missed a row: nil if the same commit was
// written before, the conflict, the row that has the request of a change, the precondition that
// does not hold, or the reason or errBusy if all is as expected now.
func (s *Store) explain(ctx context.Context, p *plan, missed error) error {
	if err := s.compare(ctx, p); err != errBusy {
		return err
	}
	for i := range p.changes {
		ch := &p.changes[i]
		if ch.Request == "" {
			continue
		}
		if row, err := s.requested(ctx, ch.To.Machine, ch.Request); err != nil {
			return err
		} else if row.Request != "" {
			return &lifecycle.RepeatedError{Row: row}
		}
	}
	for _, required := range p.commit.Require {
		if required.Grant != nil {
			continue // see checkGrant
		}
		now, _, err := s.record(ctx, s.of(required.Machine), required.Key, s.tx != nil)
		if err != nil {
			return err
		}
		if !slices.Contains(required.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: required, Current: now}
		}
	}
	if missed == errMissed {
		return errBusy
	}
	if err := s.checkPlaces(ctx, p); err != nil {
		return err
	}
	return missed
}

// checkPlaces refuses a commit whose places in the history are taken, although its
// objects are as expected: the history was restored without the records, or another program
// has deleted and inserted a row of an existing table.
func (s *Store) checkPlaces(ctx context.Context, p *plan) error {
	for i := range p.changes {
		ch := &p.changes[i]
		if ch.MetadataOnly {
			continue
		}
		row, err := s.place(ctx, ch)
		if err == nil && row != nil {
			// Another commit may have written the row and the record since compare.
			err = s.compare(ctx, p)
		}
		switch {
		case err == errBusy:
			err = notOneBackup(ch.To.Key, fmt.Sprintf("has a history row of sequence number %d and no such record", ch.To.Sequence))
			if ch.l.objects.existing {
				err = fmt.Errorf("%w, or continue the numbers in a row that another program has inserted", err)
			}
			return err
		case err != nil || row != nil:
			return err
		}
	}
	return nil
}

// compare reads the records of a commit. If all are as expected, it returns errBusy.
// Otherwise it returns nil if the commit was written before, or the first conflict. In a
// transaction of the caller it reads the newest versions, which a lock does, and which may be
// newer than what the transaction sees; so do the other searches here.
func (s *Store) compare(ctx context.Context, p *plan) error {
	for i := range p.changes {
		ch := &p.changes[i]
		now, _, err := s.record(ctx, ch.l, ch.To.Key, s.tx != nil)
		if err != nil {
			return err
		}
		if now.Revision == ch.Expect && now.State == ch.From {
			continue
		}
		if written, err := s.find(ctx, p); err != nil || written {
			return err
		}
		return &lifecycle.ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
	}
	return errBusy
}

// find reports whether a commit was written, and sets its time; or whether it is superseded. The
// history row of any change proves it. A MetadataOnly change has none: a commit with one is
// searched only after a lost answer, because otherwise a commit that is sent again is a conflict.
func (s *Store) find(ctx context.Context, p *plan) (written bool, err error) {
	p.superseded = false
	if p.metadataOnly && p.lost == nil {
		return false, nil
	}
	for i := range p.changes {
		if p.changes[i].MetadataOnly {
			continue
		}
		// Without a row or a token nothing is proved: a history row may have been trimmed.
		found, err := s.place(ctx, &p.changes[i])
		if err != nil || found == nil || len(found.token) == 0 {
			return false, err
		}
		if !bytes.Equal(found.token, p.commit.Token[:]) {
			p.superseded = true
			return false, nil
		}
		written, p.at = true, found.at
	}
	return written, nil
}

// place returns the token and the time of the history row at the place of a change, or nil. In
// a transaction of the caller it reads the newest version.
func (s *Store) place(ctx context.Context, ch *change) (found *row, err error) {
	st := ch.l.st.findRow
	if s.tx != nil {
		st = ch.l.st.findRowLocked
	}
	err = s.query(ctx, st, &ch.row, func(rows *sql.Rows) (err error) {
		found, err = st.scan(rows)
		return err
	})
	return found, err
}
