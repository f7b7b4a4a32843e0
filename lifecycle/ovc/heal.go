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

// Healing is what self-healing has found.
type Healing struct {
	// Stuck are the objects that were stuck in a transition state, and what
	// became of each: it is reported, and back where it was.
	Stuck []lifecycle.Case
	// Expired are the objects whose retention is over, which are destroyed now.
	Expired []*Handle
}

// SelfHeal looks once after all objects: those that have been in a transition
// state for longer than StuckAfter, or whose process is dead, go back to the
// state they came from, and those that have been in the recycle bin for the
// retention period are destroyed. An action that waits for its turn in this
// process is not stuck, however long it waits.
//
// It may be called by several processes at once. An error is that of the store, or
// of a queue that does not take what is to be destroyed, such as
// [queue.ErrTerminated]; what was found nevertheless is returned, and the next call
// looks again.
func (s *Service) SelfHeal(ctx context.Context) (Healing, error) {
	return s.heal(ctx, (*Manager).Sweep)
}

// Recover is SelfHeal for the start of a process that has an owner: what an
// earlier process of its name has left does not wait for its deadline. The error
// is [lifecycle.ErrInvalid] without [Config.Owner].
func (s *Service) Recover(ctx context.Context) (Healing, error) {
	return s.heal(ctx, (*Manager).Recover)
}

func (s *Service) heal(ctx context.Context, look func(*Manager, context.Context) ([]lifecycle.Case, error)) (h Healing, err error) {
	err = s.wait(ctx)
	taking, failed := s.takingPart(ctx)
	err = errors.Join(err, failed)
	for kind := range Kinds() {
		cases, failed := look(s.managers[kind], ctx)
		err = errors.Join(err, failed)
		for _, c := range cases {
			if !errors.Is(c.Err, errNotStuck) {
				h.Stuck = append(h.Stuck, c)
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
	lifecycle.Case
}

// takingPart finds the objects that take part in the actions of this process.
//
// The bad schedule without it: a machine and its disk are stuck, and the sweep
// takes the machine away from the action. That ends, and puts the disk back before
// the sweep of the disks comes to it: nobody would report the disk.
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
					parts = append(parts, part{key, lifecycle.Case{Key: k, From: rec.State, Operation: rec.Operation, Owner: rec.Owner}})
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
		if !found || h.Stuck[i].Remedy != lifecycle.Moved {
			continue
		}
		i, found = at[p.Key]
		if found && h.Stuck[i].Remedy != lifecycle.Overtaken {
			continue
		}
		now, failed := s.store.Get(ctx, p.Key)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		if now.Operation != p.Operation || now.Event != string(Stuck) {
			continue // somebody else has moved it, or it is not over yet
		}
		p.Remedy, p.To, p.Event, p.Actor = lifecycle.Moved, now.State, now.Event, now.Actor
		if found {
			h.Stuck[i] = p.Case
		} else {
			h.Stuck = append(h.Stuck, p.Case)
		}
	}
	return err
}

// Run heals until ctx ends, which is no error: about every so often, up to a
// fifth sooner or later, so that several processes do not look at the same
// moment. Tell, if it is not nil, gets what was found. Default of every, at 0: a
// tenth of StuckAfter. It starts no goroutine.
func (s *Service) Run(ctx context.Context, every time.Duration, tell func(Healing, error)) error {
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
		if tell != nil {
			tell(h, err)
		}
	}
}

// wait prolongs the deadlines of what has waited here for its turn for a while, so
// that other processes do not take it for stuck.
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
			// Stale: it was taken away meanwhile, and will find that out.
			if failed := s.managers[kind].Beat(ctx, key.ID); !errors.Is(failed, lifecycle.ErrStale) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// errNotStuck keeps a sweep from what only looks stuck.
var errNotStuck = errors.New("ovc: not stuck")

// observe is asked about what a sweep takes for stuck.
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
// object's last event began: its own, or one of another object that takes it
// along.
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

// empty destroys what has been in the recycle bin for long enough.
func (s *Service) empty(ctx context.Context, kind Kind) (begun []*Handle, err error) {
	m := s.managers[kind]
	var bins []State
	for row := range m.Machine().Rows() {
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
			// Somebody was faster: another process, or a user who restores it.
		default:
			err = errors.Join(err, failed)
		}
	}
	return begun, err
}

// attachedTo is the machine that a disk in the recycle bin is still attached to, if
// there is one: its turn is taken too.
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
