package queue_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/queue"
)

// The tests of the guarantees of the package documentation have their numbers. TestModel
// compares isolation of hanging actions (6) and fairness (7) with the reference in every
// step. TestPanics checks isolation of panics (6).

func TestGuarantee1Order(t *testing.T) {
	// Several goroutines submit to the same keys. The actions of a key run in the order
	// of Seq, and those of one goroutine in the order of its submits.
	const producers, keys, each = 4, 7, 200
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 3})
	type run struct {
		seq         uint64
		producer, n int
	}
	ran := make([][]run, keys) // no lock: guarantee 2
	var group errgroup.Group
	for p := range producers {
		group.Go(func() error {
			for n := range each {
				k := (n + p) % keys
				_, err := q.Submit(t.Context(), strconv.Itoa(k), &queue.Action{Run: func(ctx context.Context) error {
					ran[k] = append(ran[k], run{queue.Current[string](ctx).Seq(), p, n})
					return nil
				}})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.NoError(t, q.Terminate(t.Context()))
	total := 0
	for _, list := range ran {
		total += len(list)
		require.True(t, slices.IsSortedFunc(list, func(a, b run) int { return int(a.seq) - int(b.seq) }))
		for p := range producers {
			own := slices.DeleteFunc(slices.Clone(list), func(r run) bool { return r.producer != p })
			require.True(t, slices.IsSortedFunc(own, func(a, b run) int { return a.n - b.n }))
		}
	}
	require.Equal(t, producers*each, total)
}

func TestGuarantee2Exclusion(t *testing.T) {
	// The actions change a variable of their keys without a lock. The race detector
	// reports two actions that run at once. Some actions retry, and some panic.
	const keys = 5
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 4})
	var at [keys]int
	touch := func(ks ...int) {
		for _, k := range ks {
			at[k]++
			if at[k] != 1 {
				t.Error("two at once")
			}
		}
		runtime.Gosched()
		for _, k := range ks {
			at[k]--
		}
	}
	for i := range 600 {
		a, b := i%keys, (i+1+i/keys%(keys-1))%keys
		one := &queue.Action{Run: func(context.Context) error { touch(a); return nil }}
		two := &queue.Action{Retry: queue.Retry{Attempts: 3}, Run: func(context.Context) error { touch(a, b); return errBoom }}
		three := &queue.Action{Run: func(context.Context) error { touch(a); panic("boom") }}
		submit(t, q, strconv.Itoa(a), one)
		submit(t, q, strconv.Itoa(a), three)
		if a != b {
			_, err := q.SubmitAll(t.Context(), []string{strconv.Itoa(b), strconv.Itoa(a)}, two)
			require.NoError(t, err)
		}
	}
	require.NoError(t, q.Terminate(t.Context()))
}

func TestGuarantee3NoLoss(t *testing.T) {
	// Actions end in every possible way. Settle is called once for each, with the
	// outcome of its ticket.
	in(t, func(t *testing.T) {
		var finished atomic.Int64
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 3, Observer: queue.Observer[string]{
			Finished: func(context.Context, queue.Finished[string]) { finished.Add(1) },
		}})
		type fate struct {
			ticket  *queue.Ticket[string]
			settled *[]queue.Outcome
		}
		var fates []fate
		add := func(key string, act *queue.Action) *queue.Ticket[string] {
			own, settled := *act, new([]queue.Outcome)
			own.Settle = func(_ context.Context, o queue.Outcome, err error) {
				*settled = append(*settled, o)
				if (o == queue.OK) != (err == nil) {
					t.Errorf("%v with %v", o, err)
				}
			}
			ticket := submit(t, q, key, &own)
			fates = append(fates, fate{ticket, settled})
			return ticket
		}
		add("a", takes("ok", time.Second, nil))
		add("a", takes("error", time.Second, errBoom))
		add("a", &queue.Action{Run: func(context.Context) error { panic(1) }})
		add("a", &queue.Action{Run: func(context.Context) error { runtime.Goexit(); return nil }})
		late := takes("late", time.Hour, nil)
		late.Timeout = time.Second
		add("a", late)
		expires := takes("expires", time.Second, nil)
		expires.QueueTimeout = time.Second / 2
		add("a", expires)
		guarded := takes("guarded", time.Second, nil)
		guarded.Guard = func(context.Context) error { return errBoom }
		add("a", guarded)
		require.Equal(t, queue.Withdrawn, add("a", takes("cancelled", time.Second, nil)).Cancel(nil))
		add("b", takes("preempted", time.Hour, nil))
		synctest.Wait()
		add("b", takes("superseded", time.Second, nil))
		delete := takes("delete", time.Second, nil)
		delete.Preempt = queue.PreemptRunning
		add("b", delete)
		stuck := add("c", stubborn("stuck", time.Hour, nil))
		synctest.Wait()
		require.True(t, q.Abandon("c"))
		time.Sleep(time.Minute)
		add("d", takes("aborted", time.Hour, nil))
		add("d", takes("aborted waiting", time.Hour, nil))
		synctest.Wait()
		q.Abort(nil)
		require.NoError(t, q.Terminate(t.Context()))
		require.Equal(t, queue.Abandoned, stuck.Outcome())

		seen := map[queue.Outcome]int{}
		for _, f := range fates {
			require.Equal(t, []queue.Outcome{f.ticket.Outcome()}, *f.settled, f.ticket.Info().Name)
			seen[f.ticket.Outcome()]++
		}
		require.Equal(t, map[queue.Outcome]int{
			queue.OK: 2, queue.Failed: 1, queue.Panicked: 2, queue.TimedOut: 1, queue.Canceled: 1,
			queue.Superseded: 1, queue.Preempted: 1, queue.Aborted: 2, queue.Expired: 1, queue.Skipped: 1, queue.Abandoned: 1,
		}, seen)
		require.EqualValues(t, len(fates), finished.Load())
		time.Sleep(2 * time.Hour) // the abandoned Run returns
		synctest.Wait()
		require.Zero(t, q.Stats())
		require.EqualValues(t, len(fates), finished.Load())
	})
}

