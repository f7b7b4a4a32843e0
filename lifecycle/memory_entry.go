package lifecycle

import (
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// shelf holds the objects of one machine.
type shelf struct {
	machine string
	entries map[string]*entry  // by id, removed ones included
	order   ordered            // those that exist
	states  map[string]*bucket // those that exist, by state
	owned   []*entry           // those that exist and have an owner: at rest, few have
	moves   [64]*move          // those seen last, by a mark of their names
}

// entry is one object, or what is remembered of a removed one: a record, and the
// rows of its history, in the least memory, because most of the time of a change
// is spent waiting for it.
//
// Invariants: (state() != "") == (bucket != nil && bucket.entries[at] == e);
// (state() != "" && owner() != "") == (owned > 0 && shelf.owned[owned-1] == e).
type entry struct {
	id        string
	move      *move // the last one
	removed   bool
	target    string
	revision  Revision
	sequence  uint64
	operation OpID
	job       *job // nil: nobody here does anything
	deadline  time.Time
	changedAt time.Time
	reason    string
	payload   Payload
	saved     Payload

	number uint64 // of the revision; no less than the sequence
	past   past
	shelf  *shelf
	bucket *bucket
	at     int32
	owned  int32
}

// job is who does what about an object. It is immutable.
type job struct {
	owner string
	epoch uint64
	work  string
	args  []byte
	steps []byte
}

// move is what happened to an object, by its names. It is shared by all objects to
// which the same happened lately.
type move struct {
	names
	bucket *bucket // of the state that it leads to; nil before an object is there
}

type names struct {
	from, fromOrigin, to, origin, event string
	actor                               fsm.Actor
}

// bucket is the set of objects in one state.
type bucket struct{ entries []*entry }

// grave is a removal.
type grave struct {
	key    Key
	number uint64 // of the revision
}

// state is the name of the object's state, empty if it is removed.
func (e *entry) state() string {
	if e.removed || e.move == nil {
		return ""
	}
	return e.move.to
}

func (e *entry) owner() string {
	if e.job == nil {
		return ""
	}
	return e.job.owner
}

// record makes a record the object's, whatever it was before.
func (e *entry) record(machine string, r *StoredRecord) {
	r.Machine, r.ID, r.Target, r.Revision = machine, e.id, e.target, e.revision
	r.Sequence, r.Operation, r.Deadline, r.ChangedAt = e.sequence, e.operation, e.deadline, e.changedAt
	r.Actor, r.Event, r.Reason = e.move.actor, e.move.event, e.reason
	r.Payload, r.Saved = e.payload, e.saved
	if e.removed {
		r.State, r.Origin = "", ""
	} else {
		r.State, r.Origin = e.move.to, e.move.origin
	}
	if j := e.job; j != nil {
		r.Owner, r.Epoch, r.Work, r.Args, r.Steps = j.owner, j.epoch, j.work, j.args, j.steps
	} else {
		r.Owner, r.Epoch, r.Work, r.Args, r.Steps = "", 0, "", nil, nil
	}
}

// set makes the record of the object another one.
func (e *entry) set(r *StoredRecord, m *move, removed bool) {
	e.move, e.removed = m, removed
	e.revision, e.sequence, e.operation, e.changedAt, e.reason = r.Revision, r.Sequence, r.Operation, r.ChangedAt, r.Reason
	e.target, e.deadline, e.payload, e.saved = r.Target, r.Deadline, r.Payload, r.Saved
	if removed {
		e.target, e.deadline, e.payload, e.saved = "", time.Time{}, nil, nil
	}
	switch {
	case r.Owner == "" && r.Epoch == 0 && r.Work == "" && r.Args == nil && r.Steps == nil:
		e.job = nil
	default:
		e.job = &job{r.Owner, r.Epoch, r.Work, r.Args, r.Steps}
	}
}

// move returns what a change does, shared with who did the same lately. Which
// of two moves that lie in one place stays is a matter of memory only.
func (sh *shelf) move(ch *StoredChange) *move {
	to := &ch.To
	want := names{ch.From, ch.FromOrigin, to.State, to.Origin, to.Event, to.Actor}
	place := &sh.moves[(mark(want.from)+3*mark(want.to)+5*mark(want.event))%len(sh.moves)]
	if *place == nil || (*place).names != want {
		*place = &move{names: want}
	}
	return *place
}

// mark is a cheap number that differs between most names of one machine.
func mark(name string) int {
	if name == "" {
		return 0
	}
	return len(name) + 7*int(name[0]) + 11*int(name[len(name)-1]) + 13*int(name[len(name)/2])
}

// kept is a row of history as memory keeps it: its key is the entry's.
type kept struct {
	sequence  uint64
	token     Token
	nanos     int64 // since 1970
	revision  uint64
	operation OpID
	move      *move
	reason    string
}

func (k *kept) row(key Key) HistoryRow {
	m := k.move
	return HistoryRow{
		Key: key, Sequence: k.sequence, Revision: revision(k.revision), Token: k.token, Operation: k.operation,
		From: m.from, FromOrigin: m.fromOrigin, To: m.to, Origin: m.origin, Event: m.event, Actor: m.actor,
		Reason: k.reason, At: time.Unix(0, k.nanos),
	}
}

// revision is the number of a change of one object as a token. Most objects
// change less often in their lives than there are tokens made in advance.
func revision(n uint64) Revision {
	if first := revisions(); n < uint64(len(first)) {
		return first[n]
	}
	return Revision(strconv.FormatUint(n, 10))
}

var revisions = sync.OnceValue(func() *[4096]Revision {
	var first [4096]Revision
	for n := range first {
		first[n] = Revision(strconv.Itoa(n))
	}
	return &first
})

// past is the newest rows of an object's history: a ring once it is full.
type past struct {
	rows   []kept
	oldest int
}

func (p *past) len() int { return len(p.rows) }

// next returns the place of the next row of those kept, at most so many; less than
// 0: all. Whoever asks writes every field of it.
func (p *past) next(keep int) *kept {
	if keep < 0 || len(p.rows) < keep {
		p.rows = append(p.rows, kept{})
		return &p.rows[len(p.rows)-1]
	}
	k := &p.rows[p.oldest]
	if p.oldest++; p.oldest == len(p.rows) {
		p.oldest = 0
	}
	return k
}

// at returns the row with so many before it.
func (p *past) at(i int) *kept { return &p.rows[(p.oldest+i)%len(p.rows)] }

// numbered returns the row with a sequence number, or nil. Rows are dense.
func (p *past) numbered(sequence uint64) *kept {
	if len(p.rows) == 0 {
		return nil
	}
	i := sequence - p.at(0).sequence
	if i >= uint64(len(p.rows)) {
		return nil
	}
	return p.at(int(i))
}

func (s *MemoryStore) shelf(machine string) *shelf {
	sh := s.shelves[machine]
	if sh == nil {
		if s.shelves == nil {
			s.shelves = make(map[string]*shelf)
		}
		sh = &shelf{machine: machine, entries: make(map[string]*entry), states: make(map[string]*bucket)}
		s.shelves[machine] = sh
	}
	return sh
}

func (sh *shelf) bucket(state string) *bucket {
	b := sh.states[state]
	if b == nil {
		b = &bucket{}
		sh.states[state] = b
	}
	return b
}

func (b *bucket) add(e *entry) {
	e.bucket, e.at = b, int32(len(b.entries))
	b.entries = append(b.entries, e)
}

func (b *bucket) remove(e *entry) {
	last := b.entries[len(b.entries)-1]
	b.entries[e.at], last.at = last, e.at
	b.entries[len(b.entries)-1] = nil
	b.entries = b.entries[:len(b.entries)-1]
	e.bucket = nil
}

// mind keeps the list of owned entries, after an entry was set.
func (sh *shelf) mind(e *entry) {
	has := e.owner() != "" && !e.removed
	switch {
	case has && e.owned == 0:
		sh.owned = append(sh.owned, e)
		e.owned = int32(len(sh.owned))
	case !has && e.owned > 0:
		last := sh.owned[len(sh.owned)-1]
		sh.owned[e.owned-1], last.owned = last, e.owned
		sh.owned[len(sh.owned)-1] = nil
		sh.owned = sh.owned[:len(sh.owned)-1]
		e.owned = 0
	}
}
