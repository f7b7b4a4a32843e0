package lifecycle

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"
)

// MemoryStore keeps records in this process. It is the embedded default and the
// reference for every other [Store]. The zero MemoryStore is ready for use. It is
// safe for concurrent use. It must not be copied, and its fields must not be
// changed, after the first call.
//
// The store keeps KeepHistory history rows of each object, and the history and
// numbers of the last 1024 removed objects. The numbers of a key that the
// store has forgotten continue above those of every forgotten key. Messages are
// kept until they are discarded.
type MemoryStore struct {
	KeepHistory int // history rows kept for each object; 0: 32; negative: all

	keepRemoved int // removed objects whose numbers are kept; 0: 1024; negative: none; only tests set it

	watchers watchers // of the managers over this store; has a lock of its own

	mu       sync.Mutex // guards all fields below; no user code and no I/O runs under it
	closed   bool
	shelves  map[string]*shelf // by machine
	removed  list.List         // the *object values that are removed, in order of time
	floor    uint64            // >= every sequence, operation and revision number of a forgotten key
	outbox   []OutboxMessage   // in order of number
	messages uint64            // number of the last message
}

// object is a key that has a record, or had one that the store has not forgotten. If the object
// is removed, its record has no state.
type object struct {
	record StoredRecord
	number uint64       // of the revision; no less than the sequence number
	rows   []HistoryRow // the newest ones, in a ring that starts at oldest
	oldest int          // index in rows

	place   [groupKinds]int // index in the group of each kind, plus 1; 0: in none
	recent  *list.Element   // in the recent objects of the shelf
	removal *list.Element   // in the removed objects of the store; nil: not removed
}

var (
	_ Historian = (*MemoryStore)(nil)
	_ Outbox    = (*MemoryStore)(nil)
	_ Follower  = (*MemoryStore)(nil)
)

// NewMemoryStore returns an empty store with the defaults.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// maxChanges bounds a commit in memory, because all other calls wait for it.
const maxChanges = 1 << 12

// Capabilities implements [Store]. The store supports everything. Its clock is that of the
// process.
func (s *MemoryStore) Capabilities() Capabilities {
	return Capabilities{Changes: maxChanges, History: true, Messages: true}
}

// Close frees the records. Every later call returns [ErrClosed]. Close may be
// called twice.
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.shelves, s.outbox = true, nil, nil
	s.removed.Init()
	return nil
}

// enter locks the store for one call. After an error the store is not locked.
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
	return s.current(key), nil
}

// object returns the object of a key, nil if the store does not know the key.
//
// REQUIRES, as all functions below: s.mu is held.
func (s *MemoryStore) object(key Key) *object {
	if sh := s.shelves[key.Machine]; sh != nil {
		return sh.objects[key.ID]
	}
	return nil
}

// current returns the record of a key. If the store does not know the key, the numbers
// continue from the floor. The revision names the floor: a creation that was decided before
// the store forgot a removal of this key is a conflict.
func (s *MemoryStore) current(key Key) StoredRecord {
	if o := s.object(key); o != nil {
		return o.record
	}
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
	for i := range c.Changes {
		ch := &c.Changes[i]
		now := s.current(ch.To.Key)
		switch {
		case now.Revision == ch.Expect && now.State == ch.From:
		case s.written(c): // this very commit has moved the revision
			return nil
		default:
			return &ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
		}
	}
	for i := range c.Changes {
		if row := s.requested(c.Changes[i].To.Machine, c.Changes[i].Request); row != nil {
			return &RepeatedError{Row: *row}
		}
	}
	for _, p := range c.Require {
		// A grant of a Tree that is lost after this is followed by its successor's commits,
		// which wait for s.mu: they come after this one.
		if p.Grant != nil {
			if p.held() != nil {
				return &PreconditionError{Precondition: p}
			}
		} else if now := s.current(p.Key); !slices.Contains(p.States, now.State) {
			return &PreconditionError{Precondition: p, Current: now}
		}
	}
	if c.Owner.Name != "" {
		if owner := s.current(c.Owner.Key()); !c.Owner.Alive(&owner) {
			return &OwnerError{Owner: c.Owner}
		}
	}
	now := time.Now()
	for i := range c.Changes {
		s.write(c.Token, &c.Changes[i], now)
	}
	for _, m := range c.Messages {
		s.messages++
		m.Payload = bytes.Clone(m.Payload)
		s.outbox = append(s.outbox, OutboxMessage{Number: s.messages, Message: m})
	}
	s.forget()
	return nil
}

