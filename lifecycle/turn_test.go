package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// blocked is a queue in which the object a is busy until the returned function is
// called.
func blocked(t *testing.T, machine string) (*queue.Queuer[lifecycle.Key], func()) {
	t.Helper()
	base, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	q := queue.Must(&queue.Config[lifecycle.Key]{Base: base})
	end := make(chan struct{})
	_, err := q.Submit(t.Context(), lifecycle.Key{Machine: machine, ID: "a"}, &queue.Action{
		Run: func(context.Context) error { <-end; return nil },
	})
	require.NoError(t, err)
	return q, func() { close(end) }
}

// TestPartMovedBeforeTurn: another writer moves an object of Work.With, or makes it
// foreign, while the operation waits for its turn. The work runs, and that object
// stays where it is.
func TestPartMovedBeforeTurn(t *testing.T) {
	for _, how := range []string{"moved", "foreign"} {
		inBubble(t, how, func(t *testing.T) {
			q, free := blocked(t, "work-vm")
			store := lifecycle.NewMemoryStore()
			m := workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", time.Hour)})
			stopped(t, m, "a")
			stopped(t, m, "b")
			ticket := doParts(t, m, "a", "start", user, sleeping(time.Second), nil, firing(m, "b", "start", user, nil))
			if how == "moved" {
				override(t, m, "b", "stopped", user, "it hangs", nil)
			} else {
				now := stored(t, store, "b")
				change := lifecycle.StoredChange{Expect: now.Revision, From: now.State, FromOrigin: now.Origin, To: now}
				change.To.State, change.To.Sequence = "melting", now.Sequence+1
				require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{change}}))
			}
			before := stored(t, store, "b")
			free()
			synctest.Wait() // until the work has begun
			require.Equal(t, time.Minute, time.Until(get(t, m, "a").Deadline))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			rec, err := ticket.Wait(ctx)
			require.NoError(t, err)
			require.EqualValues(t, "running", rec.State)
			require.Equal(t, before, storedAt(t, store, before.Key))
		})
	}
}

// TestTurnEndsWithStore: the store is closed while an operation waits for its turn.
// The start of the turn is not tried again, so the queue can be drained.
func TestTurnEndsWithStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", time.Hour)})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(fine), nil)
		require.NoError(t, store.Close())
		free()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, q.Terminate(ctx))
		require.NoError(t, lifecycle.Drain(ctx, m))
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Canceled, failed.Outcome)
		require.ErrorIs(t, failed.Unwritten, lifecycle.ErrClosed)
	})
}

// A trip begins with or without a deadline, and a report changes between them.
var tripMachine = fsm.Must[size](fsm.Spec[state, event]{
	Name: "trip", Initial: "home", Actors: []fsm.Actor{user, "worker"},
	States: []fsm.State[state]{
		{Name: "home"},
		{Name: "driving", Kind: fsm.Transitional},
		{Name: "strolling", Kind: fsm.Transitional, Manual: "it takes as long as it takes"},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("home", "drive", "driving").By(user),
		fsm.Move[state, event]("home", "stroll", "strolling").By(user),
		fsm.Move[state, event]("driving", "park", "strolling").By(user),
		fsm.Move[state, event]("strolling", "ride", "driving").By(user),
		fsm.Move[state, event]("driving", "done", "home").AlsoFrom("strolling").By("worker"),
		fsm.Return[state, event]("driving", "late").After(time.Minute),
	),
})

// TestReportBeforeTurn: a report moves an object to a state with or without a deadline
// while its operation waits for its turn. The wait has no deadline, and the work has
// that of each of its states.
func TestReportBeforeTurn(t *testing.T) {
	for first, second := range map[event]event{"drive": "park", "stroll": "ride"} {
		inBubble(t, string(first), func(t *testing.T) {
			q, free := blocked(t, "trip")
			store := lifecycle.NewMemoryStore()
			m := lifecycle.Must(tripMachine, store, &lifecycle.Config[event]{
				Queue: q, Owner: join(t, store, "p", 24*time.Hour), WorkerActor: "worker", Done: []event{"done"},
			})
			add(t, m, "a", user, size{})
			ticket := do(t, m, "a", first, user, sleeping(30*time.Second), nil)
			require.Equal(t, lifecycle.Applied, report(t, m, "a", ticket.Operation(), second, user, ""))
			require.Zero(t, get(t, m, "a").Deadline)
			time.Sleep(time.Hour)
			require.Empty(t, sweep(t, m))
			free()
			synctest.Wait() // until the work has begun
			if second == "park" {
				require.Zero(t, get(t, m, "a").Deadline)
				require.Equal(t, lifecycle.Applied, report(t, m, "a", ticket.Operation(), "ride", user, ""))
			}
			require.Equal(t, time.Minute, time.Until(get(t, m, "a").Deadline))
			require.EqualValues(t, "home", wait(t, ticket).State)
		})
	}
}

// TestDeadlineOfPart: an operation without a deadline begins its work, and an object
// of Work.With gets its deadline. The table of the operation has deadlines or none.
func TestDeadlineOfPart(t *testing.T) {
	endless := fsm.Must[size](fsm.Spec[state, event]{
		Name: "endless", Initial: "running", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "running"}, {Name: "inspecting", Kind: fsm.Transitional, Manual: "an engineer looks at it"}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("running", "inspect", "inspecting").By(user),
			fsm.Move[state, event]("inspecting", "done", "running").By("worker"),
		),
	})
	for name, machine := range map[string]*fsm.Machine[state, event, size]{"trip": tripMachine, "endless": endless} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			config := lifecycle.Config[event]{
				Owner: join(t, store, "p", 24*time.Hour), WorkerActor: "worker", Done: []event{"done"},
				Queue: new(queue.Queuer[lifecycle.Key]),
			}
			m, parts := lifecycle.Must(machine, store, &config), workers(store, config)
			add(t, m, "a", user, size{})
			stopped(t, parts, "b")
			first := event("inspect")
			if name == "trip" {
				first = "stroll"
			}
			ticket := doParts(t, m, "a", first, user, sleeping(30*time.Second), nil, firing(parts, "b", "start", user, nil))
			synctest.Wait() // until the work has begun
			require.Zero(t, get(t, m, "a").Deadline)
			require.Equal(t, time.Minute, time.Until(get(t, parts, "b").Deadline))
			wait(t, ticket)
			require.EqualValues(t, "running", get(t, parts, "b").State)
		})
	}
}

// TestRecordOfTheTurn: the outcome cannot be written. Wait returns the record as the start of
// the turn has left it, with its deadline.
func TestRecordOfTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", time.Hour)})
		stopped(t, m, "a")
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n > 2 { // the admission and the start of the turn
				return errBoom
			}
			return write()
		}
		rec, err := do(t, m, "a", "start", user, lifecycle.Func(fine), nil).Wait(t.Context())
		require.ErrorIs(t, outcomeError(t, err).Unwritten, errBoom)
		require.Equal(t, get(t, m, "a"), rec)
		require.NotZero(t, rec.Deadline)
	})
}
