package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// fault makes one kind of user code panic, once.
type fault struct {
	mu    sync.Mutex
	kind  string
	fired bool
}

// set sets the kind of user code that panics next.
func (f *fault) set(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind, f.fired = kind, false
}

// in is called by user code of a kind.
func (f *fault) in(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kind == kind {
		f.kind, f.fired = "", true
		panic(kind)
	}
}

// panicked reports whether user code has panicked since set.
func (f *fault) panicked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// present is the fault that all user code below consults: a payload's methods have no other
// way to it. The tests that use it do not run in parallel.
var present fault

// touchy is a payload with methods of its own.
type touchy struct{ n int }

func (p touchy) MarshalJSON() ([]byte, error) {
	present.in("MarshalJSON")
	return json.Marshal(p.n)
}

func (p *touchy) UnmarshalJSON(data []byte) error {
	present.in("UnmarshalJSON")
	return json.Unmarshal(data, &p.n)
}

type touchyManager = lifecycle.Manager[state, event, touchy]

// faultyHandler is a handler of logs.
type faultyHandler struct{ slog.Handler }

func (h faultyHandler) Handle(ctx context.Context, r slog.Record) error {
	present.in("log: " + r.Message)
	return h.Handler.Handle(ctx, r)
}

// faultyManager returns a manager whose user code consults present.
func faultyManager() *touchyManager {
	in := present.in
	guard := fsm.When("guard", func(context.Context, *touchy, *touchy) error { in("guard"); return nil })
	m := fsm.Must[touchy](fsm.Spec[state, event]{
		Name: "touchy", Initial: "Gone", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "Gone", Kind: fsm.Absent}, {Name: "Idle"}, {Name: "Busy", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Gone", "create", "Idle").By(user).If(guard),
			fsm.Move[state, event]("Idle", "begin", "Busy").By(user).If(guard),
			fsm.Move[state, event]("Busy", "done", "Idle").By(agent).If(guard),
			fsm.Return[state, event]("Busy", "fail").By(agent).If(guard),
			fsm.Return[state, event]("Busy", "late").After(time.Minute).If(guard),
		),
	})
	observer := lifecycle.Tee(lifecycle.Observer{
		Changed:  func(context.Context, lifecycle.CommittedChange) { in("Changed") },
		Refused:  func(context.Context, error) { in("Refused") },
		Reported: func(context.Context, lifecycle.Reported) { in("Reported") },
		Finished: func(context.Context, lifecycle.Finished) { in("Finished") },
		Retried:  func(context.Context, lifecycle.FailedAttempt) { in("Retried") },
		Swept:    func(context.Context, lifecycle.Swept) { in("Swept") },
		Stored:   func(context.Context, lifecycle.StoreCall) { in("Stored") },
	}, lifecycle.Log(slog.New(faultyHandler{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})})))
	return lifecycle.Must(m, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
		WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"}, Observer: observer,
		BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			in("BeforeCommit")
			return nil, nil
		},
		Inject: func(context.Context) map[string]string { in("Inject"); return map[string]string{"trace": "7"} },
		Extract: func(ctx context.Context, _ map[string]string) context.Context {
			in("Extract")
			return ctx
		},
		Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
			in("Observe")
			return "", "", nil
		},
	})
}

// faultKinds are the kinds of user code of a faultyManager.
var faultKinds = []string{
	"guard", "edit", "MarshalJSON", "UnmarshalJSON", "BeforeCommit", "Inject", "Extract", "Observe", "want",
	"Changed", "Refused", "Reported", "Finished", "Retried", "Swept", "Stored",
	"log: changed", "log: refused", "log: reported", "log: work ended", "log: attempt failed", "log: stuck", "log: swept",
}

