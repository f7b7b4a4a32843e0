package tumblebug

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// evidence is what looks at a VM have shown, if one of them is not sufficient.
type evidence struct {
	revision lifecycle.Revision // of a VM at rest
	accepted bool               // the provider has accepted the action
	moved    bool               // since then, a look has shown the VM in the transition of its action
	state    State              // of the last look
	looks    int                // equal ones in sequence
	at       time.Time          // of the last look that counts
}

// confirmed adds a look and reports whether enough of them, one in each interval, have
// shown this state.
func (e *evidence) confirmed(state State, interval time.Duration) bool {
	if state != e.state {
		e.state, e.looks = state, 0
	}
	if now := time.Now(); e.looks == 0 || now.Sub(e.at) >= interval {
		e.looks, e.at = e.looks+1, now
	}
	return e.looks >= confirmations
}

// look requests the state of a VM in an action from its provider, and returns the event
// that follows from it and from the evidence, or none. A look without an answer shows
// nothing: a provider that is out of reach during a termination is not one that has deleted
// the VM. A look that is not sufficient counts only after the provider has accepted the
// action.
func (s *System) look(ctx context.Context, vm *vmRecord, seen *evidence) (Event, State) {
	shown, answered := s.status(ctx, vm)
	if !answered {
		return "", shown
	}
	action, _ := Doing(vm.State)
	event, sufficient := judge(action, shown, seen.moved)
	if sufficient {
		return event, shown
	}
	is := Correct(action, shown)
	seen.moved = seen.accepted && (seen.moved || shown != Undefined && is == vm.State)
	if seen.accepted && seen.confirmed(is, s.poll) {
		return event, shown
	}
	return "", shown
}

// observed are the events of states that a provider shows of a VM at rest.
var observed = map[State]Event{
	Running: SeeRunning, Suspended: SeeSuspended, Terminated: SeeTerminated, Failed: SeeFailed, Undefined: SeeNothing,
}

// lookAtRest is look for a VM at rest. Failed and Terminated need confirmation, because
// they are cached; so does Undefined for a provider that has not answered. A look that the
// caller has ended does not count.
func (s *System) lookAtRest(ctx context.Context, vm *vmRecord) Event {
	shown, answered := s.status(ctx, vm)
	if ctx.Err() != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown != vm.State && (!answered || shown == Failed || shown == Terminated) {
		seen := s.doubts[vm.ID]
		if seen == nil || seen.revision != vm.Revision {
			seen = &evidence{revision: vm.Revision}
			s.doubts[vm.ID] = seen
		}
		if !seen.confirmed(shown, s.poll) {
			return ""
		}
	}
	delete(s.doubts, vm.ID)
	if shown == vm.State {
		return ""
	}
	return observed[shown]
}

// update looks at a VM, and records what its provider shows. It sets vm to the new record if
// the VM was at rest. It makes no request about a VM whose state is cached. The action of a VM
// looks again and again in its work; here one look ends it if that is sufficient.
func (s *System) update(ctx context.Context, vm *vmRecord) (err error) {
	switch {
	case Cached(vm.State):
	case restless(*vm):
		event, shown := s.look(ctx, vm, &evidence{})
		if event != "" {
			_, err = s.vms.Report(ctx, vm.ID, vm.Operation, event, CSP, &vmChange{Reason: "the provider shows " + string(shown)})
		}
	default:
		event := s.lookAtRest(ctx, vm)
		if event != "" {
			var moved vmRecord
			if moved, err = s.vms.Fire(ctx, vm.ID, event, Observer, &vmChange{Expect: vm.Revision}); err == nil {
				*vm = moved
			}
		}
	}
	if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) {
		return nil // another writer has moved it; the next look shows the rest
	}
	return err
}

// refresh updates the VMs of an MCI, a few at a time. A panic of the provider or of an
// observer continues in the caller, and so does runtime.Goexit as a panic.
func (s *System) refresh(ctx context.Context, vms []vmRecord) error {
	var group errgroup.Group
	var panicked atomic.Pointer[queue.PanicError]
	group.SetLimit(maxLooks)
	for i := range vms {
		group.Go(func() error {
			err := protect.Call(func() error { return s.update(ctx, &vms[i]) })
			if p, ok := err.(*queue.PanicError); ok {
				panicked.Store(p)
			}
			return err
		})
	}
	err := group.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return err
}
