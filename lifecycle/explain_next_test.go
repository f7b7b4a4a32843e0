package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// One state for each thing that a deadline row can do.
var deadlines = fsm.Must[size](fsm.Spec[state, event]{
	Name: "deadlines", Initial: "none", Actors: []fsm.Actor{user},
	States: []fsm.State[state]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "rented"},
		{Name: "returning", Kind: fsm.Transitional},
		{Name: "polling", Kind: fsm.Transitional},
		{Name: "removing", Kind: fsm.Transitional},
		{Name: "idle"},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "rent", "rented").By(user),
		fsm.Move[state, event]("rented", "expire", "idle").After(time.Hour),
		fsm.Move[state, event]("rented", "return", "returning").By(user),
		fsm.Return[state, event]("returning", "late").After(time.Minute),
		fsm.Move[state, event]("rented", "poll", "polling").By(user),
		fsm.Redo[state, event]("polling", "again", time.Minute),
		fsm.Move[state, event]("polling", "done", "idle").By(user),
		fsm.Move[state, event]("rented", "remove", "removing").By(user),
		fsm.Move[state, event]("removing", "late", "none").After(time.Minute),
		fsm.Move[state, event]("idle", "rent", "rented").By(user),
	),
})

// TestExplainDeadlines: Explain describes what the sweeper does at the deadline, before
// and after it, and with a dead owner.
func TestExplainDeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		event  event // empty: the object rests in rented
		then   string
		before string
		after  string
	}{
		"a resting state": {
			"", "after 1h0m0s the sweeper fires expire: the object moves to idle",
			"none until the deadline: the object is not in transition", "the sweeper fires expire: the object moves to idle",
		},
		"return": {
			"return", "after 1m0s the sweeper fires late: the object returns to rented",
			"the sweeper, after the deadline", "the sweeper fires late: the object returns to rented",
		},
		"again": {
			"poll", "after 1m0s the sweeper fires again: the operation starts again",
			"user", "user; or the sweeper fires again: the operation starts again",
		},
		"removal": {
			"remove", "after 1m0s the sweeper fires late: the object is removed",
			"the sweeper, after the deadline", "the sweeper fires late: the object is removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := lifecycle.Must(deadlines, lifecycle.NewMemoryStore(), nil)
				create(t, m, "a", "rent", user, size{})
				if c.event != "" {
					fire(t, m, "a", c.event, user, nil)
				}
				x := explain(t, m, "a")
				require.Equal(t, c.then, x.Then)
				require.Equal(t, c.before, x.NextMove)
				time.Sleep(2 * time.Hour)
				x = explain(t, m, "a")
				require.Equal(t, c.after+", if the deadline has passed by the clock of the store", x.NextMove)
			})
		})
	}
}

// TestExplainDeadOwner: the next sweep acts on the operation of a dead process.
func TestExplainDeadOwner(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	o := join(t, store, "p", 0)
	m := workers(store, lifecycle.Config[event]{Owner: o})
	stopped(t, m, "a")
	do(t, m, "a", "start", user, lifecycle.Func(untilEnded), nil)
	require.NoError(t, o.Leave(t.Context()))
	x := explain(t, workers(store, lifecycle.Config[event]{}), "a")
	require.Equal(t, `owner "p" of epoch 1 is dead`, x.Cause)
	require.Equal(t, "the next sweep fires late: the object returns to stopped", x.NextMove)

	// Another program has left the owner in an object at rest. No sweep acts upon that.
	plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "work-vm", ID: "b"}, State: "running", Origin: "running", Owner: "p", Epoch: 1})
	require.Empty(t, explain(t, m, "b").Cause)
	found, err := lifecycle.Stuck(t.Context(), m, 0)
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// TestExplainRedoneElsewhere: the sweep of a manager that cannot do the work does not start the
// operation again.
func TestExplainRedoneElsewhere(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	for id, options := range map[string][]byte{"a": nil, "b": []byte("?")} {
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "work-vm", ID: id}, State: "rebooting", Origin: "running", Work: "reboot",
			WorkOptions: options, Owner: "gone", Epoch: 1,
		})
	}
	handlers := map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error { return nil }}
	able := workers(store, lifecycle.Config[event]{Handlers: handlers})
	const again = "the next sweep fires late: the operation starts again"
	require.Equal(t, again, explain(t, able, "a").NextMove)
	require.Equal(t, again+", but its work cannot be read: lifecycle: foreign record: work options: "+
		"invalid character '?' looking for beginning of value", explain(t, able, "b").NextMove)
	for name, m := range map[string]*sizedManager{
		"without the handler": workers(store, lifecycle.Config[event]{}),
		"without an actor":    lifecycle.Must(workVM, store, &lifecycle.Config[event]{Handlers: handlers}),
	} {
		require.Equal(t, again+`, in a process that can do the work "reboot"`, explain(t, m, "a").NextMove, name)
		require.Equal(t, lifecycle.NoHandler, sweep(t, m)[0].Resolution, name)
	}
}

