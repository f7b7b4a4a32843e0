package store

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

// remote is a store whose calls are made by a goroutine outside of a bubble of
// testing/synctest, and that follows the clock of the bubble. The connection of a client
// always waits for the server: in a bubble, no time would pass.
type remote struct {
	*etcdstore.Store
	now   *atomic.Pointer[time.Time]
	calls chan func()
}

// far makes a call outside of the bubble. A context of the bubble cannot be used there.
func far[R any](ctx context.Context, s *remote, call func(ctx context.Context) (R, error)) (result R, err error) {
	if ctx.Err() != nil {
		return result, lifecycle.Ended(ctx)
	}
	now := time.Now()
	s.now.Store(&now)
	s.calls <- func() { result, err = call(context.Background()) }
	s.calls <- func() {} // the one goroutine that takes calls has ended the one before
	return result, err
}

func (s *remote) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	return far(ctx, s, func(ctx context.Context) (lifecycle.StoredRecord, error) { return s.Store.Get(ctx, key) })
}

func (s *remote) Commit(ctx context.Context, c *lifecycle.Commit) error {
	_, err := far(ctx, s, func(ctx context.Context) (any, error) { return nil, s.Store.Commit(ctx, c) })
	return err
}

func (s *remote) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	return far(ctx, s, func(ctx context.Context) ([]lifecycle.StoredRecord, error) { return s.Store.List(ctx, q) })
}

func (s *remote) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	return far(ctx, s, func(ctx context.Context) ([]lifecycle.HistoryRow, error) {
		return s.Store.History(ctx, key, after, limit)
	})
}

func (s *remote) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	return far(ctx, s, func(ctx context.Context) (lifecycle.HistoryRow, error) {
		return s.Store.Requested(ctx, machine, request)
	})
}

func (s *remote) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	return far(ctx, s, func(ctx context.Context) ([]lifecycle.OutboxMessage, error) { return s.Store.Messages(ctx, limit) })
}

func (s *remote) Discard(ctx context.Context, numbers ...uint64) error {
	_, err := far(ctx, s, func(ctx context.Context) (any, error) { return nil, s.Store.Discard(ctx, numbers...) })
	return err
}

func (s *remote) Close() error { return nil } // the store outlives the bubble

type disks = *lifecycle.Manager[string, string, int]

const (
	user   fsm.Actor = "user"
	worker fsm.Actor = "worker"
)

// disk has the resolutions for a dead owner: making returns to the origin, and the work of
// copying and deleting is done again.
var disk = fsm.Must[int](fsm.Spec[string, string]{
	Name: "disk", Initial: "none", Actors: []fsm.Actor{user, worker},
	States: []fsm.State[string]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "free"},
		{Name: "broken", Kind: fsm.Failed},
		{Name: "making", Kind: fsm.Transitional},
		{Name: "copying", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move("none", "make", "making").By(user),
		fsm.Move("making", "done", "free").By(worker),
		fsm.Return[string]("making", "fail").By(worker),
		fsm.Return[string]("making", "late").After(time.Minute),
		fsm.Move("free", "copy", "copying").By(user),
		fsm.Move("copying", "done", "free").By(worker),
		fsm.Move("copying", "fail", "broken").AlsoFrom("deleting").By(worker),
		fsm.Redo("copying", "late", time.Minute),
		fsm.Move("free", "delete", "deleting").AlsoFrom("broken").By(user),
		fsm.Move("deleting", "done", "none").By(worker),
		fsm.Redo("deleting", "late", time.Minute),
	),
})

func startDisks(ctx context.Context, p *crashtest.Process) (disks, error) {
	if err := p.Join(ctx, lifecycle.DefaultTTL); err != nil {
		return nil, err
	}
	return crashtest.Manage(p, disk, &lifecycle.Config[string]{
		WorkerActor: worker, Done: []string{"done"}, Failed: []string{"fail"},
		Handlers: map[string]lifecycle.Handler{
			"work": func(ctx context.Context, _ []byte) error { return p.Effect(ctx) },
			"slow": func(ctx context.Context, _ []byte) error {
				select {
				case <-time.After(13 * time.Second): // no multiple of the tick, so that the order of events is fixed
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return p.Effect(ctx)
			},
		},
	}), nil
}

// bring does an operation, unless the disk is in the state already.
func bring(id, event, to, handler string, change *lifecycle.Change[int]) func(context.Context, disks) error {
	return func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, id)
		switch {
		case err == nil && rec.State == to, errors.Is(err, lifecycle.ErrNotFound) && to == "none":
			return nil
		case err != nil && !errors.Is(err, lifecycle.ErrNotFound):
			return err
		}
		h, err := m.Do(ctx, id, event, user, lifecycle.Named(handler, nil), change)
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	}
}

// life is one disk from its creation to its end, with messages and conditions on another
// one, and a time in which owners send heartbeats.
func life(_ context.Context, w *crashtest.Clients[disks]) error {
	insist := func(what string, f func(context.Context, disks) error) error { return w.Insist("alpha", what, f) }
	for _, id := range []string{"a", "b"} {
		if err := insist("make "+id, bring(id, "make", "free", "work", nil)); err != nil {
			return err
		}
	}
	err := w.Ask("alpha", "copy a while b is free", func(ctx context.Context, m disks) error {
		return bring("a", "copy", "", "slow", &lifecycle.Change[int]{
			Require:  []lifecycle.Precondition{m.Require("b", "free"), m.Require("c")},
			Messages: []lifecycle.Message{{Topic: "copies", Key: "a"}},
		})(ctx, m)
	})
	if w.Faultless() && err != nil {
		return err
	}
	w.Pass(20 * time.Second)
	if err := insist("delete a", bring("a", "delete", "none", "work", nil)); err != nil {
		return err
	}
	return insist("override b", func(ctx context.Context, m disks) error {
		rec, err := m.Get(ctx, "b")
		if err == nil && rec.State != "broken" {
			_, err = m.Override(ctx, "b", "broken", user, "it is old", nil)
		}
		return err
	})
}

// A process dies, or an answer is lost, at every write of a life.
func TestCrashPoints(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	calls := make(chan func())
	go func() {
		for call := range calls {
			call()
		}
	}()
	t.Cleanup(func() { close(calls) })
	kinds := []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer, crashtest.DeathAfter}
	if scale.Full {
		kinds = crashtest.Kinds()
	}
	var now atomic.Pointer[time.Time]
	var places []place
	writes := crashtest.Run(t, crashtest.Harness{
		Kinds: kinds,
		New: func(t testing.TB) lifecycle.Store {
			p := newPlace(server)
			places = append(places, p)
			start := time.Now()
			now.Store(&start)
			s := &remote{now: &now, calls: calls}
			_, err := far(context.Background(), s, func(ctx context.Context) (_ any, err error) {
				s.Store, err = etcdstore.Open(ctx, client, &etcdstore.Config{
					Prefix: p.prefix, Clock: func() time.Time { return *now.Load() },
				})
				return nil, err
			})
			require.NoError(t, err)
			return s
		},
	}, crashtest.Scenario[disks]{
		Start: startDisks, Script: life,
		Ends: map[lifecycle.Key][]string{{Machine: "disk", ID: "a"}: {""}, {Machine: "disk", ID: "b"}: {"broken"}},
	})
	require.Greater(t, writes, 10)
	for _, p := range places {
		p.audit(t)
	}
}
