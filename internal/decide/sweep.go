package decide

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Sight is what a sweeper knows of an object besides its record.
type Sight struct {
	Overdue   bool // its deadline is over
	OwnerDead bool // its owner is dead, or alive under a later epoch
}

// Care is what a sweeper does about an object.
type Care uint8

const (
	LeaveAlone  Care = iota // there is nothing to do
	FireEvent               // fire the event of the request
	NextStep                // its owner died between two steps: go on with the next
	AskSomebody             // the table says that a person looks after it
	CannotHelp              // its owner is dead, and the table has no row for that
)

// Sweep decides what a sweeper does about an object. The row of the deadline is
// the policy, also where the owner died before the deadline: it returns to the
// origin, goes to a failed state, or begins the operation anew.
func Sweep(t *fsm.Table, rec *Record, s Sight) (Request, Care) {
	if !rec.Exists || !s.Overdue && !s.OwnerDead {
		return Request{}, LeaveAlone
	}
	st := &t.States[rec.State]
	_, row := t.Deadline(rec.State, rec.Origin)
	switch {
	case row >= 0 && (s.Overdue || st.Kind == fsm.Transitional):
		// What a record at rest names is a step that is done.
		again := st.Kind == fsm.Transitional
		return Request{Verb: Fire, Event: t.Rows[row].Event, Actor: fsm.Sweeper, Force: t.Rows[row].Forced, Sweep: again}, FireEvent
	case st.Kind != fsm.Transitional && rec.Steps && s.OwnerDead:
		return Request{Verb: Fire, Work: true}, NextStep
	case st.Kind != fsm.Transitional:
		return Request{}, LeaveAlone
	case st.Manual != "":
		return Request{}, AskSomebody
	}
	return Request{}, CannotHelp
}

// MayRedo reports whether Redoes may be true of any transitional state: only a row
// that supersedes begins an operation there.
func MayRedo(t *fsm.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Supersede })
}

// Redoes reports whether the deadline of a state may begin its operation anew:
// then somebody must be able to do the work once more, whoever began it. Which of
// the rows of its event is taken is for the guards to say, so every one counts that
// they can choose.
func Redoes(t *fsm.Table, state, origin int) bool {
	_, row := t.Deadline(state, origin)
	if row < 0 {
		return false
	}
	var buf [4]int
	rows, _ := t.Candidates(buf[:0], state, origin, t.Rows[row].Event, fsm.Sweeper, t.Rows[row].Forced)
	for _, row := range rows {
		next, _ := t.After(state, origin, row)
		if begins(t, state, next, row) {
			return true
		}
		if t.Rows[row].Guard == "" {
			break // it is always taken, and those behind it never
		}
	}
	return false
}
