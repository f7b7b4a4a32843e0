package sqlstore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
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

	at         int64 // microseconds: the time of the commit; 0: not known yet
	lost       bool  // the answer of an attempt was lost: the commit may be found in the records
	superseded bool  // another commit is at the place of this one, which never will be written
}

// change is one change of a plan.
type change struct {
	*lifecycle.StoredChange
	l      *layout
	vals   vector
	expect int64      // the number of the expected revision
	write  *statement // writes the record
	first  bool       // the object may have no row, and write inserts it
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
		ch.StoredChange = &c.Changes[i]
		ch.l = s.of(ch.To.Machine)
		if err := ch.fill(c.Token); err != nil {
			return nil, err
		}
		if err := ch.check(); err != nil {
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

// fill computes the values of a change and selects its statement.
func (ch *change) fill(token lifecycle.Token) (err error) {
	to, l := &ch.To, ch.l
	expect, before := l.parse(ch.Expect)
	if before == nil {
		before = l.noToken
	}
	row := *to
	if ch.Remove { // the numbers continue
		row = lifecycle.StoredRecord{
			Key: to.Key, Sequence: to.Sequence, Operation: to.Operation, Fence: to.Fence,
			Actor: to.Actor, Event: to.Event, Reason: to.Reason,
		}
	}
	ch.expect, ch.vals = expect, append(vector{
		vMachine: row.Machine, vID: row.ID, vState: row.State, vOrigin: row.Origin, vTarget: row.Target,
		vRevision: expect + 1, vSequence: int64(row.Sequence), vOperation: int64(row.Operation),
		vAdmission: orNull(row.Admission), vChangeToken: orNull(row.ChangeToken), vFence: int64(row.Fence), vVersion: to.Version,
		vOwner: row.Owner, vEpoch: int64(row.Epoch), vWork: row.Work, vArgs: row.Args, vWorkOptions: row.WorkOptions,
		vActor: string(row.Actor), vEvent: row.Event, vReason: cleaned(row.Reason), vSaved: row.Saved, vToken: token[:],
		vFromState: ch.From, vFromOrigin: ch.FromOrigin, vTo: to.State, vToOrigin: to.Origin,
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
		ch.write, ch.first = l.st.insert, true
	}
	return nil
}

// orNull returns the bytes of a token, or nil for the zero token.
func orNull(token lifecycle.Token) []byte {
	if token == (lifecycle.Token{}) {
		return nil
	}
	return token[:]
}

// stamp sets the results in the caller's commit.
func (p *plan) stamp() {
	for i := range p.changes {
		ch := &p.changes[i]
		ch.Stamp(ch.l.revision(ch.expect+1, p.commit.Token[:]), clock(p.at))
		if ch.Timeout > 0 { // as the table keeps it
			ch.To.Deadline = clock(p.at + micros(ch.Timeout))
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
