package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Short names for the tables of faults.
type (
	store   = lifecycle.Store
	record  = lifecycle.StoredRecord
	edit    = lifecycle.StoredChange
	commits = lifecycle.Commit
	rows    = []lifecycle.HistoryRow
)

// fault is something that a store may do wrong. Without a function nothing is wrong.
type fault struct {
	has       func(*lifecycle.Capabilities)
	wrap      func(s *faulty) store                                                     // hides methods
	key       func(k lifecycle.Key) lifecycle.Key                                       // under which an object is kept
	before    func(s *faulty, c *commits)                                               // changes a commit before it is written
	change    func(s *faulty, ch *edit)                                                 // changes every change before it is written
	commit    func(s *faulty, ctx context.Context, c *commits) error                    // replaces Commit
	after     func(s *faulty, c, sent *commits, err error) error                        // changes what Commit returns
	record    func(s *faulty, r *record)                                                // changes every record that is returned
	read      func(s *faulty, r *record) error                                          // changes what Get returns
	query     func(s *faulty, q *lifecycle.Query)                                       // changes a query
	selects   func(s *faulty, q lifecycle.Query, r record) bool                         // replaces the conditions of a query
	order     func(x, y record) int                                                     // replaces the order of List
	found     func(s *faulty, q lifecycle.Query, list []record) []record                // changes what List returns
	history   func(s *faulty, k lifecycle.Key, list rows) rows                          // changes a whole history
	pages     func(after *uint64, limit *int)                                           // changes the arguments of History
	requested func(s *faulty, row lifecycle.HistoryRow) lifecycle.HistoryRow            // changes what Requested returns
	recent    func(list []lifecycle.ChangedObject, ask asked) []lifecycle.ChangedObject // changes what Recent returns
	within    func(d time.Duration) time.Duration                                       // changes the age that Recent asks for
	messages  func(s *faulty, limit int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage
	discard   func(s *faulty, numbers []uint64) []uint64
	ended     func(call string, err error) error // changes the errors of contexts and of a closed store
	left      func(s *faulty) store              // replaces Second
	remote    *remoteFault                       // the store is a remote one
	ownClock  bool                               // the store has a clock of its own
	timeless  bool                               // Config has nothing about time
	apart     bool                               // nothing is wrong with one store
	alone     bool                               // there is one store
}

// faulty is a memory store with one fault, as one process has it.
type faulty struct {
	*engine
	fault
	process sync.Mutex               // a lock of this process
	cache   map[lifecycle.Key]record // of this process; guarded by engine.mu
}

// engine is what the processes have in common.
type engine struct {
	*lifecycle.MemoryStore
	mu       sync.Mutex // guards what follows; held while a commit is written
	machines map[string]bool
	tokens   map[lifecycle.Token]int // how often a commit was sent
	notes    map[lifecycle.Key]record
	lives    map[lifecycle.Key]record // where the numbers of an object begin
	removed  []lifecycle.Key
	calls    int
	buffer   []byte
	log      []*commits
	sent     []lifecycle.Message
	meeting  map[lifecycle.Key]int // callers of meet
	met      chan struct{}         // closed when two of them have met
}

// limit is how many changes and preconditions a faulty store declares.
const limit = 25

func newFaulty(f fault) *faulty {
	first := faulty{fault: f, engine: &engine{
		MemoryStore: lifecycle.NewMemoryStore(), machines: map[string]bool{}, tokens: map[lifecycle.Token]int{},
		notes: map[lifecycle.Key]record{}, lives: map[lifecycle.Key]record{},
		meeting: map[lifecycle.Key]int{}, met: make(chan struct{}),
	}}
	if f.alone {
		close(first.met)
	}
	return first.second()
}

// second returns the store of another process.
func (s *faulty) second() *faulty {
	return &faulty{engine: s.engine, fault: s.fault, cache: map[lifecycle.Key]record{}}
}

// meet waits until two callers about a key are here: both have checked before one of
// them writes. It does not wait long for a caller that does not come, and not again
// after two have met.
func (s *engine) meet(k lifecycle.Key) {
	s.mu.Lock()
	if s.meeting[k]++; s.meeting[k] == 2 {
		select {
		case <-s.met:
		default:
			close(s.met)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.met:
	case <-time.After(50 * time.Millisecond):
	}
	s.mu.Lock()
	s.meeting[k]--
	s.mu.Unlock()
}

func (s *faulty) Capabilities() lifecycle.Capabilities {
	has := lifecycle.Capabilities{Changes: limit, History: true, Messages: true, OwnClock: s.ownClock}
	if s.has != nil {
		s.has(&has)
	}
	return has
}

// now is the record without the fault.
func (s *faulty) now(k lifecycle.Key) record {
	r, _ := s.MemoryStore.Get(context.Background(), s.kept(k))
	return r
}

func (s *faulty) kept(k lifecycle.Key) lifecycle.Key {
	if s.key != nil {
		return s.key(k)
	}
	return k
}

func (s *faulty) show(r *record) {
	if s.record != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.record(s, r)
	}
}

func (s *faulty) end(call string, err error) error {
	if err != nil && s.ended != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return s.ended(call, err)
	}
	return err
}

