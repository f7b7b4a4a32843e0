package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// HTTPStatus maps an error of this library to the HTTP status code of [Problem], nil
// to 200.
func HTTPStatus(err error) int { return Problem(err).Status }

// ProblemContentType is the content type of [ProblemDetails] as JSON.
const ProblemContentType = "application/problem+json"

// StatusClientClosedRequest is the customary code for a request that its client has
// canceled.
const StatusClientClosedRequest = 499

// ProblemDetails is an error as a service returns it to a client: the problem details
// of RFC 9457 as JSON, with members of its own. It is a value. [Problem] makes it.
type ProblemDetails struct {
	Type   string `json:"type"`   // about:blank: Code distinguishes the errors
	Title  string `json:"title"`  // of the status code
	Status int    `json:"status"` // the HTTP status code
	// Detail is one line for the client. It has no text of the store, its driver, or
	// work. The reason of a guard is in it.
	Detail string `json:"detail,omitempty"`
	// Code is the error for programs. Codes do not change.
	Code string `json:"code"`

	// Machine, ID, State and Event are those of the [Error], if there is one. Machine and
	// ID of an [OutcomeError] are those of its operation.
	Machine string `json:"machine,omitempty"`
	ID      string `json:"id,omitempty"`
	State   string `json:"state,omitempty"`
	Event   string `json:"event,omitempty"`
	// Token is the commit of an unknown outcome, see [UnknownOutcomeError].
	Token string `json:"token,omitempty"`

	// GRPC is the gRPC status code: the number of a code of
	// google.golang.org/grpc/codes.
	GRPC int `json:"-"`
}

// Problem returns an error of this library as a service returns it to a client. The
// columns are the HTTP status, the gRPC code, the code and the error. Of several
// errors that match, the first one in the table counts.
//
//	504  4   unknown-outcome     lifecycle.ErrUnknownOutcome
//	503  14  foreign-version     lifecycle.VersionError
//	500  13  foreign-record      lifecycle.ErrForeign
//	500  13  misconfigured       lifecycle.ErrMisconfigured
//	500  13  unsupported         errors.ErrUnsupported
//	503  14  closed              lifecycle.ErrClosed
//	503  14  unavailable         lifecycle.ErrUnavailable
//	503  14  owner-lost          lifecycle.OwnerError
//	409  6   repeated            lifecycle.ErrRepeated
//	412  9   precondition        lifecycle.ErrPrecondition
//	412  10  revision            lifecycle.ErrRevision
//	422  9   guard               fsm.ErrGuard
//	400  3   invalid             lifecycle.ErrInvalid
//	400  3   unknown-event       fsm.ErrUnknownEvent
//	400  3   unknown-state       fsm.ErrUnknownState
//	404  5   not-found           lifecycle.ErrNotFound
//	409  9   busy                lifecycle.ErrBusy
//	403  7   wrong-actor         fsm.ErrWrongActor
//	403  7   forced-only         fsm.ErrForcedOnly
//	409  6   exists              lifecycle.ErrExists
//	409  9   stale               lifecycle.ErrStale
//	409  10  conflict            lifecycle.ErrConflict
//	409  9   not-allowed         fsm.ErrNotAllowed
//	400  3   invalid             lock.ErrInvalid
//	429  8   full                lock.ErrQueueFull
//	409  10  locked              lock.ErrConflict
//	409  6   id-in-use           lock.ErrIDInUse
//	409  9   not-held            lock.ErrNotHeld
//	409  10  lock-lost           lock.ErrLost
//	409  10  lock-revoked        lock.ErrRevoked
//	409  9   stale-token         lock.ErrStaleToken
//	400  3   invalid             queue.ErrInvalid
//	429  8   full                queue.ErrFull
//	503  14  shutting-down       queue.ErrTerminated
//	409  9   stopping            queue.ErrStopping
//	409  10  conflict            queue.ErrConflict
//	409  6   id-in-use           queue.ErrIDInUse
//	409  9   would-deadlock      queue.ErrWouldDeadlock
//	504  4   pending             queue.ErrPending
//	503  14  deadline            context.DeadlineExceeded
//	499  1   canceled            context.Canceled
//
// An [OutcomeError] is none of the errors that it wraps: the work may have met any of
// them elsewhere. With Unwritten it is the first line of the second table, whatever
// its Outcome is, else the line of its Outcome.
//
//	504  4   outcome-unwritten
//	500  2   work-failed         Failed
//	500  13  work-panicked       Panicked
//	409  10  work-canceled       Canceled
//	500  13  work-timed-out      TimedOut
//	409  10  operation-lost      Lost
//
// So 504 means that the outcome is unknown, and 503 that nothing was written and the
// request may be sent again. Every other error is 500, 13 and "internal". Nil is 200,
// 0 and "ok".
//
// An error of the service with a method HTTPStatus() int has its own status code if that is
// the code of an error, 400 to 599. It then has its own text as Detail, too, except for an
// unknown outcome, an outcome that is not written, and an unavailable store. With a method
// ProblemCode() string it has its own Code too. A guard may return such an error, for example
// for a quota. If it matches no error of the table and has no ProblemCode, its Code is
// "other"; its gRPC code is then 2. An error that a service makes with an error of this
// library, such as fmt.Errorf("%w: ...", ErrInvalid), has its own text as Detail too. An error
// with a method Internal(), such as one that has the words of a database about its tables,
// does not: Detail is the text of the table's error.
func Problem(err error) ProblemDetails {
	r, listed := replyTo(err)
	detail := r.detail(err)
	if own, ok := r.ofService(err); ok {
		if !listed {
			r.grpc, r.code = 2, "other"
		}
		if coded, ok := own.(interface{ ProblemCode() string }); ok {
			r.code = coded.ProblemCode()
		}
		r.http, detail = own.HTTPStatus(), own.Error()
	}
	p := r.problem(oneLine(detail))
	e, ok := errors.AsType[*Error](err)
	if ended, isOutcome := errors.AsType[*OutcomeError](err); isOutcome {
		// Work may have failed with the error of another object.
		if inner, _ := errors.AsType[*Error](ended); inner == e {
			e, ok = &Error{Machine: ended.Key.Machine, ID: ended.Key.ID}, true
		}
	}
	if ok {
		p.Machine, p.ID, p.State, p.Event = e.Machine, e.ID, e.From, e.Event
	}
	if unknown, ok := errors.AsType[*UnknownOutcomeError](err); ok && r.sentinel == ErrUnknownOutcome {
		p.Token = unknown.Token.String()
	}
	return p
}

