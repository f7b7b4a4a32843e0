package sqlstore

import (
	"errors"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
)

// How much a store remembers. A record that is bigger than the most is not worth
// the room.
const (
	recallRoom   = 4 << 20
	mostRecalled = 64 << 10
)

var _ lifecycle.Recaller = (*Store)(nil)

// Recall implements [lifecycle.Recaller]: it returns a record as this store has
// last read or written it. Nothing that was done inside of a transaction of the
// user's is remembered, nor anything of a user's table, where others write who do
// not give a record a new revision.
func (s *Store) Recall(key lifecycle.Key) (lifecycle.StoredRecord, bool) {
	if s.recent == nil {
		return lifecycle.StoredRecord{}, false
	}
	return s.recent.recall(key)
}

// recent are the records that a store remembers: in two generations, of which the
// old one is forgotten when the young one is full. What is recalled is young
// again. A revision has the token of its commit in it, so a record that is
// remembered is either that of the row with its revision, or of no row.
type recent struct {
	most int // records of a generation

	mu         sync.Mutex
	young, old map[lifecycle.Key]*remembered
	size       int // of the young ones, in bytes
}

// remembered is not written any more once it is in the memory.
type remembered struct {
	lifecycle.StoredRecord
	number int64 // of its revision
	// How often a Get is to find the object as it is remembered before it is
	// recalled again.
	doubt int8
}

// doubts is the doubt after somebody else has moved an object: an attempt that
// comes to nothing costs about as much as this many reads. Where others move the
// objects as often as this store does, at most one change of so many, and one, is
// attempted in vain.
const doubts = 3

// source is how a record was come by.
type source uint8

const (
	read source = iota
	wrote
	lost // the Current of a conflict
)

func newRecent(most int) *recent {
	return &recent{most: max(1, most/2), young: make(map[lifecycle.Key]*remembered)}
}

func (c *recent) recall(key lifecycle.Key) (lifecycle.StoredRecord, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.young[key]
	if !ok {
		if r, ok = c.old[key]; !ok {
			return lifecycle.StoredRecord{}, false
		}
		c.add(r)
	}
	if r.doubt > 0 {
		return lifecycle.StoredRecord{}, false
	}
	return r.StoredRecord, true
}

// keep remembers a record of an object that exists. An older one than is
// remembered already is of no use. The bad schedule without that: a reader holds
// what it has read while others write, and then takes the record back for all of
// them. A conflict is sure: a commit has just failed with what is remembered; and
// in doubt nothing is recalled anyway.
func (c *recent) keep(r *remembered, by source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known(r.Key); known != nil {
		same := known.Revision == r.Revision
		switch {
		case known.number > r.number && by != lost && known.doubt == 0:
			return
		case by == lost:
			r.doubt = max(r.doubt, known.doubt)
		case by == wrote && same:
			// The one who was faster was none of the others, and is only the later
			// to tell.
		case by == read && same:
			r.doubt = max(0, known.doubt-1)
		default:
			r.doubt = known.doubt
		}
	}
	c.drop(r.Key)
	if size(&r.StoredRecord) <= mostRecalled {
		c.add(r)
	}
}

// known is what is remembered of an object, or nil. REQUIRES: mu.
func (c *recent) known(key lifecycle.Key) *remembered {
	if r := c.young[key]; r != nil {
		return r
	}
	return c.old[key]
}

// surprised reports whether a conflict comes from others: what the commit expected
// is what is remembered still.
func (c *recent) surprised(ch *lifecycle.StoredChange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known(ch.To.Key)
	return known != nil && known.Revision == ch.Expect
}

func (c *recent) forget(key lifecycle.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

// add makes a record young. REQUIRES: mu, and that no young one has the key.
func (c *recent) add(r *remembered) {
	n := size(&r.StoredRecord)
	if len(c.young) >= c.most || c.size+n > recallRoom/2 {
		c.old, c.young, c.size = c.young, make(map[lifecycle.Key]*remembered), 0
	}
	c.young[r.Key] = r
	c.size += n
}

// drop forgets a record. REQUIRES: mu.
func (c *recent) drop(key lifecycle.Key) {
	if r, ok := c.young[key]; ok {
		c.size -= size(&r.StoredRecord)
	}
	delete(c.young, key)
	delete(c.old, key)
}

// size is about how many bytes a record takes up.
func size(r *lifecycle.StoredRecord) int {
	n := 512 + len(r.Machine) + len(r.ID) + len(r.Revision) + len(r.Owner) + len(r.Work) + len(r.Args) + len(r.Steps) + len(r.Reason)
	for _, p := range [...]lifecycle.Payload{r.Payload, r.Saved} {
		if raw, ok := p.(lifecycle.RawPayload); ok {
			n += len(raw)
		}
	}
	return n
}

// recallRead remembers what was read of an object.
func (s *Store) recallRead(r lifecycle.StoredRecord) {
	if s.recent != nil {
		s.recallFound(r, read, 0)
	}
}

func (s *Store) recallFound(r lifecycle.StoredRecord, by source, doubt int8) {
	if r.Exists() {
		s.recent.keep(&remembered{r, s.l.number(r.Revision), doubt}, by)
	} else {
		s.recent.forget(r.Key)
	}
}

// recallWritten remembers what became of a commit. What this very call has not
// written is none of the records here: under a token that was written before,
// somebody may have sent something else. Of a quiet change only a part is written.
func (s *Store) recallWritten(j *job, err error) {
	if s.recent == nil {
		return
	}
	conflict, refused := errors.AsType[*lifecycle.ConflictError](err)
	for i := range j.steps {
		switch st := &j.steps[i]; {
		case refused && conflict.Change == i && conflict.Current.Key == st.ch.To.Key:
			var doubt int8
			if s.recent.surprised(st.ch) {
				doubt = doubts
			}
			s.recallFound(conflict.Current, lost, doubt)
		case err != nil || !j.made || st.ch.Remove || st.ch.Quiet:
			s.recent.forget(st.ch.To.Key)
		default:
			s.recent.keep(&remembered{asRead(st), st.expect + 1, 0}, wrote)
		}
	}
}

// asRead is a record that was written as it is read.
func asRead(st *step) lifecycle.StoredRecord {
	r := st.ch.To
	r.Reason = prose(r.Reason)
	if r.Origin == "" {
		r.Origin = r.State
	}
	raw := func(v value) lifecycle.Payload {
		if data, _ := st.vals[v].([]byte); data != nil {
			return lifecycle.RawPayload(data)
		}
		return nil
	}
	r.Payload, r.Saved = raw(vPayload), raw(vSaved)
	return r
}
