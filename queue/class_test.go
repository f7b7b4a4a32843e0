package queue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// A region without an entry has the limit of "aws/*" and counts for the limit of "aws".
// A region with an entry has its own limit.
func TestUnnamedClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[int]{Classes: map[string]queue.Limit{
			"aws": {MaxChildren: 2}, "aws/*": {MaxRunning: 2}, "aws/tokyo": {MaxRunning: 1},
		}})
		end := make(chan struct{})
		key := 0
		submit := func(class string) error {
			key++
			_, err := q.Submit(t.Context(), key, &queue.Action{Class: class, Run: func(context.Context) error { <-end; return nil }})
			return err
		}
		running := func(class string) (n int) {
			for k := range key {
				for _, i := range q.Inspect(k + 1) {
					if i.Class == class && i.State == queue.Running {
						n++
					}
				}
			}
			return n
		}
		for range 3 {
			require.NoError(t, submit("aws/seoul"))
			require.NoError(t, submit("aws/tokyo"))
			require.NoError(t, submit("aws/paris"))
		}
		synctest.Wait()
		require.Equal(t, 2, running("aws/seoul"))
		require.Equal(t, 1, running("aws/tokyo"))
		require.Zero(t, running("aws/paris"), "a third region")
		require.NoError(t, q.PauseClass("aws/tokyo"))
		require.Equal(t, []queue.ClassInfo{
			{Limit: queue.Limit{MaxRunning: 1024}, Running: 3},
			{Path: "aws", Limit: queue.Limit{MaxChildren: 2}, Running: 3},
			{Path: "aws/*", Limit: queue.Limit{MaxRunning: 2}},
			{Path: "aws/paris", Limit: queue.Limit{MaxRunning: 2}, Ready: 3},
			{Path: "aws/seoul", Limit: queue.Limit{MaxRunning: 2}, Running: 2, Ready: 1},
			{Path: "aws/tokyo", Limit: queue.Limit{MaxRunning: 1}, Paused: true, Running: 1, Ready: 2},
		}, q.Classes())
		require.NoError(t, q.ResumeClass("aws/tokyo"))
		require.Equal(t, []queue.ClassInfo{{Limit: queue.Limit{MaxRunning: 1024}}}, new(queue.Queuer[string]).Classes())
		for _, class := range []string{"aws/seoul/a", "aws/*", "aws/", "gcp/seoul", "gcp"} {
			require.ErrorIs(t, submit(class), queue.ErrInvalid, class)
		}
		close(end)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// The pattern "*" applies to the classes directly below the root.
func TestPatternBelowRoot(t *testing.T) {
	q := queue.Must(&queue.Config[int]{Classes: map[string]queue.Limit{"*": {MaxRunning: 1}}})
	act := &queue.Action{Class: "any", Run: func(context.Context) error { return nil }}
	ticket, err := q.Submit(t.Context(), 1, act)
	require.NoError(t, err)
	require.NoError(t, ticket.Wait(t.Context()))

	act.Class = "/any" // no path of a class, as for New and SetLimit
	_, err = q.Submit(t.Context(), 1, act)
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorIs(t, q.PauseClass("/any"), queue.ErrInvalid)
	require.ErrorIs(t, q.SetLimit("/any", queue.Limit{}), queue.ErrInvalid)
}

// A parent without an entry has the limit of the pattern beside it, whether New or SetLimit
// makes it.
func TestPatternOfAParent(t *testing.T) {
	pattern, seoul := queue.Limit{MaxRunning: 2}, queue.Limit{MaxRunning: 1}
	made := queue.Must(&queue.Config[int]{Classes: map[string]queue.Limit{"*": pattern, "aws/seoul": seoul}})
	later := queue.Must(&queue.Config[int]{Classes: map[string]queue.Limit{"*": pattern}})
	require.NoError(t, later.SetLimit("aws/seoul", seoul))
	require.Equal(t, later.Classes(), made.Classes())
	require.Equal(t, queue.ClassInfo{Path: "aws", Limit: pattern}, made.Classes()[2])
}