func TestGuarantee4NoSilence(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2})
		since := time.Now()
		submit(t, q, "vm1", takes("migrate", time.Minute, nil))
		submit(t, q, "vm1", takes("stop", time.Minute, nil))
		time.Sleep(time.Second)
		before := q.Inspect("vm1")

		_, full := q.Submit(t.Context(), "vm1", takes("reboot", 0, nil))
		require.ErrorIs(t, full, queue.ErrFull)
		_, conflict := q.SubmitAll(t.Context(), []string{"disk", "vm2"}, &queue.Action{
			Run:   func(context.Context) error { return nil },
			Admit: func(context.Context) error { return errBoom },
		})
		require.ErrorIs(t, conflict, queue.ErrConflict)
		require.ErrorIs(t, conflict, errBoom)
		go func() { _ = q.Stop(t.Context(), "vm1") }()
		synctest.Wait()
		_, stopping := q.Submit(t.Context(), "vm1", takes("start", 0, nil))
		require.ErrorIs(t, stopping, queue.ErrStopping)
		go func() { _ = q.Terminate(t.Context()) }()
		synctest.Wait()
		_, terminated := q.Submit(t.Context(), "vm3", takes("start", 0, nil))
		require.ErrorIs(t, terminated, queue.ErrTerminated)

		for _, err := range []error{full, conflict, stopping, terminated} {
			var refused *queue.RefusedError
			require.ErrorAs(t, err, &refused)
		}
		var refused *queue.RefusedError
		require.ErrorAs(t, full, &refused)
		require.Equal(t, &queue.RefusedError{
			Reason: queue.ErrFull, Name: "reboot", Key: "vm1", Running: "migrate", Since: since, Waiting: 1,
		}, refused)
		require.EqualError(t, full, "queue: full: key vm1: reboot refused: migrate runs since 2000-01-01T00:00:00Z, 1 waiting")
		require.Equal(t, before, q.Inspect("vm1"))
		require.Equal(t, 1, q.Stats().Keys)
	})
}

// allocated returns the bytes of the heap that are in use.
func allocated() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestGuarantee5NothingWhenIdle(t *testing.T) {
	const n = 20_000
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 3})
	goroutines := runtime.NumGoroutine()
	act := &queue.Action{Run: func(context.Context) error { return nil }}
	hold := make(chan struct{})
	first := submit(t, q, "first", &queue.Action{Run: func(context.Context) error { <-hold; return nil }})
	keys := names(n)
	use := func() {
		for _, k := range keys {
			submit(t, q, k, act)
		}
		for q.Stats().Keys > 1 {
			runtime.Gosched()
		}
	}
	before := allocated()
	use()
	// One key stays busy, and the others cost nothing: a lane has some hundred bytes. The
	// limit is for what the runtime and package testing allocate meanwhile.
	require.Less(t, allocated()-before, int64(n*32))
	close(hold)
	require.NoError(t, first.Wait(t.Context()))
	requireEmpty(t, q)
	for runtime.NumGoroutine() > goroutines {
		runtime.Gosched()
	}
	runtime.KeepAlive(keys)
}

