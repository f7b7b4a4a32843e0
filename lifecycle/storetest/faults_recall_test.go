package storetest

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
)

// mindful is a bent store that recalls what it has read and written.
type mindful struct {
	*bent
	mu      sync.Mutex
	known   map[lifecycle.Key]lifecycle.StoredRecord
	early   bool // it remembers what it is about to write
	sticky  bool // it remembers what was removed
	blurred bool // it takes one object for another
	forged  bool // its revisions are none
}

func newMindful() *mindful {
	return &mindful{bent: newBent(), known: make(map[lifecycle.Key]lifecycle.StoredRecord)}
}

func (s *mindful) Recall(k lifecycle.Key) (lifecycle.StoredRecord, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blurred {
		k.ID = "a"
	}
	r, ok := s.known[k]
	if s.forged {
		r.Revision += "0"
	}
	return r, ok
}

func (s *mindful) keep(r lifecycle.StoredRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Exists() || s.sticky {
		s.known[r.Key] = r
	} else {
		delete(s.known, r.Key)
	}
}

func (s *mindful) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.bent.Get(ctx, k)
	if err == nil && (r.Exists() || !s.sticky) {
		s.keep(r)
	}
	return r, err
}

func (s *mindful) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.early {
		for _, ch := range c.Changes {
			s.keep(ch.To)
		}
	}
	err := s.bent.Commit(ctx, c)
	for _, ch := range c.Changes {
		if err == nil && !s.early && !s.sticky {
			s.keep(s.now(ch.To.Key))
		}
	}
	return err
}

func recallFaults() []fault {
	having := func(bend func(*mindful)) func() lifecycle.Store {
		return func() lifecycle.Store {
			s := newMindful()
			bend(s)
			return s
		}
	}
	return []fault{
		{
			name: "what is about to be written is recalled", demand: "Recall/nothing_that_was_not_written",
			store: having(func(s *mindful) { s.early = true }),
		},
		{
			name: "what was removed is recalled", demand: "Recall/nothing_that_was_not_written",
			store: having(func(s *mindful) { s.sticky = true }),
		},
		{
			name: "another object is recalled", demand: "Recall/is_what_get_returns",
			store: having(func(s *mindful) { s.blurred = true }),
		},
		{
			name: "a revision is recalled that nobody has given", demand: "Recall/belongs_to_a_revision",
			store: having(func(s *mindful) { s.forged = true }),
		},
	}
}
