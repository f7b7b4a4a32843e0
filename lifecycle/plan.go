package lifecycle

import (
	"math"
	"slices"
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
func (r *request) plan(token Token) (err error) {
	d, table := &r.decision, r.core.table
	change := &StoredChange{
		Expect: r.before.Revision, From: r.before.State, FromOrigin: r.before.Origin, To: r.before,
		Timeout: d.Timeout, Remove: d.Removes, MetadataOnly: d.MetadataOnly,
	}
	r.change, r.form = change, change
	to := &change.To
	to.Version = r.core.version
	if d.MetadataOnly {
		if r.options != nil {
			err = editOptions(to, r.options)
		}
		change.addPause()
		return err
	}
	state := &table.States[d.State]
	to.State, to.Origin = state.Name, table.States[d.Origin].Name
	switch {
	case state.Kind == fsm.Transitional && state.Target >= 0:
		to.Target = table.States[state.Target].Name
	case state.Kind != fsm.Transitional || d.Begins:
		to.Target = ""
	} // else the operation goes on to its target
	to.Sequence, to.Operation = d.Sequence, OpID(d.Operation)
	if d.Begins {
		to.Admission = token
	}
	to.Actor, to.Event, to.Reason = r.ask.Actor, r.event, r.Reason
	if r.ask.Verb == decide.Override || r.ask.Verb == decide.Add && d.State != table.Initial {
		to.Event = Overridden // the table has no event for it
	}
	to.ChangeToken, to.Fence = token, max(to.Fence, r.Fence)
	if r.Request.ID != "" {
		change.Request, change.Fingerprint = r.Request.ID, r.fingerprint()
	}
	if err := r.planWork(change); err != nil {
		return err
	}
	return r.planPayload(to)
}

// planForm brings the change into the form of the record's version, so that programs of
// that version still read the record.
func (r *request) planForm() error {
	form := *r.change
	r.form = &form
	form.From, form.FromOrigin = r.stored.State, r.stored.Origin
	switch to := &form.To; {
	case r.older == nil:
		return nil
	case form.MetadataOnly:
		*to = *r.stored
		to.WorkOptions = r.change.To.WorkOptions
		return nil
	}
	return r.older.downgrade(&form)
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
		if r.starts() { // by Work.With
			to.Owner, to.Epoch = self.Name, self.Epoch
		}
	}
	if r.core.owner != nil && r.starts() && r.core.timed() { // the next state may have a deadline, if this one has none
		change.Timeout = 0
		return editOptions(to, func(w *workOptions) { w.Waiting = true })
	}
	return nil
}

// timed reports whether states of the table have deadlines.
func (c *core) timed() bool {
	return slices.ContainsFunc(c.table.Rows, func(row fsm.TableRow) bool { return row.Timeout > 0 })
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
	case r.decision.Saves:
		to.Saved = r.before.Payload
		if to.Saved == nil {
			to.Saved = []byte{} // the zero payload is saved too
		}
	}
	// A payload that cannot be decoded fails the request before the commit.
	decoded, err := r.core.payloads.decode(r.after)
	if err != nil && r.discards() {
		return nil
	}
	r.decoded = decoded
	return err
}
