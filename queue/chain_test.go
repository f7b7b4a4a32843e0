package queue_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

func TestThen(t *testing.T) {
	in(t, func(t *testing.T) {
		// Over two queues, with other keys.
		numbers := queue.Must[int](nil)
		texts := makeQueue(t, nil)
		one, err := queue.Go(t.Context(), numbers, 1, func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 41, nil
		})
		require.NoError(t, err)
		two, err := queue.Then(t.Context(), texts, "a", one, func(_ context.Context, n int) (string, error) {
			return strconv.Itoa(n + 1), nil
		})
		require.NoError(t, err)
		behind := submit(t, texts, "a", takes("behind", 0, nil))
		synctest.Wait()
		require.Equal(t, queue.Pending, behind.Outcome(), "the lane waits for the parent")
		text, err := two.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "42", text)
		require.NoError(t, behind.Wait(t.Context()))
		// After the end of the parent.
		three, err := queue.Then(t.Context(), texts, "a", two, func(_ context.Context, s string) (string, error) { return s + "!", nil })
		require.NoError(t, err)
		<-three.Done()
		require.NoError(t, three.Err())
		require.Equal(t, queue.OK, three.Outcome())
		text, err = three.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "42!", text)
		require.Equal(t, queue.Late, three.Cancel(nil))
	})
}

func TestThenAfterFailure(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		ran := false
		next := func(context.Context, int) (int, error) { ran = true; return 1, nil }
		one, err := queue.Go(t.Context(), q, "a", func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 1, errBoom
		})
		require.NoError(t, err)
		two, err := queue.Then(t.Context(), q, "a", one, next)
		require.NoError(t, err)
		three, err := queue.Then(t.Context(), q, "b", two, next)
		require.NoError(t, err)
		behind := submit(t, q, "b", takes("behind", 0, nil))
		for _, f := range []*queue.Future[int]{one, two, three} {
			v, err := f.Wait(t.Context())
			require.Equal(t, errBoom, err, "that error, as it is")
			require.Zero(t, v)
			require.Equal(t, queue.Failed, f.Outcome())
		}
		late, err := queue.Then(t.Context(), q, "c", one, next)
		require.NoError(t, err)
		_, err = late.Wait(t.Context())
		require.Equal(t, errBoom, err)
		require.NoError(t, behind.Wait(t.Context()))
		require.False(t, ran)
		requireEmpty(t, q)
	})
}

func TestThenWithdrawn(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		parent, err := queue.Go(t.Context(), q, "a", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		require.NoError(t, err)
		next := func(context.Context, int) (int, error) { return 1, nil }
		withdrawn, err := queue.Then(t.Context(), q, "b", parent, next)
		require.NoError(t, err)
		child, err := queue.Then(t.Context(), q, "c", parent, next)
		require.NoError(t, err)
		require.Equal(t, queue.Withdrawn, withdrawn.Cancel(nil))
		require.Equal(t, queue.Signalled, parent.Cancel(nil))
		_, err = child.Wait(t.Context())
		require.ErrorIs(t, err, queue.ErrCanceled)
		require.Equal(t, queue.Failed, child.Outcome())
		require.Equal(t, queue.Canceled, withdrawn.Outcome())
		requireEmpty(t, q)
	})
}

func TestDo(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		v, err := queue.Do(t.Context(), q, "a", func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		require.Equal(t, 7, v)
		// Given up, it does not run on behind the caller's back.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var cause error
		_, err = queue.Do(ctx, q, "a", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 0, cause
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.ErrorIs(t, cause, queue.ErrCanceled)
		requireEmpty(t, q)
		q.Abort(nil)
		_, err = queue.Do(t.Context(), q, "a", func(context.Context) (int, error) { return 0, nil })
		require.True(t, errors.Is(err, queue.ErrTerminated))
	})
}

func TestChildrenInOrder(t *testing.T) {
	for _, err := range []error{nil, errBoom} {
		in(t, func(t *testing.T) {
			q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
			parent := submit(t, q, "a", takes("parent", time.Second, err))
			var ended notes
			for _, key := range []string{"b", "c", "d", "e"} {
				child := takes(key, time.Second, nil)
				child.After = parent
				child.Settle = func(context.Context, queue.Outcome, error) { ended.add(key) }
				submit(t, q, key, child)
			}
			require.NoError(t, q.Terminate(t.Context()))
			require.Equal(t, []string{"b", "c", "d", "e"}, ended.all())
		})
	}
}

// A long chain fails at its first action, in memory that does not depend on its
// length: a stack that grows with it would be at its bound at last.
func TestLongChainFails(t *testing.T) {
	const n = 100_000
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	for name, settle := range map[string]func(context.Context, queue.Outcome, error){
		"quiet": nil, "settled": func(context.Context, queue.Outcome, error) {},
	} {
		t.Run(name, func(t *testing.T) {
			qs := [2]*queue.Queuer[string]{makeQueue(t, nil), makeQueue(t, nil)}
			hold := make(chan struct{})
			last := submit(t, qs[0], "0", &queue.Action{Run: func(context.Context) error { <-hold; return errBoom }})
			for i := 1; i < n; i++ {
				last = submit(t, qs[i%2], strconv.Itoa(i%10), &queue.Action{
					After: last, Settle: settle, Run: func(context.Context) error { return nil },
				})
			}
			close(hold)
			require.Equal(t, errBoom, last.Wait(t.Context()))
			for _, q := range qs {
				require.NoError(t, q.Terminate(t.Context()))
			}
		})
	}
}

// A Settle that calls Goexit takes its goroutine with it, not those that were to
// be told or to run after it.
func TestGoexitInSettleOfOthers(t *testing.T) {
	exits := func(context.Context, queue.Outcome, error) { runtime.Goexit() }
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		parent := submit(t, q, "a", stubborn("parent", time.Second, errBoom))
		next := submit(t, q, "a", takes("next", time.Second, nil))
		var children []*queue.Ticket[string]
		for _, key := range []string{"b", "c", "d"} {
			child := takes(key, 0, nil)
			child.After, child.Settle = parent, exits
			children = append(children, submit(t, q, key, child))
		}
		for _, child := range children {
			require.ErrorIs(t, child.Wait(t.Context()), queue.ErrPanic)
		}
		require.NoError(t, next.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		running := submit(t, q, "a", takes("running", time.Hour, nil))
		synctest.Wait()
		for range 3 {
			act := takes("waiting", 0, nil)
			act.Settle = exits
			submit(t, q, "a", act)
		}
		act := takes("delete", 0, nil)
		act.Preempt = queue.PreemptRunning
		go func() { _, _ = q.Submit(t.Context(), "a", act) }()
		require.ErrorIs(t, running.Wait(t.Context()), queue.ErrPreempted)
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}
