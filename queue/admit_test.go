package queue_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/queue"
)

func TestAdmitReservesAndVanishes(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		since := time.Now()
		submit(t, q, "vm1", takes("migrate", time.Hour, nil))
		answer := make(chan error)
		destroy := takes("destroy", time.Second, nil)
		destroy.Admit = func(context.Context) error { return <-answer }
		destroy.Settle = func(context.Context, queue.Outcome, error) { t.Error("settled, but never accepted") }
		var submits errgroup.Group
		submits.Go(func() error {
			_, err := q.SubmitAll(t.Context(), []string{"vm1", "disk"}, destroy)
			return err
		})
		synctest.Wait()
		// The reserved place counts and keeps its position.
		_, err := q.Submit(t.Context(), "vm1", takes("third", 0, nil))
		require.ErrorIs(t, err, queue.ErrFull)
		full, ok := errors.AsType[*queue.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, [2]int{1, 1}, [2]int{full.Waiting, full.Admitting}, "there may be room soon")
		behind := submit(t, q, "disk", takes("behind", time.Second, nil))
		require.Equal(t, queue.Admitting, q.Inspect("disk")[0].State)
		require.Equal(t, 1, behind.Info().Ahead)
		require.Equal(t, queue.Stats{Keys: 2, Running: 1, Waiting: 2, Admitting: 1}, q.Stats())

		answer <- errBoom
		err = submits.Wait()
		var e *queue.RefusedError
		require.ErrorAs(t, err, &e)
		require.Equal(t, &queue.RefusedError{
			Reason: queue.ErrConflict, Name: "destroy", Key: "vm1", Running: "migrate", Since: since, Err: errBoom,
		}, e)
		require.NoError(t, behind.Wait(t.Context()), "the place has vanished")
		require.Len(t, q.Inspect("vm1"), 1)
		require.Empty(t, q.Inspect("disk"))
	})
}

func TestAdmitPanics(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("act", 0, nil)
		act.Admit = func(context.Context) error { panic(errBoom) }
		require.PanicsWithValue(t, errBoom, func() { _, _ = q.Submit(t.Context(), "a", act) })
		requireEmpty(t, q)
		act = takes("act", 0, nil)
		act.Admit = func(context.Context) error { runtime.Goexit(); return nil }
		go func() { _, _ = q.Submit(t.Context(), "a", act) }()
		synctest.Wait()
		requireEmpty(t, q)
		require.NoError(t, submit(t, q, "a", takes("next", 0, nil)).Wait(t.Context()))
	})
}

// recycled is a context of a web framework whose request has ended: Done panics.
type recycled struct{ context.Context }

func (recycled) Done() <-chan struct{} { panic(errBoom) }

// A call whose context panics leaves no lock and no place.
func TestContextPanics(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		ctx := recycled{t.Context()}
		running, same := submit(t, q, "a", takes("running", time.Second, nil)), takes("same", 0, nil)
		same.ID = "same"
		same.Admit = func(context.Context) error { time.Sleep(time.Second); return nil }
		go func() { _, _ = q.Submit(t.Context(), "a", same) }()
		synctest.Wait()
		blocked := takes("blocked", 0, nil)
		blocked.Wait = true
		for _, call := range []func() error{
			func() error { _, err := q.Submit(ctx, "a", same); return err },
			func() error { _, err := q.Submit(ctx, "a", blocked); return err },
			func() error { return running.Wait(ctx) },
			func() error { return q.Stop(ctx, "a") },
			func() error { return q.Terminate(ctx) },
		} {
			require.PanicsWithValue(t, errBoom, func() { _ = call() })
			require.Equal(t, queue.Stats{Keys: 1, Running: 1, Waiting: 1, Admitting: 1}, q.Stats())
		}
		require.NoError(t, q.Terminate(t.Context()))
	})
}

func TestAdmitGetsTheSubmittersContext(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		act := takes("act", 0, nil)
		act.Admit = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		_, err := q.Submit(ctx, "a", act)
		require.ErrorIs(t, err, queue.ErrConflict)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		// If Admit agrees, the action is accepted, even if the context has ended.
		act = takes("act", 0, nil)
		act.Admit = func(context.Context) error { return nil }
		ticket, err := q.Submit(ctx, "a", act)
		require.NoError(t, err)
		require.NoError(t, ticket.Wait(t.Context()))
	})
}

func TestPreemptWhileAdmitting(t *testing.T) {
	// A delete is accepted while Admit of an earlier action runs. The earlier action is
	// superseded when it is accepted. An action submitted after the delete is not.
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		answers := map[string]chan error{"before": make(chan error), "delete": make(chan error)}
		var outcomes notes
		submits := func(act *queue.Action) {
			if answer := answers[act.Name]; answer != nil {
				act.Admit = func(context.Context) error { return <-answer }
			}
			act.Settle = func(_ context.Context, o queue.Outcome, _ error) { outcomes.add(act.Name + " " + o.String()) }
			go func() { _, _ = q.Submit(t.Context(), "a", act) }()
			synctest.Wait()
		}
		submits(stubborn("running", time.Minute, nil))
		submits(takes("before", time.Second, nil))
		deletes := takes("delete", time.Second, nil)
		deletes.Preempt = queue.PreemptQueued
		submits(deletes)
		submits(takes("after", time.Second, nil))
		answers["delete"] <- nil
		synctest.Wait()
		require.Empty(t, outcomes.all())
		answers["before"] <- nil
		synctest.Wait()
		require.Equal(t, []string{"before superseded"}, outcomes.all())
		require.NoError(t, q.Terminate(t.Context()))
		require.Equal(t, []string{"before superseded", "running ok", "delete ok", "after ok"}, outcomes.all())
	})
}

