package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// polls is a table whose deadline starts the work again, a limited number of times. The
// two forms have the rows in either order.
func polls(name string, giveUpFirst bool) *fsm.Machine[state, event, size] {
	few := fsm.When("few", func(_ context.Context, _, s *size) error {
		if s.N > 2 {
			return fmt.Errorf("%d is often enough", s.N)
		}
		return nil
	})
	enough := fsm.When("enough", func(_ context.Context, _, s *size) error {
		if s.N <= 2 {
			return fmt.Errorf("%d is not often enough", s.N)
		}
		return nil
	})
	rows := fsm.Rows(
		fsm.Redo[state, event]("asking", "late", time.Minute).If(few),
		fsm.Return[state, event]("asking", "late").After(time.Minute),
	)
	if giveUpFirst {
		rows = fsm.Rows(
			fsm.Return[state, event]("asking", "late").If(enough).After(time.Minute),
			fsm.Redo[state, event]("asking", "late", time.Minute),
		)
	}
	return fsm.Must[size](fsm.Spec[state, event]{
		Name: name, Initial: "idle", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "asking", Kind: fsm.Transitional}},
		Rows: append(rows,
			fsm.Move[state, event]("idle", "ask", "asking").By(user),
			fsm.Return[state, event]("asking", "done").By("worker"),
		),
	})
}

// TestSweepAgainOrNot: the guards select the deadline row. The work runs again if that
// row starts the operation again, and not if the row ends it.
func TestSweepAgainOrNot(t *testing.T) {
	for name, first := range map[string]bool{"again first": false, "give up first": true} {
		for n, want := range map[int]lifecycle.Resolution{1: lifecycle.Redone, 3: lifecycle.Moved} {
			inBubble(t, fmt.Sprint(name, " ", n), func(t *testing.T) {
				var log calls
				store := lifecycle.NewMemoryStore()
				machine := polls("poll", first)
				config := func(h lifecycle.Handler) *lifecycle.Config[event] {
					return &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}, Handlers: map[string]lifecycle.Handler{"ask": h}}
				}
				m := lifecycle.Must(machine, store, config(func(ctx context.Context, _ []byte) error { time.Sleep(time.Hour); return nil }))
				add(t, m, "p", user, size{N: n})
				_, err := m.Do(t.Context(), "p", "ask", user, lifecycle.Func(fine), nil)
				require.ErrorIs(t, err, lifecycle.ErrMisconfigured, "another process may do it again")
				ticket := do(t, m, "p", "ask", user, lifecycle.Named("ask", nil), nil)
				time.Sleep(time.Minute + 1)
				other := lifecycle.Must(machine, store, config(log.handler("asked")))
				found := sweep(t, other)
				synctest.Wait()
				require.Len(t, found, 1)
				require.Equal(t, want, found[0].Resolution, "%v", found[0])
				require.Equal(t, want == lifecycle.Redone, len(log.list) == 1)
				require.Equal(t, state("idle"), get(t, m, "p").State)
				_, err = ticket.Wait(t.Context())
				require.ErrorIs(t, err, lifecycle.ErrStale)
			})
		}
	}
}

// drains is a table of an operation that goes on to a state whose work is done again.
var drains = fsm.Must[size](fsm.Spec[state, event]{
	Name: "drain", Initial: "running", Actors: []fsm.Actor{user, agent, "worker"},
	States: []fsm.State[state]{
		{Name: "running"}, {Name: "draining", Kind: fsm.Transitional}, {Name: "rebooting", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("running", "reboot", "draining").By(user),
		fsm.Return[state, event]("draining", "late").After(time.Minute),
		fsm.Move[state, event]("draining", "drained", "rebooting").By(agent),
		fsm.Redo[state, event]("rebooting", "late", time.Minute),
		fsm.Move[state, event]("rebooting", "done", "running").By("worker"),
	),
})

// TestRedoLater: work without a handler is refused if its operation may go on to a state
// whose work is done again. Before, sweeps started the operation again at every deadline,
// and no process did its work.
func TestRedoLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		process := func(name string, reboot lifecycle.Handler) *sizedManager {
			return lifecycle.Must(drains, store, &lifecycle.Config[event]{
				WorkerActor: "worker", Done: []event{"done"}, Owner: join(t, store, name, time.Hour),
				Handlers: map[string]lifecycle.Handler{"reboot": reboot},
			})
		}
		m := process("first", func(ctx context.Context, _ []byte) error { return untilEnded(ctx) })
		add(t, m, "a", user, size{})
		add(t, m, "b", user, size{})
		_, err := m.Do(t.Context(), "a", "reboot", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
		_, err = doWith(t.Context(), m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil, firing(m, "b", "reboot", user, nil))
		require.ErrorIs(t, err, lifecycle.ErrMisconfigured, "an object of Work.With")

		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		synctest.Wait()
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "drained", agent, ""))
		time.Sleep(time.Minute + 1)
		other := process("second", log.handler("rebooted"))
		require.Equal(t, lifecycle.Redone, sweep(t, other)[0].Resolution)
		synctest.Wait()
		require.Equal(t, []string{"rebooted "}, log.list)
		require.Equal(t, state("running"), get(t, m, "a").State)
		sweep(t, m) // ends the work of the first process
		synctest.Wait()
	})
}

// TestSweepRedoesFull: a sweeper without room in its queue takes nothing over.
func TestSweepRedoesFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		q := queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1})
		handlers := map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error { time.Sleep(time.Hour); return nil }}
		m := workers(store, lifecycle.Config[event]{Queue: q, Handlers: handlers})
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		time.Sleep(time.Minute + 1)
		before := all(t, store, "work-vm", "a")
		found := sweep(t, m)
		require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
		require.ErrorIs(t, found[0].Err, queue.ErrFull)
		require.Equal(t, before, all(t, store, "work-vm", "a"))
		time.Sleep(time.Hour)
	})
}

// TestSweepRedoesNothing: a manager that could not report the outcome of the work does not
// start it again.
func TestSweepRedoesNothing(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	plant(t, store, lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "work-vm", ID: "a"}, State: "rebooting", Origin: "running", Work: "reboot", Owner: "gone", Epoch: 1,
	})
	before := stored(t, store, "a")
	idle := lifecycle.Must(workVM, store, &lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
		"reboot": func(context.Context, []byte) error { panic("no actor reports its outcome") },
	}})
	found := sweep(t, idle)
	require.Len(t, found, 1)
	require.Equal(t, lifecycle.NoHandler, found[0].Resolution)
	require.Equal(t, before, stored(t, store, "a"))
}

// moving is a store with a function that runs when the overdue objects have been read.
type moving struct {
	*lifecycle.MemoryStore
	then func()
}

func (s *moving) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	found, err := s.MemoryStore.List(ctx, q)
	if q.Overdue && q.Machine == "work-vm" {
		s.then()
	}
	return found, err
}

// TestSweepOfMovedObject: Observe does not see an object that has moved since the sweep
// has found it.
func TestSweepOfMovedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &moving{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Observe: func(_ context.Context, r lifecycle.StoredRecord) (event, fsm.Actor, error) {
			panic("observes " + r.State)
		}})
		running(t, m, "a")
		fire(t, m, "a", "stop", user, nil)
		time.Sleep(time.Minute + 1)
		store.then = func() { require.Equal(t, lifecycle.Applied, report(t, m, "a", 3, "done", "worker", "")) }
		found := sweep(t, m)
		require.Len(t, found, 1)
		require.Equal(t, lifecycle.Overtaken, found[0].Resolution)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}