// TestPanicReachesTheCaller: whatever user code panics in a call, the caller receives the
// panic, and the manager serves the next call.
func TestPanicReachesTheCaller(t *testing.T) {
	edits := &lifecycle.Change[touchy]{Edit: func(*touchy) error { present.in("edit"); return nil }}
	for name, c := range map[string]struct {
		from  state
		call  func(ctx context.Context, m *touchyManager)
		kinds string // those that the call runs
	}{
		"Create": {"Gone", func(ctx context.Context, m *touchyManager) {
			_, _ = m.Create(ctx, "a", "create", user, touchy{1}, edits)
		}, "guard edit MarshalJSON UnmarshalJSON BeforeCommit Changed Stored log: changed"},
		"Fire": {"Idle", func(ctx context.Context, m *touchyManager) {
			_, _ = m.Fire(ctx, "a", "begin", user, edits)
		}, "guard edit MarshalJSON UnmarshalJSON BeforeCommit Changed Stored log: changed"},
		"refused Fire": {"Busy", func(ctx context.Context, m *touchyManager) {
			_, _ = m.Fire(ctx, "a", "begin", user, edits)
		}, "Refused Stored log: refused"},
		"Override": {"Busy", func(ctx context.Context, m *touchyManager) {
			_, _ = m.Override(ctx, "a", "Idle", user, "by hand", edits)
		}, "edit MarshalJSON UnmarshalJSON BeforeCommit Changed Stored log: changed"},
		"Report": {"Busy", func(ctx context.Context, m *touchyManager) {
			_, _ = m.Report(ctx, "a", 1, "done", agent, edits)
		}, "guard edit MarshalJSON UnmarshalJSON BeforeCommit Changed Reported Stored log: changed log: reported"},
		"Tx": {"Idle", func(ctx context.Context, m *touchyManager) {
			var tx lifecycle.Tx
			m.In(&tx).Create("b", "create", user, touchy{1}, edits)
			m.In(&tx).Fire("a", "begin", user, nil)
			_ = tx.Commit(ctx)
		}, "guard edit MarshalJSON UnmarshalJSON BeforeCommit Changed Stored log: changed"},
		"Sweep": {"Busy", func(ctx context.Context, m *touchyManager) {
			time.Sleep(2 * time.Minute)
			_, _ = m.Sweep(ctx)
		}, "guard UnmarshalJSON BeforeCommit Observe Changed Swept Stored log: changed log: stuck log: swept"},
		"Get": {"Idle", func(ctx context.Context, m *touchyManager) { _, _ = m.Get(ctx, "a") }, "UnmarshalJSON Stored"},
		"List": {"Idle", func(ctx context.Context, m *touchyManager) {
			_, _ = m.List(ctx, lifecycle.Select[state]{Limit: 10})
		}, "UnmarshalJSON Stored"},
		"Await": {"Idle", func(ctx context.Context, m *touchyManager) {
			_, _ = lifecycle.Await(ctx, m, "a", func(lifecycle.Record[state, touchy]) bool { present.in("want"); return true })
		}, "UnmarshalJSON Stored want"},
	} {
		for _, kind := range faultKinds {
			inBubble(t, name+"/"+kind, func(t *testing.T) {
				m := faultyManager()
				if c.from != "Gone" {
					create(t, m, "a", "create", user, touchy{1})
				}
				if c.from == "Busy" {
					fire(t, m, "a", "begin", user, nil)
				}
				present.set(kind)
				defer present.set("")
				runs := contains(c.kinds, kind)
				if runs {
					require.PanicsWithValue(t, kind, func() { c.call(t.Context(), m) })
				} else {
					c.call(t.Context(), m)
				}
				require.Equal(t, runs, present.panicked())
				present.set("")
				create(t, m, "after the panic", "create", user, touchy{1})
			})
		}
	}
}

// contains reports whether a list has a kind of user code.
func contains(list, kind string) bool { return strings.Contains(" "+list+" ", " "+kind+" ") }

// TestPanicBecomesTheOutcome: whatever user code panics in an operation, the caller of Do or
// of Wait receives the panic with its stack. The manager does the next operation.
func TestPanicBecomesTheOutcome(t *testing.T) {
	for when, kinds := range map[string]string{ // when the fault is set, and the kinds that run from then on
		"Do": "run guard edit MarshalJSON UnmarshalJSON BeforeCommit Inject Extract Changed Finished Retried Stored " +
			"log: changed log: attempt failed log: work ended",
		"first attempt": "run guard edit MarshalJSON UnmarshalJSON BeforeCommit Extract Changed Finished Retried Stored " +
			"log: changed log: attempt failed log: work ended",
		"last attempt": "run guard edit MarshalJSON UnmarshalJSON BeforeCommit Extract Changed Finished Stored " +
			"log: changed log: work ended",
	} {
		for _, kind := range append([]string{"run"}, faultKinds...) {
			inBubble(t, when+"/"+kind, func(t *testing.T) {
				m, in := faultyManager(), present.in
				create(t, m, "a", "create", user, touchy{1})
				defer present.set("")
				set := func(now string) {
					if now == when {
						present.set(kind)
					}
				}
				attempts := 0
				work := lifecycle.Func(func(ctx context.Context) error {
					if attempts++; attempts == 1 {
						set("first attempt")
						return errBoom
					}
					set("last attempt")
					in("run")
					lifecycle.EditOutcome(ctx, func(p *touchy) error { p.n++; in("edit"); return nil })
					return nil
				})
				work.Retries.Attempts = 2
				set("Do")
				var err error
				reached := func() (v any) {
					defer func() { v = recover() }()
					op, _ := m.Do(t.Context(), "a", "begin", user, work, nil)
					_, err = op.Wait(t.Context())
					return nil
				}()
				runs := contains(kinds, kind)
				require.Equal(t, runs, present.panicked())
				switch {
				case !runs:
					require.Nil(t, reached)
					require.NoError(t, err)
				case reached != nil:
					require.Equal(t, kind, reached)
				default:
					p, ok := errors.AsType[*queue.PanicError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, kind, p.Value)
					require.Contains(t, string(p.Stack), "lifecycle_test.(*fault).in")
				}
				present.set("")
				override(t, m, "a", "Idle", user, "an operation after the panic", nil)
				wait(t, do(t, m, "a", "begin", user, lifecycle.Func(fine), nil))
			})
		}
	}
}