// A backlog that is gone leaves no memory behind, also while another key is busy.
func TestGuarantee5NothingAfterABacklog(t *testing.T) {
	const n = 100_000
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 2, Classes: map[string]queue.Limit{"a": {}}})
	keys := names(n)
	run := func(context.Context) error { return nil }
	hold := make(chan struct{})
	first := submit(t, q, "first", &queue.Action{Run: func(context.Context) error { <-hold; return nil }})
	before := allocated()
	require.NoError(t, q.PauseClass("a"))
	var last *queue.Ticket[string]
	for _, k := range keys {
		last = submit(t, q, k, &queue.Action{Run: run, Class: "a", ID: k})
	}
	require.NoError(t, q.ResumeClass("a"))
	require.NoError(t, last.Wait(t.Context()))
	// The list of ready actions and the map of IDs had 8 bytes and more for each. The limit
	// is for the runtime.
	require.Less(t, allocated()-before, int64(n*2))
	close(hold)
	require.NoError(t, first.Wait(t.Context()))
	runtime.KeepAlive(keys)
}

func TestGuarantee8Progress(t *testing.T) {
	// Several goroutines submit actions of the same keys in every order, under limits.
	// All of the actions end.
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 2, Classes: map[string]queue.Limit{
		"p": {MaxChildren: 1}, "p/x": {MaxRunning: 1}, "p/y": {},
	}})
	keys := []string{"a", "b", "c", "d"}
	var ran atomic.Int64
	var group errgroup.Group
	for g := range 4 {
		group.Go(func() error {
			for i := range 200 {
				ks := slices.Clone(keys)
				ks[0], ks[(i+g)%4] = ks[(i+g)%4], ks[0]
				ks[1], ks[(i/4)%4] = ks[(i/4)%4], ks[1]
				_, err := q.SubmitAll(t.Context(), ks[:2+i%3], &queue.Action{
					Class: []string{"p/x", "p/y", ""}[(i+g)%3],
					Run:   func(context.Context) error { ran.Add(1); return nil },
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.NoError(t, q.Terminate(t.Context()))
	require.EqualValues(t, 800, ran.Load())
	requireEmpty(t, q)
}

func TestGuarantee8WaitInside(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		var self, mine, other, stop, terminate, fine error
		outer := submit(t, q, "a", &queue.Action{Name: "outer", Run: func(ctx context.Context) error {
			self = queue.Current[string](ctx).Wait(ctx)
			behind := submit(t, q, "a", takes("behind", time.Second, nil))
			mine = behind.Wait(ctx)
			both, err := q.SubmitAll(ctx, []string{"a", "b"}, takes("both", time.Second, nil))
			require.NoError(t, err)
			last := submit(t, q, "b", takes("last", time.Second, nil))
			inner, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			other = last.Wait(inner)
			stop = q.Stop(ctx, "b")
			terminate = q.Terminate(ctx)
			both.Cancel(nil)
			last.Cancel(nil)
			fine = submit(t, q, "c", takes("fine", time.Second, nil)).Wait(ctx)
			return fine
		}})
		require.NoError(t, outer.Wait(t.Context()))
		for _, err := range []error{self, mine, other, stop, terminate} {
			require.ErrorIs(t, err, queue.ErrWouldDeadlock)
		}
		require.NoError(t, fine)
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

// waitsFor returns an action that submits an action of another key and waits for it.
func waitsFor(t *testing.T, q *queue.Queuer[string], after time.Duration, key string, err *error) *queue.Action {
	return &queue.Action{Name: "waits for " + key, Run: func(ctx context.Context) error {
		time.Sleep(after)
		*err = submit(t, q, key, takes("awaited", 0, nil)).Wait(ctx)
		return nil
	}}
}

func TestGuarantee8Cycles(t *testing.T) {
	in(t, func(t *testing.T) {
		// a waits for an action behind b. The wait of b for an action behind a is refused.
		q := makeQueue(t, nil)
		var first, second error
		a := submit(t, q, "a", waitsFor(t, q, time.Second, "b", &first))
		b := submit(t, q, "b", waitsFor(t, q, 2*time.Second, "a", &second))
		require.NoError(t, b.Wait(t.Context()))
		require.ErrorIs(t, second, queue.ErrWouldDeadlock)
		require.NoError(t, a.Wait(t.Context()))
		require.NoError(t, first)
	})
	in(t, func(t *testing.T) {
		// An action must not wait for another one that needs the limit that it fills.
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 2})
		var first, second error
		submit(t, q, "a", waitsFor(t, q, time.Second, "c", &first))
		b := submit(t, q, "b", waitsFor(t, q, 2*time.Second, "d", &second))
		require.NoError(t, b.Wait(t.Context()))
		require.ErrorIs(t, first, queue.ErrWouldDeadlock)
		require.NoError(t, second, "a has ended")
	})
	in(t, func(t *testing.T) {
		// An action waits for a class whose limit MaxChildren it fills itself.
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxChildren: 1}, "aws/a": {}, "aws/b": {}}})
		outer := submit(t, q, "a", &queue.Action{Class: "aws/a", Run: func(ctx context.Context) error {
			inner, err := q.Submit(ctx, "b", &queue.Action{Class: "aws/b", Run: func(context.Context) error { return nil }})
			if err != nil {
				return err
			}
			return inner.Wait(ctx)
		}})
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
	})
	in(t, func(t *testing.T) {
		// An action may wait for a full class of which it has no share.
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 1}}})
		submit(t, q, "a", ofClass("aws", takes("busy", time.Second, nil)))
		require.NoError(t, submit(t, q, "b", &queue.Action{Run: func(ctx context.Context) error {
			return submit(t, q, "c", ofClass("aws", takes("next", 0, nil))).Wait(ctx)
		}}).Wait(t.Context()))
	})
	in(t, func(t *testing.T) {
		// There is no room, and only the end of the submitting action could make some.
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 1})
		outer := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			_, err := q.Submit(ctx, "a", &queue.Action{Wait: true, Run: func(context.Context) error { return nil }})
			return err
		}})
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
	})
}

