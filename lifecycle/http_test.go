package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// TestHTTPStatus: every sentinel, alone, wrapped, joined and inside an Error.
func TestHTTPStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, http.StatusOK},
		{errors.New("disk full"), http.StatusInternalServerError},
		{lifecycle.ErrInvalid, http.StatusBadRequest},
		{fsm.ErrUnknownEvent, http.StatusBadRequest},
		{fsm.ErrUnknownState, http.StatusBadRequest},
		{fsm.ErrWrongActor, http.StatusForbidden},
		{fsm.ErrForcedOnly, http.StatusForbidden},
		{lifecycle.ErrNotFound, http.StatusNotFound},
		{lifecycle.ErrConflict, http.StatusConflict},
		{fsm.ErrConflict, http.StatusConflict},
		{lifecycle.ErrBusy, http.StatusConflict},
		{lifecycle.ErrExists, http.StatusConflict},
		{lifecycle.ErrStale, http.StatusConflict},
		{fsm.ErrNotAllowed, http.StatusConflict},
		{lifecycle.ErrPrecondition, http.StatusPreconditionFailed},
		{fsm.ErrGuard, http.StatusUnprocessableEntity},
		{context.Canceled, 499},
		{lifecycle.ErrForeign, http.StatusInternalServerError},
		{errors.ErrUnsupported, http.StatusInternalServerError},
		{lifecycle.ErrMisconfigured, http.StatusInternalServerError},
		{lifecycle.ErrClosed, http.StatusServiceUnavailable},
		{lifecycle.ErrUnavailable, http.StatusServiceUnavailable},
		{lifecycle.ErrRevision, http.StatusPreconditionFailed},
		{&lifecycle.VersionError{}, http.StatusServiceUnavailable},
		{&lifecycle.OwnerError{}, http.StatusServiceUnavailable},
		{lifecycle.ErrUnknownOutcome, http.StatusGatewayTimeout},
		{context.DeadlineExceeded, http.StatusServiceUnavailable}, // nothing was written

		{&lock.InvalidError{}, http.StatusBadRequest},
		{&lock.ConflictError{Err: lock.ErrConflict}, http.StatusConflict},
		{&lock.ConflictError{Err: lock.ErrQueueFull}, http.StatusTooManyRequests},
		{&lock.ConflictError{Err: lock.ErrIDInUse}, http.StatusConflict},
		{&lock.ConflictError{Err: context.DeadlineExceeded}, http.StatusServiceUnavailable},
		{lock.ErrNotHeld, http.StatusConflict},
		{&lock.LostError{Err: lock.ErrLost}, http.StatusConflict},
		{&lock.LostError{Err: lock.ErrRevoked}, http.StatusConflict},
		{&lock.StaleTokenError{}, http.StatusConflict},

		{teapot{lifecycle.ErrNotFound}, http.StatusTeapot}, // its own code
		{&queue.InvalidError{}, http.StatusBadRequest},
		{&queue.RefusedError{Reason: queue.ErrFull}, http.StatusTooManyRequests},
		{&queue.RefusedError{Reason: queue.ErrStopping}, http.StatusConflict},
		{&queue.RefusedError{Reason: queue.ErrTerminated}, http.StatusServiceUnavailable},
		{&queue.RefusedError{Reason: queue.ErrConflict, Err: lifecycle.ErrNotFound}, http.StatusNotFound},
		{&queue.RefusedError{Reason: queue.ErrConflict, Err: errors.New("no")}, http.StatusConflict},
		{queue.ErrWouldDeadlock, http.StatusConflict},
		{queue.ErrPending, http.StatusGatewayTimeout},

		// The result of work is not the store's.
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: errors.New("no")}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: lifecycle.ErrNotFound}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: lifecycle.ErrUnavailable}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: &lifecycle.UnknownOutcomeError{Err: errors.New("no")}}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: teapot{errors.New("no")}}, http.StatusTeapot},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Panicked, Err: &queue.PanicError{Value: lifecycle.ErrInvalid}}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Canceled, Err: context.Canceled}, http.StatusConflict},
		{&lifecycle.OutcomeError{Outcome: lifecycle.TimedOut, Err: context.DeadlineExceeded}, http.StatusInternalServerError},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Lost, Err: lifecycle.ErrStale}, http.StatusConflict},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Succeeded, Unwritten: lifecycle.ErrUnavailable}, http.StatusGatewayTimeout},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: lifecycle.ErrInvalid, Unwritten: fsm.ErrGuard}, http.StatusGatewayTimeout},
		{&lifecycle.OutcomeError{Outcome: lifecycle.Failed, Err: teapot{errors.New("no")}, Unwritten: lifecycle.ErrUnavailable}, http.StatusGatewayTimeout},

		{&lifecycle.ConflictError{}, http.StatusConflict},
		{&lifecycle.PreconditionError{}, http.StatusPreconditionFailed},
		{&lifecycle.UnknownOutcomeError{Err: context.DeadlineExceeded}, http.StatusGatewayTimeout},

		// Of several sentinels that match, the one about the whole request counts.
		{&lifecycle.UnknownOutcomeError{Err: context.Canceled}, http.StatusGatewayTimeout},
		{&lifecycle.UnknownOutcomeError{Err: teapot{lifecycle.ErrNotFound}}, http.StatusGatewayTimeout},
		{fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, lifecycle.ErrNotFound), http.StatusServiceUnavailable},
		{teapot{lifecycle.ErrUnavailable}, http.StatusServiceUnavailable},
		{&fsm.TransitionError{Err: fsm.ErrGuard, Reason: lifecycle.ErrUnknownOutcome}, http.StatusUnprocessableEntity},
		{&fsm.TransitionError{Err: fsm.ErrGuard, Reason: lifecycle.ErrNotFound}, http.StatusUnprocessableEntity},
		{&fsm.TransitionError{Err: fsm.ErrGuard, Reason: lifecycle.ErrConflict}, http.StatusUnprocessableEntity},
		{fmt.Errorf("%w: %w", lifecycle.ErrForeign, fsm.ErrUnknownState), http.StatusInternalServerError},
		{fmt.Errorf("%w: %w", lifecycle.ErrBusy, fsm.ErrNotAllowed), http.StatusConflict},
		{fmt.Errorf("%w: %w", lifecycle.ErrBusy, fsm.ErrForcedOnly), http.StatusConflict},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			require.Equal(t, c.want, lifecycle.HTTPStatus(c.err))
			if c.err == nil {
				return
			}
			require.Equal(t, c.want, lifecycle.HTTPStatus(fmt.Errorf("handler: %w", c.err)))
			require.Equal(t, c.want, lifecycle.HTTPStatus(errors.Join(errors.New("first"), c.err)))
			require.Equal(t, c.want, lifecycle.HTTPStatus(errors.Join(c.err, errors.New("second"))))
			require.Equal(t, c.want, lifecycle.HTTPStatus(&lifecycle.Error{Verb: "fire", Err: c.err}))
		})
	}
	for _, s := range sentinels {
		require.NotEqual(t, http.StatusOK, lifecycle.HTTPStatus(s.err), "%s", s.name)
		require.NotEqual(t, "internal", lifecycle.Problem(s.err).Code, "%s has no code", s.name)
	}
}

