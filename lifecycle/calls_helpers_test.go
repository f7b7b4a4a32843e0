package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// The helpers of this file call a method with the context of the test. They fail the
// test if the method returns an error.

func get[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := m.Get(t.Context(), id)
	require.NoError(t, err)
	return rec
}

func create[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, payload T) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := m.Create(t.Context(), id, e, actor, payload, nil)
	require.NoError(t, err)
	return rec
}

func add[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, actor fsm.Actor, payload T) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := m.Add(t.Context(), id, initial(m), actor, payload, nil)
	require.NoError(t, err)
	return rec
}

// initial returns the initial state of a manager's machine.
func initial[S, E comparable, T any](m *lifecycle.Manager[S, E, T]) S {
	return m.Machine().StateAt(m.Machine().Table().Initial)
}

func fire[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, change *lifecycle.Change[T]) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := m.Fire(t.Context(), id, e, actor, change)
	require.NoError(t, err)
	return rec
}

func report[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, op lifecycle.OpID, e E, actor fsm.Actor, reason string) lifecycle.Verdict {
	t.Helper()
	verdict, err := m.Report(t.Context(), id, op, e, actor, &lifecycle.Change[T]{Reason: reason})
	require.NoError(t, err)
	return verdict
}

func override[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, to S, actor fsm.Actor, reason string, change *lifecycle.Change[T]) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := m.Override(t.Context(), id, to, actor, reason, change)
	require.NoError(t, err)
	return rec
}

func do[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, work lifecycle.Work, change *lifecycle.Change[T]) *lifecycle.Ticket[S, T] {
	t.Helper()
	ticket, err := m.Do(t.Context(), id, e, actor, work, change)
	require.NoError(t, err)
	return ticket
}

func wait[S comparable, T any](t *testing.T, ticket *lifecycle.Ticket[S, T]) lifecycle.Record[S, T] {
	t.Helper()
	rec, err := ticket.Wait(t.Context())
	require.NoError(t, err)
	return rec
}

func occupy[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id, name string, work lifecycle.Work, while ...S) *queue.Ticket[lifecycle.Key] {
	t.Helper()
	ticket, err := lifecycle.Occupy(t.Context(), m, id, name, work, while...)
	require.NoError(t, err)
	return ticket
}

func sweep[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T]) []lifecycle.SweepResult {
	t.Helper()
	found, err := m.Sweep(t.Context())
	require.NoError(t, err)
	return found
}

// sweepFor sweeps until the manager has seen an owner of this TTL without heartbeat for
// long enough, and returns the results of all sweeps.
func sweepFor[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], ttl time.Duration) []lifecycle.SweepResult {
	t.Helper()
	found := sweep(t, m)
	for range 3 {
		time.Sleep(ttl/3 + 1)
		found = append(found, sweep(t, m)...)
	}
	return found
}

func explain[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, need ...lifecycle.Precondition) lifecycle.Explanation {
	t.Helper()
	x, err := m.Explain(t.Context(), id, need...)
	require.NoError(t, err)
	return x
}

func rowsOf[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, after uint64, limit int) []lifecycle.HistoryRow {
	t.Helper()
	rows, err := m.History(t.Context(), id, after, limit)
	require.NoError(t, err)
	return rows
}

func join(t *testing.T, store lifecycle.Store, name string, ttl time.Duration) *lifecycle.Owner {
	t.Helper()
	owner, err := lifecycle.Join(t.Context(), store, name, ttl)
	require.NoError(t, err)
	return owner
}

func storedAt(t *testing.T, store lifecycle.Store, key lifecycle.Key) lifecycle.StoredRecord {
	t.Helper()
	rec, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	return rec
}

// absent checks that an object does not exist.
func absent[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string) {
	t.Helper()
	_, err := m.Get(t.Context(), id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// winnerOf returns the record that a conflict carries.
func winnerOf[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], err error) lifecycle.Record[S, T] {
	t.Helper()
	winner, ok := lifecycle.Current(m, err)
	require.True(t, ok, "%v", err)
	return winner
}

// outcomeOf waits for an operation that does not succeed, and returns its error.
func outcomeOf[S comparable, T any](t *testing.T, ticket *lifecycle.Ticket[S, T]) *lifecycle.OutcomeError {
	t.Helper()
	_, err := ticket.Wait(t.Context())
	return outcomeError(t, err)
}

// inBubble runs a subtest with virtual time.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}
