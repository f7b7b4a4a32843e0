package crashtest

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// outside is the simulated outside world. It accepts every operation of an object once,
// and no operation that is older than one that it has seen.
type outside struct {
	applied map[operation]string // by its author
	newest  map[lifecycle.Key]lifecycle.OpID
}

type operation struct {
	lifecycle.Key
	id lifecycle.OpID
}

// peer is the author of effects that are not those of work.
const peer = "a peer"

// Effect is the side effect of the work that runs with this context: it changes the
// outside world, on behalf of the operation. Work calls it once. The error matches
// [lifecycle.ErrStale] if the outside world has seen a later operation of the object;
// nothing changes then. Effect panics if no work runs with ctx.
func (p *Process) Effect(ctx context.Context) error {
	t := lifecycle.TaskOf(ctx)
	if t == nil {
		panic("crashtest: Effect outside of work")
	}
	return p.apply(operation{t.Key, t.Operation}, fmt.Sprintf("owner %q in epoch %d", t.Owner, t.Epoch))
}

// Apply is Effect for a peer that executes an operation and is not an owner.
func (p *Process) Apply(key lifecycle.Key, id lifecycle.OpID) error {
	return p.apply(operation{key, id}, peer)
}

func (p *Process) apply(op operation, author string) error {
	if err := p.enter(); err != nil {
		return err
	}
	return p.sim.apply(op, author)
}

func (s *simulation) apply(op operation, author string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest := s.outside.newest[op.Key]; op.id < newest {
		return fmt.Errorf("%w: the outside world has seen operation %d of %s", lifecycle.ErrStale, newest, op.ID)
	}
	s.outside.newest[op.Key] = op.id
	if before, again := s.outside.applied[op]; again {
		s.report("operation %d of %s is applied again: by %s, then by %s", op.id, nameOf(op.Key), before, author)
	}
	s.outside.applied[op] = author
	return nil
}
