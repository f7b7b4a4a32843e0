package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestDo: the state is set when Do returns, before the work begins; when it has
// ended, the outcome is a second commit, with the payload as the work edits it.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside *lifecycle.Task
		begin := make(chan struct{})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		change := resize(3)
		change.Reason = "asked for"
		ticket := do(t, m, "a", "create", user, lifecycle.Func(func(ctx context.Context) error {
			<-begin
			inside = lifecycle.TaskOf(ctx)
			require.True(t, lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 100; return nil }))
			require.True(t, lifecycle.EditOutcome(ctx, func(s *size) error { s.N++; return nil }), "the last one counts")
			return nil
		}), change)
		synctest.Wait()
		now := get(t, m, "a")
		require.Equal(t, ticket.Admitted(), now)
		require.Equal(t, state("creating"), now.State)
		require.Equal(t, size{N: 3}, now.Payload)
		require.Equal(t, "asked for", now.Reason)
		require.Equal(t, now.ChangedAt.Add(time.Minute), now.Deadline)
		require.EqualValues(t, 1, ticket.Operation())
		select {
		case <-ticket.Done():
			t.Fatal("done before it was")
		default:
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		rec, err := ticket.Wait(soon)
		require.ErrorIs(t, err, queue.ErrPending)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, now, rec)

		close(begin)
		rec = wait(t, ticket)
		<-ticket.Done()
		require.Equal(t, get(t, m, "a"), rec)
		require.Equal(t, state("stopped"), rec.State)
		require.Equal(t, size{N: 4}, rec.Payload)
		require.Empty(t, rec.Reason)
		require.Zero(t, rec.Deadline)
		require.Equal(t, []string{
			"1: none -create-> creating by user", "1: creating -done-> stopped by worker",
		}, story(t, m, "a", 0))
		require.Equal(t, lifecycle.Key{Machine: "work-vm", ID: "a"}, inside.Key)
		require.EqualValues(t, 1, inside.Operation)
		require.Nil(t, lifecycle.TaskOf(t.Context()))
		require.False(t, lifecycle.EditOutcome(t.Context(), func(*size) error { return nil }))
	})
}

// TestDoInOrder: operations of one object wait for each other, with their state
// set where the table lets them in; those of others do not.
func TestDoInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		for _, id := range []string{"a", "b"} {
			stopped(t, m, id)
		}
		var log []string
		var mu sync.Mutex
		note := func(line string) { mu.Lock(); log = append(log, line); mu.Unlock() }
		sleep := func(name string, d time.Duration) lifecycle.Work {
			return lifecycle.Func(func(ctx context.Context) error {
				note(name + " begins")
				time.Sleep(d) // does not look at its context
				note(name + " ends")
				return nil
			})
		}
		start := do(t, m, "a", "start", user, sleep("start", 3*time.Second), nil)
		time.Sleep(time.Second)
		drop := do(t, m, "a", "delete", user, sleep("delete", time.Second), nil)
		other := do(t, m, "b", "start", user, sleep("other", time.Second), nil)
		require.Equal(t, state("deleting"), get(t, m, "a").State)
		wait(t, other)
		wait(t, drop)
		_, err := start.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrStale, "its operation was superseded, though its work ended well")
		require.Equal(t, []string{"start begins", "other begins", "other ends", "start ends", "delete begins", "delete ends"}, log)
		absent(t, m, "a")
		require.Equal(t, []string{
			"2: stopped -start-> starting by user", "3: starting -delete-> deleting by user", "3: deleting -done-> none by worker",
		}, story(t, m, "a", 2))
	})
}

