package scripttest

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
)

// ErrDied is the error of every call of a [Process] that has died.
var ErrDied = errors.New("scripttest: the process has died")

// Process is the connection of one simulated process to a store. After the death of the
// process every call returns [ErrDied]; other processes may use the same store. It is
// safe for concurrent use.
type Process struct {
	*lifecycle.MemoryStore
	// Committed receives every commit that succeeded, in the order of the commits.
	// It must not be changed while the Process is in use. Nil: no call.
	Committed func(*lifecycle.Commit)

	mu   sync.Mutex
	left int // commits until the death; 0: no death is planned
	dead bool
}

// Die ends the process: at once for 0, or after so many more successful commits.
func (p *Process) Die(commits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.dead = commits, p.dead || commits == 0
}

// Get returns a record.
func (p *Process) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if p.hasDied() {
		return lifecycle.StoredRecord{}, ErrDied
	}
	return p.MemoryStore.Get(ctx, k)
}

// List returns records.
func (p *Process) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if p.hasDied() {
		return nil, ErrDied
	}
	return p.MemoryStore.List(ctx, q)
}

func (p *Process) hasDied() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Commit commits, and counts the commit.
func (p *Process) Commit(ctx context.Context, c *lifecycle.Commit) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrDied
	}
	if err := p.MemoryStore.Commit(ctx, c); err != nil {
		return err
	}
	if p.left > 0 {
		p.left--
		p.dead = p.left == 0
	}
	if p.Committed != nil {
		p.Committed(c)
	}
	return nil
}
