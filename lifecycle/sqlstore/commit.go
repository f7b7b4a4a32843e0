package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// trigger or a column refuses, with the engine's error: a column of an existing table, or, on
// PostgreSQL, that of a Reason or a message which is not UTF-8 without NUL;
// [lifecycle.ErrPrecondition] if a foreign key or another unique index of it refuses them,
// because of another row, with the engine's error;
// [errors.ErrUnsupported] for values that an existing table, or the store's own table of an
// older version, has no column for;
// [ErrRollback] in a transaction of the caller; [ErrHistory] if a table was restored without
// the other.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	err = s.call(ctx, func() error {
		err := s.send(ctx, p)
		if matches(err, errMissed, errHidden) {
			err = s.explain(ctx, p, err)
		}
		if errors.Is(err, errLost) {
			p.lost = err
			err = s.resolve(ctx, p)
		}
		return err
	})
	switch {
	case err == nil:
		p.stamp()
		return nil
	case errors.Is(err, lifecycle.ErrConflict) && (p.lost == nil || p.superseded):
		return err
	case p.lost != nil:
		return unknown(ctx, p, err)
	case isVerdict(err):
		return err
	case s.tx != nil && !errors.Is(err, errMissed) && (classify(err) == busy || classify(err) == duplicate):
		return fmt.Errorf("%w: %w: %w", ErrRollback, lifecycle.ErrUnavailable, err)
	}
	return s.refusal(ctx, err)
}

// plan is a commit with the rows that it writes.
type plan struct {
	commit  *lifecycle.Commit
	changes []change // in the order of the commit
	// targets are the objects of the commit in the order of their keys, each once. All
	// commits lock their rows in this order, so that two commits never wait for each
	// other.
	targets      []target
	several      bool // there is more than one change or precondition
	metadataOnly bool // a change is MetadataOnly
	existing     bool // a change is in an existing table
	single       bool // one statement writes the commit

	at         time.Time // of the commit; zero: not known yet
	lost       error     // the last lost answer: the history may have the commit
	superseded bool      // another commit is at the place of this one, which never will be written
}

// change is one change of a plan.
type change struct {
	*lifecycle.StoredChange
	l     *layout
	row   row
	write *statement // writes the record; insert: the object may have no row
}

// target is an object that a plan changes or, without a change, requires.
type target struct {
	lifecycle.Key
	change *change
	absent bool // it may be required to be absent
}

// plan checks a commit and computes its rows.
func (s *shared) plan(c *lifecycle.Commit) (*plan, error) {
	if err := c.Check(s.has); err != nil {
		return nil, err
	}
	p := &plan{commit: c, changes: make([]change, len(c.Changes)), several: len(c.Changes)+len(c.Require) > 1}
	for i := range c.Changes {
		ch := &p.changes[i]
		ch.StoredChange, ch.l = &c.Changes[i], s.of(c.Changes[i].To.Machine)
		if err := ch.fill(p); err != nil {
			return nil, err
		}
		p.metadataOnly = p.metadataOnly || ch.MetadataOnly
		p.existing = p.existing || ch.l.objects.existing
		p.targets = append(p.targets, target{Key: ch.To.Key, change: ch})
	}
	p.single = s.e.returning && !p.existing && !p.several && len(c.Messages) == 0 && c.Owner.Name == ""
	for _, r := range c.Require {
		if r.Grant != nil {
			if _, ok := r.Grant.Driver().(guarded); !ok {
				return nil, fmt.Errorf("%w: the grant with token %v is not of a lock in this database", errors.ErrUnsupported, r.Grant.Token())
			}
			continue
		}
		if err := checkKey(r.Key); err != nil {
			return nil, err
		}
		if _, err := s.of(r.Machine).objects.column[vID].write(r.ID); err != nil {
			return nil, err
		}
		p.targets = append(p.targets, target{Key: r.Key, absent: slices.Contains(r.States, "")})
	}
	if err := checkName("owner", c.Owner.Name, maxName); err != nil {
		return nil, err
	}
	// Stable: the change of an object comes before its requirements, which go.
	slices.SortStableFunc(p.targets, func(a, b target) int {
		return cmp.Or(strings.Compare(a.Machine, b.Machine), strings.Compare(a.ID, b.ID))
	})
	p.targets = slices.CompactFunc(p.targets, func(a, b target) bool { return a.Key == b.Key })
	return p, nil
}