// TestErrorTexts pins the texts of what has a text of its own.
func TestErrorTexts(t *testing.T) {
	key, long := lifecycle.Key{Machine: "vm", ID: "a"}, strings.Repeat("a", 300)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"short id", &lifecycle.Error{Verb: "get", Machine: "vm", ID: "a", Err: lifecycle.ErrNotFound}, `lifecycle: get vm "a": not found`},
		{"longest id", &lifecycle.Error{Verb: "get", Machine: "vm", ID: long, Err: lifecycle.ErrNotFound}, `lifecycle: get vm "` + long + `": not found`},
		{"too long id", &lifecycle.Error{Verb: "get", Machine: "vm", ID: long + "x", Err: lifecycle.ErrNotFound}, `lifecycle: get vm "` + long + `...": not found`},
		{"no id", &lifecycle.Error{Verb: "list", Machine: "vm", Err: lifecycle.ErrClosed}, `lifecycle: list vm: store is closed`},
		{
			"event and actor", &lifecycle.Error{Verb: "fire", Machine: "vm", ID: "a", From: "Ready", Event: "update", Actor: "user", Err: errors.New("disk full")},
			`lifecycle: fire vm "a": update by user in Ready: disk full`,
		},
		{
			"conflict", &lifecycle.ConflictError{Expect: "7", From: "Ready", Current: lifecycle.StoredRecord{Key: key, Revision: "8"}},
			`fsm: conflict: vm "a" is expected Ready at revision "7" and is absent at "8"`,
		},
		{
			"precondition", &lifecycle.PreconditionError{
				Precondition: lifecycle.Precondition{Key: key, States: []string{"Ready", ""}},
				Current:      lifecycle.StoredRecord{Key: key, State: "Creating"},
			},
			`lifecycle: precondition failed: vm "a" is Creating, not Ready or absent`,
		},
		{
			"unknown outcome", &lifecycle.UnknownOutcomeError{Token: lifecycle.Token{1, 0xab}, Err: errors.New("no answer")},
			`lifecycle: unknown outcome of commit 01ab0000000000000000000000000000: no answer`,
		},
	} {
		t.Run(c.name, func(t *testing.T) { require.EqualError(t, c.err, c.want) })
	}
}

