package scripttest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrDied is the error of every call after the death of a process, see [Store.Die].
var ErrDied = errors.New("scripttest: the process has died")

// Store is the connection of one simulated process to a memory store, which several of them
// may share. It calls the functions of [Store.Before] and [Store.After] around its calls. They
// run without a lock and may call the store. It is safe for concurrent use.
type Store struct {
	*lifecycle.MemoryStore
	// Committed receives every commit that succeeded, in the order of the commits. It must
	// not commit, and it must not be changed while the Store is in use. Nil: no call.
	Committed func(*lifecycle.Commit)

	committing sync.Mutex // held during a commit and its call of Committed

	mu            sync.Mutex
	before, after func(Call) error // nil: none
	until         time.Time        // the end of an outage
	dies          bool             // after left more commits
	left          int
}

// NewStore returns a store of its own, without functions.
func NewStore() *Store { return &Store{MemoryStore: lifecycle.NewMemoryStore()} }

// Call is a call of a [Store].
type Call struct {
	Method  string            // Get, List, History or Commit
	Machine string            // of a commit: of its first change
	ID      string            // of a commit: of its first change; of a list: Query.After
	State   string            // to which the first change of a commit leads; after a read, that of the first record
	Commit  *lifecycle.Commit // of a commit
}

// Is reports whether the call has the method, the machine and the state of another one, and
// an id that begins with the other one's. Empty fields of the other one match everything.
func (c *Call) Is(at Call) bool {
	return (at.Method == "" || at.Method == c.Method) && (at.Machine == "" || at.Machine == c.Machine) &&
		(at.State == "" || at.State == c.State) && strings.HasPrefix(c.ID, at.ID)
}

// Before sets the function that runs before every call; nil is none. Its error is the result
// of the call, which is then not made.
func (s *Store) Before(f func(Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// After sets the function that runs after every call that has succeeded; nil is none. Its
// error is the result of the call.
func (s *Store) After(f func(Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// OnceBefore runs a function before the next call that is like at, see [Call.Is]. It replaces
// the function of Before. The result reports whether the function has run.
func (s *Store) OnceBefore(at Call, do func()) (ran func() bool) {
	f, ran := once(at, do)
	s.Before(f)
	return ran
}

// OnceAfter is OnceBefore for the function of After.
func (s *Store) OnceAfter(at Call, do func()) (ran func() bool) {
	f, ran := once(at, do)
	s.After(f)
	return ran
}

func once(at Call, do func()) (f func(Call) error, ran func() bool) {
	var done atomic.Bool
	return func(c Call) error {
		if c.Is(at) && !done.Swap(true) {
			do()
		}
		return nil
	}, done.Load
}

// Refuse lets every call fail that is like at, see [Call.Is]. It replaces the function of
// Before.
func (s *Store) Refuse(at Call, err error) {
	s.Before(func(c Call) error {
		if c.Is(at) {
			return err
		}
		return nil
	})
}

// Outage lets all calls fail with [lifecycle.ErrUnavailable] for some time. A call whose
// function of Before calls Outage fails too. 0 ends an outage.
func (s *Store) Outage(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(d)
}

// Die ends the process: every call returns [ErrDied], at once for 0, or after so many more
// commits that succeed.
func (s *Store) Die(commits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dies, s.left = true, commits
}

// broken returns the error of every call during an outage and after the death.
func (s *Store) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dies && s.left == 0:
		return ErrDied
	case time.Now().Before(s.until):
		return lifecycle.ErrUnavailable
	}
	return nil
}

// run makes a call between the two functions.
func (s *Store) run(c Call, call func(*Call) error) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(c); err != nil {
			return err
		}
	}
	err := s.broken()
	if err == nil {
		err = call(&c)
	}
	s.mu.Lock()
	after := s.after
	s.mu.Unlock()
	if err == nil && after != nil {
		err = after(c)
	}
	return err
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, k lifecycle.Key) (rec lifecycle.StoredRecord, err error) {
	err = s.run(Call{Method: "Get", Machine: k.Machine, ID: k.ID}, func(c *Call) error {
		rec, err = s.MemoryStore.Get(ctx, k)
		c.State = rec.State
		return err
	})
	return rec, err
}

// List returns records.
func (s *Store) List(ctx context.Context, q lifecycle.Query) (found []lifecycle.StoredRecord, err error) {
	err = s.run(Call{Method: "List", Machine: q.Machine, ID: q.After}, func(c *Call) error {
		found, err = s.MemoryStore.List(ctx, q)
		if len(found) > 0 {
			c.State = found[0].State
		}
		return err
	})
	return found, err
}

// History returns history rows.
func (s *Store) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) (rows []lifecycle.HistoryRow, err error) {
	err = s.run(Call{Method: "History", Machine: k.Machine, ID: k.ID}, func(*Call) error {
		rows, err = s.MemoryStore.History(ctx, k, after, limit)
		return err
	})
	return rows, err
}

// Commit commits.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	to := c.Changes[0].To
	return s.run(Call{Method: "Commit", Machine: to.Machine, ID: to.ID, State: to.State, Commit: c}, func(*Call) error {
		s.committing.Lock()
		defer s.committing.Unlock()
		if err := s.broken(); err != nil { // another commit was the last one
			return err
		}
		if err := s.MemoryStore.Commit(ctx, c); err != nil {
			return err
		}
		s.mu.Lock()
		s.left--
		s.mu.Unlock()
		if s.Committed != nil {
			s.Committed(c)
		}
		return nil
	})
}
