package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestUnwritten: outcomes that cannot be written. The object stays, the error has
// the outcome and the reason in Unwritten, and the sweeper finds the object.
func TestUnwritten(t *testing.T) {
	dead := func(n int, c *lifecycle.Commit, write func() error) error { return errBoom }
	cases := map[string]struct {
		event    event
		work     error
		onCommit func(n int, c *lifecycle.Commit, write func() error) error
		outcome  lifecycle.Outcome
		is       error
		cancel   bool
		failed   []event
	}{
		"no row":                        {event: "inspect", work: errDone, outcome: lifecycle.Failed, is: fsm.ErrNotAllowed},
		"ignored":                       {event: "inspect", work: errDone, cancel: true, failed: []event{"cancel"}, outcome: lifecycle.Canceled, is: fsm.ErrNotAllowed},
		"the store fails":               {event: "stop", onCommit: dead, outcome: lifecycle.Succeeded, is: errBoom},
		"the store fails after failure": {event: "stop", work: errDone, onCommit: dead, outcome: lifecycle.Failed, is: errBoom},
		"all answers are lost": {event: "stop", outcome: lifecycle.Succeeded, is: lifecycle.ErrUnknownOutcome, onCommit: func(int, *lifecycle.Commit, func() error) error {
			return lifecycle.ErrUnknownOutcome
		}},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			m := workers(store, lifecycle.Config[event]{Failed: c.failed})
			running(t, m, "a")
			end := make(chan struct{})
			ticket := do(t, m, "a", c.event, user, lifecycle.Func(func(context.Context) error { <-end; return c.work }), nil)
			synctest.Wait()
			before := all(t, store.MemoryStore, "work-vm", "a")
			store.onCommit = c.onCommit
			if c.cancel {
				ticket.Cancel(errDone)
			}
			close(end)
			_, err := ticket.Wait(t.Context())
			e := outcomeError(t, err)
			require.Equal(t, c.outcome, e.Outcome)
			require.ErrorIs(t, e.Unwritten, c.is)
			_, refused := errors.AsType[*fsm.TransitionError](e.Unwritten)
			require.Equal(t, name == "no row", refused)
			require.ErrorIs(t, err, c.is)
			require.Contains(t, err.Error(), "; outcome not written: ")
			if c.work != nil {
				require.ErrorIs(t, err, c.work)
			}
			require.Equal(t, before, all(t, store.MemoryStore, "work-vm", "a"))
			store.reset()
			time.Sleep(time.Minute + 1)
			cases := sweep(t, m)
			require.Len(t, cases, 1)
			if c.event == "inspect" {
				require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
				return
			}
			require.Equal(t, lifecycle.Moved, cases[0].Resolution)
			require.Equal(t, state("running"), get(t, m, "a").State)
		})
	}
}

// TestOutcomeAnswerLost: an outcome that was written, and whose answer was lost,
// is settled by its token.
func TestOutcomeAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		running(t, m, "a")
		end := make(chan struct{})
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { <-end; return nil }), nil)
		synctest.Wait()
		store.reset()
		store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
			if n == 1 {
				return store.lose(t, c)
			}
			return write()
		}
		close(end)
		require.Equal(t, state("stopped"), wait(t, ticket).State)
		require.Len(t, story(t, m, "a", 4), 2)
		require.Equal(t, store.tokens[0], store.tokens[1])
	})
}

// TestOutcomeOvertaken: another change within the same operation does not lose the
// outcome. The manager decides it again.
func TestOutcomeOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		handlers := map[string]lifecycle.Handler{}
		other := workers(store.MemoryStore, lifecycle.Config[event]{})
		end := make(chan struct{})
		handlers["reboot"] = func(context.Context, []byte) error { <-end; return nil }
		m := workers(store, lifecycle.Config[event]{Handlers: handlers})
		running(t, m, "a")
		ticket := do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		synctest.Wait()
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n == 1 {
				require.Equal(t, lifecycle.Applied, report(t, other, "a", 3, "progress", "worker", "half"))
			}
			return write()
		}
		close(end)
		wait(t, ticket)
		require.Equal(t, []string{
			"3: running -reboot-> rebooting by user", "3: rebooting -progress-> rebooting by worker", "3: rebooting -done-> running by worker",
		}, story(t, m, "a", 4))
	})
}