// Code returns the code of an error in the tables of [Problem], "ok" for nil. It ignores a
// method ProblemCode of the error, so the number of codes is bounded. It is meant for
// metrics and logs.
func Code(err error) string {
	r, _ := replyTo(err)
	return r.code
}

// reply is what a client gets for an error.
type reply struct {
	http, grpc int
	code       string
	sentinel   error // nil: an outcome of work, or an error that is not listed
	own        bool  // the text of the error is for clients; false: only that of the sentinel
}

// replies are in the order of [Problem]: an unknown outcome and an unavailable store
// come before what their causes may match.
var replies = []reply{
	{504, 4, "unknown-outcome", ErrUnknownOutcome, false},
	{503, 14, "foreign-version", errVersion, false},
	{500, 13, "foreign-record", ErrForeign, false},
	{500, 13, "misconfigured", ErrMisconfigured, false},
	{500, 13, "unsupported", errors.ErrUnsupported, false},
	{503, 14, "closed", ErrClosed, false},
	{503, 14, "unavailable", ErrUnavailable, false},
	{503, 14, "owner-lost", errOwner, false},
	{409, 6, "repeated", ErrRepeated, true},
	{412, 9, "precondition", ErrPrecondition, true},
	{412, 10, "revision", ErrRevision, true},
	{422, 9, "guard", fsm.ErrGuard, true},
	{400, 3, "invalid", ErrInvalid, true},
	{400, 3, "unknown-event", fsm.ErrUnknownEvent, true},
	{400, 3, "unknown-state", fsm.ErrUnknownState, true},
	{404, 5, "not-found", ErrNotFound, true},
	{409, 9, "busy", ErrBusy, true},
	{403, 7, "wrong-actor", fsm.ErrWrongActor, true},
	{403, 7, "forced-only", fsm.ErrForcedOnly, true},
	{409, 6, "exists", ErrExists, true},
	{409, 9, "stale", ErrStale, true},
	{409, 10, "conflict", ErrConflict, true},
	{409, 9, "not-allowed", fsm.ErrNotAllowed, true},
	{400, 3, "invalid", lock.ErrInvalid, true},
	{429, 8, "full", lock.ErrQueueFull, false},
	{409, 10, "locked", lock.ErrConflict, false},
	{409, 6, "id-in-use", lock.ErrIDInUse, false},
	{409, 9, "not-held", lock.ErrNotHeld, false},
	{409, 10, "lock-lost", lock.ErrLost, false},
	{409, 10, "lock-revoked", lock.ErrRevoked, false},
	{409, 9, "stale-token", lock.ErrStaleToken, false},
	{400, 3, "invalid", queue.ErrInvalid, true},
	{429, 8, "full", queue.ErrFull, false},
	{503, 14, "shutting-down", queue.ErrTerminated, false},
	{409, 9, "stopping", queue.ErrStopping, false},
	{409, 10, "conflict", queue.ErrConflict, false},
	{409, 6, "id-in-use", queue.ErrIDInUse, false},
	{409, 9, "would-deadlock", queue.ErrWouldDeadlock, false},
	{504, 4, "pending", queue.ErrPending, false},
	{503, 14, "deadline", context.DeadlineExceeded, false},
	{StatusClientClosedRequest, 1, "canceled", context.Canceled, false},
}