// TestExplainMovedElsewhere: the same if a guard of the table now chooses the row that ends the
// operation.
func TestExplainMovedElsewhere(t *testing.T) {
	given := fsm.When("given up", func(context.Context, *size, *size) error { return errBoom })
	vm := fsm.Must[size](fsm.Spec[state, event]{
		Name: "ending-vm", Initial: "none", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "none", Kind: fsm.Absent}, {Name: "starting", Kind: fsm.Transitional}, {Name: "ended", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("none", "start", "starting").By(user),
			fsm.Redo[state, event]("starting", "late", time.Minute).If(given),
			fsm.Move[state, event]("starting", "late", "ended").After(time.Minute),
			fsm.Move[state, event]("starting", "ready", "ended").By("worker"),
		),
	})
	store := lifecycle.NewMemoryStore()
	key := lifecycle.Key{Machine: "ending-vm", ID: "a"}
	plant(t, store, lifecycle.StoredRecord{Key: key, State: "starting", Origin: "none", Work: "start", Owner: "gone", Epoch: 1})
	m := lifecycle.Must(vm, store, nil)
	require.Equal(t, `the next sweep fires late: the object moves to ended, in a process that can do the work "start"`, explain(t, m, "a").NextMove)
	require.Equal(t, lifecycle.NoHandler, sweep(t, m)[0].Resolution)
}

// TestExplainRefused: a bad precondition and a store that fails are errors.
func TestExplainRefused(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	m := lifecycle.Must(deadlines, store, nil)
	_, err := m.Explain(t.Context(), "a", lifecycle.Precondition{Key: lifecycle.Key{Machine: "deadlines", ID: "b"}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	key := lifecycle.Key{Machine: "deadlines", ID: "a"}
	plant(t, store, lifecycle.StoredRecord{Key: key, State: "Melting"})
	_, err = m.Explain(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.NoError(t, store.Close())
	_, err = m.Explain(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrClosed)

	for owner, conditions := range map[string][]lifecycle.Precondition{"p": nil, "": {m.Require("a", "polling")}} {
		t.Run(fmt.Sprintf("owner %q", owner), func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			plant(t, store, lifecycle.StoredRecord{Key: key, State: "polling", Origin: "rented", Owner: owner, Epoch: uint64(len(owner))})
			store.afterGet = func(int) { store.Close() }
			_, err := lifecycle.Must(deadlines, store, nil).Explain(t.Context(), "a", conditions...)
			require.ErrorIs(t, err, lifecycle.ErrClosed, "a read after that of the object")
		})
	}
}

// TestExplainHangs: work that goes on after its time-out is reported with the remedy,
// with and without an owner.
func TestExplainHangs(t *testing.T) {
	for name, owned := range map[string]bool{"process p": true, "this process": false} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			var config lifecycle.Config[event]
			if owned {
				config.Owner = join(t, store, "p", time.Hour)
			}
			m := workers(store, config)
			running(t, m, "a")
			end := make(chan struct{})
			hangs := lifecycle.Work{Run: func(context.Context) error { <-end; return nil }, Timeout: 10 * time.Second}
			ticket := do(t, m, "a", "stop", user, hangs, nil)
			time.Sleep(10 * time.Second)
			require.Empty(t, explain(t, m, "a").Cause)
			time.Sleep(30 * time.Second)
			x := explain(t, m, "a")
			cause := "work has run 30s longer than its time-out of 10s and ignores its context: restart " + name
			require.Equal(t, cause, x.Cause)
			require.True(t, strings.HasPrefix(x.String(), `work-vm "a" is stopping (transitional) since 2000-01-01T00:00:00Z, origin running`+
				"\n  cause: "+cause+"\n  next move: "), x.String())
			close(end)
			_, _ = ticket.Wait(t.Context())
			require.Empty(t, explain(t, m, "a").Cause)
		})
	}
}

