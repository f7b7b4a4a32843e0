package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// notes is a log that goroutines write.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// waiters submits actions that wait for room, one after the other, and notes what
// comes of it.
func waiters(ctx context.Context, q *queue.Queuer[string], log *notes, list ...[]string) {
	for i, keys := range list {
		go func() {
			act := takes(fmt.Sprint(i), time.Second, nil)
			act.Wait = true
			_, err := q.SubmitAll(ctx, keys, act)
			what := "accepted"
			if err != nil {
				what = err.Error()
			}
			log.add(fmt.Sprint(i, " ", what))
		}()
		synctest.Wait()
	}
}

func TestBlockedInOrder(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
		var log notes
		a := submit(t, q, "a", takes("a", 10*time.Second, nil))
		b := submit(t, q, "b", takes("b", 20*time.Second, nil))
		waiters(t.Context(), q, &log, []string{"a", "b"}, []string{"a"}, []string{"b"}, []string{"c"})
		require.Equal(t, []string{"3 accepted"}, log.all())
		require.Equal(t, 3, q.Stats().Blocked)
		require.NoError(t, a.Wait(t.Context()))
		synctest.Wait()
		// There is room for "a", but an earlier action wants it, too.
		require.Equal(t, []string{"3 accepted"}, log.all())
		_, err := q.Submit(t.Context(), "a", takes("newcomer", 0, nil))
		require.ErrorIs(t, err, queue.ErrFull)
		require.NoError(t, b.Wait(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"3 accepted", "0 accepted"}, log.all())
		time.Sleep(time.Minute)
		require.Len(t, log.all(), 4)
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

func TestBlockedByTotal(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, MaxWaiting: 1})
		var log notes
		for _, k := range []string{"a", "b"} {
			submit(t, q, k, takes(k, time.Second, nil))
			synctest.Wait()
		}
		waiters(t.Context(), q, &log, []string{"c"}, []string{"d"})
		require.Empty(t, log.all())
		_, err := q.Submit(t.Context(), "e", takes("e", 0, nil))
		require.EqualError(t, err, "queue: full: e refused, 1 waiting")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"0 accepted"}, log.all())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"0 accepted", "1 accepted"}, log.all())
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

func TestBlockedGivesUp(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
		var log notes
		submit(t, q, "a", takes("a", 10*time.Second, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waiters(ctx, q, &log, []string{"a", "b"})
		waiters(t.Context(), q, &log, []string{"b"})
		require.Empty(t, log.all())
		time.Sleep(time.Second)
		synctest.Wait()
		// Without the first one, nothing blocks the second.
		require.ElementsMatch(t, []string{
			"0 queue: full: key a: 0 refused: a runs since 2000-01-01T00:00:00Z, 0 waiting: context deadline exceeded",
			"0 accepted",
		}, log.all())
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

func TestBlockedSentAway(t *testing.T) {
	for name, do := range map[string]func(*queue.Queuer[string], context.Context){
		"queue: stopping: key a: 0 refused: a runs since 2000-01-01T00:00:00Z, 0 waiting": func(q *queue.Queuer[string], ctx context.Context) {
			_ = q.Stop(ctx, "a")
		},
		"queue: terminated: 0 refused, 0 waiting": func(q *queue.Queuer[string], ctx context.Context) { _ = q.Terminate(ctx) },
	} {
		in(t, func(t *testing.T) {
			q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
			var log notes
			submit(t, q, "a", takes("a", 10*time.Second, nil))
			waiters(t.Context(), q, &log, []string{"a"})
			go do(q, t.Context())
			synctest.Wait()
			require.Equal(t, []string{"0 " + name}, log.all())
			require.NoError(t, q.Terminate(t.Context()))
			requireEmpty(t, q)
		})
	}
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
		var log notes
		submit(t, q, "a", takes("a", 10*time.Second, nil))
		waiters(t.Context(), q, &log, []string{"a"})
		q.Abort(nil)
		synctest.Wait()
		require.Len(t, log.all(), 1)
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}
