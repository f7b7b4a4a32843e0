package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// secret is what a driver writes about a connection that fails.
const secret = "failed to connect to `user=admin password=hunter2 database=prod`: dial tcp 10.0.0.5:5432: refused"

// TestProblem: code, gRPC code and text of errors as a client gets them.
func TestProblem(t *testing.T) {
	driver := errors.New(secret)
	call := func(err error) error {
		return fmt.Errorf("handler: %w", &lifecycle.Error{
			Verb: "fire", Machine: "vm", ID: "a", From: "Ready", Event: "stop", Actor: "user", Err: err,
		})
	}
	unknown := &lifecycle.UnknownOutcomeError{Token: lifecycle.Token{1}, Err: driver}
	const in = `lifecycle: fire vm "a": stop by user in Ready: `
	for _, c := range []struct {
		name   string
		err    error
		code   string
		grpc   int
		detail string
	}{
		{"none", nil, "ok", 0, ""},
		{"driver", driver, "internal", 13, ""},
		{"call", call(driver), "internal", 13, ""},
		{"unavailable", call(fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, driver)), "unavailable", 14, "store is unavailable"},
		{"unknown outcome", call(unknown), "unknown-outcome", 4, "unknown outcome"},
		{"guard of unknown outcome", call(&fsm.TransitionError{Err: fsm.ErrGuard, Reason: unknown}), "guard", 9, "refused by a guard"},
		{"foreign record", call(fmt.Errorf("%w: %w", lifecycle.ErrForeign, driver)), "foreign-record", 13, "foreign record"},
		{"unsupported", call(fmt.Errorf("%w: %w", errors.ErrUnsupported, driver)), "unsupported", 13, "unsupported operation"},
		{"deadline", call(fmt.Errorf("%w: %w", context.DeadlineExceeded, driver)), "deadline", 14, "context deadline exceeded"},
		{"canceled", call(fmt.Errorf("%w: %w", context.Canceled, driver)), "canceled", 1, "context canceled"},
		{"owner lost", call(&lifecycle.OwnerError{Owner: lifecycle.OwnerRef{Name: "10.0.0.5"}}), "owner-lost", 14, "this process has lost its ownership"},
		{
			"work failed", &lifecycle.OutcomeError{Key: lifecycle.Key{Machine: "vm", ID: "a"}, Operation: 3, Outcome: lifecycle.Failed, Err: driver},
			"work-failed", 2, `operation 3 of vm "a": work failed`,
		},
		{
			"outcome unwritten", &lifecycle.OutcomeError{Key: lifecycle.Key{Machine: "vm", ID: "a"}, Operation: 3, Outcome: lifecycle.Succeeded, Unwritten: driver},
			"outcome-unwritten", 4, `operation 3 of vm "a": outcome unwritten`,
		},
		{"guard", call(&fsm.TransitionError{Err: fsm.ErrGuard, Guard: "quota", Reason: errors.New("no VM is left")}), "guard", 9, in + "refused by a guard: quota: no VM is left"},
		{"unavailable guard", call(&fsm.TransitionError{Err: fsm.ErrGuard, Reason: fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, driver)}), "guard", 9, "refused by a guard"},
		{"not allowed", call(fsm.ErrNotAllowed), "not-allowed", 9, in + "not allowed"},
		{"not found", call(lifecycle.ErrNotFound), "not-found", 5, in + "not found"},
		{"two lines", call(errors.New("two\nlines\x1b[31m")), "internal", 13, ""},
		{"invalid in two lines", call(fmt.Errorf("%w: two\nlines", lifecycle.ErrInvalid)), "invalid", 3, in + "invalid request: two; lines"},
		{"invalid", fmt.Errorf("%w: option x is not supported", lifecycle.ErrInvalid), "invalid", 3, "lifecycle: invalid request: option x is not supported"},
		{"error with a problem", teapot{errors.New("a teapot")}, "other", 2, "a teapot"},
		{"conflict with a problem", call(teapot{lifecycle.ErrConflict}), "conflict", 10, "fsm: conflict"},
		{"locked", &lock.ConflictError{Err: lock.ErrConflict}, "locked", 10, "conflict"},
		{"full", &queue.RefusedError{Reason: queue.ErrFull, Key: "10.0.0.5"}, "full", 8, "full"},
		{"pending", fmt.Errorf("%w: %w", queue.ErrPending, context.DeadlineExceeded), "pending", 4, "action has not ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := lifecycle.Problem(c.err)
			require.Equal(t, c.code, p.Code)
			require.Equal(t, c.grpc, p.GRPC)
			require.Equal(t, c.detail, p.Detail)
			require.Equal(t, lifecycle.HTTPStatus(c.err), p.Status)
			require.NotEmpty(t, p.Title)
			require.Equal(t, c.code == "unknown-outcome", p.Token == unknown.Token.String())
			require.Equal(t, c.code != "unknown-outcome", p.Token == "")
			text, err := json.Marshal(p)
			require.NoError(t, err)
			for _, word := range []string{"admin", "hunter2", "10.0.0.5", "prod"} {
				require.NotContains(t, string(text), word)
			}
			require.Equal(t, strings.Contains(fmt.Sprint(c.err), "handler: "), p.Machine == "vm" && p.ID == "a" && p.State == "Ready" && p.Event == "stop")
		})
	}
}

