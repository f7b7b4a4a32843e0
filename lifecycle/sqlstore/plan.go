package sqlstore

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

// vector has the values of one change for every statement.
type vector [values]any

// args returns the arguments of a statement. The time is vNow, in microseconds; 0: the
// statement reads the clock.
func (vals *vector) args(st *statement, now int64) []any {
	args := make([]any, len(st.args))
	for i, a := range st.args {
		v, ok := a.(value)
		switch {
		case !ok:
			args[i] = a
		case v != vNow:
			args[i] = vals[v]
		case now != 0:
			args[i] = now
		}
	}
	return args
}

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

	at         int64 // microseconds: the time of the commit; 0: not known yet
	lost       bool  // the answer of an attempt was lost: the commit may be found in the records
	superseded bool  // another commit is at the place of this one, which never will be written
}

// change is one change of a plan.
type change struct {
	*lifecycle.StoredChange
	vals   vector
	expect int64      // the number of the expected revision
	write  *statement // writes the record
	first  bool       // the object may have no row, and write inserts it
}

// target is an object that a plan changes or, without a change, requires.
type target struct {
	lifecycle.Key
	change *change
}

// plan checks a commit and computes the arguments of its statements.
func (s *shared) plan(c *lifecycle.Commit) (*plan, error) {
	if err := c.Check(s.has); err != nil {
		return nil, err
	}
	p := &plan{commit: c, changes: make([]change, len(c.Changes)), several: len(c.Changes)+len(c.Require) > 1}
	for i := range c.Changes {
		ch := &p.changes[i]
		ch.StoredChange = &c.Changes[i]
		if err := s.checkChange(ch.StoredChange); err != nil {
			return nil, err
		}
		if s.l.objects.existing {
			if err := s.l.keeps(ch.StoredChange); err != nil {
				return nil, err
			}
		}
		s.fill(ch, c.Token)
		p.metadataOnly = p.metadataOnly || ch.MetadataOnly
		p.targets = append(p.targets, target{ch.To.Key, ch})
	}
	for i := range c.Require {
		if err := s.checkKey(c.Require[i].Key); err != nil {
			return nil, err
		}
		p.targets = append(p.targets, target{Key: c.Require[i].Key})
	}
	if c.Owner.Name != "" {
		if s.l.objects.existing {
			return nil, fmt.Errorf("%w: commit of owner %.300q: an existing table keeps no owners", errors.ErrUnsupported, c.Owner.Name)
		}
		if err := checkName("owner", c.Owner.Name, maxName); err != nil {
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

// fill computes the values of a change and selects its statement.
func (s *shared) fill(ch *change, token lifecycle.Token) {
	to := &ch.To
	expect, before := s.l.parse(ch.Expect)
	if before == nil {
		before = s.l.noToken
	}
	from := ch.From
	if from == "" {
		from = s.l.removed
	}
	row := *to
	if ch.Remove { // the numbers continue
		row = lifecycle.StoredRecord{
			Key: to.Key, State: s.l.removed, Sequence: to.Sequence, Operation: to.Operation,
			Actor: to.Actor, Event: to.Event, Reason: to.Reason,
		}
	}
	ch.expect = expect
	ch.vals = vector{
		vMachine: row.Machine, vID: row.ID, vState: row.State, vOrigin: row.Origin, vTarget: row.Target,
		vRevision: expect + 1, vSequence: int64(row.Sequence), vOperation: int64(row.Operation),
		vAdmission: orNull(row.Admission), vChangeToken: orNull(row.ChangeToken), vVersion: to.Version,
		vOwner: row.Owner, vEpoch: int64(row.Epoch), vWork: row.Work, vArgs: row.Args, vWorkOptions: row.WorkOptions,
		vActor: string(row.Actor), vEvent: row.Event, vReason: cleaned(row.Reason),
		vPayload: row.Payload, vSaved: row.Saved, vToken: token[:],
		vExpect: expect, vExpectToken: before, vFrom: from, vFromState: ch.From, vFromOrigin: ch.FromOrigin,
		vTo: to.State, vToOrigin: to.Origin,
	}
	if ch.Request != "" {
		ch.vals[vRequest], ch.vals[vFingerprint] = ch.Request, ch.Fingerprint
	}
	if ch.Timeout > 0 && !ch.Remove {
		ch.vals[vWithin] = micros(ch.Timeout)
	}
	ch.write = s.st.update
	switch {
	case ch.MetadataOnly && ch.Timeout > 0:
		ch.write = s.st.setMetadataDeadline
	case ch.MetadataOnly:
		ch.write = s.st.setMetadata
	case ch.Remove && s.l.deletes:
		ch.write = s.st.remove
	case ch.From == "" && (expect == int64(s.l.floor) || s.st.lastRow != nil):
		ch.write, ch.first = s.st.insert, true
	}
}

// orNull returns the bytes of a token, or nil for the zero token.
func orNull(token lifecycle.Token) []byte {
	if token == (lifecycle.Token{}) {
		return nil
	}
	return token[:]
}

// requiresAbsence reports whether the commit requires that an object does not exist.
func (p *plan) requiresAbsence() bool {
	return slices.ContainsFunc(p.commit.Require, func(r lifecycle.Precondition) bool { return slices.Contains(r.States, "") })
}

// stamp sets the results in the caller's commit.
func (s *shared) stamp(p *plan) {
	for i := range p.changes {
		ch := &p.changes[i]
		ch.Stamp(s.l.revision(ch.expect+1, p.commit.Token[:]), clock(p.at))
		if ch.Timeout > 0 { // as the table keeps it
			ch.To.Deadline = clock(p.at + micros(ch.Timeout))
		}
		// A token that the table does not keep must not be sent to peers. The bad schedule:
		// a store of version 1 starts an operation, and the column has the token of an
		// earlier one; a store of version 2 compares the two, and the peer's report is stale.
		if s.l.objects.column[vAdmission] == "" {
			ch.To.Admission = lifecycle.Token{}
		}
		if s.l.objects.column[vChangeToken] == "" {
			ch.To.ChangeToken = lifecycle.Token{}
		}
	}
}

const (
	maxName   = 255           // bytes of a column that is in an index
	maxWord   = 1023          // bytes of the other names
	maxNumber = math.MaxInt64 // of a column on all engines
)

// checkName refuses names that the engines would not keep alike.
func checkName(what, name string, most int) error {
	if len(name) > most || strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %s %.300q is not up to %d bytes of UTF-8 without NUL", lifecycle.ErrInvalid, what, name, most)
	}
	return nil
}

func (s *shared) checkKey(key lifecycle.Key) error {
	switch {
	case key.Machine == "" || key.ID == "":
		return fmt.Errorf("%w: key without a machine or an id", lifecycle.ErrInvalid)
	case s.l.machine != "" && key.Machine != s.l.machine:
		return fmt.Errorf("%w: the table keeps objects of machine %q, not of %q", lifecycle.ErrInvalid, s.l.machine, key.Machine)
	}
	if err := checkName("machine", key.Machine, maxName); err != nil {
		return err
	}
	return checkName("id", key.ID, maxName)
}

// checkChange refuses values that the engines would not return as they were given.
func (s *shared) checkChange(ch *lifecycle.StoredChange) error {
	to := &ch.To
	if err := s.checkKey(to.Key); err != nil {
		return err
	}
	for _, n := range []struct {
		what, name string
		most       int
	}{
		{"state", to.State, maxName},
		{"state", ch.From, maxName},
		{"origin", to.Origin, maxName},
		{"origin", ch.FromOrigin, maxName},
		{"target", to.Target, maxName},
		{"version", to.Version, maxName},
		{"owner", to.Owner, maxName},
		{"handler", to.Work, maxWord},
		{"actor", string(to.Actor), maxWord},
		{"event", to.Event, maxWord},
		{"request id", ch.Request, maxName},
		{"fingerprint", ch.Fingerprint, maxName},
	} {
		if err := checkName(n.what, n.name, n.most); err != nil {
			return err
		}
	}
	if max(to.Sequence, uint64(to.Operation), to.Epoch) > maxNumber {
		return fmt.Errorf("%w: a number of %q is above %d", lifecycle.ErrInvalid, to.ID, uint64(maxNumber))
	}
	if to.Version != "" && s.l.objects.column[vVersion] == "" {
		return fmt.Errorf("%w: change of %q: the table has no column for the version of records", errors.ErrUnsupported, to.ID)
	}
	if ch.Request != "" && s.l.history.column[vRequest] == "" {
		return errRequests
	}
	if s.l.removed != "" && (ch.From == s.l.removed || to.State == s.l.removed && !ch.Remove) {
		return fmt.Errorf("%w: state %q is the state of removed objects", lifecycle.ErrInvalid, s.l.removed)
	}
	return nil
}

// keeps refuses a change that sets a field for which an existing table has no
// column, if the loss of the field would be unsound.
func (l *layout) keeps(ch *lifecycle.StoredChange) error {
	to := &ch.To
	for _, field := range []struct {
		v   value
		set bool
	}{
		{vOrigin, to.Origin != "" && to.Origin != to.State},
		{vOperation, to.Operation != 0},
		{vOwner, to.Owner != ""},
		{vEpoch, to.Epoch != 0},
		{vWork, to.Work != ""},
		{vArgs, len(to.Args) > 0},
		{vWorkOptions, len(to.WorkOptions) > 0},
		{vDeadline, ch.Timeout > 0},
		{vPayload, !ch.Remove && len(to.Payload) > 0},
		{vSaved, !ch.Remove && to.Saved != nil},
	} {
		if field.set && l.objects.column[field.v] == "" {
			return fmt.Errorf("%w: change of %q: the table has no column for %s", errors.ErrUnsupported, to.ID, columnNames[field.v])
		}
	}
	if ch.Remove && l.deletes && l.history.name == "" {
		return fmt.Errorf("%w: removal of %q: its numbers need a history or a removed state", errors.ErrUnsupported, to.ID)
	}
	return nil
}

// cleaned replaces what is not UTF-8, and NUL, in a text for people: the text of an
// error must not keep the outcome from being written.
func cleaned(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
