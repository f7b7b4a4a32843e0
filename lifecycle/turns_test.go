package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// turnsOf joins a process and returns its turns.
func turnsOf(t testing.TB, store lifecycle.Store, name string, classes map[string]queue.Limit) *lifecycle.Turns {
	t.Helper()
	owner, err := lifecycle.Join(t.Context(), store, name, time.Hour)
	require.NoError(t, err)
	turns, err := lifecycle.NewTurns(owner, classes)
	require.NoError(t, err)
	return turns
}

// places returns the places in all lanes.
func places(t testing.TB, store lifecycle.Store) (all []string) {
	t.Helper()
	lanes, err := store.List(t.Context(), lifecycle.Query{Machine: "interlock.turns", Limit: lifecycle.MaxPage})
	require.NoError(t, err)
	for _, lane := range lanes {
		var list []struct{ Owner, Tag string }
		require.NoError(t, json.Unmarshal(lane.Args, &list))
		for _, p := range list {
			all = append(all, fmt.Sprintf("%s in %s %s", p.Owner, lane.ID, p.Tag))
		}
	}
	return all
}

// Two processes share the turns: work of Occupy in one of them holds up operations of the
// other, in one order.
func TestTurnsOfSeveralProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		process := func(name string) *lifecycle.Manager[state, event, size] {
			turns := turnsOf(t, store, name, nil)
			return workers(store, lifecycle.Config[event]{Queue: lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns)})
		}
		one, other := process("one"), process("other")
		wait(t, do(t, one, "a", "create", "user", nothing, nil))
		var mu sync.Mutex
		var order []string
		logging := func(name string, takes time.Duration) lifecycle.Work {
			return lifecycle.Func(func(ctx context.Context) error {
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return nil
			})
		}
		first := occupy(t, one, "a", "migrate", logging("migrate", time.Hour))
		synctest.Wait()
		second := do(t, other, "a", "start", "user", logging("start", time.Minute), nil)
		_, err := one.Do(t.Context(), "a", "start", "user", nothing, nil)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		again := logging("again", time.Minute)
		again.Timeout = 2 * time.Minute // the wait for the other process does not count
		third := occupy(t, one, "a", "migrate", again)
		withdrawn := occupy(t, other, "a", "migrate", logging("never", time.Minute))
		synctest.Wait()
		require.Len(t, places(t, store), 2, "those that are first in their processes")
		require.Equal(t, queue.Pending, first.Outcome())
		mu.Lock()
		require.Equal(t, []string{"migrate"}, order)
		mu.Unlock()
		withdrawn.Cancel(nil)
		require.Equal(t, state("running"), wait(t, second).State)
		require.NoError(t, first.Err())
		require.NoError(t, third.Wait(t.Context()))
		mu.Lock()
		require.Equal(t, []string{"migrate", "start", "again"}, order)
		mu.Unlock()
		require.Equal(t, queue.Canceled, withdrawn.Outcome())
		require.Empty(t, places(t, store), "every turn has ended")
	})
}

// A turn is kept between attempts, and ends when the action has ended.
func TestTurnIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		classes := map[string]queue.Limit{"aws": {MaxChildren: 1}, "aws/*": {MaxRunning: 1}}
		q := lifecycle.Shared(queue.Must(&queue.Config[lifecycle.Key]{Classes: classes}), turnsOf(t, store, "one", classes))
		attempts := 0
		ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "a"}, &queue.Action{
			Class: "aws/eu", Retry: queue.Retry{Attempts: 2, Backoff: queue.Exponential(time.Minute, time.Minute)},
			Run: func(context.Context) error {
				if attempts++; attempts == 1 {
					return errors.New("broken")
				}
				return nil
			},
		})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"one in class/aws eu", "one in class/aws/eu ", `one in keys/17 vm "a"`}, places(t, store))
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, 2, attempts)
		require.Empty(t, places(t, store))
	})
}

// The turns of a process that is declared dead end. What waits in a process that has lost
// its ownership ends too.
func TestTurnsOfADeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), lifecycle.NewMemoryStore()
		dead := join(t, store, "dead", time.Minute)
		turns, err := lifecycle.NewTurns(dead, nil)
		require.NoError(t, err)
		key := lifecycle.Key{Machine: "work-vm", ID: "a"}
		hang := &queue.Action{Run: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}
		hanging, err := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns).Submit(ctx, key, hang)
		require.NoError(t, err)
		synctest.Wait()

		other := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "other", nil))
		next, err := other.Submit(ctx, key, &queue.Action{Run: func(context.Context) error { return nil }})
		require.NoError(t, err)
		again, err := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns).Submit(ctx, key, hang)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Equal(t, queue.Pending, next.Outcome(), "the process is alive")
		sweeper := workers(store, lifecycle.Config[event]{})
		for range 9 { // no heartbeat of the first process
			time.Sleep(10 * time.Second)
			_, err := sweeper.Sweep(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, next.Wait(ctx))
		require.ErrorIs(t, dead.Heartbeat(ctx), lifecycle.ErrStale)
		require.ErrorIs(t, again.Wait(ctx), lifecycle.ErrStale)
		require.Equal(t, queue.Skipped, again.Outcome())
		hanging.Cancel(nil)
		require.Error(t, hanging.Wait(ctx))
		require.Empty(t, places(t, store))
	})
}

// unsteadyStore loses answers and fails, at random.
type unsteadyStore struct {
	*lifecycle.MemoryStore
	steady atomic.Bool
}

