package crashtest

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// effect is what work does to the outside world.
type effect struct {
	lifecycle.Key
	operation lifecycle.OpID
	owner     string
	epoch     uint64
}

// effects are the simulated outside world. It accepts every operation of an object
// once, and none that is older than one it has seen.
type effects struct {
	count  map[effectKey]int
	by     map[effectKey]effect
	newest map[lifecycle.Key]lifecycle.OpID
}

type effectKey struct {
	lifecycle.Key
	operation lifecycle.OpID
}

// Effect is the side effect of the work that runs with this context: it changes
// the outside world, on behalf of the operation. Work calls it once. The error
// matches [lifecycle.ErrStale] if the outside world has seen a later operation of
// the object; nothing changes then. Effect panics if no work runs with ctx.
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
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	k := effectKey{e.Key, e.operation}
	if newest := w.outside.newest[e.Key]; e.operation < newest {
		return fmt.Errorf("%w: the outside world has seen operation %d of %s", lifecycle.ErrStale, newest, e.ID)
	}
	w.outside.newest[e.Key] = e.operation
	w.outside.count[k]++
	if before, again := w.outside.by[k]; again {
		w.accuse("operation %d of %s is applied %d times: by %s, then by %s", e.operation, nameOf(e.Key),
			w.outside.count[k], before.who(), e.who())
	}
	w.outside.by[k] = e
	return nil
}

func (e effect) who() string {
	if e.owner == "" {
		return "a peer"
	}
	return fmt.Sprintf("%s in epoch %d", e.owner, e.epoch)
}

func nameOf(k lifecycle.Key) string { return fmt.Sprintf("%s %q", k.Machine, k.ID) }