// An action of the same class is in the way only if the class has no room.
func TestWaitForAnActionOfAClassWithRoom(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"c": {MaxRunning: 3}}})
		submit(t, q, "b", ofClass("c", takes("in front", time.Second, nil)))
		target := submit(t, q, "b", ofClass("c", takes("target", time.Second, nil)))
		outer := submit(t, q, "a", ofClass("c", &queue.Action{Run: target.Wait}))
		require.NoError(t, outer.Wait(t.Context()))
	})
}

// An action waits for another one of its class, which does not start while the class is paused.
// Both continue when the pause ends, so an action of another class may wait behind them.
func TestWaitForActionsOfAPausedClass(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"c": {}}})
		submit(t, q, "b", ofClass("c", takes("in front", time.Second, nil)))
		target := submit(t, q, "b", ofClass("c", takes("target", time.Second, nil)))
		submit(t, q, "a", ofClass("c", &queue.Action{Run: target.Wait}))
		behind := submit(t, q, "a", takes("behind", 0, nil))
		synctest.Wait()
		require.NoError(t, q.PauseClass("c"))
		outer := submit(t, q, "d", &queue.Action{Run: behind.Wait})
		time.Sleep(time.Minute)
		require.Equal(t, queue.Running, outer.Info().State)
		require.NoError(t, q.ResumeClass("c"))
		require.NoError(t, outer.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// A pause needs the end of no action. So the wait ends when the pause ends.
func TestWaitInsideAPausedClass(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"c": {MaxRunning: 2}}})
		outer := submit(t, q, "a", ofClass("c", &queue.Action{Run: func(ctx context.Context) error {
			time.Sleep(time.Second)
			return submit(t, q, "b", ofClass("c", takes("target", 0, nil))).Wait(ctx)
		}}))
		require.NoError(t, q.PauseClass("c"))
		time.Sleep(time.Minute)
		require.NoError(t, q.ResumeClass("c"))
		require.NoError(t, outer.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// A pause of the class does not hide that the class needs the end of the action that waits.
func TestWaitForAPausedClassThatIsCrowded(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"p": {MaxChildren: 1}, "p/a": {}, "p/b": {}}})
		require.NoError(t, q.PauseClass("p/a"))
		outer := submit(t, q, "b", ofClass("p/b", &queue.Action{Run: func(ctx context.Context) error {
			return submit(t, q, "a", ofClass("p/a", takes("target", 0, nil))).Wait(ctx)
		}}))
		synctest.Wait()
		require.NoError(t, q.ResumeClass("p/a"))
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// The action that another one waits for has ended, but its Wait has not returned yet. That wait is
// no reason to refuse a third one, although the target would need the limit that is full by now.
func TestWaitForAnActionWhoseWaitIsOver(t *testing.T) {
	in(t, func(t *testing.T) {
		for range 20 {
			q := makeQueue(t, &queue.Config[string]{MaxRunning: 3})
			var target, waits *queue.Ticket[string]
			begin := make(chan struct{})
			last := submit(t, q, "b", &queue.Action{Run: func(ctx context.Context) error {
				<-begin
				target.Cancel(nil)
				return waits.Wait(ctx)
			}})
			target = submit(t, q, "b", takes("target", 0, nil))
			waits = submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error { _ = target.Wait(ctx); return nil }})
			synctest.Wait()
			submit(t, q, "c", takes("fills the limit", time.Minute, nil))
			close(begin)
			require.NoError(t, last.Wait(t.Context()))
			require.NoError(t, q.Terminate(t.Context()))
		}
	})
}

