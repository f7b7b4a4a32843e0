package models

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// The methods of a lease: admission, steps and end.

// begin admits a method.
func (s *Blazar) begin(l lease, call blazar.Call, actor fsm.Actor) (lease, bool) {
	verb := decide.Fire
	if call == blazar.Create {
		verb = decide.Create
	}
	e, _ := leaseTable.EventIndex(string(call))
	if l.Present.At && l.Late.At {
		return l, false // the model keeps one late method
	}
	if !s.commit(&l, decide.Request{Verb: verb, Event: e, Actor: actor, Work: true}) {
		return l, false
	}
	if l.Present.At {
		l.Late = l.Present
	}
	l.Present = work{At: true, Call: uint8(e), Operation: l.Operation, Status: l.State}
	return l, true
}

// ends writes the outcome of a method. If the table refuses it, ends writes the failure. A
// late outcome changes nothing.
func (s *Blazar) ends(l lease, w work, call blazar.Call) lease {
	for _, c := range []blazar.Call{call, blazar.Fail} {
		e, _ := leaseTable.EventIndex(string(c))
		q := decide.Request{Verb: decide.Report, Event: e, Actor: blazar.Manager, Operation: uint64(w.Operation)}
		if s.commit(&l, q) {
			break
		}
	}
	return l
}

// works is one step of a method: its next reservation, or the outcome.
func (s *Blazar) works(all leases, i int, late bool, step func(string, bool, leases)) {
	l := all.L[i]
	w := l.Present
	if late {
		w = l.Late
	}
	if !w.At {
		return
	}
	name := string(w.call())
	if late {
		name = "late " + name
	}
	say := func(label string, l lease, w work, left spent) {
		if late {
			l.Late = w
		} else {
			l.Present = w
		}
		next := all
		next.L[i], next.Left = l, left
		step(fmt.Sprintf("%c: %s %s", 'A'+i, name, label), false, next)
	}
	mark := map[blazar.Call]blazar.Call{blazar.Start: blazar.Start, blazar.Terminate: blazar.Delete, blazar.Delete: blazar.Delete}[w.call()]
	if int(w.Next) < s.Reservations {
		n := w.Next
		w.Next++
		// The lease refuses the mark after it has another status.
		marked := func(call blazar.Call) (lease, work) {
			l, w := l, w
			if mark != "" && !(l.Exists && l.State == w.Status && s.fire(reservationTable, &l.Reservations[n], call)) {
				w.Failed, w.Next = true, uint8(s.Reservations)
			}
			return l, w
		}
		done, after := marked(mark)
		if mark == blazar.Delete && blazar.Reservation.StateAt(int(l.Reservations[n])) == blazar.ReservationDeleted {
			done, after = l, w // it is deleted already
		}
		say("goes on", done, after, all.Left)
		if all.Left.Failures > 0 {
			left := all.Left
			left.Failures--
			failed, after := marked(blazar.Fail)
			if blazar.Reservation.StateAt(int(l.Reservations[n])) == blazar.ReservationError {
				failed, after = l, w // it is marked already
			}
			after.Failed = true
			say("fails", failed, after, left)
		}
		if all.Left.Refusals > 0 && (w.call() == blazar.Create || w.call() == blazar.Update) {
			left := all.Left
			left.Refusals--
			say("is refused", s.ends(l, w, blazar.Refuse), work{}, left)
		}
		return
	}
	outcome := blazar.Done
	if w.Failed {
		outcome = blazar.Fail
	}
	say(string(outcome), s.ends(l, w, outcome), work{}, all.Left)
}
