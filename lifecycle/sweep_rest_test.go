package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// kept are machines that are archived, by the clock, an hour after they stopped.
var kept = fsm.Must[size](fsm.Spec[state, event]{
	Name: "kept", Initial: "running", Actors: []fsm.Actor{user, "worker"},
	States: []fsm.State[state]{
		{Name: "running"},
		{Name: "stopped"},
		{Name: "archived"},
		{Name: "deleted", Kind: fsm.Final},
		{Name: "stopping", Kind: fsm.Transitional},
		{Name: "archiving", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("running", "stop", "stopping").By(user),
		fsm.Move[state, event]("stopping", "done", "stopped").By("worker"),
		fsm.Return[state, event]("stopping", "late").After(time.Minute),
		fsm.Move[state, event]("stopped", "archive", "archiving").After(time.Hour),
		fsm.Move[state, event]("archiving", "done", "archived").By("worker"),
		fsm.Return[state, event]("archiving", "late").After(time.Minute),
		fsm.Move[state, event]("stopped", "delete", "deleting").AlsoFrom("archived").By(user),
		fsm.Move[state, event]("deleting", "done", "deleted").By("worker"),
		fsm.Return[state, event]("deleting", "late").After(time.Minute),
	),
})

// TestDeadlineBetweenSteps: at rest between two steps the record names the work of
// the one that is done. A deadline that begins an operation there does not do it
// once more, and the chain has ended, as if anybody had moved the object.
func TestDeadlineBetweenSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		config := func(o *lifecycle.Owner) *lifecycle.Config[event] {
			return &lifecycle.Config[event]{Worker: "worker", Done: []event{"done"}, Owner: o, Handlers: map[string]lifecycle.Handler{
				"stop": log.handler("stop"), "delete": log.handler("delete"),
			}}
		}
		owner := must(lifecycle.Join(t.Context(), store, "p", time.Second))(t)
		m := lifecycle.New(kept, store, config(owner))
		must(m.Add(t.Context(), "a", user, size{}))(t)
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n > 2 { // after the outcome of the first step nobody hears of it any more
				return errBoom
			}
			return write()
		}
		must(m.DoSteps(t.Context(), "a", user, destroy(lifecycle.Named("stop", nil), lifecycle.Named("delete", nil)), nil))(t)
		time.Sleep(time.Hour + 1)

		n := lifecycle.New(kept, store.MemoryStore, config(nil))
		found := must(n.Sweep(t.Context()))(t)
		synctest.Wait()
		require.Len(t, found, 1)
		require.Equal(t, `kept "a" in stopped, operation 1: moved to archiving by archive`, found[0].String())
		require.Equal(t, []string{"stop "}, log.list)
		now := must(store.Get(t.Context(), lifecycle.Key{Machine: "kept", ID: "a"}))(t)
		require.Equal(t, "archiving", now.State)
		require.Empty(t, now.Work)
		require.Empty(t, now.Steps)
	})
}

// TestStepsOfAnEarlierLife: a process that came back under its name and could not
// recover finds the steps that its earlier life has left at rest by its sweeps.
func TestStepsOfAnEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		fine := func(context.Context, []byte) error { return nil }
		life := func(s lifecycle.Store) *lifecycle.Manager[state, event, size] {
			owner := must(lifecycle.Join(t.Context(), s, "p", time.Hour))(t)
			return workers(s, lifecycle.Config[event]{Owner: owner, Handlers: map[string]lifecycle.Handler{"stop": fine, "delete": fine}})
		}
		m := life(store)
		running(t, m, "a")
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n > 2 { // after the outcome of the first step nobody hears of it any more
				return errBoom
			}
			return write()
		}
		must(m.DoSteps(t.Context(), "a", user, destroy(lifecycle.Named("stop", nil), lifecycle.Named("delete", nil)), nil))(t)
		synctest.Wait()

		lister := &clocked{hooked: &hooked{MemoryStore: store.MemoryStore}, fail: errBoom}
		n := life(lister)
		_, err := n.Recover(t.Context())
		require.ErrorIs(t, err, errBoom)
		lister.fail = nil
		found := must(n.Sweep(t.Context()))(t)
		require.Len(t, found, 1)
		require.Equal(t, `work-vm "a" in stopped, operation 3: continued to deleting by delete, owner p is dead`, found[0].String())
		synctest.Wait()
		require.False(t, new(stored(t, store.MemoryStore, "a")).Exists())
		require.Empty(t, must(n.Sweep(t.Context()))(t))
	})
}
