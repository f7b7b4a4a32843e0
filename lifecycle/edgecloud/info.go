package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Deleted is what a CRM may say instead of [NotPresent]. It is no state of the
// machine: the outcome is the same, the record is gone.
const Deleted State = "Deleted"

// Info is what a CRM says about one instance: the state in which it has it. It is
// a plain value.
type Info struct {
	ID string
	// Operation is what the CRM was last asked for, as in the record that asked.
	// 0: it does not know, because it has been started anew.
	Operation lifecycle.OpID
	// State is where the CRM is: Creating, Updating or Deleting at work; Ready or
	// NotPresent when it has finished; an error state when it gave up.
	State  State
	Errors []string // of an error state
}

// event is what the CRM's state tells. Not ok: a CRM is never there.
func (i *Info) event() (e Event, ok bool) {
	switch i.State {
	case Creating, Updating, Deleting:
		return Working, true
	case Ready, NotPresent, Deleted:
		return Done, true
	case CreateError, UpdateError, DeleteError:
		return Fail, true
	}
	return "", false
}

// says is the state of the machine that the CRM says.
func (i *Info) says() State {
	if i.State == Deleted {
		return NotPresent
	}
	return i.State
}

// counts are verdicts.
type counts [lifecycle.Refused + 1]atomic.Uint64

// Verdicts returns how many messages of CRMs were what, since the coordinator was
// made.
func (in *Instances[T]) Verdicts() lifecycle.Verdicts {
	return lifecycle.Verdicts{
		Applied: in.counts[lifecycle.Applied].Load(), Repeated: in.counts[lifecycle.Repeated].Load(),
		Stale: in.counts[lifecycle.Stale].Load(), Refused: in.counts[lifecycle.Refused].Load(),
	}
}

// Receive takes what a CRM says. Only a message about the present operation, and
// a state that the operation can lead to, changes anything: what an update says
// is Updating, Ready or UpdateError, never DeleteError. Everything else, said too
// late, twice or wrongly, changes nothing, is counted, and is no error: the CRM
// may drop it. An error state keeps the errors, every other clears them.
//
// The error is [fsm.ErrUnknownState] for a state that is none, or as of
// [lifecycle.Manager.Report]; the message may then be sent again.
func (in *Instances[T]) Receive(ctx context.Context, info Info) (lifecycle.Verdict, error) {
	verdict, err := in.receive(ctx, &info)
	if err == nil {
		in.counts[verdict].Add(1)
	}
	return verdict, err
}

func (in *Instances[T]) receive(ctx context.Context, info *Info) (lifecycle.Verdict, error) {
	machine := in.m.Machine()
	if machine.StateIndex(info.says()) < 0 {
		return lifecycle.Refused, fmt.Errorf("%w: the CRM says that %s %q is %q", fsm.ErrUnknownState, machine.Table().Name, info.ID, info.State)
	}
	e, ok := info.event()
	if !ok {
		return lifecycle.Refused, nil
	}
	// An operation has one direction, so that what it can lead to does not change
	// between this read and the report, which compares the operation.
	rec, err := in.m.Get(ctx, info.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		rec = Record[T]{}
		rec.Status = machine.At(NotPresent)
	case err != nil:
		return lifecycle.Refused, err
	case rec.Operation == info.Operation && !in.mayLeadTo(ctx, &rec, info.says()):
		return lifecycle.Refused, nil
	}
	verdict, err := in.m.Report(ctx, info.ID, info.Operation, e, CRM, info.reason())
	if verdict == lifecycle.Repeated && rec.State == NotPresent && info.says() != NotPresent && e == Done {
		verdict = lifecycle.Refused // what is gone was not said to be there
	}
	return verdict, err
}

// mayLeadTo reports whether the CRM may say a state, or may have said it, in the
// operation that the object is in.
func (in *Instances[T]) mayLeadTo(ctx context.Context, rec *Record[T], says State) bool {
	if says == rec.State {
		return true
	}
	if !inTransition(rec.State) {
		return inTransition(says) // it has come late; the report knows whether it was said before
	}
	_, err := in.m.Machine().NextTo(ctx, rec.Status, says, CRM, &rec.Payload)
	return err == nil
}

// reason is how a record keeps errors, a line for each.
func (i *Info) reason() string {
	if _, failed := i.event(); !failed || i.State != CreateError && i.State != UpdateError && i.State != DeleteError {
		return ""
	}
	lines := make([]string, len(i.Errors))
	for k, e := range i.Errors {
		lines[k] = strings.ReplaceAll(e, "\n", " ")
	}
	return strings.Join(lines, "\n")
}

// Errors returns why an object is in its error state; nil if it is in none.
func Errors[T any](rec Record[T]) []string {
	switch rec.State {
	case CreateError, UpdateError, DeleteError:
	default:
		return nil
	}
	if rec.Event == string(TimedOut) && rec.Reason == "" {
		return []string{notFinished}
	}
	return strings.Split(rec.Reason, "\n")
}

const (
	noAnswer    = "no answer of the CRM in time"
	notFinished = "the CRM has not finished in time"
)

// FailedError is an operation that failed. It matches [ErrFailed], and
// [ErrNoAnswer] if the CRM did not give it up but was silent. Its status code is
// 504 if time was up, and 422 if the CRM has said why it could not do it. It is a
// plain value.
type FailedError struct {
	Key       lifecycle.Key
	Operation lifecycle.OpID
	State     State    // CreateError, UpdateError or DeleteError
	Errors    []string // what the CRM said
	TimedOut  bool     // it has not said in time how it ended
	Silent    bool     // and not that it had begun
	Undone    bool     // the object is as it was before
}

// ErrFailed: the operation failed.
var ErrFailed error = &statusError{"edgecloud: failed", http.StatusUnprocessableEntity}

// Error gives what the CRM said.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("edgecloud: operation %d of %s %q failed: %s", e.Operation, e.Key.Machine, e.Key.ID, e.State)
	if len(e.Errors) > 0 {
		text += ": " + strings.Join(e.Errors, "; ")
	}
	if e.Undone {
		text += " (undone)"
	}
	return text
}

// HTTPStatus is for [lifecycle.HTTPStatus].
func (e *FailedError) HTTPStatus() int {
	if e.TimedOut {
		return http.StatusGatewayTimeout
	}
	return http.StatusUnprocessableEntity
}

// Is matches [ErrFailed], and [ErrNoAnswer] if the CRM was silent.
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || e.Silent && target == ErrNoAnswer
}
