// Package decide holds the decisions of package lifecycle as pure functions. Their
// input is a table, the record of an object and a request; their output is what
// the core of package lifecycle writes. They use no I/O, no clocks and no user
// code, so that a model checker explores the functions that run.
//
// A decision takes two steps, because guards are user code and their results are
// input here: [Request.Candidates] returns the rows whose guards the caller runs,
// [Request.Decide] takes the results.
package decide

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Verb is the kind of a request.
type Verb uint8

const (
	Create    Verb = iota // fire a row out of the absent state
	Add                   // put a new object into a state; no row fires
	Fire                  // fire a row; starts an operation or continues one
	Report                // continue the named operation, never start one
	Override              // put the object into a state without a row
	Heartbeat             // extend the deadline of the named operation
	Migrate               // write the record in another form; state and operation stay
)

// Record is the part of an object's record that decisions depend on. The zero
// Record is an object that never existed.
type Record struct {
	Exists        bool
	Saved         bool // the payload from before the operation is kept
	Work          bool // the record names a handler that does the operation's work
	State, Origin int  // by index in the table; meaningless if Exists is false
	Sequence      uint64
	Operation     uint64 // the present operation or the last one
	Owner         string // the process that executes it
	Epoch         uint64
}

// Request is one call.
type Request struct {
	Verb     Verb
	Force    bool // take forced rows too
	Edits    bool // the payload changes in the same commit
	Undo     bool // the event restores the payload from before the operation
	Repeats  bool // Report: this event by this actor was accepted in this operation before
	Owned    bool // Report, Heartbeat: by the process that executes the operation, see Owner
	Work     bool // Fire, Create: the caller's process does the work of the operation that starts
	Sweep    bool // the sweeper fires a deadline row of a transitional state: the recorded work may be done again
	MayExist bool // Create, Fire: the call is a Create if the object does not exist, else a Fire

	Event     int // by index; unused by Add, Override, Heartbeat and Migrate
	Actor     fsm.Actor
	Operation uint64 // Report, Heartbeat: the operation that the request is about
	To        int    // Add, Override: the state, by index

	// Owner and Epoch must be those of the record if the request is Owned. If they
	// are not, another process has taken the operation over.
	Owner string
	Epoch uint64
}

// Work is what happens to the work of an operation.
type Work uint8

const (
	NoWork   Work = iota // the record names no owner and no handler
	SameWork             // owner and handler stay
	NewWork              // the caller's process does the caller's work
	Redo                 // the caller's process does the recorded work again
)

// Verdict is the result of a report.
type Verdict uint8

const (
	Applied  Verdict = iota // it moved the object
	Repeated                // it was accepted before, or the table accepts and ignores it
	Stale                   // it is about an operation that is over
	Refused                 // the table or the operation does not permit it
)

// Refusals that do not come from the table. Package lifecycle exports the first four.
var (
	ErrBusy     = errors.New("lifecycle: cannot execute action at this time")
	ErrExists   = errors.New("lifecycle: exists already")
	ErrNotFound = errors.New("lifecycle: not found")
	ErrStale    = errors.New("lifecycle: stale operation")
	ErrNoEntry  = fmt.Errorf("%w: no row creates the object", fsm.ErrNotAllowed)
	ErrBegins   = fmt.Errorf("%w: a report cannot start an operation", fsm.ErrNotAllowed)
)

// BusyError is a refusal by the table while the object is in transition. It
// matches ErrBusy.
type BusyError struct{ Refusal error }

// Error returns the text of ErrBusy.
func (e *BusyError) Error() string { return ErrBusy.Error() }

// Unwrap returns ErrBusy and the table's refusal.
func (e *BusyError) Unwrap() []error { return []error{ErrBusy, e.Refusal} }

// Decision is the result. Nothing is written if Write is false: Err is then the
// reason, or nil for an event that the table ignores and for a heartbeat without a
// deadline.
type Decision struct {
	Err     error
	Verdict Verdict // of a Report

	Write        bool
	MetadataOnly bool // only the deadline changes
	Begins       bool // a new operation
	Work         Work
	Removes      bool // the new state is an absent one
	Saves        bool // the present payload is saved, before it is edited
	Saved        bool // a payload is saved afterwards

	Row           int // -1 if no row fires
	State, Origin int
	Sequence      uint64
	Operation     uint64
	Timeout       time.Duration // until the deadline of the new state, 0: none
}

