package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// outcomeError takes the error of a Wait apart.
func outcomeError(t *testing.T, err error) *lifecycle.OutcomeError {
	t.Helper()
	e, ok := errors.AsType[*lifecycle.OutcomeError](err)
	require.True(t, ok, "%v", err)
	return e
}

// TestOutcomes: the ends that are written, each by its event, with the reason.
// The VM runs and is to be stopped; going back to running is not succeeding.
func TestOutcomes(t *testing.T) {
	errMaintenance := errors.New("maintenance")
	wait := func(d time.Duration, err error) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return err }
	}
	cases := []struct {
		name   string
		work   lifecycle.Work
		during func(ticket *lifecycle.Ticket[state, size], q *queue.Queuer[lifecycle.Key])
		want   lifecycle.Outcome
		to     state
		by     string
		reason string
		is     []error
	}{
		{name: "succeeded", work: lifecycle.Func(wait(time.Second, nil)), want: lifecycle.Succeeded, to: "stopped", by: "done"},
		{name: "failed", work: lifecycle.Func(wait(0, errBoom)), want: lifecycle.Failed, to: "running", by: "fail", reason: "boom", is: []error{errBoom}},
		{
			name: "failed by the error of another operation", want: lifecycle.Failed, to: "running", by: "fail",
			work:   lifecycle.Func(wait(0, fmt.Errorf("the disk: %w", lifecycle.ErrStale))),
			reason: "the disk: lifecycle: stale operation", is: []error{lifecycle.ErrStale},
		},
		{
			name: "failed by the time-out of another operation", want: lifecycle.Failed, to: "running", by: "fail",
			work:   lifecycle.Work{Timeout: time.Minute, Run: wait(0, queue.ErrTimeout)},
			reason: "queue: timeout", is: []error{queue.ErrTimeout},
		},
		{
			name: "panicked", work: lifecycle.Func(func(context.Context) error { panic(errBoom) }),
			want: lifecycle.Panicked, to: "running", by: "fail", reason: "queue: panic in action: boom", is: []error{queue.ErrPanic, errBoom},
		},
		{
			name: "left by Goexit", work: lifecycle.Func(func(context.Context) error { runtime.Goexit(); return nil }),
			want: lifecycle.Panicked, to: "running", by: "fail", reason: "queue: panic in action: runtime.Goexit", is: []error{queue.ErrPanic},
		},
		{
			name: "canceled", work: lifecycle.Func(untilEnded), want: lifecycle.Canceled, to: "running", by: "fail",
			during: func(ticket *lifecycle.Ticket[state, size], _ *queue.Queuer[lifecycle.Key]) {
				ticket.Cancel(errMaintenance)
			},
			reason: "queue: canceled: maintenance", is: []error{queue.ErrCanceled, errMaintenance},
		},
		{
			name: "canceled, and failed by that", want: lifecycle.Canceled, to: "running", by: "fail",
			work:   lifecycle.Func(func(ctx context.Context) error { <-ctx.Done(); return errBoom }),
			during: func(ticket *lifecycle.Ticket[state, size], _ *queue.Queuer[lifecycle.Key]) { ticket.Cancel(nil) },
			reason: "queue: canceled", is: []error{queue.ErrCanceled},
		},
		{
			name: "canceled too late", work: lifecycle.Func(wait(time.Minute/2, nil)), want: lifecycle.Succeeded, to: "stopped", by: "done",
			during: func(ticket *lifecycle.Ticket[state, size], _ *queue.Queuer[lifecycle.Key]) { ticket.Cancel(nil) },
		},
		{
			name: "canceled by the end of the process", work: lifecycle.Func(untilEnded), want: lifecycle.Canceled, to: "running", by: "fail",
			during: func(_ *lifecycle.Ticket[state, size], q *queue.Queuer[lifecycle.Key]) { q.Abort(errMaintenance) },
			reason: "queue: aborted: maintenance", is: []error{queue.ErrAborted, errMaintenance},
		},
		{
			name: "timed out", work: lifecycle.Work{Timeout: time.Second, Run: untilEnded}, want: lifecycle.TimedOut, to: "running", by: "fail",
			reason: "queue: timeout", is: []error{queue.ErrTimeout},
		},
		{
			name: "timed out, and ended well", work: lifecycle.Work{Timeout: time.Second, Run: wait(2*time.Second, nil)},
			want: lifecycle.Succeeded, to: "stopped", by: "done",
		},
		{
			name: "timed out, and panicked", want: lifecycle.Panicked, to: "running", by: "fail",
			work:   lifecycle.Work{Timeout: time.Second, Run: func(ctx context.Context) error { <-ctx.Done(); panic("late") }},
			reason: "queue: panic in action: late", is: []error{queue.ErrPanic},
		},
	}
	for _, c := range cases {
		inBubble(t, c.name, func(t *testing.T) {
			q := new(queue.Queuer[lifecycle.Key])
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, c.work, nil)
			synctest.Wait()
			if c.during != nil {
				c.during(ticket, q)
			}
			rec, err := ticket.Wait(t.Context())
			if c.want == lifecycle.Succeeded {
				require.NoError(t, err)
			} else {
				e := outcomeError(t, err)
				require.Equal(t, c.want, e.Outcome, "%v", err)
				require.EqualValues(t, 3, e.Operation)
				require.Equal(t, lifecycle.Key{Machine: "work-vm", ID: "a"}, e.Key)
				require.NoError(t, e.Unwritten)
				require.True(t, strings.HasPrefix(err.Error(), `lifecycle: operation 3 of work-vm "a" `+string(c.want)+": "), "%v", err)
			}
			for _, is := range c.is {
				require.ErrorIs(t, err, is)
			}
			require.Equal(t, c.to, rec.State)
			require.Equal(t, get(t, m, "a"), rec)
			require.True(t, strings.HasPrefix(rec.Reason, c.reason), "%q", rec.Reason)
			require.Equal(t, c.reason == "", rec.Reason == "")
			require.Empty(t, rec.Owner)
			require.Equal(t, []string{
				"3: running -stop-> stopping by user", fmt.Sprintf("3: stopping -%s-> %s by worker", c.by, c.to),
			}, story(t, m, "a", 4))
		})
	}
}