// teapot is an error of a domain that has its own status code.
type teapot struct{ error }

func (t teapot) Unwrap() error { return t.error }
func (teapot) HTTPStatus() int { return http.StatusTeapot }

// overQuota is the refusal of a guard with a code and a status of its own.
type overQuota struct{ most int }

func (e *overQuota) Error() string       { return fmt.Sprintf("size is above the quota of %d", e.most) }
func (e *overQuota) HTTPStatus() int     { return http.StatusPaymentRequired }
func (e *overQuota) ProblemCode() string { return "quota" }

// TestRefusalOfAGuard: a guard sees what the request would leave, for every verb, and its
// refusal reaches the client.
func TestRefusalOfAGuard(t *testing.T) {
	spec := vmTable(fsm.When("quota", func(_ context.Context, _, after *size) error {
		if after.N > 10 {
			return &overQuota{10}
		}
		return nil
	}))
	config := &lifecycle.Config[event]{WorkerActor: agent, Done: []event{"done"}}
	m := lifecycle.Must(fsm.Must[size](spec), lifecycle.NewMemoryStore(), config)
	ready(t, m, "a")
	for name, call := range map[string]func() error{
		"create": func() error {
			_, err := m.Create(t.Context(), "b", "create", user, size{N: 11}, nil)
			return err
		},
		"fire": func() error { _, err := m.Fire(t.Context(), "a", "update", user, resize(11)); return err },
		"do":   func() error { _, err := m.Do(t.Context(), "a", "update", user, nothing, resize(11)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			require.ErrorIs(t, err, fsm.ErrGuard)
			p := lifecycle.Problem(err)
			require.Equal(t, []any{402, "quota", 9, "size is above the quota of 10", "vm"}, []any{p.Status, p.Code, p.GRPC, p.Detail, p.Machine})
		})
	}
	require.Equal(t, size{N: 1}, get(t, m, "a").Payload)
}

// status is an error of a service with any status code.
type status int

func (s status) Error() string   { return fmt.Sprintf("status %d", int(s)) }
func (s status) HTTPStatus() int { return int(s) }

// TestStatusOfNoError: a method HTTPStatus does not make an error a success, and returns no
// number that net/http cannot write, such as the 0 of a client that had no answer.
func TestStatusOfNoError(t *testing.T) {
	for code, want := range map[status]int{
		-1: 500, 0: 500, 100: 500, 200: 500, 204: 500, 302: 500, 399: 500, 400: 400, 499: 499, 599: 599, 600: 500, 1000: 500,
	} {
		t.Run(code.Error(), func(t *testing.T) { require.Equal(t, want, lifecycle.HTTPStatus(code)) })
	}
	require.Equal(t, 422, lifecycle.HTTPStatus(fmt.Errorf("%w: %w", fsm.ErrGuard, status(200))))
}
