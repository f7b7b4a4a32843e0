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

// remembered is not written any more.
type remembered struct {
	lifecycle.StoredRecord
	number int64 // of its revision
}

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
	return r.StoredRecord, true
}

// keep remembers a record of an object that exists. An older one than is
// remembered already is of no use, unless it is sure: a commit has just failed
// with what is remembered. The bad schedule without it: a reader holds what it
// has read while others write, and then takes the record back for all of them.
func (c *recent) keep(r *remembered, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.young[r.Key]
	if known == nil {
		known = c.old[r.Key]
	}
	if known != nil && known.number > r.number && !sure {
		return
	}
	c.drop(r.Key)
	if size(&r.StoredRecord) <= mostRecalled {
		c.add(r)
	}
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
func (s *Store) recallRead(r lifecycle.StoredRecord, sure bool) {
	switch {
	case s.recent == nil:
	case r.Exists():
		s.recent.keep(&remembered{r, s.l.number(r.Revision)}, sure)
	default:
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
	for i := range j.steps {
		st := &j.steps[i]
		if err != nil || !j.made || st.ch.Remove || st.ch.Quiet {
			s.recent.forget(st.ch.To.Key)
			continue
		}
		s.recent.keep(&remembered{asRead(st), st.expect + 1}, false)
	}
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		s.recallRead(conflict.Current, true)
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