// outcomeReplies are the replies of outcomes that are written.
var outcomeReplies = map[Outcome]reply{
	Failed:   {http: 500, grpc: 2, code: "work-failed"},
	Panicked: {http: 500, grpc: 13, code: "work-panicked"},
	Canceled: {http: 409, grpc: 10, code: "work-canceled"},
	TimedOut: {http: 500, grpc: 13, code: "work-timed-out"},
	Lost:     {http: 409, grpc: 10, code: "operation-lost"},
}

// unwritten is the reply of an outcome that is not written.
var unwritten = reply{http: 504, grpc: 4, code: "outcome-unwritten"}

// replyTo returns the first reply that matches an error, and whether one does.
func replyTo(err error) (reply, bool) {
	if err == nil {
		return reply{http: http.StatusOK, code: "ok"}, true
	}
	if i := firstReply(err); i < len(replies) {
		return replies[i], true
	}
	// Every error that is listed outside of the result of work comes first.
	if ended, ok := errors.AsType[*OutcomeError](err); ok {
		if r, ok := outcomeReplies[ended.Outcome]; ok && ended.Unwritten == nil {
			return r, true
		}
		return unwritten, true
	}
	return reply{http: http.StatusInternalServerError, grpc: 13, code: "internal"}, false
}

// firstReply returns the index of the first reply that matches an error, or their
// number. It looks neither into the result of work nor into the reason of a guard.
func firstReply(err error) int {
	if _, ok := err.(*OutcomeError); ok {
		return len(replies)
	}
	if refused, ok := err.(*fsm.TransitionError); ok && refused.Err == fsm.ErrGuard {
		err = fsm.ErrGuard
	}
	matcher, _ := err.(interface{ Is(error) bool })
	first := slices.IndexFunc(replies, func(r reply) bool {
		return err == r.sentinel || matcher != nil && matcher.Is(r.sentinel)
	})
	if first < 0 {
		first = len(replies)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		first = min(first, firstReply(e.Unwrap()))
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			first = min(first, firstReply(wrapped))
		}
	}
	return first
}

// internal is an error whose text is not for clients.
type internal interface {
	error
	Internal()
}

// withStatus is an error of a service that has its own status code.
type withStatus interface {
	error
	HTTPStatus() int
}

// ofService returns the error of the service in err whose status code counts instead of that of
// the reply. A refusal is no success, and net/http panics if a status code has not three digits.
func (r reply) ofService(err error) (withStatus, bool) {
	if r.sentinel == ErrUnknownOutcome || r.sentinel == ErrUnavailable || r.code == unwritten.code {
		return nil, false
	}
	own, ok := errors.AsType[withStatus](err)
	if !ok {
		return nil, false
	}
	status := own.HTTPStatus()
	return own, 400 <= status && status <= 599
}

// detail returns what a client may read about an error.
func (r reply) detail(err error) string {
	_, hidden := errors.AsType[internal](err)
	if r.own && !hidden && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknownOutcome) { // a guard may have met them
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Error()
		}
		return err.Error()
	}
	if r.sentinel != nil {
		_, text, _ := strings.Cut(r.sentinel.Error(), ": ")
		if text == "" {
			text = r.sentinel.Error()
		}
		return text
	}
	if ended, ok := errors.AsType[*OutcomeError](err); ok {
		return fmt.Sprintf("operation %d of %s: %s", ended.Operation, ended.Key.text(), strings.ReplaceAll(r.code, "-", " "))
	}
	return ""
}

func (r reply) problem(detail string) ProblemDetails {
	title := http.StatusText(r.http)
	if r.http == StatusClientClosedRequest {
		title = "Client Closed Request"
	}
	return ProblemDetails{
		Type: "about:blank", Title: title, Status: r.http, Detail: detail, Code: r.code, GRPC: r.grpc,
	}
}
