package ovc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Healing is the result of self-healing.
type Healing struct {
	// Stuck are the objects that were stuck in a transition state, with their
	// resolutions.
	Stuck []lifecycle.SweepResult
	// Expired are the destructions of objects at the end of their retention.
	Expired []*Ticket
}

// SelfHeal looks once at all objects. An object that has been in a transition state
// for longer than StuckAfter, or whose process is dead, returns to its origin. An object
// that has been in the recycle bin for the retention period is destroyed. An action that
// waits for its turn in this process is not stuck, unless it waits for one that is.
//
// Several processes may call it at once. Call it at the start of a process that has
// [Config.Owner]: it finds the actions of an earlier process of the same name without
// waiting for deadlines. An object that takes part in the action of another one may
// return to its origin at the end of that action, without an entry in the result;
// [Config.Observer] receives its change.
//
// The error is that of the store, or of a queue that refuses a destruction, such as
// [queue.ErrTerminated]. The results until then are returned too, and the next call
// looks again.
func (s *Service) SelfHeal(ctx context.Context) (h Healing, err error) {
	err = s.keepWaiting(ctx)
	for kind := range Kinds() {
		results, failed := s.managers[kind].Sweep(ctx)
		err = errors.Join(err, failed)
		for _, r := range results {
			if !errors.Is(r.Err, errNotStuck) {
				h.Stuck = append(h.Stuck, r)
			}
		}
		expired, failed := s.emptyBin(ctx, kind)
		h.Expired, err = append(h.Expired, expired...), errors.Join(err, failed)
	}
	return h, err
}

// Sweep is SelfHeal for [lifecycle.Run], which calls it at an interval, such as a tenth of
// StuckAfter. It returns the objects that were stuck.
func (s *Service) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	h, err := s.SelfHeal(ctx)
	return h.Stuck, err
}

// keepWaiting extends the deadlines of actions that have waited here for a while, so that
// neither this process nor another one considers them stuck.
func (s *Service) keepWaiting(ctx context.Context) (err error) {
	for key := range s.queuer.All() {
		kind, ok := kindOf(key.Machine)
		if !ok {
			continue // an action of the program, under a key of its own
		}
		for _, i := range s.queuer.Inspect(key) {
			long := i.State == queue.Waiting && time.Since(i.Accepted) >= s.config.StuckAfter/4
			if !long || i.Keys[0] != key || i.Name == string(Migrate) || s.blocked(&i) {
				continue
			}
			// The turn of a stale action ends it.
			if failed := s.managers[kind].Heartbeat(ctx, key.ID); !errors.Is(failed, lifecycle.ErrStale) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// blocked reports whether an action waits for one that is stuck: its method has run for
// longer than StuckAfter, although its context has ended.
func (s *Service) blocked(i *queue.Info[lifecycle.Key]) bool {
	return slices.ContainsFunc(i.Keys, func(key lifecycle.Key) bool {
		lane := s.queuer.Inspect(key)
		if len(lane) == 0 || lane[0].Seq >= i.Seq {
			return false
		}
		first := &lane[0]
		if first.State == queue.Waiting { // for its turn at another object
			return s.blocked(first)
		}
		return first.Name != string(Migrate) && time.Since(first.Started) >= s.config.StuckAfter
	})
}

// errNotStuck keeps a sweep from moving an object.
var errNotStuck = errors.New("ovc: not stuck")

// observe returns the event for an object that a sweep is about to move back.
func (s *Service) observe(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	if !IsTransition(State(stuck.State)) {
		return "", "", fmt.Errorf("%w: SelfHeal destroys the objects of the recycle bin", errNotStuck)
	}
	if s.config.Observe != nil {
		return s.config.Observe(ctx, stuck)
	}
	return "", "", nil
}

// emptyBin destroys the objects that have been in the recycle bin for the retention
// period.
func (s *Service) emptyBin(ctx context.Context, kind Kind) (begun []*Ticket, err error) {
	m := s.managers[kind]
	if len(kind.bin()) == 0 {
		return nil, nil
	}
	for rec, failed := range m.All(ctx, lifecycle.Select[State]{States: kind.bin(), Overdue: true}) {
		if failed != nil {
			err = errors.Join(err, failed) // of one record, or the last one
			continue
		}
		j := job{Kind: kind, ID: rec.ID, Methods: []Event{Destroy}}
		work := lifecycle.Named(methods, j.encode())
		if work.Also, failed = s.attachedTo(ctx, rec); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		ticket, failed := m.Do(ctx, rec.ID, Expire, Observer, work, &change{Expect: rec.Revision})
		switch {
		case failed == nil:
			begun = append(begun, ticket)
		case errors.Is(failed, lifecycle.ErrConflict), errors.Is(failed, lifecycle.ErrBusy), errors.Is(failed, fsm.ErrNotAllowed):
			// Another process or a restore was faster.
		default:
			err = errors.Join(err, failed)
		}
	}
	return begun, err
}

// attachedTo returns the machine that a disk in the recycle bin is still attached to.
// The destruction of the disk takes the turn of this machine too.
func (s *Service) attachedTo(ctx context.Context, disk Record) ([]lifecycle.Key, error) {
	if disk.State != ToBeDeleted || disk.Payload.VM == "" {
		return nil, nil
	}
	vm, err := s.Get(ctx, KindVM, disk.Payload.VM)
	if err != nil || vm.State == Destroyed {
		if errors.Is(err, lifecycle.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	return []lifecycle.Key{KindVM.Key(vm.ID)}, nil
}
