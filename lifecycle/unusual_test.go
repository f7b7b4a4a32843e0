package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Occupy refuses work with other objects, and a record that this version cannot read.
func TestOccupyRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{})
	stopped(t, m, "a")
	work := lifecycle.Func(fine)
	work.With = &lifecycle.Tx{}
	_, err := lifecycle.Occupy(t.Context(), m, "a", "migrate", work)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	later := workers(store, lifecycle.Config[event]{Version: "later"})
	_, err = lifecycle.Occupy(t.Context(), later, "a", "migrate", lifecycle.Func(fine))
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.Equal(t, []string{"1: none -create-> creating by user", "1: creating -done-> stopped by worker"}, story(t, m, "a", 0))
}

// The observer of a failed attempt cancels the operation: there is no next attempt, and the
// work has failed by itself.
func TestCancelAfterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticket *lifecycle.Ticket[state, size]
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Handlers: map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error { return errBoom }},
			Observer: lifecycle.Observer{Retried: func(context.Context, lifecycle.FailedAttempt) { ticket.Cancel(errors.New("too late")) }},
		})
		stopped(t, m, "a")
		ticket = do(t, m, "a", "start", user, lifecycle.Work{Handler: "boot", Retries: lifecycle.Retries{Attempts: 3}}, nil)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.Equal(t, errBoom, failed.Err)
		require.NoError(t, failed.Unwritten)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

// An attempt ends after the deadline, and the store fails then. There is no next attempt: a
// sweep may have ended the operation already.
func TestAttemptEndsAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		attempts := 0
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error {
			attempts++
			time.Sleep(2 * time.Minute)
			store.reset()
			store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
				if n == 1 {
					return lifecycle.ErrUnavailable
				}
				return write()
			}
			return errBoom
		}}})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Handler: "boot", Retries: lifecycle.Retries{Attempts: 3}}, nil)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.Equal(t, errBoom, failed.Err)
		require.Equal(t, 1, attempts)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

// A queue of the user's bounds the time of the work. The operation has the outcome TimedOut.
func TestQueueWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: bounded{queue.Must[lifecycle.Key](nil)}})
		create(t, m, "a", "create", user, size{})
		fire(t, m, "a", "done", "worker", nil)
		failed := outcomeOf(t, do(t, m, "a", "start", user, lifecycle.Func(untilEnded), nil))
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

type bounded struct{ *queue.Queuer[lifecycle.Key] }

func (q bounded) SubmitAll(ctx context.Context, keys []lifecycle.Key, act *queue.Action) (*queue.Ticket[lifecycle.Key], error) {
	own := *act
	own.Timeout = time.Second
	return q.Queuer.SubmitAll(ctx, keys, &own)
}

// An action that waits for the turn of another process is cancelled. It leaves no place.
func TestCancelWhileWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store, key := t.Context(), lifecycle.NewMemoryStore(), lifecycle.Key{Machine: "vm", ID: "a"}
		one := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
		other := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "other", nil))
		end := make(chan struct{})
		first, err := one.Submit(ctx, key, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
		require.NoError(t, err)
		synctest.Wait()
		second, err := other.Submit(ctx, key, &queue.Action{Run: func(context.Context) error { return errBoom }})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Len(t, places(t, store), 2)
		second.Cancel(errors.New("not needed"))
		require.ErrorContains(t, second.Wait(ctx), "not needed")
		require.Equal(t, queue.Canceled, second.Outcome())
		require.Len(t, places(t, store), 1)
		close(end)
		require.NoError(t, first.Wait(ctx))
		require.Empty(t, places(t, store))
	})
}

// An action has two keys whose places are in one record.
func TestTurnOfTwoKeysInOneRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), lifecycle.NewMemoryStore()
		one := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
		other := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "other", nil))
		records := map[string]lifecycle.Key{} // the first key of each
		var keys []lifecycle.Key
		for i := 0; keys == nil; i++ {
			key := lifecycle.Key{Machine: "vm", ID: fmt.Sprint(i)}
			end := make(chan struct{})
			probe, err := one.Submit(ctx, key, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
			require.NoError(t, err)
			synctest.Wait()
			record := recordOfPlace(t, store)
			if same, found := records[record]; found {
				keys = []lifecycle.Key{same, key}
			}
			records[record] = key
			close(end)
			require.NoError(t, probe.Wait(ctx))
		}
		end := make(chan struct{})
		both, err := one.SubmitAll(ctx, keys, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, places(t, store), 2)
		var next []*queue.Ticket[lifecycle.Key]
		for _, key := range keys {
			ticket, err := other.Submit(ctx, key, &queue.Action{Run: fine})
			require.NoError(t, err)
			next = append(next, ticket)
		}
		time.Sleep(time.Minute)
		for _, ticket := range next {
			require.Equal(t, queue.Pending, ticket.Outcome())
		}
		close(end)
		require.NoError(t, both.Wait(ctx))
		for _, ticket := range next {
			require.NoError(t, ticket.Wait(ctx))
		}
		require.Empty(t, places(t, store))
	})
}

// recordOfPlace returns the record that has a place.
func recordOfPlace(t *testing.T, store lifecycle.Store) (id string) {
	lanes, err := store.List(t.Context(), lifecycle.Query{Machine: "interlock.turns", Limit: lifecycle.MaxPage})
	require.NoError(t, err)
	for _, lane := range lanes {
		if string(lane.Args) != "null" && string(lane.Args) != "[]" {
			id = lane.ID
		}
	}
	require.NotEmpty(t, id)
	return id
}

