package ovc

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// heldUp reports whether an action that waits here will not have its turn: the
// operation in front of it is over in the store, and the method of that operation does
// not end although its context has ended.
//
// A method whose outcome was just written is over too, and leaves the queue in a
// moment. The bad schedule: an action has waited long behind a migration, no process
// has healed meanwhile, and a sweep comes at that moment. Therefore only a method that
// has run for long holds up an action, as every method that is stuck has.
func (s *Service) heldUp(ctx context.Context, i *queue.Info[lifecycle.Key]) (bool, error) {
	for _, key := range i.Keys {
		lane := s.queuer.lanes.Inspect(key)
		if len(lane) == 0 || lane[0].Seq >= i.Seq {
			continue
		}
		var held bool
		var err error
		switch front := &lane[0]; {
		case front.State == queue.Waiting: // for its turn at another object
			held, err = s.heldUp(ctx, front)
		case front.Name != string(Migrate) && time.Since(front.Started) >= s.config.StuckAfter/2:
			held, err = s.over(ctx, front)
		}
		if held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// over reports whether the operation of an action that runs here has ended: its
// object is in another one by now, or rests.
func (s *Service) over(ctx context.Context, i *queue.Info[lifecycle.Key]) (bool, error) {
	rec, err := s.store.Get(ctx, i.Keys[0])
	if err != nil || !IsTransition(State(rec.State)) || !moves(i, &rec) {
		return err == nil, err
	}
	return slices.ContainsFunc(s.queuer.lanes.Inspect(rec.Key), func(later queue.Info[lifecycle.Key]) bool {
		return later.Seq > i.Seq && later.State == queue.Waiting && moves(&later, &rec)
	}), nil
}
