package crashtest

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// outside is the simulated outside world. It accepts every operation of an object once,
// and no operation that is older than one that it has seen.
type outside struct {
	applied map[operation]effect
	newest  map[lifecycle.Key]lifecycle.OpID
}

type operation struct {
	lifecycle.Key
	id lifecycle.OpID
}

func newOutside() outside {
	return outside{map[operation]effect{}, map[lifecycle.Key]lifecycle.OpID{}}
}

// effect is what work does to the outside world.
type effect struct {
	lifecycle.Key
	operation lifecycle.OpID
	owner     string // empty: a peer
	epoch     uint64
}

func (e effect) author() string {
	if e.owner == "" {
		return "a peer"
	}
	return fmt.Sprintf("%s in epoch %d", e.owner, e.epoch)
}

// Effect is the side effect of the work that runs with this context: it changes the
// outside world, on behalf of the operation. Work calls it once. The error matches
// [lifecycle.ErrStale] if the outside world has seen a later operation of the object;
// nothing changes then. Effect panics if no work runs with ctx.
func (p *Process) Effect(ctx context.Context) error {
	t := lifecycle.TaskOf(ctx)
	if t == nil {
		panic("crashtest: Effect outside of work")
	}
	return p.apply(effect{t.Key, t.Operation, t.Owner, t.Epoch})
}

// Apply is Effect for a peer that executes an operation and is not an owner.
func (p *Process) Apply(key lifecycle.Key, operation lifecycle.OpID) error {
	return p.apply(effect{Key: key, operation: operation})
}

func (p *Process) apply(e effect) error {
	if err := p.enter(); err != nil {
		return err
	}
	return p.sim.apply(e)
}

func (s *simulation) apply(e effect) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest := s.outside.newest[e.Key]; e.operation < newest {
		return fmt.Errorf("%w: the outside world has seen operation %d of %s", lifecycle.ErrStale, newest, e.ID)
	}
	s.outside.newest[e.Key] = e.operation
	op := operation{e.Key, e.operation}
	if before, again := s.outside.applied[op]; again {
		s.reportLocked("operation %d of %s is applied again: by %s, then by %s",
			e.operation, nameOf(e.Key), before.author(), e.author())
	}
	s.outside.applied[op] = e
	return nil
}
