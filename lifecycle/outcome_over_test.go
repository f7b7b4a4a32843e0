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

// server is a table that has rows for the events of work out of states at rest too, and
// whose work passes two transitional states by the same event.
var server = fsm.Must[size](fsm.Spec[state, event]{
	Name: "server", Initial: "off", Actors: []fsm.Actor{user, agent, "worker"},
	States: []fsm.State[state]{
		{Name: "off"}, {Name: "starting", Kind: fsm.Transitional}, {Name: "verifying", Kind: fsm.Transitional},
		{Name: "on"}, {Name: "broken", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("off", "start", "starting").By(user),
		fsm.Move[state, event]("starting", "done", "verifying").By("worker"),
		fsm.Move[state, event]("starting", "fail", "broken").By("worker"),
		fsm.Move[state, event]("starting", "up", "on").By(agent),
		fsm.Move[state, event]("starting", "late", "broken").After(time.Minute),
		fsm.Move[state, event]("verifying", "done", "on").By("worker"),
		fsm.Move[state, event]("verifying", "late", "broken").After(time.Minute),
		fsm.Move[state, event]("on", "fail", "broken").By("worker"),
		fsm.Move[state, event]("broken", "done", "on").By("worker"),
	),
})

// servers is a manager of servers that does their work.
func servers(store lifecycle.Store) *sizedManager {
	return lifecycle.Must(server, store, &lifecycle.Config[event]{
		WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
	})
}

// TestOutcomeOfAnEndedOperation: another writer has ended the operation, and the table
// has a row for the outcome out of the state at rest. Without an Owner, the record of
// the object at rest has the owner and epoch of the task: none. The operation is lost.
func TestOutcomeOfAnEndedOperation(t *testing.T) {
	for name, c := range map[string]struct {
		work error
		end  func(t *testing.T, m, other *sizedManager)
		to   state
	}{
		"by a peer": {errBoom, func(t *testing.T, _, other *sizedManager) {
			require.Equal(t, lifecycle.Applied, report(t, other, "a", 1, "up", agent, ""))
		}, "on"},
		"by a sweep of this manager": {nil, func(t *testing.T, m, _ *sizedManager) {
			time.Sleep(time.Minute + 1)
			require.Len(t, sweep(t, m), 1)
		}, "broken"},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := servers(store)
			add(t, m, "a", user, size{})
			end := make(chan struct{})
			h := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { <-end; return c.work }), nil)
			synctest.Wait()
			c.end(t, m, servers(store))
			close(end)
			require.Equal(t, lifecycle.Lost, outcomeOf(t, h).Outcome)
			require.Equal(t, c.to, get(t, m, "a").State)
		})
	}
}