// TestDoRefused: what is refused has written nothing, and left nothing in the
// queue.
func TestDoRefused(t *testing.T) {
	nothing := func(w *lifecycle.Work) {}
	cases := []struct {
		name   string
		id     string
		event  event
		actor  fsm.Actor
		work   func(*lifecycle.Work)
		change *lifecycle.Change[size]
		in     func(t *testing.T, m *sizedManager, q *queue.Queuer[lifecycle.Key])
		config func(*lifecycle.Config[event])
		is     []error
	}{
		{name: "no row", event: "delete", actor: user, is: []error{fsm.ErrNotAllowed}},
		{name: "wrong actor", event: "stop", actor: "worker", is: []error{fsm.ErrWrongActor}},
		{name: "unknown event", event: "fly", actor: user, is: []error{fsm.ErrUnknownEvent}},
		{
			name: "unknown event of an unknown handler", event: "fly", actor: user, is: []error{fsm.ErrUnknownEvent},
			work: func(w *lifecycle.Work) { *w = lifecycle.Named("fly", nil) },
		},
		{name: "begins nothing", event: "rename", actor: user, is: []error{lifecycle.ErrInvalid}},
		{name: "ignored", event: "start", actor: user, is: []error{lifecycle.ErrInvalid}},
		{name: "busy", event: "stop", actor: user, is: []error{lifecycle.ErrBusy, fsm.ErrNotAllowed}, in: func(t *testing.T, m *sizedManager, _ *queue.Queuer[lifecycle.Key]) {
			fire(t, m, "a", "reboot", user, nil)
		}},
		{name: "not there", id: "b", event: "stop", actor: user, is: []error{lifecycle.ErrNotFound}},
		{name: "there already", event: "create", actor: user, is: []error{lifecycle.ErrExists}},
		{name: "empty id", id: "\x00", event: "stop", actor: user, is: []error{lifecycle.ErrInvalid}},
		{name: "long id", id: strings.Repeat("x", 256), event: "create", actor: user, is: []error{lifecycle.ErrInvalid}},
		{name: "no work", event: "stop", actor: user, work: func(w *lifecycle.Work) { *w = lifecycle.Work{} }, is: []error{lifecycle.ErrMisconfigured}},
		{name: "two works", event: "stop", actor: user, work: func(w *lifecycle.Work) { w.Handler = "known" }, is: []error{lifecycle.ErrMisconfigured}},
		{name: "unknown handler", event: "stop", actor: user, work: func(w *lifecycle.Work) { *w = lifecycle.Named("unknown", nil) }, is: []error{lifecycle.ErrMisconfigured}},
		{name: "negative time-out", event: "stop", actor: user, work: func(w *lifecycle.Work) { w.Timeout = -1 }, is: []error{lifecycle.ErrInvalid}},
		{name: "a function where work is done again", event: "reboot", actor: user, is: []error{lifecycle.ErrMisconfigured}},
		{name: "unknown class", event: "stop", actor: user, work: func(w *lifecycle.Work) { w.Class = "nowhere" }, is: []error{queue.ErrInvalid}},
		{name: "class that the record cannot keep", event: "stop", actor: user, work: func(w *lifecycle.Work) { w.Class = "aws/\xff" }, is: []error{lifecycle.ErrInvalid}},
		{name: "no worker", event: "stop", actor: user, config: func(c *lifecycle.Config[event]) { c.WorkerActor = "" }, is: []error{lifecycle.ErrMisconfigured}},
		{name: "no event for done", event: "stop", actor: user, config: func(c *lifecycle.Config[event]) { c.Done = nil }, is: []error{lifecycle.ErrMisconfigured}},
		{name: "edit", event: "stop", actor: user, change: &lifecycle.Change[size]{Edit: func(*size) error { return errBoom }}, is: []error{errBoom}},
		{
			name: "precondition", event: "stop", actor: user, is: []error{lifecycle.ErrPrecondition},
			change: &lifecycle.Change[size]{Require: []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "work-vm", ID: "b"}, States: []string{"running"}}}},
		},
		{name: "full", event: "stop", actor: user, is: []error{queue.ErrFull}, in: func(t *testing.T, m *sizedManager, q *queue.Queuer[lifecycle.Key]) {
			end := make(chan struct{})
			_, err := q.Submit(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
			require.NoError(t, err)
			t.Cleanup(func() { close(end) })
		}},
		{name: "full, and busy", event: "stop", actor: user, is: []error{lifecycle.ErrBusy}, in: func(t *testing.T, m *sizedManager, q *queue.Queuer[lifecycle.Key]) {
			end := make(chan struct{})
			_, err := q.Submit(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
			require.NoError(t, err)
			t.Cleanup(func() { close(end) })
			fire(t, m, "a", "reboot", user, nil)
		}},
		{name: "terminated", event: "stop", actor: user, is: []error{queue.ErrTerminated}, in: func(t *testing.T, m *sizedManager, q *queue.Queuer[lifecycle.Key]) {
			require.NoError(t, q.Terminate(t.Context()))
		}},
		{name: "stopping", event: "stop", actor: user, is: []error{queue.ErrStopping}, in: func(t *testing.T, m *sizedManager, q *queue.Queuer[lifecycle.Key]) {
			end, key := make(chan struct{}), lifecycle.Key{Machine: "work-vm", ID: "a"}
			_, err := q.Submit(t.Context(), key, &queue.Action{Run: func(context.Context) error { <-end; return nil }})
			require.NoError(t, err)
			over, stop := context.WithCancel(t.Context())
			stop()
			require.ErrorIs(t, q.Stop(over, key), queue.ErrNotDrained)
			t.Cleanup(func() { close(end) })
		}},
	}
	for _, c := range cases {
		inBubble(t, c.name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			q := queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1, Classes: map[string]queue.Limit{"aws/*": {}}})
			var refused []error
			config := lifecycle.Config[event]{
				WorkerActor: "worker", Done: []event{"done"}, Queue: q,
				Handlers: map[string]lifecycle.Handler{"known": func(context.Context, []byte) error { return nil }},
				Observer: lifecycle.Observer{Refused: func(_ context.Context, err error) { refused = append(refused, err) }},
			}
			running(t, workers(store, lifecycle.Config[event]{}), "a")
			if c.config != nil {
				c.config(&config)
			}
			m := lifecycle.Must(workVM, store, &config)
			if c.in != nil {
				c.in(t, m, q)
			}
			if c.work == nil {
				c.work = nothing
			}
			id := or(strings.TrimPrefix(c.id, "\x00"), "a")
			if c.id == "\x00" {
				id = ""
			}
			before := all(t, store, "work-vm", "a", "b")
			work := lifecycle.Func(func(context.Context) error { t.Error("refused work ran"); return nil })
			c.work(&work)
			ticket, err := m.Do(t.Context(), id, c.event, c.actor, work, c.change)
			require.Nil(t, ticket)
			for _, is := range c.is {
				require.ErrorIs(t, err, is)
			}
			e, ok := errors.AsType[*lifecycle.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, "do", e.Verb)
			require.Equal(t, string(c.event), e.Event)
			require.Equal(t, []error{err}, refused, "observed once")
			require.Equal(t, before, all(t, store, "work-vm", "a", "b"))
		})
	}
}

