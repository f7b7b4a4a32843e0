package decide

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Cause is why an object is stuck.
type Cause struct {
	Overdue   bool // its deadline has passed
	OwnerDead bool // its owner is dead, or alive with a later epoch, or it has none
}

// Care is what the sweeper does about an object.
type Care uint8

const (
	LeaveAlone    Care = iota // nothing: the object is not stuck
	FireEvent                 // fire the event of the request
	NeedsOperator             // the table names the state Manual
	NoRow                     // the object is stuck, and the table has no deadline row for it
)

// Sweep decides what the sweeper does about an object. The deadline row is the
// policy, also if the owner died before the deadline: it returns to the origin,
// moves to a failed state, or starts the operation again.
func Sweep(t *fsm.Table, rec *Record, s Cause) (Request, Care) {
	if !rec.Exists || !s.Overdue && !s.OwnerDead {
		return Request{}, LeaveAlone
	}
	st := &t.States[rec.State]
	_, row := t.Timeout(rec.State, rec.Origin)
	switch {
	case row >= 0 && (s.Overdue || st.Kind == fsm.Transitional):
		return Request{ // without Force, because fsm permits no forced row with a timeout
			Verb: Fire, Event: t.Rows[row].Event, Actor: fsm.Sweeper, Sweep: st.Kind == fsm.Transitional,
		}, FireEvent
	case st.Kind != fsm.Transitional:
		return Request{}, LeaveAlone
	case st.Manual != "":
		return Request{}, NeedsOperator
	}
	return Request{}, NoRow
}

// OwnerDead reports whether the owner of an operation is dead. The arguments are the
// epoch in the object's record, and that of the living owner of the same name; 0: there
// is none. An owner that came back has a later epoch and does not do its earlier work.
func OwnerDead(recorded, living uint64) bool { return recorded != living }

// Redoes reports whether the request may do the recorded work again: the caller then
// needs its handler.
func (q *Request) Redoes(t *fsm.Table, rec *Record) bool {
	return q.Sweep && rec.Work && redoes(t, rec.State, rec.Origin)
}

// redoes reports whether the deadline row of a state may start its operation
// again. Any process must then be able to do the work: it needs a handler. If
// several rows have the event, their guards choose, so every row counts that they
// can choose.
func redoes(t *fsm.Table, state, origin int) bool {
	_, row := t.Timeout(state, origin)
	if row < 0 {
		return false
	}
	var buf [4]int
	rows, _ := t.Candidates(buf[:0], state, origin, t.Rows[row].Event, fsm.Sweeper, false)
	for _, row := range rows {
		next, _ := t.After(state, origin, row)
		if begins(t, state, next, row) {
			return true
		}
		if t.Rows[row].Guard == "" {
			break // it always fires, and no row after it does
		}
	}
	return false
}

// MayRedo reports whether the deadline row of a state, or of one that the same operation may
// reach from it, may start the operation again. Work without a handler cannot be done again.
func MayRedo(t *fsm.Table, state, origin int) bool {
	reached := []int{state}
	for i := 0; i < len(reached); i++ {
		from := reached[i]
		if redoes(t, from, origin) {
			return true
		}
		for row := range t.Rows {
			r := &t.Rows[row]
			if !slices.Contains(r.From, from) || len(r.Origin) > 0 && !slices.Contains(r.Origin, origin) {
				continue
			}
			next, _ := t.After(from, origin, row)
			if t.States[next].Kind == fsm.Transitional && !begins(t, from, next, row) && !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
	}
	return false
}
