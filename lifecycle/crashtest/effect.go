package crashtest

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// effect is what work does to the world outside.
type effect struct {
	lifecycle.Key
	operation lifecycle.OpID
	owner     string
	epoch     uint64
}

// effects are the world outside as operations change it: a thing that takes
// every operation of an object once, and none that is older than one it has
// seen.
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
// the world outside, on behalf of its operation. Work calls it once. The error
// matches [lifecycle.ErrStale] if the outside has seen a later operation of the
// object, and nothing is changed then. It panics where no work runs.
func (p *Process) Effect(ctx context.Context) error {
	t := lifecycle.TaskOf(ctx)
	if t == nil {
		panic("crashtest: Effect outside of work")
	}
	return p.apply(effect{t.Key, t.Operation, t.Owner, t.Epoch})
}

// Apply is Effect for a peer that does what an operation asks for, on behalf of
// nobody here.
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
		return fmt.Errorf("%w: the outside has seen operation %d of %s", lifecycle.ErrStale, newest, e.ID)
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
		return "nobody in particular"
	}
	return fmt.Sprintf("%s in epoch %d", e.owner, e.epoch)
}

func nameOf(k lifecycle.Key) string { return fmt.Sprintf("%s %q", k.Machine, k.ID) }
