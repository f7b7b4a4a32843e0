package lifecycle

import (
	"bytes"
	"context"
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

	// NoHistory saves the memory of history: the store is no [Historian], and a
	// commit that is sent again is known as long as it is the object's last.
	NoHistory bool

	// mu guards everything below. No user code and no I/O runs under it.
	mu       sync.Mutex
	closed   bool
	shelves  map[string]*shelf // by machine
	recent   *shelf            // the last one asked for, or nil
	last     *entry            // the last one asked for, or nil: who reads an object often moves it next
	removed  []grave           // in order of removal, some of them risen again
	floor    uint64            // >= every sequence, operation and revision number of a forgotten key
	outbox   []OutboxMessage
	messages uint64 // number of the last message
}

var (
	_ Historian = (*MemoryStore)(nil)
	_ Outbox    = (*MemoryStore)(nil)
)

// NewMemoryStore returns an empty store with the defaults.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

const maxChanges = 1 << 12 // of a commit in memory, which holds everybody up

// Capabilities says that everything is supported, but for history where it is not
// wanted, and that the clock is the process'.
func (s *MemoryStore) Capabilities() Capabilities {
	return Capabilities{Changes: maxChanges, History: !s.NoHistory, Messages: true}
}

// Close makes every later call fail with [ErrClosed] and frees the records. It
// may be called twice.
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.shelves, s.recent, s.last, s.removed, s.outbox = true, nil, nil, nil, nil, nil
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
func (s *MemoryStore) Get(ctx context.Context, key Key) (r StoredRecord, err error) {
	err = s.read(ctx, key, &r)
	return r, err
}

// read is Get into a record that exists already, because records are big.
func (s *MemoryStore) read(ctx context.Context, key Key, r *StoredRecord) error {
	if err := s.enter(ctx); err != nil {
		*r = StoredRecord{}
		return err
	}
	defer s.mu.Unlock()
	if e := s.entry(key); e != nil {
		e.record(key.Machine, r)
	} else {
		*r = s.unknown(key)
	}
	return nil
}

// REQUIRES: s.mu is held, as in all functions below.
func (s *MemoryStore) entry(key Key) *entry {
	if e := s.last; e != nil && e.id == key.ID && e.shelf.machine == key.Machine {
		return e
	}
	return s.find(key)
}

func (s *MemoryStore) find(key Key) *entry {
	sh := s.recent
	if sh == nil || sh.machine != key.Machine {
		if sh = s.shelves[key.Machine]; sh == nil {
			return nil
		}
		s.recent = sh
	}
	e := sh.entries[key.ID]
	if e != nil {
		s.last = e
	}
	return e
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
	if err := c.Check(s.Capabilities()); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	var few [4]*entry
	entries := few[:0] // nil for an object of which nothing is known
	for i := range c.Changes {
		ch := &c.Changes[i]
		e := s.entry(ch.To.Key)
		if s.expected(ch, e) {
			entries = append(entries, e)
			continue
		}
		return s.again(c, i)
	}
	for _, p := range c.Require {
		if !slices.Contains(p.States, s.state(p.Key)) {
			return s.unmet(p)
		}
	}
	now := time.Now()
	for i := range c.Changes {
		s.write(c, &c.Changes[i], entries[i], now)
	}
	for _, msg := range c.Messages {
		s.messages++
		msg.Payload = bytes.Clone(msg.Payload)
		s.outbox = append(s.outbox, OutboxMessage{Number: s.messages, Message: msg})
	}
	s.forget()
	return nil
}

// again is the answer to a commit whose change does not find what it expects: a
// revision that has moved on may have been moved by this very commit.
//
//go:noinline
func (s *MemoryStore) again(c *Commit, change int) error {
	if s.written(c) {
		return nil
	}
	ch := &c.Changes[change]
	return &ConflictError{Change: change, Expect: ch.Expect, From: ch.From, Current: s.current(ch.To.Key)}
}