// internalError is an error in the words of a database.
type internalError struct{ error }

func (internalError) Internal() {}

func (e internalError) Unwrap() error { return e.error }

// TestProblemOfInvalidTx: a client may read why the library refuses a transaction.
func TestProblemOfInvalidTx(t *testing.T) {
	m, _ := vms(t)
	ready(t, m, "a")
	ready(t, m, "b")
	var tx lifecycle.Tx
	twice := &lifecycle.Change[size]{Request: lifecycle.RequestID{ID: "r-1"}}
	m.In(&tx).Fire("a", "touch", user, twice)
	m.In(&tx).Fire("b", "touch", user, twice)
	err := tx.Commit(t.Context())
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Contains(t, lifecycle.Problem(err).Detail, `two changes of request "r-1"`)
}

// TestProblemOfStore: the reason why a database refuses a commit is for the log, not for a client.
func TestProblemOfStore(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	for refusal, want := range map[error]string{
		lifecycle.ErrInvalid: "invalid request", lifecycle.ErrPrecondition: "precondition failed",
	} {
		t.Run(want, func(t *testing.T) {
			store.onCommit = func(int, *lifecycle.Commit, func() error) error {
				return internalError{fmt.Errorf("%w: %s", refusal, secret)}
			}
			_, err := m.Fire(t.Context(), "a", "touch", user, nil)
			require.ErrorIs(t, err, refusal)
			require.ErrorContains(t, err, secret)
			p := lifecycle.Problem(err)
			require.Equal(t, want, p.Detail)
			require.Equal(t, "a", p.ID)
		})
	}
}

// TestProblemOfWork: the object is that of the operation, also if its work has failed with
// the error of another object.
func TestProblemOfWork(t *testing.T) {
	inner := &lifecycle.Error{Verb: "fire", Machine: "disk", ID: "d", From: "Full", Event: "grow", Err: lifecycle.ErrNotFound}
	outcome := &lifecycle.OutcomeError{Key: lifecycle.Key{Machine: "vm", ID: "a"}, Operation: 3, Outcome: lifecycle.Failed, Err: inner}
	for _, err := range []error{outcome, fmt.Errorf("handler: %w", outcome)} {
		p := lifecycle.Problem(err)
		require.Equal(t, "work-failed", p.Code)
		require.Equal(t, []string{"vm", "a", "", ""}, []string{p.Machine, p.ID, p.State, p.Event})
	}
	p := lifecycle.Problem(&lifecycle.Error{Verb: "outcome", Machine: "vm", ID: "a", From: "Stopping", Err: outcome})
	require.Equal(t, []string{"vm", "a", "Stopping", ""}, []string{p.Machine, p.ID, p.State, p.Event})
}

