package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

var errQuotaStore = fmt.Errorf("the store of the quotas: %w", lifecycle.ErrUnavailable)

// checked is a table whose work succeeds if a check permits it.
func checked(check func(ctx context.Context, before, after *size) error) *fsm.Machine[state, event, size] {
	return fsm.Must[size](fsm.Spec[state, event]{
		Name: "checked", Initial: "off", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "off"}, {Name: "starting", Kind: fsm.Transitional}, {Name: "on", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("off", "start", "starting").By(user),
			fsm.Move[state, event]("starting", "done", "on").By("worker").If(fsm.When("quota", check)),
			fsm.Return[state, event]("starting", "fail").By("worker"),
			fsm.Return[state, event]("starting", "late").After(time.Minute),
		),
	})
}

// TestOutcomeMeetsGuardInOutage: the guard of an outcome cannot decide for a while. The
// outcome of each object is written afterwards, if the deadline has not passed by then.
func TestOutcomeMeetsGuardInOutage(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		guard func(ctx context.Context) error
		lasts time.Duration
		want  error // why the outcome is not written; nil: it is
	}{
		"unavailable":               {guard: func(context.Context) error { return errQuotaStore }, lasts: 10 * time.Second},
		"unavailable for too long":  {guard: func(context.Context) error { return errQuotaStore }, lasts: time.Hour, want: lifecycle.ErrUnavailable},
		"hangs":                     {guard: hangs, lasts: 10 * time.Second},
		"hangs and hides its cause": {guard: func(ctx context.Context) error { <-ctx.Done(); return errBoom }, lasts: 10 * time.Second},
		"has a time-out of its own": {guard: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return hangs(ctx)
		}, lasts: 10 * time.Second},
		"refuses": {guard: func(context.Context) error { return errBoom }, lasts: 10 * time.Second, want: fsm.ErrGuard},
	} {
		for _, id := range []string{"a", "b"} { // whose guard it is
			inBubble(t, name+" "+id, func(t *testing.T) {
				var until time.Time
				machine := checked(func(ctx context.Context, _, after *size) error {
					if after.N == 1 && time.Now().Before(until) {
						return c.guard(ctx)
					}
					return nil
				})
				m := lifecycle.Must(machine, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
					WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
				})
				add(t, m, id, user, size{N: 1})
				var parts []part
				if id == "b" {
					add(t, m, "a", user, size{})
					parts = append(parts, firing(m, "b", "start", user, nil))
				}
				began := time.Now()
				until = began.Add(c.lasts)
				ticket := doParts(t, m, "a", "start", user, lifecycle.Func(fine), nil, parts...)
				_, err := ticket.Wait(t.Context())
				if c.want == nil {
					require.NoError(t, err)
					require.EqualValues(t, "on", get(t, m, "a").State)
					require.EqualValues(t, "on", get(t, m, id).State)
					return
				}
				if errors.Is(c.want, fsm.ErrGuard) && id == "b" { // it does not concern the other object
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, outcomeError(t, err).Unwritten, c.want)
				require.LessOrEqual(t, time.Since(began), time.Minute, "the deadline was extended")
			})
		}
	}
}

// TestReportMeetsGuardInOutage: a guard that cannot decide does not refuse a report. The
// peer sends it again.
func TestReportMeetsGuardInOutage(t *testing.T) {
	for name, c := range map[string]struct {
		reason error
		status int // 0: the report is refused
	}{
		"unavailable": {errQuotaStore, http.StatusServiceUnavailable},
		"deadline":    {context.DeadlineExceeded, http.StatusServiceUnavailable},
		"canceled":    {context.Canceled, lifecycle.StatusClientClosedRequest},
		"refusal":     {errBoom, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reason := c.reason
			m := lifecycle.Must(checked(func(context.Context, *size, *size) error { return reason }), lifecycle.NewMemoryStore(), nil)
			add(t, m, "a", user, size{})
			fire(t, m, "a", "start", user, nil)
			verdict, err := m.Report(t.Context(), "a", 1, "done", "worker", nil)
			require.Equal(t, lifecycle.Refused, verdict)
			if c.status == 0 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.reason)
			require.NotErrorIs(t, err, fsm.ErrGuard)
			require.ErrorContains(t, err, `guard "quota" cannot decide`)
			require.Equal(t, c.status, lifecycle.HTTPStatus(err))
			reason = nil
			require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "done", "worker", ""))
		})
	}
}
