package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/queue"
)

func Example() {
	ctx := context.Background()
	var q queue.Queuer[string] // one for the whole process

	done := func(context.Context) error { return nil }
	for _, name := range []string{"create", "start", "resize"} {
		_, err := q.Submit(ctx, "vm1", &queue.Action{Name: name, Run: done, Settle: func(_ context.Context, o queue.Outcome, _ error) {
			fmt.Println(name, o)
		}})
		if err != nil {
			panic(err)
		}
	}
	if err := q.Terminate(ctx); err != nil {
		panic(err)
	}
	_, err := q.Submit(ctx, "vm1", &queue.Action{Run: done})
	fmt.Println(err)
	// Output:
	// create ok
	// start ok
	// resize ok
	// queue: terminated, 0 waiting
}

// Admit checks and changes the state before the queue accepts the action. A migration
// that does not change the state is invisible to users: the queue accepts one request
// meanwhile, and the next request finds the object in transition.
func ExampleQueuer_Submit_admission() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	state := "RUNNING" // in a store, and changed by a compare-and-set

	request := func(name, via, to string) (*queue.Ticket[string], error) {
		return q.Submit(ctx, "vm1", &queue.Action{
			Name: name,
			Admit: func(context.Context) error {
				if state != "RUNNING" {
					return fmt.Errorf("vm1 is %s", state)
				}
				state = via
				return nil
			},
			Run: func(context.Context) error { fmt.Println(name); return nil },
			Settle: func(_ context.Context, o queue.Outcome, _ error) {
				if o == queue.OK {
					state = to
				}
			},
		})
	}

	hold := make(chan struct{})
	_, _ = q.Submit(ctx, "vm1", &queue.Action{Name: "migrate", Run: func(context.Context) error {
		<-hold
		fmt.Println("migrate")
		return nil
	}})
	destroy, _ := request("destroy", "DESTROYING", "DESTROYED")
	_, err := request("stop", "STOPPING", "HALTED")

	var refused *queue.RefusedError
	fmt.Println(errors.Is(err, queue.ErrConflict), errors.As(err, &refused))
	fmt.Println(refused.Err, "|", refused.Waiting, "waiting")
	close(hold)
	fmt.Println(destroy.Wait(ctx), state)
	// Output:
	// true true
	// vm1 is DESTROYING | 1 waiting
	// migrate
	// destroy
	// <nil> DESTROYED
}

// A disk action takes the keys of the disk and of its VM. The lane of the disk keeps
// the order of the actions when the disk moves to another VM.
func ExampleQueuer_SubmitAll() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	for _, a := range []struct {
		name string
		keys []string
	}{
		{"detach from vm1", []string{"disk7", "vm1"}},
		{"attach to vm2", []string{"disk7", "vm2"}},
		{"resize", []string{"disk7", "vm2"}},
	} {
		_, err := q.SubmitAll(ctx, a.keys, &queue.Action{Run: func(context.Context) error {
			fmt.Println(a.name)
			return nil
		}})
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(q.Stop(ctx, "disk7"))
	// Output:
	// detach from vm1
	// attach to vm2
	// resize
	// <nil>
}

func ExampleNew() {
	q, err := queue.New(&queue.Config[string]{
		MaxRunning: 64,
		MaxPerKey:  16,
		Classes: map[string]queue.Limit{
			"aws":       {MaxChildren: 10},
			"aws/seoul": {MaxRunning: 30},
		},
	})
	if err != nil {
		panic(err)
	}
	act := &queue.Action{Class: "aws/tokyo", Run: func(context.Context) error { return nil }}
	_, err = q.Submit(context.Background(), "vm1", act)
	fmt.Println(err)
	_, err = queue.New(&queue.Config[string]{MaxRunning: -1})
	fmt.Println(err)
	// Output:
	// queue: invalid Class: neither Config.Classes nor SetLimit has aws/tokyo
	// queue: invalid MaxRunning: negative
}

