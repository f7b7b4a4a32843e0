package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Deleted is what a CRM may report instead of [NotPresent]. It is no state of the
// machine. The outcome is the same: the record is removed.
const Deleted State = "Deleted"

// Info is a CRM's report about one instance: the state in which the CRM has it. It is
// a plain value.
type Info struct {
	ID string
	// Operation is that of the last order for the instance. 0: the CRM has started
	// since and does not know it.
	Operation lifecycle.OpID
	// State is Creating, Updating or Deleting while the CRM works, Ready or
	// NotPresent after success, and an error state after a failure.
	State  State
	Errors []string // of an error state
}

// event returns the event that the state reports; false for a state that no CRM has.
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

// machineState returns the state as the machine has it.
func (i *Info) machineState() State {
	if i.State == Deleted {
		return NotPresent
	}
	return i.State
}

// Verdicts counts messages of CRMs by their verdict.
type Verdicts struct{ Applied, Repeated, Stale, Refused uint64 }

// Verdicts returns the counts since the coordinator was made.
func (in *Instances[T]) Verdicts() Verdicts {
	return Verdicts{
		Applied: in.counts[lifecycle.Applied].Load(), Repeated: in.counts[lifecycle.Repeated].Load(),
		Stale: in.counts[lifecycle.Stale].Load(), Refused: in.counts[lifecycle.Refused].Load(),
	}
}

// Receive takes a message of a CRM. It changes the object only if the message is about
// the present operation and the operation can lead to the state: an update leads to
// Updating, Ready or UpdateError, never to DeleteError. Every other message, late,
// repeated or wrong, changes nothing, is counted and is no error: the CRM may drop it.
// An error state keeps the errors, every other accepted state clears them.
//
// The error is [fsm.ErrUnknownState] for an unknown state, or that of
// [lifecycle.Manager.Report]; the message may then be sent again.
func (in *Instances[T]) Receive(ctx context.Context, info Info) (lifecycle.Verdict, error) {
	verdict, err := in.receive(ctx, &info)
	if err == nil {
		in.counts[verdict].Add(1)
	}
	return verdict, err
}

func (in *Instances[T]) receive(ctx context.Context, info *Info) (lifecycle.Verdict, error) {
	if in.machine.StateIndex(info.machineState()) < 0 {
		return lifecycle.Refused, fmt.Errorf("%w: the CRM reports that %s %q is %q", fsm.ErrUnknownState, in.machine.Name(), info.ID, info.State)
	}
	e, ok := info.event()
	if !ok {
		return lifecycle.Refused, nil
	}
	// The states that an operation can lead to do not change between this read and
	// the report, which compares the operation.
	rec, err := in.m.Get(ctx, info.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		rec = Record[T]{}
		rec.Status = in.machine.At(NotPresent)
	case err != nil:
		return lifecycle.Refused, err
	case rec.Operation == info.Operation && !in.mayLeadTo(ctx, &rec, info.machineState()):
		return lifecycle.Refused, nil
	}
	verdict, err := in.m.Report(ctx, info.ID, info.Operation, e, CRM, info.reason())
	if verdict == lifecycle.Repeated && rec.State == NotPresent && info.machineState() != NotPresent && e == Done {
		verdict = lifecycle.Refused // no report that the object exists has removed it
	}
	return verdict, err
}

// mayLeadTo reports whether a CRM can report a state, or can have reported it, in the
// operation that the object is in.
func (in *Instances[T]) mayLeadTo(ctx context.Context, rec *Record[T], reported State) bool {
	if reported == rec.State {
		return true
	}
	if !inTransition(rec.State) {
		return inTransition(reported) // it is late; Report determines whether it is repeated
	}
	_, err := in.machine.NextTo(ctx, rec.Status, reported, CRM, &rec.Payload)
	return err == nil
}

// reason returns the errors of an error state as a record keeps them: one line each.
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

// Errors returns the errors of an object in an error state; nil in any other state.
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

// FailedError is an operation that failed. It matches [ErrFailed], and also
// [ErrNoAnswer] if the CRM was silent. Its status code is 504 after a timeout, and 422
// if the CRM has reported errors. It is a plain value.
type FailedError struct {
	Key       lifecycle.Key
	Operation lifecycle.OpID
	State     State    // CreateError, UpdateError or DeleteError
	Errors    []string // of the CRM
	TimedOut  bool     // the CRM has not reported the end in time
	Silent    bool     // the CRM has not reported the start either
	Undone    bool     // the object is as before the operation
}

// ErrFailed: the operation failed.
var ErrFailed error = &statusError{"edgecloud: failed", http.StatusUnprocessableEntity}

// Error returns one line with the errors of the CRM.
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

// HTTPStatus returns the status code, see [lifecycle.HTTPStatus].
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