// Candidates appends to rows the rows whose guards the caller runs, in order, until
// one passes. If ok is false, there is no guard to run and d is final.
func (q *Request) Candidates(t *fsm.Table, rec *Record, rows []int) (_ []int, d Decision, ok bool) {
	refuse := func(verdict Verdict, err error) ([]int, Decision, bool) {
		return rows, Decision{Row: -1, Verdict: verdict, Err: err}, false
	}
	state, origin := rec.State, rec.Origin
	switch q.Verb {
	case Add:
		if rec.Exists {
			return refuse(Refused, ErrExists)
		}
		if t.States[q.To].Kind == fsm.Absent {
			return refuse(Refused, ErrNoEntry)
		}
		return rows, q.add(t, rec), false
	case Create:
		if rec.Exists {
			return refuse(Refused, ErrExists)
		}
		state = absent(t)
		switch {
		case state < 0 && q.MayExist:
			return refuse(Refused, ErrNotFound) // nothing creates objects
		case state < 0:
			return refuse(Refused, ErrNoEntry)
		}
		origin = state
	case Fire, Override, Migrate:
		switch {
		case !rec.Exists:
			return refuse(Refused, ErrNotFound)
		case q.Verb == Override:
			return rows, q.override(t, rec), false
		case q.Verb == Migrate:
			return rows, migrate(t, rec), false
		}
	case Report, Heartbeat:
		switch {
		case q.Operation < rec.Operation:
			return refuse(Stale, ErrStale)
		case q.Operation > rec.Operation:
			return refuse(Refused, ErrStale)
		case q.Operation == 0: // the request names no operation
			return refuse(Refused, ErrStale)
		case q.Owned && (q.Owner != rec.Owner || q.Epoch != rec.Epoch):
			return refuse(Stale, ErrStale)
		case !rec.Exists && q.Repeats:
			return refuse(Repeated, nil)
		case !rec.Exists:
			return refuse(Refused, ErrNotFound)
		case q.Verb == Heartbeat:
			return rows, heartbeat(t, rec), false
		case q.Repeats && t.States[state].Kind.Resting():
			return refuse(Repeated, nil) // the operation is over, and its report came before
		}
	}
	rows, err := t.Candidates(rows, state, origin, q.Event, q.Actor, q.Force)
	switch {
	case err == nil:
		return rows, Decision{}, true
	case q.Verb == Report && q.Repeats:
		return refuse(Repeated, nil)
	case q.Verb == Create && q.MayExist && errors.Is(err, fsm.ErrNotAllowed):
		return refuse(Refused, ErrNotFound) // the event creates no object, and there is none
	case q.Verb == Fire && q.MayExist && errors.Is(err, fsm.ErrNotAllowed) && onlyCreates(t, q.Event):
		return refuse(Refused, ErrExists)
	case q.Verb == Fire && t.States[state].Kind == fsm.Transitional && (errors.Is(err, fsm.ErrNotAllowed) || errors.Is(err, fsm.ErrForcedOnly)):
		return refuse(Refused, &BusyError{Refusal: err})
	}
	return refuse(Refused, err)
}

// Decide takes the candidates and the results of their guards: nil for a row whose
// guard passes and for a row without a guard. It reads no result after the first
// nil.
func (q *Request) Decide(t *fsm.Table, rec *Record, rows []int, guards []error) Decision {
	state, origin := rec.State, rec.Origin
	if q.Verb == Create {
		state = absent(t)
		origin = state
	}
	for i, row := range rows {
		if guards[i] == nil {
			return q.take(t, rec, state, origin, row)
		}
	}
	if q.Verb == Report && q.Repeats {
		return Decision{Row: -1, Verdict: Repeated}
	}
	return Decision{Row: -1, Verdict: Refused, Err: t.Refused(state, origin, q.Actor, rows, guards)}
}

// take is the decision for a row that fires.
func (q *Request) take(t *fsm.Table, rec *Record, state, origin, row int) Decision {
	r := &t.Rows[row]
	if r.Then == fsm.ThenIgnore {
		return Decision{Row: row, Verdict: Repeated}
	}
	d := Decision{Write: true, Row: row, Sequence: rec.Sequence + 1, Operation: rec.Operation}
	d.State, d.Origin = t.After(state, origin, row)
	from, to := t.States[state].Kind, t.States[d.State].Kind
	d.Begins = begins(t, state, d.State, row)
	if d.Begins {
		// A report names the operation that it continues: a late one must never
		// start work again.
		if q.Verb == Report {
			return Decision{Row: row, Verdict: Refused, Err: ErrBegins}
		}
		d.Operation++
	} else if q.Verb == Create {
		d.Operation = rebirth(rec)
	}
	d.Removes = to == fsm.Absent
	d.Timeout, _ = t.Timeout(d.State, d.Origin)
	switch {
	case to != fsm.Transitional: // NoWork
	case !d.Begins:
		d.Work = SameWork
	case q.Work:
		d.Work = NewWork
	case q.Sweep && rec.Work: // the sweeper's row starts the operation again, instead of ending it
		d.Work = Redo
	}
	d.Saves, d.Saved = q.saves(rec, from, to, d.Begins)
	return d
}

