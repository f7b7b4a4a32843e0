package edgecloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
)

// Report is a CRM's message about one instance: the state in which the CRM has it. It is
// a plain value.
type Report struct {
	ID string
	// Operation is that of the last order for the instance. 0: the CRM has started
	// since and has no order for it.
	Operation lifecycle.OpID
	// State is Creating, Updating or Deleting while the CRM works, Ready or
	// NotPresent after success, and an error state after a failure.
	State  State
	Errors []string // of an error state; the record keeps 4 KiB of them
	// Results are what the work has produced, such as addresses: a JSON value. With the
	// state Ready they become part of the object's content, and an undo restores those
	// from before. Empty: the content keeps the results that it has.
	Results json.RawMessage
}

// parse returns the reported state as the machine has it, and the event; no event for a
// state that no CRM has.
func (r *Report) parse() (State, Event) {
	switch r.State {
	case Creating, Updating, Deleting:
		return r.State, Working
	case Ready, NotPresent:
		return r.State, Done
	case Deleted:
		return NotPresent, Done
	case CreateError, UpdateError, DeleteError:
		return r.State, Fail
	}
	return r.State, ""
}

// reason returns the errors of an error state as a record keeps them: one line each, and
// shortened, because the record refuses long ones and the operation would not end.
func (r *Report) reason() string {
	if !isError(r.State) {
		return ""
	}
	lines := make([]string, len(r.Errors))
	for i, e := range r.Errors {
		lines[i] = strings.ReplaceAll(e, "\n", " ")
	}
	return storable.Reason(strings.Join(lines, "\n"))
}

// Verdicts returns how many reports of CRMs had each verdict since the coordinator was made.
func (in *Instances[T]) Verdicts() map[lifecycle.Verdict]uint64 {
	counts := map[lifecycle.Verdict]uint64{}
	for v := range in.counts {
		counts[lifecycle.Verdict(v)] = in.counts[v].Load()
	}
	return counts
}

// Answer takes a report of a CRM about an instance of either kind, see
// [Instances.Receive]. The error is [lifecycle.ErrInvalid] for a key of another
// machine.
func (c *Coordinator) Answer(ctx context.Context, notifyID int64, key lifecycle.Key, report Report) (lifecycle.Verdict, error) {
	report.ID = key.ID
	switch key.Machine {
	case ClusterInst.Name():
		return c.Clusters.Receive(ctx, notifyID, report)
	case AppInst.Name():
		return c.Apps.Receive(ctx, notifyID, report)
	}
	return lifecycle.Refused, refused("report", key, "", CRM, lifecycle.ErrInvalid)
}

// Receive takes a report of the CRM that is connected under a notify id. It changes the
// object only if the report is about the present operation and the operation can lead to
// the state: an update leads to Updating, Ready or UpdateError, never to DeleteError.
// Every other report, late, repeated or wrong, changes nothing, is counted and is no
// error: the CRM may drop it. An error state keeps the errors, every other accepted state
// clears them.
//
// A report of another CRM than the current one of the object's cloudlet is
// [lifecycle.Stale], whichever operation it names: of a CRM that was replaced or whose
// connection has dropped, or of another cloudlet. A report that is received while the CRM
// is being replaced counts as sent before. The cloudlet of an AppInst whose ClusterInst was
// removed is the one where its operation was requested.
//
// The error is [fsm.ErrUnknownState] for an unknown state, [lifecycle.ErrInvalid] for
// results that would be recorded and are not JSON or too large, or that of
// [lifecycle.Manager.Report]; the report may then be sent again.
func (in *Instances[T]) Receive(ctx context.Context, notifyID int64, report Report) (lifecycle.Verdict, error) {
	verdict, err := in.receive(ctx, notifyID, &report)
	if err == nil {
		in.counts[verdict].Add(1)
	}
	return verdict, err
}

func (in *Instances[T]) receive(ctx context.Context, notifyID int64, report *Report) (lifecycle.Verdict, error) {
	state, e := report.parse()
	if in.m.Machine().StateIndex(state) < 0 {
		return lifecycle.Refused, fmt.Errorf("%w: the CRM reports that %s %q is %q",
			fsm.ErrUnknownState, in.m.Machine().Name(), report.ID, report.State)
	}
	if e == "" {
		return lifecycle.Refused, nil
	}
	// The states that an operation can lead to do not change between this read and
	// the report, which compares the operation.
	rec, err := in.m.Get(ctx, report.ID)
	exists := err == nil
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
	case err != nil:
		return lifecycle.Refused, err
	default:
		if current, err := in.current(ctx, &rec, notifyID); err != nil || !current {
			return lifecycle.Stale, err
		}
		if rec.Operation == report.Operation && !in.mayLeadTo(ctx, &rec, state) {
			return lifecycle.Refused, nil
		}
	}
	change := &lifecycle.Change[T]{Reason: report.reason()}
	if state == Ready && len(report.Results) > 0 {
		change.Edit = func(s *T) error { *in.results(s) = report.Results; return nil }
	}
	verdict, err := in.m.Report(ctx, report.ID, report.Operation, e, CRM, change)
	if verdict == lifecycle.Repeated && !exists && state == Ready {
		verdict = lifecycle.Refused // no report that the object exists has removed it
	}
	return verdict, err
}

// current reports whether a notify id is that of the CRM of an instance.
func (in *Instances[T]) current(ctx context.Context, rec *Record[T], notifyID int64) (bool, error) {
	at, err := in.place(ctx, &rec.Payload)
	if err == nil && at.cloudlet == "" {
		var note note
		note, err = in.note(ctx, rec)
		at.cloudlet = note.Cloudlet
	}
	if err != nil || at.cloudlet == "" {
		return false, err
	}
	_, err = in.coordinator.Cloudlets.connected(ctx, at.cloudlet, notifyID)
	if errors.Is(err, lifecycle.ErrStale) || errors.Is(err, lifecycle.ErrNotFound) {
		return false, nil
	}
	return true, err
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
	_, err := in.m.Machine().NextTo(ctx, rec.Status, reported, CRM, &rec.Payload)
	return err == nil
}
