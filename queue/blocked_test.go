package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/queue"
)

// waiters submits actions that wait for room, one after another, and logs the results.
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
		// There is room for "a", but an earlier action waits for "a" and "b".
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

// blockedFor returns a queue in which an action of key a runs for ten seconds, and a submitter
// waits for a second for room in both keys, and the context and the notes of that submitter.
func blockedFor(t *testing.T, keys ...string) (*queue.Queuer[string], context.Context, *notes) {
	t.Helper()
	q, log := makeQueue(t, &queue.Config[string]{MaxPerKey: 1}), new(notes)
	submit(t, q, "a", stubborn("running", 10*time.Second, nil))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	waiters(ctx, q, log, keys)
	require.Empty(t, log.all())
	return q, ctx, log
}

func TestBlockedIsRefused(t *testing.T) {
	const running = "key a: 0 refused: running runs since 2000-01-01T00:00:00Z, 0 waiting"
	for _, c := range []struct {
		name string
		do   func(context.Context, *queue.Queuer[string])
		want string
	}{
		{
			"its context ends", func(context.Context, *queue.Queuer[string]) { time.Sleep(time.Second) },
			"0 queue: full: " + running + ": context deadline exceeded",
		},
		{
			"Stop of another key", func(ctx context.Context, q *queue.Queuer[string]) {
				_, _ = q.Submit(ctx, "other", takes("other", time.Hour, nil))
				_ = q.Stop(ctx, "other")
			},
			"0 queue: full: " + running + ": context deadline exceeded",
		},
		{
			"Stop", func(ctx context.Context, q *queue.Queuer[string]) { _ = q.Stop(ctx, "a") },
			"0 queue: stopping: " + running,
		},
		{
			"Terminate", func(ctx context.Context, q *queue.Queuer[string]) { _ = q.Terminate(ctx) },
			"0 queue: terminated: 0 refused, 0 waiting",
		},
		{
			"Abort", func(_ context.Context, q *queue.Queuer[string]) { q.Abort(nil) },
			"0 queue: terminated: 0 refused, 0 waiting",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q, ctx, log := blockedFor(t, "a", "b")
				c.do(ctx, q)
				synctest.Wait()
				require.Equal(t, []string{c.want}, log.all())
				require.NoError(t, q.Terminate(t.Context()))
				requireEmpty(t, q)
			})
		})
	}
}

// Submitters that wait for room of one key are admitted one after another, in the
// order of their calls, although each calls Admit in a goroutine of its own.
func TestBlockedAreAdmittedInOrder(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 4})
		var first []*queue.Ticket[string]
		for range 4 {
			first = append(first, submit(t, q, "a", takes("first", time.Hour, nil)))
		}
		var log, results notes
		var wg sync.WaitGroup
		waits := func(ctx context.Context, name string, answer error) {
			wg.Go(func() {
				act := takes(name, time.Second, nil)
				act.Wait = true
				act.Admit = func(context.Context) error {
					log.add(name + " asks")
					time.Sleep(time.Second)
					log.add(name + " is answered")
					return answer
				}
				_, err := q.SubmitAll(ctx, []string{"a", "of " + name}, act)
				results.add(fmt.Sprint(name, " ", err == nil))
			})
			synctest.Wait()
		}
		short, cancel := context.WithCancel(t.Context())
		defer cancel()
		waits(t.Context(), "one", nil)
		waits(t.Context(), "two", errBoom)
		waits(short, "three", nil)
		waits(t.Context(), "four", nil)
		for _, ticket := range slices.Backward(first) { // room for all at one moment
			ticket.Cancel(nil)
		}
		synctest.Wait()
		require.Equal(t, 4, q.Stats().Admitting, "all have their places")
		waits(t.Context(), "five", nil) // it waits for room
		cancel()
		wg.Wait()
		require.Equal(t, []string{
			"one asks", "one is answered", "two asks", "two is answered",
			"four asks", "four is answered", "five asks", "five is answered",
		}, log.all())
		require.ElementsMatch(t, []string{"one true", "two false", "three false", "four true", "five true"}, results.all())
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

// Submitters that have their places, and wait for the answer to the one before, are admitted
// although the queue terminates meanwhile.
func TestTerminateWhileAdmitting(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		var group errgroup.Group
		first := []*queue.Ticket[string]{submit(t, q, "a", takes("1", time.Hour, nil)), submit(t, q, "a", takes("2", time.Hour, nil))}
		for range first {
			act := takes("blocked", time.Second, nil)
			act.Wait = true
			act.Admit = func(context.Context) error { time.Sleep(time.Second); return nil }
			group.Go(func() error {
				_, err := q.Submit(t.Context(), "a", act)
				return err
			})
			synctest.Wait()
		}
		first[1].Cancel(nil)
		first[0].Cancel(nil)
		synctest.Wait()
		require.Equal(t, 2, q.Stats().Admitting)
		require.NoError(t, q.Terminate(t.Context()))
		require.NoError(t, group.Wait())
		requireEmpty(t, q)
	})
}