// written reports whether a commit was written before. If so, it fills the commit
// as it was filled then.
func (s *MemoryStore) written(c *Commit) bool {
	rows := make([]*HistoryRow, len(c.Changes))
	for i := range c.Changes {
		to := &c.Changes[i].To
		o := s.object(to.Key)
		if o == nil {
			return false
		}
		at := sort.Search(len(o.rows), func(i int) bool { return o.row(i).Sequence >= to.Sequence })
		if at == len(o.rows) || o.row(at).Token != c.Token {
			return false
		}
		rows[i] = o.row(at)
	}
	for i, row := range rows {
		c.Changes[i].Stamp(row.Revision, row.At)
	}
	return true
}

// write makes one change, which was expected.
func (s *MemoryStore) write(token Token, ch *StoredChange, now time.Time) {
	sh := s.shelf(ch.To.Machine)
	o := sh.objects[ch.To.ID]
	switch {
	case o == nil:
		o = &object{}
		sh.objects[ch.To.ID] = o
	case o.removal != nil: // it is created again
		s.removed.Remove(o.removal)
		o.removal = nil
	}
	// The sequence number of a forgotten key is above its revision number.
	o.number = max(o.number+1, ch.To.Sequence)
	ch.Stamp(Revision(strconv.FormatUint(o.number, 10)), now)
	if !ch.MetadataOnly {
		if keep := cmp.Or(s.KeepHistory, 32); len(o.rows) == keep {
			delete(sh.requests, o.rows[o.oldest].Request)
			o.rows[o.oldest] = ch.Row(token)
			o.oldest = (o.oldest + 1) % keep
		} else {
			o.rows = append(o.rows, ch.Row(token))
		}
		if ch.Request != "" {
			sh.requests[ch.Request] = o
		}
		if o.recent == nil {
			o.recent = sh.recent.PushFront(o)
		}
		sh.recent.MoveToFront(o.recent)
	}
	result := ch.Result()
	sh.set(o, &result)
	if ch.Remove {
		o.removal = s.removed.PushBack(o)
	}
}

// forget drops the objects of the oldest removals that are too many.
func (s *MemoryStore) forget() {
	keep := cmp.Or(s.keepRemoved, 1024)
	for s.removed.Len() > max(keep, 0) {
		o := s.removed.Remove(s.removed.Front()).(*object)
		sh := s.shelves[o.record.Machine]
		s.floor = max(s.floor, o.number, uint64(o.record.Operation))
		for i := range o.rows {
			delete(sh.requests, o.rows[i].Request)
		}
		sh.recent.Remove(o.recent)
		delete(sh.objects, o.record.ID)
	}
}

// History implements [Historian].
func (s *MemoryStore) History(ctx context.Context, key Key, after uint64, limit int) ([]HistoryRow, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	o := s.object(key)
	if o == nil {
		return nil, nil
	}
	var rows []HistoryRow
	start := sort.Search(len(o.rows), func(i int) bool { return o.row(i).Sequence > after })
	for i := start; i < len(o.rows) && len(rows) < limit; i++ {
		rows = append(rows, *o.row(i))
	}
	return rows, nil
}

// row returns history row i, oldest first.
func (o *object) row(i int) *HistoryRow { return &o.rows[(o.oldest+i)%len(o.rows)] }

// Requested implements [Historian].
func (s *MemoryStore) Requested(ctx context.Context, machine, request string) (HistoryRow, error) {
	if err := s.enter(ctx); err != nil {
		return HistoryRow{}, err
	}
	defer s.mu.Unlock()
	if row := s.requested(machine, request); row != nil {
		return *row, nil
	}
	return HistoryRow{}, nil
}

// requested returns the row with a request, nil if there is none.
func (s *MemoryStore) requested(machine, request string) *HistoryRow {
	sh := s.shelves[machine]
	if sh == nil || sh.requests[request] == nil {
		return nil
	}
	rows := sh.requests[request].rows
	return &rows[slices.IndexFunc(rows, func(row HistoryRow) bool { return row.Request == request })]
}

// Messages implements [Outbox].
func (s *MemoryStore) Messages(ctx context.Context, limit int) ([]OutboxMessage, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list := slices.Clone(s.outbox[:min(len(s.outbox), max(limit, 0))])
	for i := range list {
		list[i].Payload = bytes.Clone(list[i].Payload)
	}
	return list, nil
}

// Discard implements [Outbox].
func (s *MemoryStore) Discard(ctx context.Context, numbers ...uint64) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	discarded := map[uint64]bool{}
	for _, n := range numbers {
		discarded[n] = true
	}
	// Programs discard the oldest messages. Only those up to the last number move:
	// the rest may be long.
	newest := slices.Max(numbers)
	end := sort.Search(len(s.outbox), func(i int) bool { return s.outbox[i].Number > newest })
	first := end
	for _, m := range slices.Backward(s.outbox[:end]) {
		if !discarded[m.Number] {
			first--
			s.outbox[first] = m
		}
	}
	clear(s.outbox[:first])
	s.outbox = s.outbox[first:]
	return nil
}