// touchyError is an error whose method panics if there is none.
type touchyError struct{ text string }

func (e *touchyError) Error() string { return e.text }

// A panic in a method of the work's error is one of the work: of its nil pointer, for
// example. That of a cause of Cancel is not.
func TestErrorOfWorkPanics(t *testing.T) {
	for _, most := range []int{1, 3} {
		inBubble(t, fmt.Sprint("work of ", most), func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
			running(t, m, "a")
			attempts := 0
			work := lifecycle.Func(func(context.Context) error { attempts++; return (*touchyError)(nil) })
			work.Retries.Attempts = most
			failed := outcomeOf(t, do(t, m, "a", "stop", user, work, nil))
			require.Equal(t, lifecycle.Panicked, failed.Outcome)
			require.NoError(t, failed.Unwritten)
			p, ok := errors.AsType[*queue.PanicError](failed)
			require.True(t, ok)
			require.Contains(t, string(p.Stack), "touchyError")
			require.Equal(t, 1, attempts)
			require.Equal(t, state("running"), get(t, m, "a").State)
		})
	}
	inBubble(t, "cause", func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(untilEnded), nil)
		synctest.Wait() // until the work has begun
		ticket.Cancel((*touchyError)(nil))
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Canceled, failed.Outcome)
		require.NoError(t, failed.Unwritten)
		require.NotEmpty(t, failed.Error())
		require.Equal(t, state("running"), get(t, m, "a").State)
	})
}

// TestFinishedPanicsAfterTheOutcome: the record has the outcome, in a state where the same
// operation continues. A panic of Finished reaches Wait, and no sweep takes the outcome for
// one that was not written.
func TestFinishedPanicsAfterTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const manual = "a peer reports"
		machine := fsm.Must[size](fsm.Spec[state, event]{
			Name: "peer", Initial: "Idle", Actors: []fsm.Actor{user, agent},
			States: []fsm.State[state]{
				{Name: "Idle"},
				{Name: "Busy", Kind: fsm.Transitional, Manual: manual},
				{Name: "Confirming", Kind: fsm.Transitional, Manual: manual},
			},
			Rows: fsm.Rows(
				fsm.Move[state, event]("Idle", "begin", "Busy").By(user),
				fsm.Move[state, event]("Busy", "done", "Confirming").By(agent),
				fsm.Return[state, event]("Busy", "fail").By(agent),
				fsm.Move[state, event]("Confirming", "confirm", "Idle").By(agent),
			),
		})
		store := lifecycle.NewMemoryStore()
		m := lifecycle.Must(machine, store, &lifecycle.Config[event]{
			Owner: join(t, store, "process", time.Hour), WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
			Observer: lifecycle.Observer{Finished: func(context.Context, lifecycle.Finished) { panic("Finished") }},
		})
		_, err := m.Add(t.Context(), "a", "Idle", user, size{}, nil)
		require.NoError(t, err)
		failed := outcomeOf(t, do(t, m, "a", "begin", user, lifecycle.Func(fine), nil))
		require.Equal(t, lifecycle.Succeeded, failed.Outcome)
		require.IsType(t, &queue.PanicError{}, failed.Unwritten)
		require.Equal(t, state("Confirming"), get(t, m, "a").State)
		require.Empty(t, sweep(t, m))
	})
}