func (s *unsteadyStore) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if !s.steady.Load() && rand.N(5) == 0 {
		return lifecycle.StoredRecord{}, lifecycle.ErrUnavailable
	}
	return s.MemoryStore.Get(ctx, k)
}

func (s *unsteadyStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	fault := rand.N(5)
	if s.steady.Load() {
		fault = 2
	}
	if fault == 0 {
		return lifecycle.ErrUnavailable
	}
	if err := s.MemoryStore.Commit(ctx, c); err != nil {
		return err
	}
	if fault == 1 {
		return lifecycle.ErrUnknownOutcome
	}
	return nil
}

// Three processes run random actions of one and of several keys, over a store that fails and
// loses answers. Attempts fail, and each process has limits of its own. No two actions run on
// one key at once, the limits hold, every action ends, and nothing is left.
func TestTurnsAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type task struct {
			process int
			keys    []lifecycle.Key
			class   string
			takes   time.Duration
			fails   int
		}
		classes := map[string]queue.Limit{"aws": {MaxChildren: 2, MaxRunning: 3}, "aws/*": {MaxRunning: 2}, "other": {}}
		own := map[string]queue.Limit{"aws/*": {MaxRunning: rapid.IntRange(0, 2).Draw(rt, "own of a region")}, "other": {}}
		most := rapid.IntRange(0, 2).Draw(rt, "own")
		tasks := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) task {
			ids := rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Split("abcdefgh", "")), 1, 2, rapid.ID[string]).Draw(rt, "keys")
			var keys []lifecycle.Key
			for _, id := range ids {
				keys = append(keys, lifecycle.Key{Machine: "vm", ID: id})
			}
			return task{
				rapid.IntRange(0, 2).Draw(rt, "process"), keys, rapid.SampledFrom([]string{"aws/eu", "aws/us", "aws/ap", "other"}).Draw(rt, "class"),
				time.Duration(rapid.IntRange(500, 3000).Draw(rt, "ms")) * time.Millisecond,
				rapid.IntRange(0, 2).Draw(rt, "fails"),
			}
		}), 10, 30).Draw(rt, "tasks")
		synctest.Test(t, func(t *testing.T) {
			store := &unsteadyStore{MemoryStore: lifecycle.NewMemoryStore()}
			store.steady.Store(true)
			var queues []lifecycle.Queue
			for i := range 3 {
				q := queue.Must(&queue.Config[lifecycle.Key]{MaxRunning: most, Classes: own})
				queues = append(queues, lifecycle.Shared(q, turnsOf(t, store, fmt.Sprint("p", i), classes)))
			}
			store.steady.Store(false)
			var mu sync.Mutex
			busy, running := map[lifecycle.Key]bool{}, map[string]int{}
			var broken []string
			count := func(k task, by int) {
				mu.Lock()
				defer mu.Unlock()
				for _, key := range k.keys {
					if busy[key] != (by < 0) {
						broken = append(broken, "two actions on "+key.ID)
					}
					busy[key] = by > 0
				}
				running[k.class] += by
				regions, all := 0, 0
				for _, region := range []string{"aws/eu", "aws/us", "aws/ap"} {
					regions, all = regions+min(1, running[region]), all+running[region]
					if running[region] > 2 {
						broken = append(broken, "three in "+region)
					}
				}
				if regions > 2 || all > 3 {
					broken = append(broken, fmt.Sprintf("%d regions with %d actions", regions, all))
				}
			}
			pausing := queue.Retry{Attempts: 3, Backoff: queue.Exponential(time.Second, time.Second)}
			ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
			defer stop()
			var tickets []*queue.Ticket[lifecycle.Key]
			for _, k := range tasks {
				ticket, err := queues[k.process].SubmitAll(t.Context(), k.keys, &queue.Action{Class: k.class, Retry: pausing, Run: func(context.Context) error {
					count(k, 1)
					defer count(k, -1)
					time.Sleep(k.takes)
					if k.fails--; k.fails >= 0 {
						return errBoom
					}
					return nil
				}})
				require.NoError(t, err)
				tickets = append(tickets, ticket)
			}
			for _, ticket := range tickets {
				require.NoError(t, ticket.Wait(ctx))
			}
			synctest.Wait()
			require.Empty(t, broken)
			require.Empty(t, places(t, store))
		})
	})
}

// TestTurnsOfManyKeys: the places of several keys are in one record, and their turns are taken
// at once.
func TestTurnsOfManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 100
		q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, lifecycle.NewMemoryStore(), "p", nil))
		end, running := make(chan struct{}), make(chan struct{}, keys)
		for i := range keys {
			_, err := q.Submit(t.Context(), lifecycle.Key{Machine: "m", ID: fmt.Sprint(i)}, &queue.Action{
				Run: func(context.Context) error { running <- struct{}{}; <-end; return nil },
			})
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		require.Len(t, running, keys)
		close(end)
		time.Sleep(time.Minute) // until the turns have ended
	})
}

func TestBadTurns(t *testing.T) {
	_, err := lifecycle.NewTurns(nil, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = lifecycle.NewTurns(new(lifecycle.Owner), nil) // not made by Join
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	owner := join(t, lifecycle.NewMemoryStore(), "one", 0)
	_, err = lifecycle.NewTurns(owner, map[string]queue.Limit{"a//b": {}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	q := queue.Must[lifecycle.Key](nil)
	require.Same(t, q, lifecycle.Shared(q, nil))
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
