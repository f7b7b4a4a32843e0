package queue_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

func TestInvalidConfig(t *testing.T) {
	for name, config := range map[string]*queue.Config[string]{
		"running":    {MaxRunning: -1},
		"per key":    {MaxPerKey: -1},
		"waiting":    {MaxWaiting: -1},
		"class":      {Classes: map[string]queue.Limit{"a": {MaxRunning: -1}}},
		"children":   {Classes: map[string]queue.Limit{"a": {MaxChildren: -1}}},
		"path":       {Classes: map[string]queue.Limit{"a//b": {}}},
		"path begin": {Classes: map[string]queue.Limit{"/a": {}}},
		"below star": {Classes: map[string]queue.Limit{"a/*/b": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := queue.New(config)
			require.ErrorIs(t, err, queue.ErrInvalid)
			require.Panics(t, func() { queue.Must(config) })
		})
	}
}

func TestInvalidSubmit(t *testing.T) {
	q := makeQueue(t, nil)
	run := func(context.Context) error { t.Error("runs"); return nil }
	keys := []string{"a", "b"}
	for _, c := range []struct {
		field, problem string
		keys           []string
		act            *queue.Action
	}{
		{"Action", "nil", keys, nil},
		{"keys", "none", nil, &queue.Action{Run: run}},
		{"keys", "the same key twice", []string{"a", "b", "a"}, &queue.Action{Run: run}},
		{"Run", "nil", keys, &queue.Action{}},
		{"Class", "neither Config.Classes nor SetLimit has unknown", keys, &queue.Action{Run: run, Class: "unknown"}},
		{"Preempt", "unknown", keys, &queue.Action{Run: run, Preempt: 9}},
		{"Wait", "combined with ID", keys, &queue.Action{Run: run, Wait: true, ID: "id"}},
		{"Coalesce", "without an ID", keys, &queue.Action{Run: run, Coalesce: true}},
		{"Coalesce", "combined with Admit", keys, &queue.Action{Run: run, Coalesce: true, ID: "a", Admit: run}},
		{"Delay", "negative", keys, &queue.Action{Run: run, Delay: -1}},
		{"Delay", "combined with Admit", keys, &queue.Action{Run: run, Delay: 1, Admit: run}},
		{"Delay", "combined with Preempt", keys, &queue.Action{Run: run, Delay: 1, Preempt: queue.PreemptQueued}},
		{"Timeout", "negative", keys, &queue.Action{Run: run, Timeout: -1}},
		{"QueueTimeout", "negative", keys, &queue.Action{Run: run, QueueTimeout: -1}},
		{"Retry", "negative number of attempts", keys, &queue.Action{Run: run, Retry: queue.Retry{Attempts: -1}}},
	} {
		t.Run(c.field+" "+c.problem, func(t *testing.T) {
			ticket, err := q.SubmitAll(t.Context(), c.keys, c.act)
			require.Nil(t, ticket)
			require.ErrorIs(t, err, queue.ErrInvalid)
			var invalid *queue.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, c.field, invalid.Field)
			require.EqualError(t, err, "queue: invalid "+c.field+": "+c.problem)
		})
	}
	requireEmpty(t, q)
}

func TestInvalidKeys(t *testing.T) {
	act := &queue.Action{Run: func(context.Context) error { return nil }}
	var floats queue.Queuer[float64]
	_, err := floats.Submit(t.Context(), math.NaN(), act)
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = floats.SubmitAll(t.Context(), []float64{1, math.NaN()}, act)
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.Zero(t, floats.Stats())
}

func TestNames(t *testing.T) {
	require.Equal(t, "ok", queue.OK.String())
	require.Equal(t, "abandoned", queue.Abandoned.String())
	require.Equal(t, "invalid", queue.Outcome(99).String())
	require.Equal(t, "invalid", (queue.Abandoned + 1).String())
	require.Equal(t, "ended", queue.Ended.String())
	require.Equal(t, "withdrawn", queue.Withdrawn.String())
	require.Equal(t, "late", queue.Late.String())
}

// A call panics for a key that no map accepts, and leaves the queue unlocked.
func TestUnhashableKeys(t *testing.T) {
	q := queue.Must[any](nil)
	bad := []int{1}
	act := &queue.Action{Run: func(context.Context) error { return nil }}
	for name, call := range map[string]func(){
		"Submit":  func() { _, _ = q.Submit(t.Context(), bad, act) },
		"Stop":    func() { _ = q.Stop(t.Context(), bad) },
		"Resume":  func() { q.Resume(bad) },
		"Abandon": func() { q.Abandon(bad) },
		"Inspect": func() { q.Inspect(bad) },
	} {
		t.Run(name, func(t *testing.T) {
			require.Panics(t, call)
			ticket, err := q.Submit(t.Context(), "good", act)
			require.NoError(t, err)
			require.NoError(t, ticket.Wait(t.Context()))
		})
	}
}