// fill computes the row of a change, selects its statement, and checks both.
func (ch *change) fill(p *plan) error {
	to, l := &ch.To, ch.l
	expect, before := l.parse(ch.Expect)
	if before == nil {
		before = l.noToken
	}
	ch.row = row{
		StoredRecord: ch.Result(), number: expect + 1, token: p.commit.Token[:],
		from: ch.From, fromOrigin: ch.FromOrigin, to: to.State, toOrigin: to.Origin,
		request:     sql.NullString{String: ch.Request, Valid: ch.Request != ""},
		fingerprint: sql.NullString{String: ch.Fingerprint, Valid: ch.Request != ""},
		expect:      expect, expectToken: before,
		timeout: sql.NullInt64{Int64: ch.Timeout.Microseconds(), Valid: ch.Timeout > 0 && !ch.Remove},
		fields:  make([]sql.NullString, len(l.objects.column)-int(values)),
	}
	ch.row.Version = to.Version
	if len(ch.row.fields) > 0 {
		if err := l.objects.split(&ch.row); err != nil {
			return err
		}
	}
	ch.write = l.st.update
	switch {
	case ch.MetadataOnly:
		ch.write = l.st.setMetadata
	case ch.Remove && l.objects.existing:
		ch.write = l.st.remove
	case ch.From == "" && (expect == l.floor || l.objects.existing):
		ch.write = l.st.insert
	}
	return ch.check()
}

// check refuses values that the engines would not return as they were given, and fields that
// the table has no column for, if their loss would be unsound. The store's own table lacks a
// column in version 1.
func (ch *change) check() error {
	to, l := &ch.To, ch.l
	if err := checkKey(to.Key); err != nil {
		return err
	}
	for v, x := range ch.row.cells()[:values] {
		c, name, set := &columns[v], "", false
		switch x := x.(type) {
		case *string:
			name, set = *x, *x != ""
		case *sql.NullString:
			if x.Valid {
				name = x.String
			}
		case *uint64:
			set = *x != 0
			if *x > maxNumber && value(v) != vExpect {
				return fmt.Errorf("%w: %s of %q is above %d", lifecycle.ErrInvalid, c.objects, to.ID, uint64(maxNumber))
			}
		case *[]byte:
			set = len(*x) > 0 || *x != nil && value(v) == vSaved
		case *time.Time:
			set = value(v) == vDeadline && ch.row.timeout.Valid
		}
		if c.most > 0 {
			if err := checkName(cmp.Or(c.objects, c.history), name, c.most); err != nil {
				return err
			}
		}
		if value(v) == vOrigin && to.Origin == to.State {
			continue // it is read so
		}
		if set && c.field != "" && l.objects.col(value(v)) == "" {
			return fmt.Errorf("%w: change of %q: the table has no column for %s", errors.ErrUnsupported, to.ID, c.objects)
		}
	}
	if !l.objects.existing {
		return nil
	}
	if ch.Request != "" && l.history.col(vRequest) == "" {
		return errRequests
	}
	_, err := ch.write.bind(&ch.row) // the types of columns may refuse values
	if err == nil && l.st.addRow != nil && !ch.MetadataOnly {
		_, err = l.st.addRow.bind(&ch.row)
	}
	return err
}

// stamp sets the results in the caller's commit.
func (p *plan) stamp() {
	for i := range p.changes {
		ch := &p.changes[i]
		ch.Stamp(ch.l.revision(ch.row.number, p.commit.Token[:]), p.at)
		ch.To.Deadline = ch.To.Deadline.Truncate(time.Microsecond) // as the table keeps it
		// A token that the table does not keep must not be sent to peers: a report with it
		// would be stale.
		if ch.l.objects.col(vAdmission) == "" {
			ch.To.Admission = lifecycle.Token{}
		}
		if ch.l.objects.col(vChangeToken) == "" {
			ch.To.ChangeToken = lifecycle.Token{}
		}
	}
}