// TestDoOvertaken: the admission is one compare-and-set. A call that loses it has no
// operation.
func TestDoOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		q := new(queue.Queuer[lifecycle.Key])
		m := workers(store, lifecycle.Config[event]{Queue: q})
		running(t, m, "a")
		others := workers(store.MemoryStore, lifecycle.Config[event]{})
		store.afterGet = func(int) {
			fire(t, others, "a", "rename", user, nil)
		}
		_, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrConflict)
		require.Equal(t, 409, lifecycle.HTTPStatus(err))
		require.Equal(t, "rename", winnerOf(t, m, err).Event)
		store.reset()
		require.Equal(t, state("running"), get(t, m, "a").State)
		wait(t, do(t, m, "a", "stop", user, lifecycle.Func(fine), nil))
	})
}

// TestDoCanceledContext: the context of the call bounds the admission, and has no
// influence on what was admitted.
func TestDoCanceledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		ctx, stop := context.WithCancel(t.Context())
		ticket, err := m.Do(ctx, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			time.Sleep(time.Second)
			return ctx.Err()
		}), nil)
		require.NoError(t, err)
		stop()
		wait(t, ticket)
		_, err = m.Do(ctx, "a", "start", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

// TestDoAnswerLost: an admission whose answer was lost is settled by its token.
// If the outcome stays unknown, the work does not run, and the sweeper finds the object.
func TestDoAnswerLost(t *testing.T) {
	for name, always := range map[string]bool{"once": false, "always": true} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			m := workers(store, lifecycle.Config[event]{})
			running(t, m, "a")
			store.reset()
			store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
				switch {
				case n == 1:
					return store.lose(t, c)
				case always:
					return lifecycle.ErrUnknownOutcome
				}
				return write()
			}
			runs := 0
			ticket, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Func(func(context.Context) error { runs++; return nil }), nil)
			if !always {
				require.NoError(t, err)
				wait(t, ticket)
				require.Equal(t, 1, runs)
				return
			}
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
			store.reset()
			require.Equal(t, state("stopping"), get(t, m, "a").State)
			time.Sleep(time.Minute + 1)
			require.Len(t, sweep(t, m), 1)
			require.Zero(t, runs)
			wait(t, do(t, m, "a", "stop", user, lifecycle.Func(fine), nil))
		})
	}
}

// TestDoContinuesARemovedOperation: a call that continues an operation does not
// create the object again.
func TestDoContinuesARemovedOperation(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	override(t, m, "a", "none", "ann", "not needed", nil)
	_, err := m.Do(t.Context(), "a", "create", user, lifecycle.Func(fine), &lifecycle.Change[size]{Operation: 1})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	absent(t, m, "a")
	wait(t, do(t, m, "a", "create", user, lifecycle.Func(fine), nil))
}