// parcel is a table whose work moves the object on to a second transitional state.
var parcel = fsm.Must[size](fsm.Spec[state, event]{
	Name: "parcel", Initial: "packed", Actors: []fsm.Actor{user, "worker"},
	States: []fsm.State[state]{
		{Name: "packed"},
		{Name: "collecting", Kind: fsm.Transitional},
		{Name: "delivering", Kind: fsm.Transitional},
		{Name: "delivered", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("packed", "send", "collecting").By(user),
		fsm.Move[state, event]("collecting", "collected", "delivering").By("worker"),
		fsm.Return[state, event]("collecting", "late").AlsoFrom("delivering").After(time.Hour),
		fsm.Move[state, event]("delivering", "done", "delivered").By("worker"),
	),
})

// TestOutcomeWithoutEvent: Config names no event of a failure, and the state has no deadline.
func TestOutcomeWithoutEvent(t *testing.T) {
	m := lifecycle.Must(workVM, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
	running(t, m, "a")
	ticket := do(t, m, "a", "inspect", user, lifecycle.Func(func(context.Context) error { return errBoom }), nil)
	failed := outcomeOf(t, ticket)
	require.ErrorIs(t, failed.Unwritten, lifecycle.ErrInvalid)
	require.ErrorContains(t, failed.Unwritten, "no event of Config reports how the work ended")
}

// TestOutcomeElsewhere: the state of the admission has no row for the outcome, but
// the present state has one.
func TestOutcomeElsewhere(t *testing.T) {
	m := lifecycle.Must(parcel, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
	add(t, m, "a", user, size{})
	ticket := do(t, m, "a", "send", user, lifecycle.Func(func(ctx context.Context) error {
		_, err := m.Fire(ctx, "a", "collected", "worker", nil)
		return err
	}), nil)
	require.Equal(t, state("delivered"), wait(t, ticket).State)
}

// TestEditOutcome: an edit that fails, panics or is of another payload. Without
// its effect the work has not succeeded.
func TestEditOutcome(t *testing.T) {
	cases := map[string]struct {
		edit func(*size) error
		work error
		want lifecycle.Outcome
		is   error
		to   size
	}{
		"succeeds":             {edit: func(s *size) error { s.N = 7; return nil }, to: size{N: 7}},
		"fails":                {edit: func(s *size) error { s.N = 7; return errBoom }, want: lifecycle.Failed, is: errBoom, to: size{N: 1}},
		"fails as foreign":     {edit: func(s *size) error { return fmt.Errorf("the disk: %w", lifecycle.ErrForeign) }, want: lifecycle.Failed, is: lifecycle.ErrForeign, to: size{N: 1}},
		"panics":               {edit: func(s *size) error { panic(errBoom) }, want: lifecycle.Panicked, is: errBoom, to: size{N: 1}},
		"exits":                {edit: func(s *size) error { runtime.Goexit(); return nil }, want: lifecycle.Panicked, is: queue.ErrPanic, to: size{N: 1}},
		"after the work fails": {edit: func(s *size) error { s.N = 7; return nil }, work: errBoom, want: lifecycle.Failed, is: errBoom, to: size{N: 1}},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
				lifecycle.EditOutcome(ctx, c.edit)
				return c.work
			}), nil)
			_, err := ticket.Wait(t.Context())
			now, readErr := m.Get(t.Context(), "a")
			require.NoError(t, readErr)
			require.Equal(t, c.to, now.Payload)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			e := outcomeError(t, err)
			require.Equal(t, c.want, e.Outcome, "%v", err)
			require.ErrorIs(t, err, c.is)
			require.NoError(t, e.Unwritten)
			require.Equal(t, state("running"), now.State)
			require.Equal(t, "fail", now.Event)
		})
	}
}