// A refusal has the key that is in the way, in whatever place it is.
func TestRefusedKey(t *testing.T) {
	in(t, func(t *testing.T) {
		q, _, log := blockedFor(t, "b", "a")
		_, err := q.Submit(t.Context(), "b", takes("b", time.Second, nil))
		refused, ok := errors.AsType[*queue.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, "b", refused.Key, "the one in front waits for room in it")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{
			"0 queue: full: key a: 0 refused: running runs since 2000-01-01T00:00:00Z, 0 waiting: context deadline exceeded",
		}, log.all())
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// A key without actions has no lane. Stop refuses the submitters that wait there for room in the
// queue as a whole, and those behind them get room.
func TestStopRefusesBlockedOfAnIdleKey(t *testing.T) {
	in(t, func(t *testing.T) {
		q, log := makeQueue(t, &queue.Config[string]{MaxWaiting: 1}), new(notes)
		submit(t, q, "a", takes("running", time.Minute, nil))
		waiting := submit(t, q, "a", takes("waiting", time.Minute, nil))
		waiters(t.Context(), q, log, []string{"b"}, []string{"b", "c"}, []string{"c"})
		require.NoError(t, q.Stop(t.Context(), "b"))
		synctest.Wait()
		require.ElementsMatch(t, []string{
			"0 queue: stopping: key b: 0 refused, 0 waiting",
			"1 queue: stopping: key b: 1 refused, 0 waiting",
		}, log.all())
		waiting.Cancel(nil)
		synctest.Wait()
		require.Contains(t, log.all(), "2 accepted")
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

// Stop refuses a submitter that waits for two keys. The submitter behind it gets room in the
// other key at once.
func TestStopGivesRoomToThoseBehind(t *testing.T) {
	in(t, func(t *testing.T) {
		q, _, log := blockedFor(t, "a", "b")
		waiters(t.Context(), q, log, []string{"b"})
		require.Empty(t, log.all(), "an earlier action waits for a and b")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, q.Stop(ended, "a"), queue.ErrNotDrained)
		synctest.Wait()
		require.Contains(t, log.all(), "0 accepted")
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// A submitter that waits for its Admit has its place. It takes no room from the others.
func TestRoomBesideASlowAdmit(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		for range 2 {
			submit(t, q, "a", takes("in front", time.Second, nil))
		}
		go func() {
			slow := takes("slow", 0, nil)
			slow.Wait, slow.Admit = true, func(context.Context) error { time.Sleep(10 * time.Second); return nil }
			_, _ = q.Submit(t.Context(), "a", slow)
		}()
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, q.Stats().Admitting)
		submit(t, q, "a", takes("next", time.Minute, nil))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// Of submitters that wait, one calls Admit after the other, also if both have room.
func TestSecondSubmitterWaitsForASlowAdmit(t *testing.T) {
	in(t, func(t *testing.T) {
		q, log := makeQueue(t, &queue.Config[string]{MaxPerKey: 2}), new(notes)
		for range 2 {
			submit(t, q, "a", takes("in front", time.Second, nil))
		}
		for _, name := range []string{"first", "second"} {
			go func() {
				act := takes(name, 0, nil)
				act.Wait, act.Admit = true, func(context.Context) error {
					log.add(name + " begins")
					time.Sleep(10 * time.Second)
					log.add(name + " ends")
					return nil
				}
				_, _ = q.Submit(t.Context(), "a", act)
			}()
			time.Sleep(3 * time.Second) // there is room for the second one
		}
		require.Equal(t, 2, q.Stats().Admitting, "both have a place")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"first begins", "first ends", "second begins", "second ends"}, log.all())
	})
}

// A submitter does not wait for the end of a drain.
func TestWaitIsForRoomOnly(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		submit(t, q, "a", takes("running", time.Hour, nil))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		act := takes("act", 0, nil)
		act.Wait = true
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, q.Stop(ended, "a"), queue.ErrNotDrained)
		_, err := q.Submit(short, "a", act)
		require.ErrorIs(t, err, queue.ErrStopping)
		require.ErrorIs(t, q.Terminate(ended), queue.ErrNotDrained)
		_, err = q.Submit(short, "b", act)
		require.ErrorIs(t, err, queue.ErrTerminated)
		require.NoError(t, short.Err(), "at once")
	})
}
