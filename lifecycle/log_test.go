package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// withoutTime removes what differs from run to run.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "pause" || a.Key == "took" || a.Key == "inState" {
		return slog.Attr{}
	}
	return a
}

// Log writes a line for every change, refusal and failure.
func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	doors := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "door", Initial: "open", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "open"}, {Name: "closed"}},
		Rows:   fsm.Rows(fsm.Move("open", "close", "closed").By("user"), fsm.Move("closed", "open", "open").By("user")),
	})
	m := lifecycle.Must(doors, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{Observer: lifecycle.Log(logger)})
	ctx := context.Background()
	_, _ = m.Add(ctx, "d1", "open", "user", struct{}{}, nil)
	_, _ = m.Fire(ctx, "d1", "close", "user", nil)
	_, _ = m.Fire(ctx, "d1", "close", "user", nil)
	// Output:
	// level=INFO msg=changed machine=door id=d1 operation=0 sequence=1 from="" to=open event="" actor=user reason=""
	// level=INFO msg=changed machine=door id=d1 operation=0 sequence=2 from=open to=closed event=close actor=user reason=""
	// level=INFO msg=refused machine=door id=d1 verb=fire state=closed event=close actor=user code=not-allowed error="lifecycle: fire door \"d1\": close by user in closed: not allowed"
}

// TestLog: every message with its level.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Observer: lifecycle.Log(logger)})
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSpace(strings.ReplaceAll(out.String(), " machine=work-vm id=a", "")), "\n")
		}
		create(t, m, "a", "create", user, size{N: 1})
		report(t, m, "a", 1, "done", "worker", "fine")
		report(t, m, "a", 1, "fail", "worker", "late")
		require.Equal(t, []string{
			`level=INFO msg=changed operation=1 sequence=1 from="" to=creating event=create actor=user reason=""`,
			`level=INFO msg=changed operation=1 sequence=2 from=creating to=stopped event=done actor=worker reason=fine`,
			`level=DEBUG msg=reported operation=1 state=creating event=done actor=worker verdict=applied`,
			`level=INFO msg=reported operation=1 state=stopped event=fail actor=worker verdict=refused error="fsm: not allowed: work-vm: fail in stopped by worker"`,
		}, lines())

		times := 0
		work := lifecycle.Func(func(context.Context) error {
			if times++; times == 1 {
				return errBoom
			}
			return nil
		})
		work.Retries.Attempts = 2
		wait(t, do(t, m, "a", "start", user, work, nil))
		_, err := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { return errBoom }), nil).Wait(t.Context())
		require.Error(t, err)
		require.Equal(t, []string{
			`level=INFO msg=changed operation=2 sequence=3 from=stopped to=starting event=start actor=user reason=""`,
			`level=WARN msg="attempt failed" operation=2 event=start attempt=1 error=boom`,
			`level=INFO msg=changed operation=2 sequence=4 from=starting to=running event=done actor=worker reason=""`,
			`level=DEBUG msg="work ended" operation=2 event=start code=ok`,
			`level=INFO msg=changed operation=3 sequence=5 from=running to=stopping event=stop actor=user reason=""`,
			`level=INFO msg=changed operation=3 sequence=6 from=stopping to=running event=fail actor=worker reason=boom`,
			`level=WARN msg="work ended" operation=3 event=stop code=work-failed error="lifecycle: operation 3 of work-vm \"a\" failed: boom"`,
		}, lines())

		store.onCommit = func(int, *lifecycle.Commit, func() error) error { return lifecycle.ErrUnavailable }
		_, err = m.Fire(t.Context(), "a", "stop", user, nil)
		require.Error(t, err)
		store.reset()
		fire(t, m, "a", "inspect", user, nil)
		sweep(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.Sweep(ctx)
		require.Error(t, err)
		require.Equal(t, []string{
			`level=ERROR msg=refused verb=fire state=running event=stop actor=user code=unavailable error="lifecycle: fire work-vm \"a\": stop by user in running: store is unavailable"`,
			`level=INFO msg=changed operation=4 sequence=7 from=running to=inspecting event=inspect actor=user reason=""`,
			`level=WARN msg=stuck operation=4 from=inspecting to="" event="" owner="" resolution="needs an operator" cause="the operation has neither an owner nor a deadline"`,
			`level=DEBUG msg=swept machine=work-vm results=1`,
			`level=ERROR msg=swept machine=work-vm results=0 error="lifecycle: sweep work-vm: context canceled"`,
		}, lines())
	})
}

