package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Defaults of a [MemoryStore].
const (
	DefaultKeepHistory = 32
	DefaultKeepRemoved = 1024
)

// MemoryStore keeps records in this process: the embedded default and the
// reference for every other [Store]. The zero MemoryStore is ready for use; it
// must not be copied, and its fields must not be changed, after the first call.
//
// What it keeps of the past is bounded: KeepHistory rows an object, and history
// and numbers of the last KeepRemoved objects that were removed. The numbers of
// a key that was forgotten go on above those of every forgotten key. Messages
// are kept until they are discarded.
type MemoryStore struct {
	KeepHistory int // rows of history kept for each object; 0: DefaultKeepHistory; less: all
	KeepRemoved int // removed objects still known; 0: DefaultKeepRemoved; less: none

	// mu guards everything below. No user code and no I/O runs under it.
	mu       sync.Mutex
	closed   bool
	shelves  map[string]*shelf // by machine
	revision uint64            // of the last commit
	removed  []grave           // in order of removal, some of them risen again
	floor    uint64            // >= every sequence and operation number of a forgotten key
	outbox   []OutboxMessage
	messages uint64 // number of the last message
}

var (
	_ Historian = (*MemoryStore)(nil)
	_ Outbox    = (*MemoryStore)(nil)
)

// NewMemoryStore returns an empty store with the defaults.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// shelf holds the objects of one machine.
type shelf struct {
	entries map[string]*entry  // by id, removed ones included
	order   ordered            // those that exist
	states  map[string]*bucket // those that exist, by state
}

// entry is one object, or what is remembered of a removed one.
//
// Invariant: rec.Exists() == (bucket != nil && bucket.entries[at] == e).
type entry struct {
	rec     StoredRecord
	past    []HistoryRow // a ring once it is full
	oldest  int          // index of the first row in past
	bucket  *bucket
	at      int
	removal uint64 // the store's revision at which it was removed
}

// bucket is the set of objects in one state.
type bucket struct{ entries []*entry }

// grave is a removal.
type grave struct {
	key     Key
	removal uint64
}

const maxChanges = 1 << 12 // of a commit in memory, which holds everybody up

// Capabilities says that everything is supported and the clock is the process'.
func (s *MemoryStore) Capabilities() Capabilities {
	return Capabilities{Changes: maxChanges, History: true, Messages: true}
}

// Close makes every later call fail with [ErrClosed] and frees the records. It
// may be called twice.
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.shelves, s.removed, s.outbox = true, nil, nil, nil
	return nil
}

// enter locks the store for one call, or says why it must not go on.
func (s *MemoryStore) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// Get implements [Store].
func (s *MemoryStore) Get(ctx context.Context, key Key) (StoredRecord, error) {
	if err := s.enter(ctx); err != nil {
		return StoredRecord{}, err
	}
	defer s.mu.Unlock()
	if e := s.entry(key); e != nil {
		return e.rec, nil
	}
	return s.unknown(key), nil
}

// REQUIRES: s.mu is held, as in all functions below.
func (s *MemoryStore) entry(key Key) *entry {
	if sh := s.shelves[key.Machine]; sh != nil {
		return sh.entries[key.ID]
	}
	return nil
}

// unknown is the record of a key of which nothing is known: its numbers go on
// from the floor. The revision names the floor, so that a create that was
// decided before a removal of this key was forgotten finds it changed.
func (s *MemoryStore) unknown(key Key) StoredRecord {
	return StoredRecord{
		Key: key, Sequence: s.floor, Operation: OpID(s.floor),
		Revision: Revision("floor-" + strconv.FormatUint(s.floor, 10)),
	}
}

// Commit implements [Store].
func (s *MemoryStore) Commit(ctx context.Context, c *Commit) error {
	if err := checkCommit(c); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range c.Changes {
		ch := &c.Changes[i]
		current := s.current(ch.To.Key)
		if current.Revision == ch.Expect && current.State == ch.From {
			continue
		}
		// A revision that has moved on may have been moved by this very commit.
		if s.written(c) {
			return nil
		}
		return &ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: current}
	}
	for _, p := range c.Require {
		if current := s.current(p.Key); !slices.Contains(p.States, current.State) {
			return &PreconditionError{Precondition: p, Current: current}
		}
	}
	now := time.Now()
	for i := range c.Changes {
		s.write(c, &c.Changes[i], now)
	}
	for _, msg := range c.Messages {
		s.messages++
		msg.Payload = bytes.Clone(msg.Payload)
		s.outbox = append(s.outbox, OutboxMessage{Number: s.messages, Message: msg})
	}
	s.forget()
	return nil
}