// begins reports whether a row starts an operation.
func begins(t *fsm.Table, from, to, row int) bool {
	return t.States[to].Kind == fsm.Transitional && (t.States[from].Kind.Resting() || t.Rows[row].Supersede)
}

// heartbeat extends the deadline of a transitional state. A state without a
// deadline has nothing to extend.
func heartbeat(t *fsm.Table, rec *Record) Decision {
	if t.States[rec.State].Kind != fsm.Transitional {
		return Decision{Row: -1, Verdict: Stale, Err: ErrStale}
	}
	d := unmoved(t, rec)
	if d.Timeout == 0 {
		return Decision{Row: -1}
	}
	d.MetadataOnly = true
	return d
}

// migrate keeps the object as it is. Its deadline counts anew, by this table.
func migrate(t *fsm.Table, rec *Record) Decision {
	d := unmoved(t, rec)
	d.Sequence++
	return d
}

// unmoved is a decision that keeps state, operation, work and payload. The deadline counts
// anew.
func unmoved(t *fsm.Table, rec *Record) Decision {
	d := Decision{
		Write: true, Saved: rec.Saved, Row: -1,
		State: rec.State, Origin: rec.Origin, Sequence: rec.Sequence, Operation: rec.Operation,
	}
	if t.States[rec.State].Kind == fsm.Transitional {
		d.Work = SameWork
	}
	d.Timeout, _ = t.Timeout(d.State, d.Origin)
	return d
}

// override puts the object into a state. It always starts a new operation, so that
// reports about the old one are stale.
func (q *Request) override(t *fsm.Table, rec *Record) Decision {
	d := Decision{
		Write: true, Row: -1, State: q.To, Origin: q.To, Begins: true,
		Sequence: rec.Sequence + 1, Operation: rec.Operation + 1,
	}
	from, to := t.States[rec.State].Kind, t.States[q.To].Kind
	if to == fsm.Transitional {
		// The target of return rows stays the last non-transitional state.
		d.Origin = rec.Origin
	}
	d.Saves, d.Saved = q.saves(rec, from, to, true)
	d.Removes = to == fsm.Absent
	d.Timeout, _ = t.Timeout(d.State, d.Origin)
	return d
}

func (q *Request) add(t *fsm.Table, rec *Record) Decision {
	d := Decision{
		Write: true, Row: -1, State: q.To, Origin: q.To,
		Sequence: rec.Sequence + 1, Operation: rebirth(rec),
	}
	if t.States[q.To].Kind == fsm.Transitional {
		d.Begins = true
		d.Operation = rec.Operation + 1
	}
	d.Timeout, _ = t.Timeout(d.State, d.Origin)
	return d
}

// onlyCreates reports whether an event has rows, and all of them lead out of the absent
// state.
func onlyCreates(t *fsm.Table, event int) (creates bool) {
	for i := range t.Rows {
		for _, from := range t.Rows[i].From {
			if t.Rows[i].Event != event {
				continue
			}
			if t.States[from].Kind != fsm.Absent {
				return false
			}
			creates = true
		}
	}
	return creates
}

// rebirth is the operation of an object that is created at rest: none, or, if an
// object of this key existed before, a number that no report has ever named.
// Reports about the removed object's last operation are then stale.
func rebirth(rec *Record) uint64 {
	if rec.Operation == 0 {
		return 0
	}
	return rec.Operation + 1
}

// Restores reports whether the payload from before the operation becomes the present one,
// before the caller's edit and the guards.
func (q *Request) Restores(rec *Record) bool { return q.Undo && rec.Saved }

// saves decides about the payload from before the operation. It returns whether the present
// payload is saved, and whether a payload is saved afterwards. The first edit of an operation
// saves it. It is kept while the object is transitional or failed, so that an undo after the
// failure finds it. A retry out of a failed state keeps the payload from before the failure,
// not the one that failed.
func (q *Request) saves(rec *Record, from, to fsm.Kind, begins bool) (saves, saved bool) {
	switch {
	case to.Resting() && to != fsm.Failed:
		return false, false // the operation is completed, and there is nothing to undo
	case q.Restores(rec):
		return false, true // an undo that is an operation itself may fail too, and is undone again
	case from == fsm.Absent:
		return false, false
	case begins && from != fsm.Failed && from != fsm.Transitional:
		return q.Edits, q.Edits
	}
	saves = q.Edits && !rec.Saved
	return saves, saves || rec.Saved
}

// absent returns the state of an object that does not exist: the initial one if
// it is Absent, else the first declared that is; -1 if there is none.
func absent(t *fsm.Table) int {
	if t.States[t.Initial].Kind == fsm.Absent {
		return t.Initial
	}
	for i := range t.States {
		if t.States[i].Kind == fsm.Absent {
			return i
		}
	}
	return -1
}