// TestProblemTable: the documentation has the table that runs.
func TestProblemTable(t *testing.T) {
	source, err := os.ReadFile("http.go")
	require.NoError(t, err)
	text := string(source)
	names := map[string]error{
		"lifecycle.OwnerError": &lifecycle.OwnerError{}, "lifecycle.VersionError": &lifecycle.VersionError{}, "errors.ErrUnsupported": errors.ErrUnsupported,
		"context.DeadlineExceeded": context.DeadlineExceeded, "context.Canceled": context.Canceled,
		"lock.ErrInvalid": lock.ErrInvalid, "lock.ErrQueueFull": lock.ErrQueueFull, "lock.ErrConflict": lock.ErrConflict,
		"lock.ErrIDInUse": lock.ErrIDInUse, "lock.ErrNotHeld": lock.ErrNotHeld, "lock.ErrLost": lock.ErrLost,
		"lock.ErrRevoked": lock.ErrRevoked, "lock.ErrStaleToken": lock.ErrStaleToken,
		"queue.ErrInvalid": queue.ErrInvalid, "queue.ErrFull": queue.ErrFull, "queue.ErrTerminated": queue.ErrTerminated,
		"queue.ErrStopping": queue.ErrStopping, "queue.ErrConflict": queue.ErrConflict,
		"queue.ErrWouldDeadlock": queue.ErrWouldDeadlock,
		"queue.ErrIDInUse":       queue.ErrIDInUse, "queue.ErrPending": queue.ErrPending,
	}
	for _, s := range sentinels {
		if !strings.Contains(s.name, ".") {
			s.name = "lifecycle." + s.name
		}
		names[s.name] = s.err
	}
	last, documented := -1, 0
	for name, err := range names {
		t.Run(name, func(t *testing.T) {
			p := lifecycle.Problem(err)
			require.Contains(t, text, fmt.Sprintf("//\t%d  %-2d  %-18s  %s\n", p.Status, p.GRPC, p.Code, name))
		})
	}
	for i, r := range lifecycle.Replies() { // in the same order
		line := fmt.Sprintf("//\t%d  %-2d  %-18s  ", r.Status, r.GRPC, r.Code)
		at := last + 1 + strings.Index(text[last+1:], line)
		require.Greater(t, at, last, "line %d: %s", i, line)
		last = at
		documented++
	}
	require.Len(t, names, documented)
	for name, o := range map[string]lifecycle.Outcome{
		"Failed": lifecycle.Failed, "Panicked": lifecycle.Panicked, "Canceled": lifecycle.Canceled,
		"TimedOut": lifecycle.TimedOut, "Lost": lifecycle.Lost,
	} {
		p := lifecycle.Problem(&lifecycle.OutcomeError{Outcome: o})
		require.Contains(t, text, fmt.Sprintf("//\t%d  %-2d  %-18s  %s\n", p.Status, p.GRPC, p.Code, name))
	}
}

// TestExpectFails: the caller has named the revision, so that a conflict is a failed
// condition of its own, also if the object moves while the call runs.
func TestExpectFails(t *testing.T) {
	m, store := vms(t)
	before := create(t, m, "a", "import", user, size{})
	race := func(expect lifecycle.Revision) error {
		store.reset()
		store.afterGet = func(int) { fire(t, store.others(), "a", "touch", user, resize(3)) }
		_, err := m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{Expect: expect})
		store.reset()
		return err
	}
	err := race(before.Revision)
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	require.Equal(t, 412, lifecycle.HTTPStatus(err))
	err = race("")
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.NotErrorIs(t, err, lifecycle.ErrRevision)
	require.Equal(t, 409, lifecycle.HTTPStatus(err))
}

// TestSucceededAndUnwritten: the outcome is what the work did; Unwritten is why the
// record does not have it.
func TestSucceededAndUnwritten(t *testing.T) {
	err := &lifecycle.OutcomeError{
		Key: lifecycle.Key{Machine: "vm", ID: "a"}, Operation: 2, Outcome: lifecycle.Succeeded, Unwritten: errors.New("disk full"),
	}
	require.EqualError(t, err, `lifecycle: operation 2 of vm "a": the work has succeeded; outcome not written: disk full`)
}