// TestEditOutcomeOfAnotherPayload: an edit of another payload type fails the work.
func TestEditOutcomeOfAnotherPayload(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	running(t, m, "a")
	ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
		require.True(t, lifecycle.EditOutcome(ctx, func(*string) error { return nil }))
		return nil
	}), nil)
	_, err := ticket.Wait(t.Context())
	require.Equal(t, lifecycle.Failed, outcomeError(t, err).Outcome)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Equal(t, state("running"), get(t, m, "a").State)
}

// TestObserverPanics: an observer panics after the outcome. Wait returns an error.
func TestObserverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Observer: lifecycle.Observer{
			Changed: func(_ context.Context, row lifecycle.CommittedChange) {
				if row.Sequence == 6 {
					panic("the observer")
				}
			},
		}})
		running(t, m, "a")
		op := do(t, m, "a", "stop", user, lifecycle.Func(fine), nil)
		require.Error(t, outcomeOf(t, op).Unwritten)
	})
}

// TestWrittenPartIsNotReported: the edit of the outcome fails, and then the failure is written
// for both objects. No sweep looks at the other one.
func TestWrittenPartIsNotReported(t *testing.T) {
	store, gets := lifecycle.NewMemoryStore(), 0
	m := workers(store, lifecycle.Config[event]{})
	parts := workers(store, lifecycle.Config[event]{Observer: lifecycle.Observer{Stored: func(_ context.Context, s lifecycle.StoreCall) {
		if s.Call == "get" {
			gets++
		}
	}}})
	running(t, m, "a")
	running(t, m, "b")
	ticket := doParts(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
		lifecycle.EditOutcome(ctx, func(*size) error { return errBoom })
		return nil
	}), nil, firing(parts, "b", "stop", user, nil))
	require.Equal(t, lifecycle.Failed, outcomeOf(t, ticket).Outcome)
	require.Equal(t, state("running"), get(t, parts, "b").State)
	gets = 0
	require.Empty(t, sweep(t, parts))
	require.Zero(t, gets)
}

// TestUnwrittenPartIsReported: every sweep reports an object of Work.With whose
// outcome was not written, or whose admission is unknown.
func TestUnwrittenPartIsReported(t *testing.T) {
	for name, onCommit := range map[string]func(*testing.T, *hooked, int, *lifecycle.Commit, func() error) error{
		"outcome": func(_ *testing.T, _ *hooked, n int, _ *lifecycle.Commit, write func() error) error {
			if n <= 2 { // the admission and the start of the turn
				return write()
			}
			return errBoom
		},
		"panic": func(_ *testing.T, _ *hooked, n int, _ *lifecycle.Commit, write func() error) error {
			if n <= 2 {
				return write()
			}
			panic("the store")
		},
		"admission": func(t *testing.T, store *hooked, n int, c *lifecycle.Commit, _ func() error) error {
			if n == 1 {
				return store.lose(t, c)
			}
			return lifecycle.ErrUnknownOutcome
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			owner := join(t, store, "p", time.Hour)
			m, parts := workers(store, lifecycle.Config[event]{Owner: owner}), workers(store, lifecycle.Config[event]{Owner: owner})
			running(t, m, "a")
			running(t, m, "b")
			store.reset()
			store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error { return onCommit(t, store, n, c, write) }
			ticket, err := doWith(t.Context(), m, "a", "inspect", user, lifecycle.Func(fine), nil, firing(parts, "b", "inspect", user, nil))
			if err == nil {
				time.AfterFunc(time.Minute, func() { halt(m) })
				_, err = ticket.Wait(t.Context())
			}
			require.Error(t, err)
			store.reset()
			for id, mgr := range map[string]*sizedManager{"a": m, "b": parts} {
				for range 2 {
					cases := sweep(t, mgr)
					require.Len(t, cases, 1)
					require.Equal(t, id, cases[0].ID)
					require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
				}
				override(t, mgr, id, "running", user, "it is fine", nil)
				require.Empty(t, sweep(t, mgr))
			}
			require.NoError(t, owner.Leave(t.Context()))
		})
	}
}
