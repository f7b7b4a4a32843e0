package lifecycle

import (
	"fmt"
	"math"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Overridden is the event of the history rows that [Manager.Override] writes, and
// [Manager.Add] for another state than the initial one. No table has it.
const Overridden = "(override)"

// Migrated is the event of the history rows that [Migrate] writes. No table has
// it.
const Migrated = "(migrate)"

// plan sets the change that the decision makes, in the commit with this token. The error is that
// of the caller's edit, or matches [ErrForeign].
func (r *request) plan(change *StoredChange, token Token) error {
	d, states := &r.decision, r.core.table.States
	change.Expect, change.From, change.FromOrigin = r.before.Revision, r.before.State, r.before.Origin
	change.To, change.Timeout, change.Remove, change.MetadataOnly = r.before, d.Timeout, d.Removes, d.MetadataOnly
	if d.MetadataOnly {
		return r.planHeartbeat(change)
	}
	to := &change.To
	to.State, to.Origin, to.Target = states[d.State].Name, states[d.Origin].Name, r.target()
	to.Sequence, to.Operation = d.Sequence, OpID(d.Operation)
	if d.Begins {
		to.Admission = token
	}
	to.Actor, to.Event, to.Reason = r.ask.Actor, r.plannedEvent(), r.reason
	to.ChangeToken, to.Fence = token, max(to.Fence, r.fence)
	change.Request, change.Fingerprint = r.client.ID, r.fingerprint()
	if err := r.planWork(change); err != nil {
		return err
	}
	return r.planPayload(to)
}

// plannedEvent returns the event of the history row.
func (r *request) plannedEvent() string {
	switch r.ask.Verb {
	case decide.Add:
		if r.decision.State != r.core.table.Initial {
			return Overridden // the table does not let objects begin there
		}
		return ""
	case decide.Override:
		return Overridden
	case decide.Migrate:
		return Migrated
	case decide.Create, decide.Fire, decide.Report, decide.Heartbeat:
	}
	return r.core.table.Events[r.ask.Event]
}

// planHeartbeat plans a change of the deadline and of the work options.
func (r *request) planHeartbeat(change *StoredChange) error {
	if r.options != nil {
		if err := editOptions(&change.To, r.options); err != nil {
			return err
		}
	}
	change.addPause()
	return nil
}

// planForm brings the change into the form of the record's version, so that programs of
// that version still read the record.
func (r *request) planForm(change *StoredChange) error {
	change.To.Version = r.core.version
	v := r.core.olderVersion(r.version)
	if v == nil && (!r.before.Exists() || r.stored.Version == r.version) {
		return nil
	}
	own := *change
	r.planned = &own
	change.From, change.FromOrigin = r.stored.State, r.stored.Origin
	switch to := &change.To; {
	case v == nil:
		return nil
	case change.MetadataOnly:
		*to = *r.stored
		to.Owner, to.Epoch = own.To.Owner, own.To.Epoch
		to.Work, to.Args, to.WorkOptions = own.To.Work, own.To.Args, own.To.WorkOptions
		return nil
	}
	return v.downgrade(change)
}

// fitVersion returns a decision about a record of a version. It refuses a state that the
// version does not have.
func (c *core) fitVersion(version string, d decide.Decision) decide.Decision {
	v := c.olderVersion(version)
	if v == nil || !d.Write || d.MetadataOnly {
		return d
	}
	for _, state := range []int{d.State, d.Origin} {
		name := c.table.States[state].Name
		if _, ok := v.names[name]; !ok {
			err := fmt.Errorf("%w: version %q of the record has no state %q until it is migrated", fsm.ErrNotAllowed, v.Name, name)
			return decide.Decision{Row: d.Row, Verdict: decide.Refused, Err: err}
		}
	}
	return d
}

// target returns the state that the operation leads to: the one that the table
// names for a transitional state, or the one of the operation before.
func (r *request) target() string {
	d, table := &r.decision, r.core.table
	st := &table.States[d.State]
	switch {
	case st.Kind != fsm.Transitional:
		return ""
	case st.Target >= 0:
		return table.States[st.Target].Name
	case d.Begins:
		return ""
	}
	return r.before.Target
}

// planWork sets owner and work of the record. An operation that starts with an owner waits
// for its turn, and the deadline of one that goes on counts from the end of its wait or pause.
func (r *request) planWork(change *StoredChange) error {
	to, self := &change.To, r.core.self
	switch r.decision.Work {
	case decide.SameWork:
		if waits(to) {
			change.Timeout = 0 // the object goes on to another state while it waits
		} else {
			change.addPause()
		}
	case decide.NewWork:
		to.Owner, to.Epoch = self.Name, self.Epoch
		to.Work, to.Args, to.WorkOptions = r.work.Handler, r.work.Args, r.work.options()
	case decide.Redo:
		to.Owner, to.Epoch = self.Name, self.Epoch
		if err := editOptions(to, (*workOptions).countLost); err != nil {
			return err
		}
	case decide.NoWork:
		to.Owner, to.Epoch, to.Work, to.Args, to.WorkOptions = "", 0, "", nil, nil
		if r.starts() {
			to.Owner, to.Epoch = self.Name, self.Epoch
		}
	}
	if r.starts() && r.core.owner != nil && r.core.timed() { // the next state may have a deadline, if this one has none
		change.Timeout = 0
		return editOptions(to, func(w *workOptions) { w.Waiting = true })
	}
	return nil
}

// addPause makes the timeout of an operation that goes on count from the end of the pause
// that it is in. Without it a sweep ends the operation before the next attempt.
func (ch *StoredChange) addPause() {
	options, err := readOptions(&ch.To)
	if err == nil && ch.Timeout > 0 {
		pause := max(0, time.Until(options.Next))
		ch.Timeout += min(pause, math.MaxInt64-ch.Timeout)
	}
}

// planPayload sets the payload of the record and the one that is saved for an undo.
func (r *request) planPayload(to *StoredRecord) error {
	if err := r.runEdit(); err != nil {
		return err
	}
	to.Payload = r.after
	switch {
	case !r.decision.Saved:
		to.Saved = nil
	case r.decision.Payload == decide.Save:
		to.Saved = r.before.Payload
		if to.Saved == nil {
			to.Saved = []byte{} // the zero payload is saved too
		}
	}
	err := r.decode(r.after)
	if r.discards() {
		return nil
	}
	return err
}

// decode hands the payload that the object has after the request to the typed
// result. A payload that cannot be decoded fails the request before the commit.
func (r *request) decode(payload []byte) error {
	if r.result != nil {
		return r.result.decode(payload)
	}
	return r.core.payloads.checkPayload(payload)
}
