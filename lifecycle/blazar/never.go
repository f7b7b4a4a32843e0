package blazar

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Never returns which of the calls start, terminate, update and delete a lease
// with these statuses will not be allowed any more, whatever happens to it short
// of being deleted: the table of leases has no way to a status that takes the
// call, or the table of relationships needs statuses of reservations and events that
// theirs cannot reach. A call that Never does not return may be refused too.
//
// So a lease whose start has failed can never be terminated: TERMINATING needs a
// start_lease that is DONE, and ERROR is the last status of an event. It can be
// deleted.
func Never(lease LeaseState, reservations []ReservationState, start, end EventState) []Call {
	possible := make(map[Call]bool)
	future := future(lease)
	starts := reachable(start, EventState.Next)
	if start != EventDone && !future[LeaseStarting] { // it is DONE when the lease has started, and not otherwise
		starts = slices.DeleteFunc(starts, func(s EventState) bool { return s == EventDone })
	}
	for s := range future {
		for row := range Lease.Rows() {
			if row.Then == fsm.ThenMove && slices.Contains(row.From, s) && satisfiable(row.To, reservations, starts, end) {
				possible[row.Event] = true
			}
		}
	}
	var never []Call
	for _, call := range []Call{Start, Terminate, Update, Delete} {
		if !possible[call] {
			never = append(never, call)
		}
	}
	return never
}

// future returns the statuses that a lease can get into until it is deleted.
func future(from LeaseState) map[LeaseState]bool {
	origin := from
	if from == LeaseUpdating { // its origin is not known here
		origin = ""
	}
	seen := map[fsm.Status[LeaseState]]bool{}
	found := map[LeaseState]bool{}
	var visit func(at fsm.Status[LeaseState])
	visit = func(at fsm.Status[LeaseState]) {
		if seen[at] || at.State == LeaseAbsent {
			return
		}
		seen[at], found[at.State] = true, true
		for e := range Lease.Events() {
			for _, actor := range []fsm.Actor{User, Manager} {
				if step, err := Lease.Next(context.Background(), at, e, actor, nil); err == nil && e != Delete {
					visit(step.Status)
				}
			}
		}
	}
	if origin != "" {
		visit(Lease.At(origin))
		return found
	}
	found[LeaseUpdating] = true
	for _, s := range origins(Lease, LeaseUpdating) {
		visit(Lease.At(s))
	}
	return found
}

// satisfiable reports whether these reservations and events can get to where the
// line of a status wants them. Starts is what the event start_lease can get to.
func satisfiable(lease LeaseState, reservations []ReservationState, starts []EventState, end EventState) bool {
	lines := Combinations()
	i := slices.IndexFunc(lines, func(c Combination) bool { return c.Lease == lease })
	if i < 0 {
		return true
	}
	line := lines[i]
	for _, r := range reservations {
		if !meets(reachable(r, ReservationState.Next), line.Reservations) {
			return false
		}
	}
	return meets(starts, line.Start) && meets(reachable(end, EventState.Next), line.End)
}

// reachable returns a status and those that it can lead to.
func reachable[S comparable](from S, next func(S) []S) []S {
	list := []S{from}
	for i := 0; i < len(list); i++ {
		for _, s := range next(list[i]) {
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// meets reports whether two lists have something in common; a nil list of what
// is wanted wants nothing in particular.
func meets[S comparable](can, want []S) bool {
	return want == nil || slices.ContainsFunc(can, func(s S) bool { return slices.Contains(want, s) })
}
