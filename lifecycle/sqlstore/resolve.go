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
	for attempts := 5; ; attempts++ {
		err := s.on(s.db).compare(ctx, p)
		if err == nil || classify(err) == busy || classify(err).refused() || !pause(ctx, attempts) {
			return err
		}
	}
}

// explain returns the result of a commit that has missed a row: nil if the same
// commit was written before, the conflict, the precondition that does not hold, or
// the reason or errBusy if all is as expected now.
func (s *session) explain(ctx context.Context, p *plan, missed *missedError) error {
	if err := s.compare(ctx, p); err != errBusy {
		return err
	}
	if err := s.checkRequests(ctx, p); err != nil {
		return err
	}
	for _, required := range p.commit.Require {
		if required.Grant != nil {
			continue // see checkGrants
		}
		now, err := s.current(ctx, required.Key)
		if err != nil {
			return err
		}
		if !slices.Contains(required.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: required, Current: now.StoredRecord}
		}
	}
	if missed.err == nil {
		return errBusy
	}
	if err := s.checkPlaces(ctx, p); err != nil {
		return err
	}
	return missed.err
}

// checkRequests returns a [*lifecycle.RepeatedError] if another commit has the request of a
// change.
func (s *session) checkRequests(ctx context.Context, p *plan) error {
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
	return nil
}

// checkPlaces refuses a commit whose places in the history are taken, although its
// objects are as expected: the history was restored without the records.
func (s *session) checkPlaces(ctx context.Context, p *plan) error {
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
			return notOneBackup(ch.To.Key, fmt.Sprintf("has a history row of sequence number %d and no such record", ch.To.Sequence))
		case err != nil || row != nil:
			return err
		}
	}
	return nil
}

// compare reads the records of a commit. If all are as expected, it returns errBusy.
// Otherwise it returns nil if the commit was written before, or the first conflict.
func (s *session) compare(ctx context.Context, p *plan) error {
	for i := range p.changes {
		ch := &p.changes[i]
		now, err := s.current(ctx, ch.To.Key)
		if err != nil {
			return err
		}
		if now.Revision == ch.Expect && now.State == ch.From {
			continue
		}
		found, err := s.find(ctx, p)
		if err != nil || found == written {
			return err
		}
		p.superseded = found == superseded
		return &lifecycle.ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now.StoredRecord}
	}
	return errBusy
}

// current reads a record. In a transaction of the caller it reads the newest
// version, which may be newer than what the transaction sees.
func (s *session) current(ctx context.Context, key lifecycle.Key) (record, error) {
	return s.record(ctx, key, s.callTx)
}

// finding is what the store knows about a commit.
type finding uint8

const (
	unproved   finding = iota // nothing
	written                   // it was written
	superseded                // another commit has its place: it never will be written
)

// find searches for a commit, and sets its time if it was written. Without a lost
// answer a MetadataOnly commit that is sent again is a conflict.
func (s *session) find(ctx context.Context, p *plan) (finding, error) {
	switch {
	case p.metadataOnly && !p.lost:
		return unproved, nil
	case !p.metadataOnly:
		return s.findInHistory(ctx, p)
	}
	return s.findInRecords(ctx, p)
}

// place returns the token and the time of the history row at the place of a change, or nil. In
// a transaction of the caller it reads the newest version.
func (s *session) place(ctx context.Context, ch *change) (row *cells, err error) {
	st := ch.l.st.findRow
	if s.callTx {
		st = ch.l.st.findRowLocked
	}
	err = s.query(ctx, st, ch.vals, func(rows *sql.Rows) (err error) {
		row, err = ch.l.history.scan(rows, []value{vToken, vNow})
		return err
	})
	return row, err
}

// findInHistory compares the tokens of the rows at the places of the changes. A
// missing row proves nothing: it may have been trimmed.
func (s *session) findInHistory(ctx context.Context, p *plan) (finding, error) {
	for i := range p.changes {
		ch := &p.changes[i]
		row, err := s.place(ctx, ch)
		switch {
		case err != nil || row == nil || len(row.data[vToken]) == 0:
			return unproved, err
		case row.token(vToken) != p.commit.Token:
			return superseded, nil
		}
		p.at = row.number(vNow)
	}
	return written, nil
}

// findInRecords compares the tokens of the records, which are those of their last
// commits. One record with the number of this commit and another token is a proof;
// several are not, because they are read one after the other.
func (s *session) findInRecords(ctx context.Context, p *plan) (finding, error) {
	for i := range p.changes {
		ch := &p.changes[i]
		now, err := s.current(ctx, ch.To.Key)
		if err != nil {
			return unproved, err
		}
		number, token := ch.l.parse(now.Revision)
		switch {
		case number != ch.expect+1 || ch.l.objects.col(vToken) == "":
			return unproved, nil
		case bytes.Equal(token, p.commit.Token[:]):
		case len(p.changes) == 1:
			return superseded, nil
		default:
			return unproved, nil
		}
		switch {
		case ch.MetadataOnly && ch.Timeout > 0:
			p.at = now.Deadline.UnixMicro() - micros(ch.Timeout)
		case !ch.MetadataOnly && !now.ChangedAt.IsZero():
			p.at = now.ChangedAt.UnixMicro()
		}
	}
	return written, nil
}