// checkCommit refuses what no store can do.
func checkCommit(c *Commit) error {
	switch n := len(c.Changes); {
	case n == 0:
		return fmt.Errorf("%w: a commit without changes", ErrInvalid)
	case n+len(c.Require) > maxChanges:
		return fmt.Errorf("%w: %d changes and preconditions in one commit, at most %d", errors.ErrUnsupported, n+len(c.Require), maxChanges)
	case n == 1 && c.Changes[0].To.State != "" && !c.Changes[0].Quiet:
		return nil // nearly every commit
	}
	seen := make(map[Key]bool, len(c.Changes))
	for i := range c.Changes {
		to := &c.Changes[i].To
		if to.State == "" {
			return fmt.Errorf("%w: change of %s without a state", ErrInvalid, to.Key.text())
		}
		if ch := &c.Changes[i]; ch.Quiet && (ch.Remove || ch.From != to.State) {
			return fmt.Errorf("%w: a quiet change of %s from %s to %s", ErrInvalid, to.Key.text(), stateOr(ch.From), stateOr(to.State))
		}
		if seen[to.Key] {
			return fmt.Errorf("%w: two changes of %s in one commit", ErrInvalid, to.Key.text())
		}
		seen[to.Key] = true
	}
	return nil
}

func (s *MemoryStore) current(key Key) StoredRecord {
	if e := s.entry(key); e != nil {
		return e.rec
	}
	return s.unknown(key)
}

// written fills a commit as it was written before, if it was.
func (s *MemoryStore) written(c *Commit) bool {
	rows := make([]*HistoryRow, len(c.Changes))
	for i := range c.Changes {
		e := s.entry(c.Changes[i].To.Key)
		if e == nil {
			return false
		}
		// Rows are dense: the one that this change would have written has a place.
		at := c.Changes[i].To.Sequence - e.past[e.oldest].Sequence
		if at >= uint64(len(e.past)) {
			return false
		}
		rows[i] = &e.past[(e.oldest+int(at))%len(e.past)]
		if rows[i].Token != c.Token {
			return false
		}
	}
	for i := range c.Changes {
		c.Changes[i].Stamp(rows[i].Revision, rows[i].At)
	}
	return true
}

// write makes one change. Its expectation holds.
func (s *MemoryStore) write(c *Commit, ch *StoredChange, now time.Time) {
	s.revision++
	ch.Stamp(Revision(strconv.FormatUint(s.revision, 10)), now)
	sh := s.shelf(ch.To.Machine)
	e := sh.entries[ch.To.ID]
	if e == nil {
		e = &entry{rec: StoredRecord{Key: ch.To.Key}}
		sh.entries[ch.To.ID] = e
	}
	if !ch.Quiet {
		s.remember(e, c, ch)
	}
	before := e.rec.State
	e.rec = ch.To
	if ch.Remove {
		e.rec.State, e.rec.Origin, e.rec.Target = "", "", ""
		e.rec.Payload, e.rec.Saved, e.rec.Deadline = nil, nil, time.Time{}
		e.removal = s.revision
		s.removed = append(s.removed, grave{key: e.rec.Key, removal: s.revision})
	}
	if before == e.rec.State {
		return
	}
	if before != "" {
		e.bucket.remove(e)
	}
	switch {
	case e.rec.State == "" && before != "":
		sh.order.remove(e)
	case e.rec.State != "" && before == "":
		sh.order.insert(e)
	}
	if e.rec.State != "" {
		sh.bucket(e.rec.State).add(e)
	}
}

// remember adds the history row of a change to its entry.
func (s *MemoryStore) remember(e *entry, c *Commit, ch *StoredChange) {
	row := ch.Row(c.Token)
	keep := s.KeepHistory
	if keep == 0 {
		keep = DefaultKeepHistory
	}
	if keep < 0 || len(e.past) < keep {
		e.past = append(e.past, row)
		return
	}
	e.past[e.oldest] = row
	e.oldest = (e.oldest + 1) % len(e.past)
}

// forget drops the oldest removed objects that are too many.
func (s *MemoryStore) forget() {
	keep := s.KeepRemoved
	if keep == 0 {
		keep = DefaultKeepRemoved
	}
	for len(s.removed) > max(keep, 0) {
		g := s.removed[0]
		s.removed = s.removed[1:]
		e := s.entry(g.key)
		if e == nil || e.rec.Exists() || e.removal != g.removal {
			continue // it rose again; a later removal has a grave of its own
		}
		s.floor = max(s.floor, e.rec.Sequence, uint64(e.rec.Operation))
		delete(s.shelves[g.key.Machine].entries, g.key.ID)
	}
}

func (s *MemoryStore) shelf(machine string) *shelf {
	sh := s.shelves[machine]
	if sh == nil {
		if s.shelves == nil {
			s.shelves = make(map[string]*shelf)
		}
		sh = &shelf{entries: make(map[string]*entry), states: make(map[string]*bucket)}
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
	e.bucket, e.at = b, len(b.entries)
	b.entries = append(b.entries, e)
}

func (b *bucket) remove(e *entry) {
	last := b.entries[len(b.entries)-1]
	b.entries[e.at], last.at = last, e.at
	b.entries[len(b.entries)-1] = nil
	b.entries = b.entries[:len(b.entries)-1]
	e.bucket = nil
}