// TestCanceledWhileWaiting: work whose turn never comes has an outcome too, and
// does not run.
func TestCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error {
			t.Error("it ran")
			return nil
		}), nil)
		require.Equal(t, state("stopping"), get(t, m, "a").State, "set at admission")
		_, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrBusy, "one user action is admitted, the second is not")
		ticket.Cancel(errBoom)
		rec, err := ticket.Wait(t.Context())
		require.ErrorIs(t, err, queue.ErrCanceled)
		require.Equal(t, lifecycle.Canceled, outcomeError(t, err).Outcome)
		require.Equal(t, state("running"), rec.State)
		require.Equal(t, "fail", rec.Event)
		free()
	})
}

// TestReason: what the record keeps of an error is short, and text.
func TestReason(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"short":     {"no hosts left", "no hosts left"},
		"just fits": {strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		"long":      {strings.Repeat("x", 1001), strings.Repeat("x", 997) + "..."},
		"in a rune": {strings.Repeat("x", 996) + "äöü", strings.Repeat("x", 996) + "..."},
		"NUL":       {"a\x00b", "a\uFFFDb"},
		"no text":   {"a\xffb" + strings.Repeat("y", 2000), "a\uFFFDb" + strings.Repeat("y", 992) + "..."},
	} {
		inBubble(t, name, func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { return errors.New(c.text) }), nil)
			rec, err := ticket.Wait(t.Context())
			require.Equal(t, c.want, rec.Reason)
			require.True(t, utf8.ValidString(rec.Reason))
			require.ErrorContains(t, outcomeError(t, err).Err, c.text, "the error itself is whole")
		})
	}
}

// A queue of the user's bounds the time of the work. The operation has the outcome TimedOut.
func TestQueueWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: bounded{queue.Must[lifecycle.Key](nil)}})
		create(t, m, "a", "create", user, size{})
		fire(t, m, "a", "done", "worker", nil)
		failed := outcomeOf(t, do(t, m, "a", "start", user, lifecycle.Func(untilEnded), nil))
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

type bounded struct{ *queue.Queuer[lifecycle.Key] }

func (q bounded) SubmitAll(ctx context.Context, keys []lifecycle.Key, act *queue.Action) (*queue.Ticket[lifecycle.Key], error) {
	own := *act
	own.Timeout = time.Second
	return q.Queuer.SubmitAll(ctx, keys, &own)
}