// An action cancels another one, which waits for an action behind the first one. That wait ends
// with its context, so the first action may wait for the other one.
func TestWaitForAnActionThatIsCanceledInAWait(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		begin := make(chan *queue.Ticket[string])
		outer := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			other := <-begin
			other.Cancel(errBoom)
			return other.Wait(ctx)
		}})
		behind := submit(t, q, "a", takes("behind", 0, nil))
		other := submit(t, q, "b", &queue.Action{Run: behind.Wait})
		synctest.Wait()
		begin <- other
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrCanceled)
		require.NoError(t, behind.Wait(t.Context()))
	})
}

// Two actions may wait for each other one after the other.
func TestWaitThatHasEndedIsNoDeadlock(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		other := make(chan *queue.Ticket[string], 1)
		late := submit(t, q, "late", &queue.Action{Run: func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return (<-other).Wait(ctx)
		}})
		early := submit(t, q, "early", &queue.Action{Run: func(ctx context.Context) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err := late.Wait(short)
			time.Sleep(2 * time.Second)
			return err
		}})
		other <- early
		require.ErrorIs(t, late.Wait(t.Context()), queue.ErrPending)
		require.NotErrorIs(t, late.Err(), queue.ErrWouldDeadlock)
	})
}

// A goroutine that an action left behind waits while the action is being settled. The action does
// not wait for that.
func TestWaitForAnActionThatLeavesAWait(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		var left *queue.Ticket[string]
		waits := submit(t, q, "b", &queue.Action{Run: func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return left.Wait(ctx)
		}})
		left = submit(t, q, "a", &queue.Action{
			Run: func(ctx context.Context) error {
				go func() { _ = waits.Wait(ctx) }()
				time.Sleep(time.Second)
				return nil
			},
			Settle: func(context.Context, queue.Outcome, error) { time.Sleep(time.Hour) },
		})
		require.NoError(t, waits.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// An action that is being settled in the middle of a lane does not hide the action in front.
func TestWaitBehindACanceledAction(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		outer := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return submit(t, q, "a", takes("target", 0, nil)).Wait(ctx)
		}})
		middle := takes("middle", 0, nil)
		middle.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Hour) }
		canceled := submit(t, q, "a", middle)
		go canceled.Cancel(nil)
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// An action that is being settled waits for nothing in front of it.
func TestWaitForACanceledActionBehind(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		target := make(chan *queue.Ticket[string], 1)
		outer := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return (<-target).Wait(ctx)
		}})
		behind := takes("behind", 0, nil)
		behind.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(10 * time.Second) }
		ticket := submit(t, q, "a", behind)
		target <- ticket
		ticket.Cancel(errBoom)
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrCanceled)
		require.ErrorIs(t, outer.Err(), errBoom)
	})
}

func TestLongestRunningIsOfAllKeys(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		for _, key := range names(16) {
			submit(t, q, key, takes("act", time.Hour, nil))
			time.Sleep(time.Second)
		}
		require.Equal(t, 16*time.Second, q.Stats().LongestRunning)
	})
}

// A drain might wait for its caller only inside a running action of the same queue.
func TestDrainInsideOtherActions(t *testing.T) {
	for name, drains := range map[string]func(ctx context.Context, q *queue.Queuer[string]) error{
		"Stop":      func(ctx context.Context, q *queue.Queuer[string]) error { return q.Stop(ctx, "a") },
		"Terminate": func(ctx context.Context, q *queue.Queuer[string]) error { return q.Terminate(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				// The context is that of an action that has ended.
				q := makeQueue(t, nil)
				var kept context.Context
				ended := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
					kept = context.WithoutCancel(ctx)
					return nil
				}})
				require.NoError(t, ended.Wait(t.Context()))
				require.NoError(t, drains(kept, q))
			})
			in(t, func(t *testing.T) {
				// The action is of another queue.
				outer, inner := makeQueue(t, nil), makeQueue(t, nil)
				ticket := submit(t, outer, "a", &queue.Action{Run: func(ctx context.Context) error {
					submit(t, inner, "a", takes("inner", time.Second, nil))
					return drains(ctx, inner)
				}})
				require.NoError(t, ticket.Wait(t.Context()))
				requireEmpty(t, inner)
			})
		})
	}
}