// A delete ends the waiting actions in front of it, cancels the running action, and
// waits until that has returned.
func ExamplePreempt() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	running := make(chan struct{})
	start, _ := q.Submit(ctx, "lease", &queue.Action{Run: func(ctx context.Context) error {
		close(running)
		<-ctx.Done() // it hangs
		return context.Cause(ctx)
	}})
	<-running
	update, _ := q.Submit(ctx, "lease", &queue.Action{Run: func(context.Context) error { return nil }})
	remove, _ := q.Submit(ctx, "lease", &queue.Action{
		Preempt: queue.PreemptRunning,
		Run:     func(context.Context) error { return nil },
	})
	fmt.Println(remove.Wait(ctx))
	fmt.Println(start.Err())
	fmt.Println(update.Err())
	// Output:
	// <nil>
	// queue: preempted
	// queue: superseded
}

func ExampleAction_coalesce() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	begun, hold := make(chan struct{}), make(chan struct{})
	look := &queue.Action{ID: "look at vm1", Coalesce: true, Run: func(context.Context) error {
		fmt.Println("look at vm1")
		close(begun)
		<-hold
		return nil
	}}
	_, _ = q.Submit(ctx, "vm1", look)
	<-begun
	again := *look
	again.Run = func(context.Context) error { fmt.Println("look again, once"); return nil }
	second, _ := q.Submit(ctx, "vm1", &again) // vm1 changed while the action runs
	third, _ := q.Submit(ctx, "vm1", &again)
	fmt.Println("one action for both:", second == third)
	close(hold)
	_ = q.Terminate(ctx)
	// Output:
	// look at vm1
	// one action for both: true
	// look again, once
}

// A delayed action holds up no other one. A request without a delay brings it forward.
func ExampleAction_delay() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	print := func(text string) func(context.Context) error {
		return func(context.Context) error { fmt.Println(text); return nil }
	}
	check := queue.Action{ID: "check vm1", Coalesce: true, Run: print("check"), Delay: time.Hour}
	delayed, _ := q.Submit(ctx, "vm1", &check)
	start, _ := q.Submit(ctx, "vm1", &queue.Action{Run: print("start")})
	_ = start.Wait(ctx)
	now := check
	now.Delay = 0
	_, _ = q.Submit(ctx, "vm1", &now)
	_ = delayed.Wait(ctx)
	// Output:
	// start
	// check
}

func ExampleQueuer_SetLimit() {
	ctx := context.Background()
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 1}}})
	var both sync.WaitGroup
	both.Add(2)
	act := &queue.Action{Class: "aws", Run: func(context.Context) error {
		both.Done()
		both.Wait() // for the other one
		return nil
	}}
	_, _ = q.Submit(ctx, "vm1", act)
	second, _ := q.Submit(ctx, "vm2", act)
	_ = q.SetLimit("aws", queue.Limit{MaxRunning: 2})
	fmt.Println(second.Wait(ctx))
	// Output:
	// <nil>
}

func ExampleQueuer_PauseClass() {
	ctx := context.Background()
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"aws": {}}})
	_ = q.PauseClass("aws")
	ticket, _ := q.Submit(ctx, "vm1", &queue.Action{Class: "aws", Run: func(context.Context) error { return nil }})
	fmt.Println(ticket.Info().State, ticket.Info().Paused)
	_ = q.ResumeClass("aws")
	fmt.Println(ticket.Wait(ctx))
	// Output:
	// waiting true
	// <nil>
}

func ExampleRetry() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	ticket, _ := q.Submit(ctx, "vm1", &queue.Action{
		Retry: queue.Retry{Attempts: 3, Backoff: queue.Exponential(time.Millisecond, time.Second)},
		Run: func(ctx context.Context) error {
			attempt := queue.Current[string](ctx).Info().Attempt
			fmt.Println("attempt", attempt)
			if attempt < 2 {
				return errors.New("busy")
			}
			return nil
		},
	})
	_, _ = q.Submit(ctx, "vm1", &queue.Action{Run: func(context.Context) error { fmt.Println("next"); return nil }})
	_ = q.Terminate(ctx)
	fmt.Println(ticket.Outcome())
	// Output:
	// attempt 1
	// attempt 2
	// next
	// ok
}

func ExampleQueuer_Resume() {
	ctx := context.Background()
	q := queue.Must(&queue.Config[string]{HaltOnFailure: true})
	failed, _ := q.Submit(ctx, "vm1", &queue.Action{Run: func(context.Context) error { return errors.New("no space left") }})
	next, _ := q.Submit(ctx, "vm1", &queue.Action{Run: func(context.Context) error { return nil }})
	fmt.Println(failed.Wait(ctx))
	fmt.Println(next.Outcome(), q.Stats().Halted)
	fmt.Println(q.Resume("vm1"), next.Wait(ctx))
	// Output:
	// no space left
	// pending 1
	// true <nil>
}

