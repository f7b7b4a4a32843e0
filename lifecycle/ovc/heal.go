package ovc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Healing is the result of self-healing.
type Healing struct {
	// Stuck are the objects that were stuck in a transition state, each with its
	// resolution.
	Stuck []lifecycle.SweepResult
	// Expired are the objects whose retention is over, which are destroyed now.
	Expired []*Handle
}

// SelfHeal looks once at all objects. An object that has been in a transition state
// for longer than StuckAfter, or whose process is dead, goes back to the state that
// it came from. An object that has been in the recycle bin for the retention period
// is destroyed. An action that waits for its turn in this process is not stuck,
// however long it waits.
//
// Several processes may call it at once. Call it at the start of a process that has
// [Config.Owner]: it finds what an earlier process of the same name has left,
// without waiting for deadlines.
//
// An error is that of the store, or of a queue that refuses a destruction, such as
// [queue.ErrTerminated]. What was found nevertheless is returned, and the next call
// looks again.
func (s *Service) SelfHeal(ctx context.Context) (h Healing, err error) {
	err = s.wait(ctx)
	taking, failed := s.takingPart(ctx)
	err = errors.Join(err, failed)
	for kind := range Kinds() {
		results, failed := s.managers[kind].Sweep(ctx)
		err = errors.Join(err, failed)
		for _, r := range results {
			if !errors.Is(r.Err, errNotStuck) {
				h.Stuck = append(h.Stuck, r)
			}
		}
		expired, failed := s.empty(ctx, kind)
		h.Expired, err = append(h.Expired, expired...), errors.Join(err, failed)
	}
	return h, errors.Join(err, s.putBack(ctx, &h, taking))
}

// part is an object that takes part in an action on another one, which runs here.
type part struct {
	of lifecycle.Key
	lifecycle.SweepResult
}

// takingPart finds the objects that take part in the actions of this process.
//
// The bad schedule without it: a machine and its disk are stuck, and the sweep
// takes the machine away from the action. That ends, and puts the disk back before
// the sweep of the disks finds it: without takingPart no result would report the disk.
func (s *Service) takingPart(ctx context.Context) (parts []part, err error) {
	lanes := s.queuer.lanes
	for key := range lanes.All() {
		for _, i := range lanes.Inspect(key) {
			if i.State == queue.Waiting || i.Keys[0] != key {
				continue
			}
			for _, k := range i.Keys[1:] {
				rec, failed := s.store.Get(ctx, k)
				if failed != nil {
					return parts, failed
				}
				if IsTransition(State(rec.State)) && moves(&i, &rec) {
					parts = append(parts, part{key, lifecycle.SweepResult{Key: k, From: rec.State, Operation: rec.Operation, Owner: rec.Owner}})
				}
			}
		}
	}
	return parts, nil
}

// putBack reports the objects that an action has put back itself, because it was
// stuck.
func (s *Service) putBack(ctx context.Context, h *Healing, parts []part) (err error) {
	at := map[lifecycle.Key]int{}
	for i, c := range h.Stuck {
		at[c.Key] = i
	}
	for _, p := range parts {
		i, found := at[p.of]
		if !found || h.Stuck[i].Resolution != lifecycle.Moved {
			continue
		}
		i, found = at[p.Key]
		if found && h.Stuck[i].Resolution != lifecycle.Overtaken {
			continue
		}
		now, failed := s.store.Get(ctx, p.Key)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		if now.Operation != p.Operation || now.Event != string(Stuck) {
			continue // another writer has moved it, or its operation is not over yet
		}
		p.Resolution, p.To, p.Event, p.Actor = lifecycle.Moved, now.State, now.Event, now.Actor
		if found {
			h.Stuck[i] = p.SweepResult
		} else {
			h.Stuck = append(h.Stuck, p.SweepResult)
		}
	}
	return err
}