//go:noinline
func (s *MemoryStore) unmet(p Precondition) error {
	return &PreconditionError{Precondition: p, Current: s.current(p.Key)}
}

func (s *MemoryStore) state(key Key) string {
	if e := s.entry(key); e != nil {
		return e.state()
	}
	return ""
}

func (s *MemoryStore) current(key Key) (r StoredRecord) {
	if e := s.entry(key); e != nil {
		e.record(key.Machine, &r)
		return r
	}
	return s.unknown(key)
}

// expected reports whether a change finds what it expects in its entry.
func (s *MemoryStore) expected(ch *StoredChange, e *entry) bool {
	if e != nil {
		return e.revision == ch.Expect && e.state() == ch.From
	}
	return ch.From == "" && s.unknown(ch.To.Key).Revision == ch.Expect
}

// written fills a commit as it was written before, if it was.
func (s *MemoryStore) written(c *Commit) bool {
	rows := make([]*kept, len(c.Changes))
	for i := range c.Changes {
		e := s.entry(c.Changes[i].To.Key)
		if e == nil {
			return false
		}
		rows[i] = e.past.numbered(c.Changes[i].To.Sequence)
		if rows[i] == nil || rows[i].token != c.Token {
			return false
		}
	}
	for i := range c.Changes {
		c.Changes[i].Stamp(revision(rows[i].revision), time.Unix(0, rows[i].nanos))
	}
	return true
}

// write makes one change. Its expectation holds.
func (s *MemoryStore) write(c *Commit, ch *StoredChange, e *entry, now time.Time) {
	var sh *shelf
	if e == nil {
		sh = s.shelf(ch.To.Machine)
		e = &entry{id: ch.To.ID, shelf: sh}
		sh.entries[ch.To.ID] = e
	}
	sh = e.shelf
	// The number goes on from that of a forgotten object, because the sequence does.
	e.number = max(e.number+1, ch.To.Sequence)
	ch.Stamp(revision(e.number), now)
	before := e.state()
	move := e.move
	if !ch.Quiet {
		move = sh.move(ch)
		k := e.past.next(s.keepHistory())
		k.sequence, k.token, k.nanos, k.revision = ch.To.Sequence, c.Token, now.UnixNano(), e.number
		k.operation, k.move, k.reason = ch.To.Operation, move, ch.To.Reason
	}
	e.set(&ch.To, move, ch.Remove)
	sh.mind(e)
	if ch.Remove {
		s.removed = append(s.removed, grave{key: ch.To.Key, number: e.number})
	}
	state := e.state()
	if before == state {
		return
	}
	if before != "" {
		e.bucket.remove(e)
	}
	switch {
	case state == "" && before != "":
		sh.order.remove(e)
	case state != "" && before == "":
		sh.order.insert(e)
	}
	if state != "" {
		if e.move.bucket == nil {
			e.move.bucket = sh.bucket(state)
		}
		e.move.bucket.add(e)
	}
}

// keepHistory is how many rows of an object are kept; less than 0: all.
func (s *MemoryStore) keepHistory() int {
	switch {
	case s.NoHistory:
		return 1 // a commit that is sent again is known by its token
	case s.KeepHistory == 0:
		return DefaultKeepHistory
	}
	return s.KeepHistory
}

// forget drops the oldest removed objects that are too many.
func (s *MemoryStore) forget() {
	if len(s.removed) == 0 {
		return
	}
	keep := s.KeepRemoved
	if keep == 0 {
		keep = DefaultKeepRemoved
	}
	for len(s.removed) > max(keep, 0) {
		g := s.removed[0]
		s.removed = s.removed[1:]
		e := s.entry(g.key)
		if e == nil || e.state() != "" || e.number != g.number {
			continue // it rose again; a later removal has a grave of its own
		}
		s.floor = max(s.floor, e.number, uint64(e.operation))
		delete(s.shelves[g.key.Machine].entries, g.key.ID)
		if s.last == e {
			s.last = nil // of this key nothing is known any more
		}
	}
}
