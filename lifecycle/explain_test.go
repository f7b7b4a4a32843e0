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

// Only the sweeper leaves moving. An object that is put into stuck without having been
// at rest in old has no row.
var lonely = fsm.Must[size](fsm.Spec[state, event]{
	Name: "lonely", Initial: "new", Actors: []fsm.Actor{user},
	States: []fsm.State[state]{
		{Name: "new"}, {Name: "old"}, {Name: "moving", Kind: fsm.Transitional}, {Name: "stuck", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("new", "go", "moving"),
		fsm.Move[state, event]("moving", "late", "old").After(time.Minute),
		fsm.Move[state, event]("old", "go", "stuck"),
		fsm.Return[state, event]("stuck", "late").Of("old").After(time.Hour),
	),
})

// TestExplainNextMove: Explain names exactly the actor that Fire permits the next
// move to.
func TestExplainNextMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		o := join(t, store, "p", time.Second)
		m, n := workers(store, lifecycle.Config[event]{Owner: o}), lifecycle.Must(lonely, store, nil)
		owes := func(id string) string { return explain(t, m, id).NextMove }
		alone := func(id string) string { return explain(t, n, id).NextMove }

		add(t, n, "a", user, size{})
		fire(t, n, "a", "go", user, nil)
		require.Equal(t, "the sweeper, after the deadline", alone("a"))
		add(t, n, "b", user, size{})
		override(t, n, "b", "stuck", user, "a test", nil)
		require.Equal(t, "an operator: the table has no row", alone("b"))

		running(t, m, "unowned")
		fire(t, m, "unowned", "inspect", user, nil)
		require.Equal(t, "worker", owes("unowned"))

		running(t, m, "vm")
		hold := make(chan struct{})
		do(t, m, "vm", "inspect", user, lifecycle.Func(func(context.Context) error { <-hold; return nil }), nil)
		synctest.Wait() // until the work has begun
		require.Equal(t, "the process p, which is alive", owes("vm"))
		require.NoError(t, o.Leave(t.Context()))
		require.Equal(t, "an operator: an engineer looks at it", owes("vm"))
		close(hold)
	})
}

// abroad is a store whose clock is in another time zone.
type abroad struct{ *lifecycle.MemoryStore }

func (s abroad) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	zone := time.FixedZone("", 9*3600)
	r.ChangedAt, r.Deadline = r.ChangedAt.In(zone), r.Deadline.In(zone)
	return r, err
}

// TestExplainTimes: times of the store and of this process, which TestMain puts into
// another zone, are in one zone, UTC.
func TestExplainTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(abroad{lifecycle.NewMemoryStore()}, lifecycle.Config[event]{Queue: queue.Must[lifecycle.Key](nil)})
		hold := make(chan struct{})
		do(t, m, "a", "create", user, lifecycle.Func(func(context.Context) error { <-hold; return nil }), nil)
		occupy(t, m, "a", "look", lifecycle.Func(fine))
		synctest.Wait()
		x := explain(t, m, "a")
		require.Equal(t, time.UTC, x.Since.Location())
		require.Equal(t, time.UTC, x.Deadline.Location())
		require.Equal(t, []string{
			"queue: create is running since 2000-01-01T00:00:00Z", "queue: look is waiting since 2000-01-01T00:00:00Z, 1 ahead",
		}, x.Blocked)
		require.Contains(t, x.String(), "deadline: 2000-01-01T00:01:00Z")
		close(hold)
	})
}

// TestExplainAfterWork: the work has taken longer than its time-out and has ended, and
// its outcome is not written yet. Explain does not advise to restart the process.
func TestExplainAfterWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		work := sleeping(3 * time.Second)
		work.Timeout = time.Second
		ticket := do(t, m, "a", "start", user, work, nil)
		time.Sleep(2 * time.Second)
		require.Contains(t, explain(t, m, "a").Cause, "restart this process")
		store.dead.Store(true)
		time.Sleep(10*time.Second + 1)
		store.dead.Store(false) // the next attempt comes later
		require.Empty(t, explain(t, m, "a").Cause)
		require.EqualValues(t, "starting", get(t, m, "a").State)
		wait(t, ticket)
	})
}
