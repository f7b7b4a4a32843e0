package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// heir is a process that takes over, by sweepFor, what the owner with a TTL of a second
// has left, with a class of one at a time.
func heir(t *testing.T, store lifecycle.Store, handlers map[string]lifecycle.Handler) *sizedManager {
	t.Helper()
	owner := join(t, store, "second", time.Hour)
	return workers(store, lifecycle.Config[event]{
		Owner: owner, Handlers: handlers,
		Queue: queue.Must(&queue.Config[lifecycle.Key]{Classes: map[string]queue.Limit{"slow": {MaxRunning: 1}}}),
	})
}

// dying is a process whose work does not end before it is declared dead.
func dying(t *testing.T, store, owners lifecycle.Store) *sizedManager {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	hang := func(ctx context.Context, _ []byte) error {
		select {
		case <-ctx.Done():
		case <-over:
		}
		return errBoom
	}
	owner := join(t, owners, "first", time.Second)
	return workers(store, lifecycle.Config[event]{
		Owner:    owner,
		Handlers: map[string]lifecycle.Handler{"reboot": hang, "stop": func(context.Context, []byte) error { return nil }, "delete": hang},
		Queue:    queue.Must(&queue.Config[lifecycle.Key]{Classes: map[string]queue.Limit{"slow": {}}}),
	})
}

func stored(t *testing.T, store lifecycle.Store, id string) lifecycle.StoredRecord {
	t.Helper()
	return storedAt(t, store, lifecycle.Key{Machine: "work-vm", ID: id})
}

// TestRedoneWithin: the process that does the work of a dead one again gives it the
// recorded time-out.
func TestRedoneWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		for id, work := range map[string]lifecycle.Work{
			"a": {Handler: "reboot", Timeout: 10 * time.Second, Class: "slow"},
			"b": {Handler: "reboot", Timeout: 5 * time.Second, Class: "slow"},
			"c": {Handler: "reboot", Timeout: 3 * time.Second},
			"d": {Handler: "reboot"},
		} {
			running(t, m, id)
			do(t, m, id, "reboot", user, work, nil)
		}
		synctest.Wait() // until their turns have begun
		require.JSONEq(t, `{"timeout":10000000000,"class":"slow"}`, string(stored(t, store, "a").WorkOptions))
		require.Nil(t, stored(t, store, "d").WorkOptions)

		var begun time.Time
		n := heir(t, store, map[string]lifecycle.Handler{"reboot": func(ctx context.Context, _ []byte) error {
			id := lifecycle.TaskOf(ctx).ID
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
				log.note(id + " has its time, after " + time.Since(begun).String())
				return nil
			}
			require.ErrorIs(t, context.Cause(ctx), queue.ErrTimeout)
			log.note(id + " is out of time after " + time.Since(begun).String())
			return ctx.Err()
		}})
		begun = time.Now().Add(3 * (time.Second/3 + 1)) // the last sweep
		found := sweepFor(t, n, time.Second)
		for _, c := range found {
			require.Equal(t, lifecycle.Redone, c.Resolution, "%v", c)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{
			"c is out of time after 3s", "a is out of time after 10s", "b is out of time after 15s", "d has its time, after 30s",
		}, log.list)
		require.Equal(t, "failed", stored(t, store, "a").State)
		require.Equal(t, "running", stored(t, store, "d").State)
	})
}

// TestRedoneWaits: work that is done again has no deadline while it waits for its turn.
func TestRedoneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		q, free := blocked(t, "work-vm")
		n := workers(store, lifecycle.Config[event]{
			Owner: join(t, store, "second", 24*time.Hour), Queue: q,
			Handlers: map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error { return nil }},
		})
		sweepFor(t, n, time.Second)
		require.Equal(t, "second", stored(t, store, "a").Owner)
		require.Zero(t, stored(t, store, "a").Deadline)
		time.Sleep(time.Hour)
		require.Empty(t, sweep(t, n))
		free()
		synctest.Wait()
		require.Equal(t, "running", stored(t, store, "a").State)
	})
}

