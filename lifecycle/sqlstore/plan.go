package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	maxName   = 255           // bytes of a column that is in an index
	maxWord   = 1023          // bytes of the other names
	maxNumber = math.MaxInt64 // of a column on all engines
)

// plan is a commit with the arguments of its statements.
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

	at         sql.NullInt64 // microseconds: the time of the commit; NULL: not known yet
	lost       error         // the last lost answer: the commit may be found in the records
	superseded bool          // another commit is at the place of this one, which never will be written
}

// change is one change of a plan.
type change struct {
	*lifecycle.StoredChange
	l      *layout
	vals   vector
	expect int64      // the number of the expected revision
	write  *statement // writes the record; insert: the object may have no row
}

// target is an object that a plan changes or, without a change, requires.
type target struct {
	lifecycle.Key
	change *change
	absent bool // it may be required to be absent
}

// plan checks a commit and computes the arguments of its statements.
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
	for i := range c.Require {
		r := &c.Require[i]
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
	if c.Owner.Name != "" {
		if err := checkKey(c.Owner.Key()); err != nil {
			return nil, err
		}
	}
	// Stable: the change of an object comes before its requirements, which go.
	slices.SortStableFunc(p.targets, func(a, b target) int {
		return cmp.Or(strings.Compare(a.Machine, b.Machine), strings.Compare(a.ID, b.ID))
	})
	p.targets = slices.CompactFunc(p.targets, func(a, b target) bool { return a.Key == b.Key })
	return p, nil
}

// fill computes the values of a change, selects its statement, and checks both.
func (ch *change) fill(p *plan) (err error) {
	to, l := &ch.To, ch.l
	expect, before := l.parse(ch.Expect)
	if before == nil {
		before = l.noToken
	}
	row := ch.Result()
	ch.expect, ch.vals = expect, append(vector{
		vMachine: row.Machine, vID: row.ID, vState: row.State, vOrigin: row.Origin, vTarget: row.Target,
		vRevision: expect + 1, vSequence: int64(row.Sequence), vOperation: int64(row.Operation),
		vAdmission: orNull(row.Admission), vChangeToken: orNull(row.ChangeToken), vFence: int64(row.Fence), vVersion: to.Version,
		vOwner: row.Owner, vEpoch: int64(row.Epoch), vWork: row.Work, vArgs: row.Args, vWorkOptions: row.WorkOptions,
		vActor: string(row.Actor), vEvent: row.Event, vReason: cleaned(row.Reason), vSaved: row.Saved, vToken: p.commit.Token[:],
		vFromState: ch.From, vFromOrigin: ch.FromOrigin, vTo: to.State, vToOrigin: to.Origin, vNow: &p.at,
		vExpect: expect, vExpectToken: before,
	}, make(vector, len(l.objects.column)-int(values))...)
	if ch.vals[vPayload], err = l.objects.split(row.Payload, ch.vals); err != nil {
		return err
	}
	if ch.Request != "" {
		ch.vals[vRequest], ch.vals[vFingerprint] = ch.Request, ch.Fingerprint
	}
	if ch.Timeout > 0 && !ch.Remove {
		ch.vals[vDeadline] = micros(ch.Timeout)
	}
	ch.write = l.st.update
	switch {
	case ch.MetadataOnly:
		ch.write = l.st.setMetadata
	case ch.Remove && l.objects.existing:
		ch.write = l.st.remove
	case ch.From == "" && (expect == int64(l.floor) || l.objects.existing):
		ch.write = l.st.insert
	}
	return ch.check()
}

// orNull returns the bytes of a token, or nil for the zero token.
func orNull(token lifecycle.Token) []byte {
	if token == (lifecycle.Token{}) {
		return nil
	}
	return token[:]
}

// check refuses values that the engines would not return as they were given, and fields that
// the table has no column for, if their loss would be unsound. The store's own table lacks a
// column in version 1.
func (ch *change) check() error {
	to, l := &ch.To, ch.l
	if err := checkKey(to.Key); err != nil {
		return err
	}
	for v, c := range columns {
		set := false
		switch x := ch.vals[v].(type) {
		case string:
			if set = x != ""; c.most > 0 {
				if err := checkName(cmp.Or(c.objects, c.history), x, c.most); err != nil {
					return err
				}
			}
		case int64:
			if set = x != 0; x < 0 && value(v) != vExpect {
				return fmt.Errorf("%w: %s of %q is above %d", lifecycle.ErrInvalid, c.objects, to.ID, uint64(maxNumber))
			}
		case []byte:
			set = len(x) > 0 || x != nil && value(v) == vSaved
		}
		if value(v) == vOrigin && to.Origin == to.State {
			continue // it is read so
		}
		if set && c.field != "" && l.objects.col(value(v)) == "" {
			return fmt.Errorf("%w: change of %q: the table has no column for %s", errors.ErrUnsupported, to.ID, c.objects)
		}
	}
	if ch.Request != "" && l.history.col(vRequest) == "" {
		return errRequests
	}
	_, err := ch.write.bind(ch.vals)
	if err == nil && l.st.addRow != nil && !ch.MetadataOnly {
		_, err = l.st.addRow.bind(ch.vals)
	}
	return err
}

// checkName refuses names that the engines would not keep alike.
func checkName(what, name string, most int) error {
	if len(name) > most || strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %s %.300q is not up to %d bytes of UTF-8 without NUL", lifecycle.ErrInvalid, what, name, most)
	}
	return nil
}

func checkKey(key lifecycle.Key) error {
	if key.Machine == "" || key.ID == "" {
		return fmt.Errorf("%w: key without a machine or an id", lifecycle.ErrInvalid)
	}
	if err := checkName("machine", key.Machine, maxName); err != nil {
		return err
	}
	return checkName("id", key.ID, maxName)
}

// cleaned replaces what is not UTF-8, and NUL, in a text for people: the text of an
// error must not keep the outcome from being written.
func cleaned(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// stamp sets the results in the caller's commit.
func (p *plan) stamp() {
	for i := range p.changes {
		ch := &p.changes[i]
		ch.Stamp(ch.l.revision(ch.expect+1, p.commit.Token[:]), clock(p.at.Int64))
		if ch.Timeout > 0 { // as the table keeps it
			ch.To.Deadline = clock(p.at.Int64 + micros(ch.Timeout))
		}
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

// clock returns a time of the store, zero if there is none.
func clock(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// micros returns a duration in microseconds, rounded up.
func micros(d time.Duration) int64 {
	if d%time.Microsecond > 0 {
		return d.Microseconds() + 1
	}
	return d.Microseconds()
}
