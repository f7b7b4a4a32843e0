package crash

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
)

type (
	state string
	event string
)

const (
	user   fsm.Actor = "user"
	worker fsm.Actor = "worker"
)

// disk is a table with every resolution for a dead owner: making and growing return to
// the origin, detaching fails, and the work of copying and deleting is done again.
var disk = fsm.Must[int](fsm.Spec[state, event]{
	Name: "disk", Initial: "none", Actors: []fsm.Actor{user, worker},
	States: []fsm.State[state]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "free"},
		{Name: "used"},
		{Name: "broken", Kind: fsm.Failed},
		{Name: "making", Kind: fsm.Transitional},
		{Name: "growing", Kind: fsm.Transitional},
		{Name: "detaching", Kind: fsm.Transitional},
		{Name: "copying", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "make", "making").By(user),
		fsm.Move[state, event]("making", "done", "free").By(worker),
		fsm.Return[state, event]("making", "late").After(time.Minute),
		fsm.Move[state, event]("free", "attach", "used").AlsoFrom("broken").By(user),
		fsm.Move[state, event]("used", "detach", "detaching").By(user),
		fsm.Move[state, event]("detaching", "done", "free").By(worker),
		fsm.Move[state, event]("detaching", "late", "broken").After(time.Minute),
		fsm.Move[state, event]("free", "grow", "growing").AlsoFrom("used").By(user),
		fsm.Return[state, event]("growing", "done").By(worker),
		fsm.Return[state, event]("growing", "fail").AlsoFrom("making").By(worker),
		fsm.Return[state, event]("growing", "late").After(time.Minute),
		fsm.Move[state, event]("used", "copy", "copying").By(user),
		fsm.Move[state, event]("copying", "done", "used").By(worker),
		fsm.Move[state, event]("copying", "fail", "broken").AlsoFrom("detaching", "deleting").By(worker),
		fsm.Redo[state, event]("copying", "late", time.Minute),
		fsm.Move[state, event]("free", "delete", "deleting").AlsoFrom("broken").By(user),
		fsm.Move[state, event]("growing", "delete", "deleting").By(user).Superseding(),
		fsm.Move[state, event]("deleting", "done", "none").By(worker),
		fsm.Redo[state, event]("deleting", "late", time.Minute),
	),
})

type disks = *lifecycle.Manager[state, event, int]

func key(id string) lifecycle.Key { return lifecycle.Key{Machine: "disk", ID: id} }

var errFull = errors.New("the array is full")

// config returns the configuration of the manager of disks. Work calls effect, which
// changes the world outside; slow is how long the handler "slow" takes.
func config(effect func(ctx context.Context) error, slow time.Duration) *lifecycle.Config[event] {
	return &lifecycle.Config[event]{
		WorkerActor: worker, Done: []event{"done"}, Failed: []event{"fail"},
		Handlers: map[string]lifecycle.Handler{
			"work": func(ctx context.Context, _ []byte) error { return effect(ctx) },
			"grow": func(ctx context.Context, _ []byte) error {
				if err := effect(ctx); err != nil {
					return err
				}
				lifecycle.EditOutcome(ctx, func(size *int) error { *size++; return nil })
				return nil
			},
			"slow": func(ctx context.Context, _ []byte) error {
				select {
				case <-time.After(slow):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return effect(ctx)
			},
			"fail": func(context.Context, []byte) error { return errFull },
		},
	}
}

// start starts a process of a scenario.
func start(ctx context.Context, p *crashtest.Process) (disks, error) {
	if err := p.Join(ctx, lifecycle.DefaultTTL); err != nil {
		return nil, err
	}
	return crashtest.Manage(p, disk, config(p.Effect, 13*time.Second)), nil // no multiple of the tick, so that the order of events is fixed
}

// made makes a disk, unless it is free.
func made(id string) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, id)
		switch {
		case err == nil && rec.State == "free":
			return nil
		case err != nil && !errors.Is(err, lifecycle.ErrNotFound):
			return err
		}
		return do(id, "make", "work", nil)(ctx, m)
	}
}

// do requests an operation once, and waits for its outcome.
func do(id string, e event, handler string, change *lifecycle.Change[int]) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		ticket, err := m.Do(ctx, id, e, user, lifecycle.Named(handler, nil), change)
		if err == nil {
			_, err = ticket.Wait(ctx)
		}
		return err
	}
}