// TestRedoneTwice: the recorded options stay with the operation through several
// owners.
func TestRedoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Work{Handler: "reboot", Timeout: 10 * time.Second}, nil)
		synctest.Wait() // until its turn has begun
		kept := stored(t, store, "a").WorkOptions
		n := heir(t, store, map[string]lifecycle.Handler{"reboot": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }})
		sweepFor(t, n, time.Second)
		synctest.Wait()
		require.Equal(t, "second", stored(t, store, "a").Owner)
		require.Equal(t, kept, stored(t, store, "a").WorkOptions)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, "failed", stored(t, store, "a").State)
		require.Nil(t, stored(t, store, "a").WorkOptions, "it has nothing to bound")
	})
}

// TestRedoneWithoutClass: a process whose queue does not have the class leaves the
// operation alone, and the result has the reason.
func TestRedoneWithoutClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Work{Handler: "reboot", Class: "slow"}, nil)
		synctest.Wait() // until its turn has begun
		n := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"reboot": func(context.Context, []byte) error { return nil },
		}})
		before := stored(t, store, "a")
		found := sweepFor(t, n, time.Second)
		require.Len(t, found, 1)
		require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
		require.ErrorIs(t, found[0].Err, queue.ErrInvalid)
		require.Equal(t, before, stored(t, store, "a"))
	})
}

// TestWorkOptionsOfAnotherForm: the sweep leaves work options alone that it cannot
// read, and reports why.
func TestWorkOptionsOfAnotherForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"reboot": func(context.Context, []byte) error { return nil },
		}})
		for _, steps := range []string{`{"timeout":"soon"}`, `7`} {
			plant(t, store, lifecycle.StoredRecord{
				Key: lifecycle.Key{Machine: "work-vm", ID: steps}, State: "rebooting", Origin: "running", Work: "reboot", WorkOptions: []byte(steps),
				Owner: "gone", Epoch: 1,
			})
			before := stored(t, store, steps)
			found := sweep(t, m)
			require.Equal(t, lifecycle.NotMoved, found[len(found)-1].Resolution)
			for _, c := range found {
				require.ErrorIs(t, c.Err, lifecycle.ErrForeign)
			}
			require.Equal(t, before, stored(t, store, steps))
		}
	})
}

// TestRedoneWithoutWork: an operation that a Fire or an Override has started has no work in
// its record. Its row starts the operation again for a peer, at every deadline.
func TestRedoneWithoutWork(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, m *sizedManager){
		"fire":     func(t *testing.T, m *sizedManager) { fire(t, m, "a", "reboot", user, nil) },
		"override": func(t *testing.T, m *sizedManager) { override(t, m, "a", "rebooting", "ann", "it hangs", nil) },
	} {
		inBubble(t, name, func(t *testing.T) {
			var log calls
			store := lifecycle.NewMemoryStore()
			m := workers(store, lifecycle.Config[event]{
				Owner: join(t, store, "p", 24*time.Hour), Handlers: map[string]lifecycle.Handler{"reboot": log.handler("rebooted")},
			})
			running(t, m, "a")
			begin(t, m)
			for range 2 {
				before := get(t, m, "a")
				time.Sleep(time.Minute + 1)
				found := sweep(t, m)
				require.Len(t, found, 1)
				require.Equal(t, lifecycle.Moved, found[0].Resolution)
				after := get(t, m, "a")
				require.Equal(t, state("rebooting"), after.State)
				require.Equal(t, before.Operation+1, after.Operation)
				require.Empty(t, after.Owner)
			}
			require.Empty(t, log.list)
			require.Equal(t, lifecycle.Applied, report(t, m, "a", get(t, m, "a").Operation, "done", "worker", ""))
		})
	}
}
