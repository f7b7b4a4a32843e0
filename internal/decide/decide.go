// Package decide holds the decisions of package lifecycle as pure functions:
// from a table, the record of an object and a request to what is to be written,
// without I/O, clocks or user code. The manager performs what they decide, and
// a model checker can explore the very same functions.
//
// A decision takes two steps, because guards are user code and their results
// are input here: [Request.Candidates] names the rows whose guards are to be
// run, [Request.Decide] takes the results.
package decide

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Verb is what is asked.
type Verb uint8

const (
	Create   Verb = iota // fire a row out of the absent state
	Add                  // put the object into the initial state; no row fires
	Fire                 // fire a row; begins an operation or goes on with one
	Report               // go on with the named operation, never begin one
	Override             // put the object into a state, whatever the table says
)

// Record is what a decision needs to know of an object. The zero Record is an
// object that never existed.
type Record struct {
	Exists        bool
	Saved         bool // the payload from before the operation is kept
	Work          bool // a handler is named that does the operation's work
	Steps         bool // further steps are recorded
	State, Origin int  // by index in the table; meaningless where Exists is false
	Sequence      uint64
	Operation     uint64 // the present operation or the last one
	Owner         string // who does it
	Epoch         uint64
}

// Request is one call.
type Request struct {
	Verb    Verb
	Force   bool // take rows that are forced only
	Edits   bool // the payload is changed in the same commit
	Undo    bool // the event puts the payload from before the operation back
	Repeats bool // Report: this event by this actor was accepted in this operation before
	Owned   bool // Report by the process that does the work itself, see Owner
	Work    bool // Fire, Create: a handler or closure of the caller does the work of the operation that begins
	Steps   bool // Report of the last but not the only step: others follow when the object rests
	Sweep   bool // the sweeper fires the row of a deadline in transition: the recorded work may be done again
	Either  bool // Create: by who fires the event if there is an object

	Event     int // by index; unused by Add
	Actor     fsm.Actor
	Operation uint64 // Report: the operation that the report is about
	To        int    // Override: the state, by index

	// Where the report is Owned: it also has to be the owner still. Otherwise
	// another process has taken the operation over.
	Owner string
	Epoch uint64
}

// Payload is what becomes of the payload from before the operation.
type Payload uint8

const (
	Keep    Payload = iota // whatever is saved stays saved
	Save                   // the present payload is saved, then edited
	Restore                // the saved payload becomes the present one
	Drop                   // nothing is saved any more
)

// Work is what becomes of the work of an operation.
type Work uint8

const (
	NoWork   Work = iota // nobody here does anything: no owner, no handler
	SameWork             // whoever did it goes on, here with the steps that follow
	NewWork              // the caller's process does the caller's work
	Redo                 // the caller's process does the recorded work once more
)

// Verdict is what a report was.
type Verdict uint8

const (
	Applied  Verdict = iota // it moved the object
	Repeated                // it was accepted before, or the table accepts and ignores it
	Stale                   // it is about an operation that is over
	Refused                 // the table, or the operation, does not allow it
)

// Refusals that are not the table's.
var (
	ErrBusy     = errors.New("in transition")
	ErrExists   = errors.New("the object exists")
	ErrNotFound = errors.New("the object does not exist")
	ErrStale    = errors.New("not the present operation")
	ErrNoEntry  = errors.New("objects do not begin like this")
	ErrBegins   = errors.New("a report cannot begin an operation")
)

// BusyError is a refusal by the table while the object is in transition. It
// matches ErrBusy.
type BusyError struct{ Refusal error }

// Error gives the table's refusal.
func (e *BusyError) Error() string { return ErrBusy.Error() + ": " + e.Refusal.Error() }

// Is matches ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Unwrap returns the table's refusal.
func (e *BusyError) Unwrap() error { return e.Refusal }

// Decision is what is to be done. Nothing is to be written where Write is
// false; then Err says why, or is nil for an event that the table ignores.
type Decision struct {
	Err     error
	Verdict Verdict // of a Report

	Write   bool
	Begins  bool // a new operation
	Work    Work // who does the work from now on
	Removes bool // the new state is an absent one
	Payload Payload
	Saved   bool // the payload from before the operation is kept afterwards

	Row           int // -1 for Add
	State, Origin int
	Sequence      uint64
	Operation     uint64
	Within        time.Duration // the new state's deadline, 0 none
}

