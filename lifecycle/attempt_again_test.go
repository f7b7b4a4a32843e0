package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// A report meets a conflict and is decided again. Its Edit changes the payload that the
// other writer has left, not the one that the first attempt has read.
func TestEditOfAReportThatIsDecidedAgain(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "counter", Initial: "idle", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "go", "busy").By(user),
			fsm.Move[state, event]("busy", "progress", "busy").By(agent),
			fsm.Move[state, event]("busy", "done", "idle").By(agent),
			fsm.Return[state, event]("busy", "late").After(time.Hour),
		),
	})
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	m, other := lifecycle.Must(machine, store, nil), lifecycle.Must(machine, store.MemoryStore, nil)
	_, err := m.Add(t.Context(), "a", "idle", user, size{N: 1}, nil)
	require.NoError(t, err)
	rec := fire(t, m, "a", "go", user, nil)
	times := func(n int) *lifecycle.Change[size] {
		return &lifecycle.Change[size]{Edit: func(s *size) error { s.N *= n; return nil }}
	}
	store.reset()
	store.afterGet = func(n int) {
		if n == 1 {
			fire(t, other, "a", "progress", agent, times(10))
		}
	}
	verdict, err := m.Report(t.Context(), "a", rec.Operation, "done", agent, times(2))
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, verdict)
	require.Equal(t, size{N: 20}, get(t, m, "a").Payload)
}