func (s *faulty) Get(ctx context.Context, k lifecycle.Key) (record, error) {
	r, err := s.MemoryStore.Get(ctx, s.kept(k))
	r.Key = k
	if err == nil {
		s.show(&r)
		if s.read != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			err = s.read(s, &r)
		}
	}
	return r, s.end("Get", err)
}

func (s *faulty) Commit(ctx context.Context, c *commits) error {
	if len(c.Changes)+len(c.Require) > limit && s.commit == nil {
		return errors.ErrUnsupported
	}
	if s.commit != nil {
		return s.end("Commit", s.commit(s, ctx, c))
	}
	return s.end("Commit", s.write(ctx, c))
}

// write writes a commit with the fault.
func (s *faulty) write(ctx context.Context, c *commits) error {
	s.mu.Lock()
	twin, sent := clone(c), clone(c)
	for i := range twin.Changes {
		twin.Changes[i].To.Key = s.kept(twin.Changes[i].To.Key)
		s.machines[twin.Changes[i].To.Machine] = true
		if s.change != nil {
			s.change(s, &twin.Changes[i])
		}
	}
	if s.before != nil {
		s.before(s, twin)
	}
	s.tokens[c.Token]++
	err := s.MemoryStore.Commit(ctx, twin)
	conflict, isConflict := errors.AsType[*lifecycle.ConflictError](err)
	if isConflict && conflict.Change < len(c.Changes) {
		conflict.Expect, conflict.From = c.Changes[conflict.Change].Expect, c.Changes[conflict.Change].From
	}
	for i := range min(len(c.Changes), len(twin.Changes)) {
		if to, set := &c.Changes[i].To, &twin.Changes[i].To; err == nil {
			to.Revision, to.ChangedAt, to.Deadline = set.Revision, set.ChangedAt, set.Deadline
		}
	}
	if s.after != nil {
		err = s.after(s, c, sent, err)
	}
	s.mu.Unlock()
	if isConflict {
		s.show(&conflict.Current)
	}
	for i := range c.Changes {
		if err == nil {
			s.show(&c.Changes[i].To)
		}
	}
	return err
}

// force writes the first change whatever the record is.
func (s *faulty) force(ctx context.Context, c *commits) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(c.Changes[0].To.Key)
	twin := clone(c)
	twin.Changes[0].Expect, twin.Changes[0].From = now.Revision, now.State
	err := s.MemoryStore.Commit(ctx, twin)
	c.Changes = twin.Changes
	return err
}

// unmet returns the first precondition of a commit that does not hold.
func (s *faulty) unmet(c *commits) error {
	for _, p := range c.Require {
		if now := s.now(p.Key); !slices.Contains(p.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: p, Current: now}
		}
	}
	return nil
}

func (s *faulty) List(ctx context.Context, q lifecycle.Query) ([]record, error) {
	if s.query != nil {
		s.query(s, &q)
	}
	found, err := s.MemoryStore.List(ctx, q)
	if err != nil {
		return nil, s.end("List", err)
	}
	if s.selects != nil || s.order != nil {
		found = s.selected(q)
	}
	for i := range found {
		s.show(&found[i])
	}
	if s.found != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		found = s.found(s, q, found)
	}
	return found, s.end("List", endedError(ctx))
}

// selected selects and orders all records of the store.
func (s *faulty) selected(q lifecycle.Query) (found []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.machines {
		list, _ := s.MemoryStore.List(context.Background(), lifecycle.Query{Machine: m, Limit: 1 << 20, WithoutPayload: q.WithoutPayload})
		for _, r := range list {
			if s.selects == nil && matches(q, r) || s.selects != nil && s.selects(s, q, r) {
				found = append(found, r)
			}
		}
	}
	order := s.order
	if order == nil {
		order = byID
	}
	slices.SortFunc(found, order)
	return found[:min(q.Limit, len(found))]
}