func TestRepeatedID(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		answer := make(chan error)
		admits := 0
		act := takes("act", time.Minute, nil)
		act.ID = "request-1"
		act.Admit = func(context.Context) error { admits++; return <-answer }
		type reply struct {
			ticket *queue.Ticket[string]
			err    error
		}
		replies := make(chan reply)
		again := func() {
			go func() {
				ticket, err := q.Submit(t.Context(), "a", act)
				replies <- reply{ticket, err}
			}()
			synctest.Wait()
		}
		again()
		again() // waits until Admit of the first submit has returned
		require.Equal(t, 1, admits)
		answer <- errBoom // refuses the first submit; the second submit calls Admit
		require.ErrorIs(t, (<-replies).err, errBoom)
		synctest.Wait()
		require.Equal(t, 2, admits)
		again()
		answer <- nil
		one, two := <-replies, <-replies
		require.NoError(t, one.err)
		require.NoError(t, two.err)
		require.Same(t, one.ticket, two.ticket)
		require.Equal(t, 2, admits)

		// A known ID returns its ticket although the queue refuses new actions.
		go func() { _ = q.Terminate(t.Context()) }()
		synctest.Wait()
		same, err := q.Submit(t.Context(), "a", act)
		require.NoError(t, err)
		require.Same(t, one.ticket, same)
		_, err = q.Submit(t.Context(), "other", act)
		require.ErrorIs(t, err, queue.ErrIDInUse)

		require.NoError(t, same.Wait(t.Context()))
		_, err = q.Submit(t.Context(), "a", act)
		require.ErrorIs(t, err, queue.ErrTerminated, "an ID is known until its action has ended")
	})
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("act", time.Minute, nil)
		act.ID = "request-1"
		act.Admit = func(context.Context) error { time.Sleep(time.Minute); return nil }
		go func() { _, _ = q.Submit(t.Context(), "a", act) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := q.Submit(ctx, "a", act)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// An ID is known until its action has ended, whatever other actions end before.
func TestIDStaysWhileOthersEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := func(id string, d time.Duration) *queue.Action {
			a := takes("act", d, nil)
			a.ID = id
			return a
		}
		stays, ends := submit(t, q, "a", act("stays", time.Minute)), submit(t, q, "b", act("ends", time.Second))
		require.NoError(t, ends.Wait(t.Context()))
		require.Same(t, stays, submit(t, q, "a", act("stays", time.Minute)))
	})
}

// The same ID with another name, another class or other keys is another action.
func TestIDInUse(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"x": {}}})
		act := func(name, class string) *queue.Action {
			a := takes(name, time.Minute, nil)
			a.ID, a.Class = "request-1", class
			return a
		}
		first, err := q.SubmitAll(t.Context(), []string{"a", "b"}, act("start", "x"))
		require.NoError(t, err)
		again, err := q.SubmitAll(t.Context(), []string{"b", "a"}, act("start", "x"))
		require.NoError(t, err)
		require.Same(t, first, again)
		for differs, c := range map[string]struct {
			keys []string
			act  *queue.Action
		}{
			"the name":     {[]string{"a", "b"}, act("stop", "x")},
			"the class":    {[]string{"a", "b"}, act("start", "")},
			"a key less":   {[]string{"a"}, act("start", "x")},
			"another key":  {[]string{"a", "c"}, act("start", "x")},
			"one key more": {[]string{"a", "b", "c"}, act("start", "x")},
		} {
			_, err := q.SubmitAll(t.Context(), c.keys, c.act)
			require.ErrorIs(t, err, queue.ErrIDInUse, differs)
			refused, ok := errors.AsType[*queue.RefusedError](err)
			require.True(t, ok, differs)
			require.Equal(t, c.act.Name, refused.Name, differs)
		}
		require.NoError(t, first.Wait(t.Context()))
		requireEmpty(t, q)
	})
}

// Of two busy keys, a refusal names the full one and the action that runs for it.
func TestRefusalNamesTheActionOfTheFullKey(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		submit(t, q, "a", takes("of a", time.Second, nil))
		submit(t, q, "b", takes("of b", time.Second, nil))
		submit(t, q, "b", takes("waits", time.Second, nil))
		_, err := q.SubmitAll(t.Context(), []string{"a", "b"}, takes("both", 0, nil))
		refused, ok := errors.AsType[*queue.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, "b", refused.Key)
		require.Equal(t, "of b", refused.Running)
	})
}

func TestRefusalByAnActionWithoutAName(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
		submit(t, q, "a", takes("", time.Second, nil))
		_, err := q.Submit(t.Context(), "a", takes("next", 0, nil))
		require.EqualError(t, err, "queue: full: key a: next refused: an action runs since 2000-01-01T00:00:00Z, 0 waiting")
	})
}

func TestAheadIsOfTheLongestLane(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		for _, key := range []string{"a", "a", "b"} {
			submit(t, q, key, takes("in front", time.Second, nil))
		}
		for _, keys := range [][]string{{"a", "b"}, {"b", "a"}} {
			ticket, err := q.SubmitAll(t.Context(), keys, takes("both", 0, nil))
			require.NoError(t, err)
			require.Equal(t, 2, ticket.Info().Ahead)
			ticket.Cancel(nil)
		}
	})
}

// A refusal of Admit names the key for which another action waits.
func TestRefusalOfAdmitNamesTheBusyKey(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		require.NoError(t, q.PauseClass(""))
		submit(t, q, "b", takes("waits", 0, nil))
		act := takes("act", 0, nil)
		act.Admit = func(context.Context) error { return errBoom }
		_, err := q.SubmitAll(t.Context(), []string{"a", "b", "c"}, act)
		refused, ok := errors.AsType[*queue.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, "b", refused.Key)
		require.Equal(t, 1, refused.Waiting)
		require.Empty(t, refused.Running)
	})
}