// Candidates appends to rows those whose guards the caller runs in order until
// one agrees. Where ok is false there is nothing to run and d is final.
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
		if t.States[t.Initial].Kind == fsm.Absent {
			return refuse(Refused, ErrNoEntry)
		}
		return rows, q.add(t, rec), false
	case Create:
		if rec.Exists {
			return refuse(Refused, ErrExists)
		}
		if state = absent(t); state < 0 {
			return refuse(Refused, ErrNoEntry)
		}
		origin = state
	case Fire, Override:
		if !rec.Exists {
			return refuse(Refused, ErrNotFound)
		}
	case Report:
		switch {
		case q.Operation < rec.Operation:
			return refuse(Stale, ErrStale)
		case q.Operation > rec.Operation:
			return refuse(Refused, ErrStale)
		case q.Operation == 0: // names none
			return refuse(Refused, ErrStale)
		case q.Owned && (q.Owner != rec.Owner || q.Epoch != rec.Epoch):
			return refuse(Stale, ErrStale)
		case !rec.Exists && q.Repeats:
			return refuse(Repeated, nil)
		case !rec.Exists:
			return refuse(Refused, ErrNotFound)
		case q.Repeats && t.States[state].Kind.Resting():
			return refuse(Repeated, nil) // the operation is over: its late message is no news
		}
	}
	if q.Verb == Override {
		return rows, q.override(t, rec), false
	}
	rows, err := t.Candidates(rows, state, origin, q.Event, q.Actor, q.Force)
	switch {
	case err == nil:
		return rows, Decision{}, true
	case q.Verb == Report && q.Repeats:
		return refuse(Repeated, nil)
	case q.Verb == Create && q.Either && errors.Is(err, fsm.ErrNotAllowed):
		return refuse(Refused, ErrNotFound) // the event makes no object, and there is none
	case q.Verb == Fire && t.States[state].Kind == fsm.Transitional && (errors.Is(err, fsm.ErrNotAllowed) || errors.Is(err, fsm.ErrForcedOnly)):
		return refuse(Refused, &BusyError{Refusal: err})
	}
	return refuse(Refused, err)
}

// Decide takes the candidates and the results of their guards, nil for a guard
// that agrees or is not there. Results beyond the first nil are not looked at.
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

// take is the decision for a row that agrees.
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
		// Without an id a call begins an operation, with one it goes on with
		// it: a late report must never start work anew.
		if q.Verb == Report {
			return Decision{Row: row, Verdict: Refused, Err: ErrBegins}
		}
		d.Operation++
	} else if q.Verb == Create {
		d.Operation = anew(rec)
	}
	d.Removes = to == fsm.Absent
	d.Within, _ = t.Deadline(d.State, d.Origin)
	d.Work = q.work(rec, to, d.Begins)
	d.Payload = q.payload(rec, from, to, d.Begins)
	// An undo that is work itself may fail too, and be undone again.
	d.Saved = d.Payload == Save || d.Payload == Keep && rec.Saved || d.Payload == Restore && !restsWell(to)
	return d
}

// begins reports whether a row begins an operation.
func begins(t *fsm.Table, from, to, row int) bool {
	return t.States[to].Kind == fsm.Transitional && (t.States[from].Kind.Resting() || t.Rows[row].Supersede)
}

// work decides who does the work from now on. A deadline that begins the
// operation anew, instead of ending it, has its work done again.
func (q *Request) work(rec *Record, to fsm.Kind, begins bool) Work {
	switch {
	case to != fsm.Transitional && to != fsm.Absent && q.Owned && q.Steps:
		return SameWork
	case to != fsm.Transitional:
		return NoWork
	case begins && q.Work:
		return NewWork
	case begins && q.Sweep && rec.Work:
		return Redo
	case begins:
		return NoWork
	}
	return SameWork
}

// override puts the object into a state. It is a new operation in every case, so
// that nothing which was said about the old one counts any more.
func (q *Request) override(t *fsm.Table, rec *Record) Decision {
	d := Decision{
		Write: true, Row: -1, State: q.To, Origin: q.To, Begins: true,
		Sequence: rec.Sequence + 1, Operation: rec.Operation + 1,
	}
	from, to := t.States[rec.State].Kind, t.States[q.To].Kind
	if to == fsm.Transitional {
		// Where a return leads stays what it was: the last state of rest.
		d.Origin = rec.Origin
	}
	d.Payload = q.payload(rec, from, to, true)
	d.Saved = d.Payload == Save || d.Payload == Keep && rec.Saved
	d.Removes = to == fsm.Absent
	d.Within, _ = t.Deadline(d.State, d.Origin)
	return d
}

func (q *Request) add(t *fsm.Table, rec *Record) Decision {
	d := Decision{
		Write: true, Row: -1, State: t.Initial, Origin: t.Initial,
		Sequence: rec.Sequence + 1, Operation: anew(rec), Payload: Drop,
	}
	if t.States[t.Initial].Kind == fsm.Transitional {
		d.Begins = true
		d.Operation = rec.Operation + 1
	}
	d.Within, _ = t.Deadline(d.State, d.Origin)
	return d
}

// anew is the operation of an object that is made at rest: none, or, where an
// object of this key was before, a number of which nobody was ever told. What is
// said about that one's last operation is stale.
func anew(rec *Record) uint64 {
	if rec.Operation == 0 {
		return 0
	}
	return rec.Operation + 1
}

// payload decides about the payload from before the operation. It is saved by
// the first edit of an operation and kept while the object is in transition or
// failed, so that an undo after the failure finds it; a retry out of a failure
// keeps the last good one, not the one that failed.
func (q *Request) payload(rec *Record, from, to fsm.Kind, begins bool) Payload {
	switch {
	case q.Undo && rec.Saved:
		return Restore
	case restsWell(to), from == fsm.Absent:
		return Drop // there is nothing to undo
	case begins && from != fsm.Failed && from != fsm.Transitional && q.Edits:
		return Save
	case begins && from != fsm.Failed && from != fsm.Transitional:
		return Drop
	case q.Edits && !rec.Saved:
		return Save
	}
	return Keep
}

// restsWell reports whether an object in a state of this kind has got through its
// operation: there is nothing to undo any more.
func restsWell(k fsm.Kind) bool { return k.Resting() && k != fsm.Failed }

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
