package tablemodel

import (
	"errors"
	"iter"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Decisions are the functions that decide about objects in a model.
type Decisions struct {
	Candidates func(*decide.Request, *fsm.Table, *decide.Record, []int) ([]int, decide.Decision, bool)
	Decide     func(*decide.Request, *fsm.Table, *decide.Record, []int, []error) decide.Decision
	Outcome    func(decide.Request, *fsm.Table, *decide.Record, bool, decide.Events) (decide.Request, bool)
	OwnerDead  func(recorded, living uint64) bool
	Sweep      func(*fsm.Table, *decide.Record, decide.Cause) (decide.Request, decide.Care)
	Redoes     func(*decide.Request, *fsm.Table, *decide.Record) bool
	Restores   func(*decide.Request, *decide.Record) bool
}

// Shipped returns the decisions that lifecycle.Manager performs.
func Shipped() Decisions {
	return Decisions{
		Candidates: (*decide.Request).Candidates,
		Decide:     (*decide.Request).Decide,
		Outcome:    decide.Request.Outcome,
		OwnerDead:  decide.OwnerDead,
		Sweep:      decide.Sweep,
		Redoes:     (*decide.Request).Redoes,
		Restores:   (*decide.Request).Restores,
	}
}

// Object is what a model keeps of an object's record. Its sequence number stays 0,
// because no decision depends on it. Owner and Epoch of a request that starts work are
// those of the process that does it.
type Object struct{ decide.Record }

// Ask decides about a request, all guards of which agree, and returns the object
// afterwards, as it was if nothing is written.
func (d *Decisions) Ask(t *fsm.Table, o Object, q decide.Request) (next Object, answer decide.Decision) {
	for next, answer = range d.AskAll(t, o, q) {
		break
	}
	return next, answer
}

// AskAll is Ask for all results of the guards. In the first one, the first guard passes.
func (d *Decisions) AskAll(t *fsm.Table, o Object, q decide.Request) iter.Seq2[Object, decide.Decision] {
	return func(yield func(Object, decide.Decision) bool) {
		after := func(d *decide.Decision) Object {
			if !d.Write {
				return o
			}
			return o.written(&q, d)
		}
		rows, answer, ok := d.Candidates(&q, t, &o.Record, nil)
		if !ok {
			yield(after(&answer), answer)
			return
		}
		guards := make([]error, len(rows))
		for i := 0; i <= len(rows); i++ {
			answer = d.Decide(&q, t, &o.Record, rows, guards)
			if !yield(after(&answer), answer) || i == len(rows) || t.Rows[rows[i]].Guard == "" {
				return
			}
			guards[i] = errGuard
		}
	}
}

var errGuard = errors.New("a guard refuses")

// written is the object after a commit: what lifecycle writes into a record.
func (o Object) written(q *decide.Request, d *decide.Decision) (next Object) {
	next.Operation, next.Saved = d.Operation, d.Saved
	if d.Removes {
		return next
	}
	next.Exists, next.State, next.Origin = true, d.State, d.Origin
	switch d.Work {
	case decide.SameWork:
		next.Owner, next.Epoch, next.Work = o.Owner, o.Epoch, o.Work
	case decide.NewWork, decide.Redo:
		next.Owner, next.Epoch, next.Work = q.Owner, q.Epoch, true
	case decide.NoWork:
	}
	return next
}

// Rests reports whether the object needs no further move.
func (o *Object) Rests(t *fsm.Table) bool { return !o.Exists || t.States[o.State].Kind.Resting() }