// A record of turns that this program cannot read skips an action, which changes nothing.
func TestForeignTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store, key := t.Context(), lifecycle.NewMemoryStore(), lifecycle.Key{Machine: "vm", ID: "a"}
		q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
		run := func() error {
			ticket, err := q.Submit(ctx, key, &queue.Action{Run: fine})
			require.NoError(t, err)
			return ticket.Wait(ctx)
		}
		require.NoError(t, run())
		lanes, err := store.List(ctx, lifecycle.Query{Machine: "interlock.turns", Limit: 1})
		require.NoError(t, err)
		lane := lanes[0]
		lane.Args = json.RawMessage(`"of another program"`)
		require.NoError(t, store.Commit(ctx, &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{
			{Expect: lane.Revision, From: lane.State, FromOrigin: lane.Origin, To: lane, MetadataOnly: true},
		}}))
		before := storedAt(t, store, lane.Key)
		require.ErrorIs(t, run(), lifecycle.ErrForeign)
		require.Equal(t, before, storedAt(t, store, lane.Key))
	})
}

// A sweep reports a transitional object whose origin it does not know, and leaves an object at
// rest alone that still has an owner: other programs have written them.
func TestSweepOfOddRecords(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	put := func(id, state, origin, owner string, epoch uint64) {
		key := lifecycle.Key{Machine: "work-vm", ID: id}
		require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
			To: lifecycle.StoredRecord{
				Key: key, State: state, Origin: origin, Sequence: 1, Operation: 1, Owner: owner, Epoch: epoch,
			},
			Expect: storedAt(t, store, key).Revision,
		}}}))
	}
	put("rests", "stopped", "stopped", "dead", 1)
	put("unknown", "starting", "flying", "", 0)
	m := workers(store, lifecycle.Config[event]{})
	before := all(t, store, "work-vm", "rests", "unknown")
	found := sweep(t, m)
	require.Len(t, found, 1)
	require.Equal(t, "unknown", found[0].ID)
	require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
	require.ErrorIs(t, found[0].Err, lifecycle.ErrForeign)
	require.Equal(t, before, all(t, store, "work-vm", "rests", "unknown"))
}

// A guard lets the table ignore the deadline, and Config.Observe may return an event that the
// table ignores. Explain returns the first, and a sweep reports that the object has not moved.
func TestSweepIsIgnored(t *testing.T) {
	open := func(redo bool) *fsm.Machine[state, event, size] {
		late := fsm.Return[state, event]("busy", "late").After(time.Minute)
		if redo {
			late = fsm.Redo[state, event]("busy", "late", time.Minute)
		}
		return fsm.Must[size](fsm.Spec[state, event]{
			Name: "kept", Initial: "open", Actors: []fsm.Actor{user},
			States: []fsm.State[state]{{Name: "open"}, {Name: "busy", Kind: fsm.Transitional}},
			Rows: fsm.Rows(
				fsm.Move[state, event]("open", "work", "busy").By(user),
				fsm.Move[state, event]("busy", "done", "open").By(user),
				fsm.Ignore[state, event]("busy", "progress").By(user),
				fsm.Ignore[state, event]("busy", "late").If(fsm.When("is kept", func(_ context.Context, _, p *size) error { return tooLarge(p.N) })),
				late,
			),
		})
	}
	for name, c := range map[string]struct {
		redo, work, observe bool
		n                   int // of the guard: more than 100 is not kept
		ignored             string
	}{
		"by the deadline":      {ignored: "late"},
		"of work to be redone": {redo: true, work: true, ignored: "late"},
		"by Observe":           {observe: true, n: 101, ignored: "progress"},
	} {
		inBubble(t, name, func(t *testing.T) {
			config := &lifecycle.Config[event]{
				WorkerActor: user, Done: []event{"done"},
				Handlers: map[string]lifecycle.Handler{"hang": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }},
			}
			if c.observe {
				config.Observe = func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) { return "progress", user, nil }
			}
			m := lifecycle.Must(open(c.redo), lifecycle.NewMemoryStore(), config)
			_, err := m.Add(t.Context(), "a", "open", user, size{N: c.n}, nil)
			require.NoError(t, err)
			if c.work {
				ticket := do(t, m, "a", "work", user, lifecycle.Named("hang", nil), nil)
				defer ticket.Cancel(nil)
			} else {
				fire(t, m, "a", "work", user, nil)
			}
			synctest.Wait()
			if !c.observe {
				require.Contains(t, explain(t, m, "a").Then, "the sweeper fires late: the table ignores it")
			}
			before := get(t, m, "a")
			time.Sleep(time.Hour)
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
			require.ErrorIs(t, found[0].Err, fsm.ErrNotAllowed)
			require.ErrorContains(t, found[0].Err, "the table ignores "+c.ignored)
			require.Equal(t, before, get(t, m, "a"))
		})
	}
}

// A request with the ETag of a removed object does not create another one, or change it.
func TestIfMatchOfRemovedObject(t *testing.T) {
	m, _ := vms(t)
	old := ready(t, m, "a").ETag
	fire(t, m, "a", "delete", user, nil)
	fire(t, m, "a", "done", agent, nil)
	_, err := m.Create(t.Context(), "a", "create", user, size{}, ifMatch(old))
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	require.ErrorContains(t, err, `conflict: vm "a" is absent, and If-Match is `+old)
	_, err = m.Fire(t.Context(), "a", "update", user, ifMatch(old))
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	absent(t, m, "a")
}
