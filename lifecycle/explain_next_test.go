package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
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
		fsm.Move[state, event]("polling", "again", "polling").After(time.Minute).Superseding(),
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
			"none until the deadline: the object is not in transition",
			"the sweeper, because the deadline has passed by the clock of this process",
		},
		"return": {
			"return", "after 1m0s the sweeper fires late: the object returns to rented",
			"the sweeper, after the deadline", "the sweeper, because the deadline has passed by the clock of this process",
		},
		"again": {
			"poll", "after 1m0s the sweeper fires again: the operation starts again",
			"user", "user or the sweeper, because the deadline has passed by the clock of this process",
		},
		"removal": {
			"remove", "after 1m0s the sweeper fires late: the object is removed",
			"the sweeper, after the deadline", "the sweeper, because the deadline has passed by the clock of this process",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := lifecycle.Must(deadlines, lifecycle.NewMemoryStore(), nil)
				_, err := m.Create(t.Context(), "a", "rent", user, size{})
				require.NoError(t, err)
				if c.event != "" {
					_, err = m.Fire(t.Context(), "a", c.event, user, nil)
					require.NoError(t, err)
				}
				x, err := m.Explain(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, c.then, x.Then)
				require.Equal(t, c.before, x.NextMove)
				time.Sleep(2 * time.Hour)
				x, err = m.Explain(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, c.after, x.NextMove)
			})
		})
	}
}

// TestExplainDeadOwner: the next sweep acts on the operation of a dead process.
func TestExplainDeadOwner(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	o, err := lifecycle.Join(t.Context(), store, "p", 0)
	require.NoError(t, err)
	m := workers(store, lifecycle.Config[event]{Owner: o})
	stopped(t, m, "a")
	_, err = m.Do(t.Context(), "a", "start", user, lifecycle.Func(untilEnded), nil)
	require.NoError(t, err)
	require.NoError(t, o.Leave(t.Context()))
	x, err := workers(store, lifecycle.Config[event]{}).Explain(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "the next sweep: the process p is dead", x.NextMove)
}

// TestExplainRefused: a bad precondition and a store that fails are errors.
func TestExplainRefused(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	m := lifecycle.Must(deadlines, store, nil)
	_, err := m.Explain(t.Context(), "a", lifecycle.Precondition{Key: lifecycle.Key{Machine: "deadlines", ID: "b"}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.NoError(t, store.Close())
	_, err = m.Explain(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrClosed)
}