// TestExplainAfterAbandon: work that hangs is abandoned. It is no cause any more, neither at
// rest nor for a later operation that waits for a limit.
func TestExplainAfterAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[lifecycle.Key]{MaxRunning: 1})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		running(t, m, "a")
		running(t, m, "b")
		end := make(chan struct{})
		hangs := lifecycle.Work{Run: func(context.Context) error { <-end; return nil }, Timeout: 10 * time.Second}
		ticket := do(t, m, "a", "stop", user, hangs, nil)
		time.Sleep(40 * time.Second)
		require.Contains(t, explain(t, m, "a").Cause, "work has run 30s longer")
		require.True(t, q.Abandon(lifecycle.Key{Machine: m.Machine().Name(), ID: "a"}))
		require.Equal(t, lifecycle.Canceled, outcomeOf(t, ticket).Outcome)
		require.Empty(t, explain(t, m, "a").Cause)
		other := do(t, m, "b", "stop", user, lifecycle.Work{Run: untilEnded}, nil)
		synctest.Wait()
		last := do(t, m, "a", "stop", user, lifecycle.Work{Run: fine}, nil)
		require.Empty(t, explain(t, m, "a").Cause)
		other.Cancel(nil)
		wait(t, last)
		close(end)
	})
}

// TestExplainBehindHangs: the operation waits behind work of an earlier one, which ignores its
// time-out. The cause is that of the earlier work, until that ends.
func TestExplainBehindHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		end := make(chan struct{})
		hangs := lifecycle.Work{Run: func(context.Context) error { <-end; return nil }, Timeout: 10 * time.Second}
		do(t, m, "a", "stop", user, hangs, nil)
		time.Sleep(time.Minute + 1)
		var last *lifecycle.Ticket[state, size]
		for range 2 {
			require.Equal(t, lifecycle.Moved, sweep(t, m)[0].Resolution)
			last = do(t, m, "a", "stop", user, lifecycle.Work{Run: fine, Timeout: time.Hour}, nil)
			cause := explain(t, m, "a").Cause
			require.Contains(t, cause, "longer than its time-out of 10s and ignores its context: restart this process")
			time.Sleep(time.Minute + 1)
		}
		require.Contains(t, explain(t, m, "a").Cause, "work has run 2m50s longer")
		last.Cancel(nil)
		require.Equal(t, lifecycle.Canceled, outcomeOf(t, last).Outcome)
		last = do(t, m, "a", "stop", user, lifecycle.Work{Run: fine, Timeout: time.Hour}, nil)
		require.Contains(t, explain(t, m, "a").Cause, "work has run 2m50s longer", "one in between was withdrawn")
		close(end)
		_, _ = last.Wait(t.Context())
		require.Empty(t, explain(t, m, "a").Cause)
	})
}

// TestExplainString: the text has no events that are not possible, unless it is the
// verbose one, and nothing about a change that the record does not have.
func TestExplainString(t *testing.T) {
	require.Equal(t, `vm "a" is idle (stable)
  next move: none
  no deadline: it waits
  user:
    start to busy
`, lifecycle.Explanation{
		Machine: "vm", ID: "a", State: "idle", Kind: "stable", NextMove: "none", Then: "fires late", Manual: "it waits",
		Actors: []lifecycle.ActorExplanation{
			{Actor: "user", Events: []lifecycle.EventExplanation{{Event: "start", Possible: true, To: "busy"}, {Event: "stop", Why: "never"}}},
			{Actor: "agent", Events: []lifecycle.EventExplanation{{Event: "done", Why: "never"}}},
		},
	}.String())
	x := lifecycle.Explanation{
		Machine: "vm", ID: "a", State: "idle", Kind: "stable", NextMove: "none", Actor: "ann", Reason: "moved here", Operation: 7,
		Deadline: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		Actors: []lifecycle.ActorExplanation{
			{Actor: "agent", Events: []lifecycle.EventExplanation{{Event: "done", Why: "never"}}},
		},
	}
	require.Equal(t, `vm "a" is idle (stable)
  next move: none
  last change: added by ann in operation 7: moved here
  deadline: 2000-01-01T00:00:00Z
  agent:
    not done: never
`, x.Verbose())
	for last, x := range map[string]lifecycle.Explanation{
		"":                                   {Operation: 7},
		"\n  last change: found":             {Reason: "found", Operation: 7},
		"\n  last change: added by ann":      {Actor: "ann"},
		"\n  last change: start by ann: now": {Actor: "ann", Event: "start", Reason: "now"},
	} {
		t.Run(strings.TrimSpace(last), func(t *testing.T) {
			x.Machine, x.ID, x.State, x.Kind, x.Target = "vm", "a", "idle", "stable", "busy"
			require.Equal(t, "vm \"a\" is idle (stable), target busy\n  next move: "+last+"\n", x.String())
		})
	}
	data, err := json.Marshal(lifecycle.Explanation{})
	require.NoError(t, err)
	require.NotContains(t, string(data), "0001")
}