func (s *faulty) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) (rows, error) {
	if s.pages != nil {
		s.pages(&after, &limit)
	}
	if s.history == nil {
		list, err := s.MemoryStore.History(ctx, s.kept(k), after, limit)
		for i := range list {
			list[i].Key = k
		}
		return list, s.end("History", err)
	}
	list, err := s.MemoryStore.History(ctx, k, 0, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	list = slices.DeleteFunc(s.history(s, k, list), func(row lifecycle.HistoryRow) bool { return row.Sequence <= after })
	return list[:min(limit, len(list))], err
}

// asked are the arguments of Recent, and the same question without limit and age.
type asked struct {
	after string
	limit int
	whole []lifecycle.ChangedObject
}

func (s *faulty) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	if s.within != nil {
		within = s.within(within)
	}
	list, err := s.MemoryStore.Recent(ctx, machine, within, after, limit)
	if err == nil && s.recent != nil {
		whole, _ := s.MemoryStore.Recent(ctx, machine, 1000*hour, "", all)
		list = s.recent(list, asked{after, limit, whole})
	}
	return list, err
}

func (s *faulty) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	row, err := s.MemoryStore.Requested(ctx, machine, request)
	if err == nil && row.Request != "" && s.requested != nil {
		row = s.requested(s, row)
	}
	return row, err
}

func (s *faulty) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	list, err := s.MemoryStore.Messages(ctx, limit)
	if err == nil && s.messages != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		list = s.messages(s, limit, list)
	}
	return list, err
}

func (s *faulty) Discard(ctx context.Context, numbers ...uint64) error {
	if s.discard != nil {
		numbers = s.discard(s, numbers)
	}
	return s.MemoryStore.Discard(ctx, numbers...)
}

// emit appends messages without the commit that contains them.
func (s *faulty) emit(messages []lifecycle.Message) {
	if len(messages) > 0 {
		c := commitOf(change(s.now(lifecycle.Key{Machine: "hidden", ID: "x"}), idle))
		c.Messages = messages
		_ = s.MemoryStore.Commit(context.Background(), c)
	}
}

// matches reports whether a query selects a record.
func matches(q lifecycle.Query, r record) bool {
	return selects(q, r) && oldEnough(q, r) && late(q, r)
}

func inStates(q lifecycle.Query, r record) bool {
	return len(q.States) == 0 || slices.Contains(q.States, r.State)
}

func oldEnough(q lifecycle.Query, r record) bool { return time.Since(r.ChangedAt) >= q.UnchangedFor }

func late(q lifecycle.Query, r record) bool {
	return !q.Overdue || !r.Deadline.IsZero() && time.Now().After(r.Deadline)
}

// revisions replaces every revision by a function of the record.
func revisions(name func(s *faulty, r record) lifecycle.Revision) fault {
	return fault{
		change: func(s *faulty, ch *edit) {
			if now := s.now(ch.To.Key); name(s, now) == ch.Expect {
				ch.Expect = now.Revision
			}
		},
		record: func(s *faulty, r *record) { r.Revision = name(s, *r) },
	}
}

// restartNumbers lets the numbers of an absent object begin again.
func restartNumbers(forget func(s *faulty, k lifecycle.Key) bool) fault {
	return fault{
		change: func(s *faulty, ch *edit) {
			ch.To.Sequence += s.lives[ch.To.Key].Sequence
			ch.To.Operation += s.lives[ch.To.Key].Operation
			if ch.Remove {
				s.removed = append(slices.DeleteFunc(s.removed, func(k lifecycle.Key) bool { return k == ch.To.Key }), ch.To.Key)
			}
		},
		record: func(s *faulty, r *record) {
			if !r.Exists() && forget(s, r.Key) {
				s.lives[r.Key] = *r
			}
			r.Sequence -= min(s.lives[r.Key].Sequence, r.Sequence)
			r.Operation -= min(s.lives[r.Key].Operation, r.Operation)
		},
	}
}

// forgetting lets the numbers of a removed object begin again after n other removals.
func forgetting(n int) fault {
	return restartNumbers(func(s *faulty, k lifecycle.Key) bool {
		return slices.Index(s.removed, k) < len(s.removed)-n
	})
}

// newTokens commits under another token when it is not recognized, and shows the
// token of the caller in the history.
func newTokens(forgets func(s *faulty, c *commits) bool) fault {
	callers := map[lifecycle.Token]lifecycle.Token{}
	return fault{
		before: func(s *faulty, c *commits) {
			token := c.Token
			if s.tokens[token] > 0 && forgets(s, c) {
				c.Token = lifecycle.NewToken()
			}
			callers[c.Token] = token
		},
		history: func(_ *faulty, _ lifecycle.Key, list rows) rows {
			for i := range list {
				list[i].Token = callers[list[i].Token]
			}
			return list
		},
	}
}