// TestLogAllocations: a level that is disabled costs no allocation.
func TestLogAllocations(t *testing.T) {
	o := lifecycle.Log(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	key := lifecycle.Key{Machine: "vm", ID: "a"}
	changed := lifecycle.CommittedChange{HistoryRow: lifecycle.HistoryRow{Key: key, From: "a", To: "b", Actor: "user"}, InState: time.Hour}
	err := error(&lifecycle.Error{Verb: "fire", Machine: "vm", ID: "a", Err: lifecycle.ErrUnavailable})
	other := error(&lifecycle.Error{Verb: "fire", Machine: "vm", ID: "a", Err: errBoom})
	panicked := error(&lifecycle.OutcomeError{Outcome: lifecycle.Panicked, Err: &queue.EndError{
		Outcome: queue.Panicked, Err: &queue.PanicError{Stack: make([]byte, 100)},
	}})
	results := []lifecycle.SweepResult{{Key: key, Resolution: lifecycle.NotMoved, Err: err}}
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		o.Changed(ctx, changed)
		o.Refused(ctx, err)
		o.Refused(ctx, other)
		o.Reported(ctx, lifecycle.Reported{Key: key, Verdict: lifecycle.Stale, Err: err})
		o.Retried(ctx, lifecycle.FailedAttempt{Key: key, Err: err})
		o.Finished(ctx, lifecycle.Finished{Key: key, Err: err})
		o.Finished(ctx, lifecycle.Finished{Key: key, Err: panicked})
		o.Swept(ctx, lifecycle.Swept{Machine: "vm", Results: results, Err: err})
	}))
	lifecycle.Log(nil).Swept(ctx, lifecycle.Swept{}) // the default logger drops this level
}

// TestLogLevels: a sweep that ends the case is no reason to act, and an error of the service is.
func TestLogLevels(t *testing.T) {
	var out bytes.Buffer
	o := lifecycle.Log(slog.New(slog.NewTextHandler(&out, nil)))
	level := func() string {
		defer out.Reset()
		_, rest, _ := strings.Cut(out.String(), "level=")
		level, _, _ := strings.Cut(rest, " ")
		return level
	}
	for resolution, want := range map[lifecycle.Resolution]string{
		lifecycle.Moved: "INFO", lifecycle.Redone: "INFO", lifecycle.Overtaken: "INFO",
		lifecycle.NotMoved: "WARN", lifecycle.NeedsOperator: "WARN",
	} {
		t.Run(string(resolution), func(t *testing.T) {
			o.Swept(t.Context(), lifecycle.Swept{Results: []lifecycle.SweepResult{{Resolution: resolution}}})
			require.Equal(t, want, level())
		})
	}
	for err, want := range map[error]string{
		lifecycle.ErrConflict: "INFO", errBoom: "ERROR", quotaError{}: "INFO", // which has a status of its own
	} {
		t.Run(err.Error(), func(t *testing.T) {
			o.Refused(t.Context(), &lifecycle.Error{Err: err})
			require.Equal(t, want, level())
		})
	}
}

// TestLogClientText: a request with a long id or event cannot fill the log.
func TestLogClientText(t *testing.T) {
	var out bytes.Buffer
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Observer: lifecycle.Log(slog.New(slog.NewTextHandler(&out, nil)))})
	long := strings.Repeat("é", 1<<20)
	_, err := m.Fire(t.Context(), long, event(long), fsm.Actor(long), nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = m.Report(t.Context(), long, 1, event(long), fsm.Actor(long), nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Contains(t, out.String(), "msg=refused")
	require.Less(t, out.Len(), 10_000)
}

// TestLogPanic: the log has the stack of work that has panicked.
func TestLogPanic(t *testing.T) {
	var out bytes.Buffer
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Observer: lifecycle.Log(slog.New(slog.NewTextHandler(&out, nil)))})
	running(t, m, "a")
	_, err := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { return panics() }), nil).Wait(t.Context())
	require.ErrorIs(t, err, queue.ErrPanic)
	_, ended, _ := strings.Cut(out.String(), `msg="work ended"`)
	require.Contains(t, ended, "code=work-panicked")
	require.Regexp(t, ` stack=".*lifecycle_test\.panics.*full_queue_test\.go:`, ended)
}

func ExampleCode() {
	fmt.Println(lifecycle.Code(nil), lifecycle.Code(lifecycle.ErrUnavailable), lifecycle.Code(errors.New("disk")))
	// Output:
	// ok unavailable internal
}

// TestCode: a code of the library, whatever the service calls its own errors.
func TestCode(t *testing.T) {
	for want, err := range map[string]error{
		"guard":             &fsm.TransitionError{Err: fsm.ErrGuard, Reason: quotaError{}},
		"outcome-unwritten": &lifecycle.OutcomeError{Outcome: lifecycle.Succeeded, Unwritten: errBoom},
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, lifecycle.Code(err)) })
	}
}

type quotaError struct{}

func (quotaError) Error() string       { return "quota" }
func (quotaError) HTTPStatus() int     { return 429 }
func (quotaError) ProblemCode() string { return "quota of the customer with this id" }