func ExampleQueuer_Inspect() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	hold, running := make(chan struct{}), make(chan struct{})
	_, _ = q.Submit(ctx, "vm1", &queue.Action{Name: "migrate", Run: func(context.Context) error {
		close(running)
		<-hold
		return nil
	}})
	stop, _ := q.Submit(ctx, "vm1", &queue.Action{Name: "stop", Run: func(context.Context) error { return nil }})
	<-running
	for _, i := range q.Inspect("vm1") {
		fmt.Println(i.Seq, i.Name, i.State)
	}
	for key, lane := range q.All() {
		fmt.Println(key, lane.Running, lane.Waiting)
	}
	fmt.Println(stop.Cancel(errors.New("not needed")), stop.Err())
	close(hold)
	_ = q.Terminate(ctx)
	// Output:
	// 1 migrate running
	// 2 stop waiting
	// vm1 migrate 1
	// withdrawn queue: canceled: not needed
}

func ExampleQueuer_Stop() {
	q := queue.Must[string](nil)
	hold := make(chan struct{})
	_, _ = q.Submit(context.Background(), "vm1", &queue.Action{Run: func(context.Context) error { <-hold; return nil }})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := q.Stop(ctx, "vm1")
	var left *queue.DrainError
	fmt.Println(errors.As(err, &left), left.Running, left.Waiting)
	fmt.Println(err)
	close(hold)
	fmt.Println(q.Stop(context.Background(), "vm1"))
	// Output:
	// true 1 0
	// queue: not drained: key vm1: 0 waiting, 1 running: context deadline exceeded
	// <nil>
}

func ExampleQueuer_Abort() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	ticket, _ := q.Submit(ctx, "vm1", &queue.Action{Run: func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	q.Abort(errors.New("shutting down"))
	fmt.Println(q.Terminate(ctx), "|", ticket.Err())
	// Output:
	// <nil> | queue: aborted: shutting down
}

// Abandon lets later actions start although an action ignores its context.
func ExampleQueuer_Abandon() {
	ctx := context.Background()
	q := queue.Must[string](nil)
	hold, running := make(chan struct{}), make(chan struct{})
	stuck, _ := q.Submit(ctx, "vm1", &queue.Action{Run: func(context.Context) error {
		close(running)
		<-hold
		return nil
	}})
	next, _ := q.Submit(ctx, "vm1", &queue.Action{Run: func(context.Context) error { return nil }})
	<-running
	fmt.Println(q.Abandon("vm1"), stuck.Wait(ctx), next.Wait(ctx))
	fmt.Println(q.Stats().Abandoned)
	close(hold)
	// Output:
	// true queue: abandoned <nil>
	// 1
}

func ExampleObserver() {
	ctx := context.Background()
	q := queue.Must(&queue.Config[string]{Observer: queue.Observer[string]{
		Started:  func(_ context.Context, e queue.Started[string]) { fmt.Println(e.Keys, e.Name, "started") },
		Finished: func(_ context.Context, e queue.Finished[string]) { fmt.Println(e.Keys, e.Name, e.Outcome) },
	}})
	_, _ = q.Submit(ctx, "vm1", &queue.Action{Name: "stop", Run: func(context.Context) error { return nil }})
	_ = q.Terminate(ctx)
	// Output:
	// [vm1] stop started
	// [vm1] stop ok
}

// The limits, and how much of them is in use.
func ExampleQueuer_Classes() {
	q := queue.Must(&queue.Config[string]{MaxRunning: 10, Classes: map[string]queue.Limit{"aws": {MaxRunning: 2}}})
	if err := q.PauseClass("aws"); err != nil {
		panic(err)
	}
	for _, c := range q.Classes() {
		fmt.Printf("%q: %d of %d, paused %t\n", c.Path, c.Running, c.Limit.MaxRunning, c.Paused)
	}
	// Output:
	// "": 0 of 10, paused false
	// "aws": 0 of 2, paused true
}