// Run calls SelfHeal until ctx ends, and then returns nil: at random times around
// every, up to a fifth earlier or later, so that several processes do not look at
// the same moment. The function report, if it is not nil, receives what SelfHeal
// returns. An interval of 0 is a tenth of StuckAfter; a negative one is
// [lifecycle.ErrInvalid]. Run starts no goroutine.
func (s *Service) Run(ctx context.Context, every time.Duration, report func(Healing, error)) error {
	switch {
	case every < 0:
		return invalid("every %v", every)
	case every == 0:
		every = s.config.StuckAfter / 10
	}
	for {
		pause := time.NewTimer(every - every/5 + rand.N(every*2/5+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		h, err := s.SelfHeal(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if report != nil {
			report(h, err)
		}
	}
}

// wait extends the deadlines of actions that have waited here for a while, so that
// other processes do not consider them stuck.
func (s *Service) wait(ctx context.Context) (err error) {
	lanes := s.queuer.lanes
	for key := range lanes.All() {
		for _, i := range lanes.Inspect(key) {
			long := i.State == queue.Waiting && time.Since(i.Accepted) >= s.config.StuckAfter/4
			kind, _ := kindOf(key.Machine)
			if !long || i.Keys[0] != key || i.Name == string(Migrate) {
				continue
			}
			held, failed := s.heldUp(ctx, &i)
			if held || failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			// A stale action was taken away meanwhile. Its turn ends it.
			if failed := s.managers[kind].Heartbeat(ctx, key.ID); !errors.Is(failed, lifecycle.ErrStale) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// errNotStuck keeps a sweep from what only looks stuck.
var errNotStuck = errors.New("ovc: not stuck")

// observe decides about an object that a sweep is about to put back.
func (s *Service) observe(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error) {
	if !IsTransition(State(stuck.State)) {
		return "", "", fmt.Errorf("%w: the recycle bin is emptied by destroying", errNotStuck)
	}
	switch waits, err := s.waits(ctx, &stuck); {
	case err != nil:
		return "", "", err
	case waits:
		return "", "", fmt.Errorf("%w: it waits for its turn", errNotStuck)
	case s.config.Observe != nil:
		return s.config.Observe(ctx, stuck)
	}
	return "", "", nil
}

// waits reports whether the action of an object waits for its turn in this process.
func (s *Service) waits(ctx context.Context, r *lifecycle.StoredRecord) (bool, error) {
	if o := s.config.Owner; o != nil && (r.Owner != o.Name() || r.Epoch != o.Epoch()) {
		return false, nil
	}
	for _, i := range s.queuer.lanes.Inspect(r.Key) {
		if i.State != queue.Waiting || !moves(&i, r) {
			continue
		}
		held, err := s.heldUp(ctx, &i)
		if !held || err != nil {
			return true, err
		}
	}
	return false, nil
}

// moves reports whether an action in the queue of an object is the one that the
// object's last event began: its own, or one of another object in which it takes
// part.
func moves(i *queue.Info[lifecycle.Key], r *lifecycle.StoredRecord) bool {
	event := Event(r.Event)
	switch first := i.Keys[0]; {
	case first == r.Key:
		return i.Name == r.Event
	case r.Machine == KindVM.Machine().Name():
		return ofDisk[event] != "" && i.Name == string(ofDisk[event])
	case first.Machine == KindVM.Machine().Name():
		return i.Name == string(cmp.Or(ofVM[event], event))
	}
	return false
}

// empty destroys the objects that have been in the recycle bin for the retention
// period.
func (s *Service) empty(ctx context.Context, kind Kind) (begun []*Handle, err error) {
	m := s.managers[kind]
	var bins []State
	for row := range kind.Machine().Rows() {
		if row.Event == Expire {
			bins = append(bins, row.From...)
		}
	}
	if len(bins) == 0 {
		return nil, nil
	}
	for rec, failed := range m.All(ctx, lifecycle.Select[State]{States: bins, Overdue: true}) {
		if failed != nil {
			return begun, errors.Join(err, failed)
		}
		j := job{Kind: kind, ID: rec.ID, Methods: []Event{Destroy}}
		work := lifecycle.Named(methods, j.encode())
		if work.Also, failed = s.attachedTo(ctx, rec); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		h, failed := m.Do(ctx, rec.ID, Expire, fsm.Sweeper, work, &change{Expect: rec.Revision})
		switch {
		case failed == nil:
			begun = append(begun, h)
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
	return []lifecycle.Key{KindVM.key(vm.ID)}, nil
}
