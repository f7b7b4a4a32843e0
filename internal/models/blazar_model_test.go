// Leases of lifecycle/blazar with their reservations and events: users create, update and
// delete leases, the clock starts and ends them, and a manager that may fail, hang or die
// works between two changes of status. Two leases follow each other on the same resources.
//
// The model contains:
//   - the tables of leases, reservations and events with the decisions of internal/decide,
//   - the table of relationships, which every commit checks that changes a status, except
//     one that changes it to ERROR,
//   - the changes of events in the commit of a lease,
//   - the methods: they mark one reservation after the other, and the lease refuses a mark
//     after its status has changed,
//   - Batches.
//
// A method that was interrupted, or that the sweeper abandoned, may continue without
// limit. Its marks and its outcome come late.
//
// The model omits the content of leases, changes of their times, and flags. The only fault
// of a process is that a method dies with it. All reads and writes of one call of the store
// are one step. So are the check for another lease with the resources and the commit that
// follows it.

package models

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// Blazar is the reservation service as a model. The zero Blazar has no leases.
type Blazar struct {
	Decisions    *Decisions // default: shipped
	Leases       int        // 1 or 2, which follow each other on the same resources
	Reservations int        // of each lease: 1 or 2

	// Budgets: the maximum number of requests and faults.
	Updates, Deletes   uint8
	Refusals, Failures uint8 // of a plugin
	Deaths             uint8 // of a method, with its process
	Hangs              uint8 // of a method that the sweeper abandons and that continues

	// Planted fault.
	Impolite bool // a lease starts while another one has its resources
}

// leases is the whole system.
type leases struct {
	L    [2]lease
	Now  uint8
	Left spent
}

// spent is the rest of the budgets.
type spent struct{ Updates, Deletes, Refusals, Failures, Deaths, Hangs uint8 }

// lease is a lease with its parts. A part that does not exist is zero.
type lease struct {
	Exists                   bool
	State, Origin, Operation uint8
	Made                     bool // it was created; the model creates a lease once

	Reservations [2]uint8 // statuses, by index
	Start, End   uint8    // statuses of the events, by index
	Present      work     // the running method
	Late         work     // an interrupted or abandoned method
}

// work is a method between two changes of status.
type work struct {
	At        bool  // the method exists
	Call      uint8 // by index
	Operation uint8
	Status    uint8 // status of the lease during the method
	Next      uint8 // the next reservation
	Failed    bool  // one of them has failed
}

func (w *work) call() blazar.Call { return blazar.Lease.EventAt(int(w.Call)) }

var (
	leaseTable       = blazar.Lease.Table()
	reservationTable = blazar.Reservation.Table()
	eventTable       = blazar.Event.Table()
	combinations     = blazar.Combinations()
)

func (l *lease) status() blazar.LeaseState {
	if !l.Exists {
		return blazar.LeaseAbsent
	}
	return blazar.Lease.StateAt(int(l.State))
}

// object is the record of the lease.
func (l *lease) object() object {
	return object{Record: decide.Record{
		Exists: l.Exists, State: int(l.State), Origin: int(l.Origin), Operation: uint64(l.Operation),
	}}
}

func (l *lease) start() blazar.EventState { return blazar.Event.StateAt(int(l.Start)) }
func (l *lease) end() blazar.EventState   { return blazar.Event.StateAt(int(l.End)) }

func (l *lease) reservations(n int) (list []blazar.ReservationState) {
	for _, r := range l.Reservations[:n] {
		list = append(list, blazar.Reservation.StateAt(int(r)))
	}
	return list
}

func (s leases) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d", s.Now)
	for i := range s.L {
		l := &s.L[i]
		if !l.Exists {
			continue
		}
		fmt.Fprintf(&b, "; %c %s, reservations %v, start %s, end %s", 'A'+i, l.status(), l.reservations(2), l.start(), l.end())
		for _, w := range []work{l.Present, l.Late} {
			if w.At {
				fmt.Fprintf(&b, ", %s at reservation %d", w.call(), w.Next+1)
			}
		}
	}
	return b.String()
}

// allowed reports whether the table of relationships allows the statuses of a lease.
func (s *Blazar) allowed(l *lease) bool {
	i := slices.IndexFunc(combinations, func(c blazar.Combination) bool { return c.Lease == l.status() })
	return i < 0 || combinations[i].Allows(l.reservations(s.Reservations), l.start(), l.end())
}

// hopeless reports whether an event of a lease can never be executed.
func (l *lease) hopeless(call blazar.Call) bool {
	if call == blazar.Start {
		return l.status() != blazar.LeasePending
	}
	return l.status() == blazar.LeaseError && l.start() != blazar.EventDone
}

// when returns the start and the end of a lease on the clock of the model.
func startOf(i int) uint8 { return uint8(i) + 1 }
func endOf(i int) uint8   { return uint8(i) + 2 }

// fire fires a call of the manager at a reservation or an event. It returns false if the
// table refuses it.
func (s *Blazar) fire(t *fsm.Table, at *uint8, call blazar.Call) bool {
	e, _ := t.EventIndex(string(call))
	o := object{Record: decide.Record{Exists: true, State: int(*at), Origin: int(*at)}}
	o, d := orShipped(s.Decisions).Ask(t, o, decide.Request{Verb: decide.Fire, Event: e, Actor: blazar.Manager})
	*at = uint8(o.State)
	return d.Write
}

// commit writes a change of a lease with the changes of its parts. It returns false if
// the table of leases or the table of relationships refuses it.
func (s *Blazar) commit(l *lease, q decide.Request) bool {
	was := *l
	o, d := orShipped(s.Decisions).Ask(leaseTable, l.object(), q)
	if !d.Write {
		return false
	}
	l.Exists, l.State, l.Origin, l.Operation = o.Exists, uint8(o.State), uint8(o.Origin), uint8(o.Operation)
	from, to := was.status(), l.status()
	switch {
	case d.Removes:
		*l = lease{Operation: l.Operation, Made: true, Present: l.Present, Late: l.Late}
		return true
	case !was.Exists:
		l.Made = true
		l.Reservations = [2]uint8{}
		l.Start, l.End = uint8(eventTable.Initial), uint8(eventTable.Initial)
	case to == blazar.LeaseDeleting:
		return true
	}
	s.along(l, from, to)
	if to != blazar.LeaseError && !s.allowed(l) {
		*l = was
		return false
	}
	return true
}

// along changes the events of a lease that changes its status.
func (s *Blazar) along(l *lease, from, to blazar.LeaseState) {
	if to == blazar.LeaseError {
		for _, e := range []*uint8{&l.Start, &l.End} {
			if blazar.Event.StateAt(int(*e)) == blazar.EventInProgress {
				s.fire(eventTable, e, blazar.Fail)
			}
		}
		return
	}
	switch {
	case to == blazar.LeaseStarting:
		s.fire(eventTable, &l.Start, blazar.Start)
	case to == blazar.LeaseTerminating:
		s.fire(eventTable, &l.End, blazar.Start)
	case from == blazar.LeaseStarting && to == blazar.LeaseActive:
		s.fire(eventTable, &l.Start, blazar.Done)
	case from == blazar.LeaseTerminating && to == blazar.LeaseTerminated:
		s.fire(eventTable, &l.End, blazar.Done)
	}
}

// due returns the events that are due.
func (s *Blazar) due(all *leases) (list []blazar.Due) {
	for i := range all.L {
		l := &all.L[i]
		for _, e := range []struct {
			is    blazar.EventState
			kind  string
			since uint8
		}{{l.start(), blazar.StartLease, startOf(i)}, {l.end(), blazar.EndLease, endOf(i)}} {
			if l.Exists && e.is == blazar.EventUndone && e.since <= all.Now {
				list = append(list, blazar.Due{
					ID: fmt.Sprint(i, e.kind), Lease: string(rune('A' + i)), Type: e.kind, Time: time.Unix(int64(e.since), 0),
				})
			}
		}
	}
	return list
}

// inTheWay reports whether another lease still has the resources of a lease that is to
// start.
func (s *Blazar) inTheWay(all *leases, i int) bool {
	if s.Impolite {
		return false
	}
	for k := range all.L {
		other := &all.L[k]
		due := other.end() == blazar.EventInProgress || other.end() == blazar.EventUndone && endOf(k) <= all.Now
		if k == i || !other.Exists || !due || endOf(k) > startOf(i) {
			continue
		}
		for _, r := range other.reservations(s.Reservations) {
			if r == blazar.ReservationActive || r == blazar.ReservationPending {
				return true
			}
		}
	}
	return false
}

// process executes the due events of the first batch, or decides that they never can be.
func (s *Blazar) process(all leases, step func(string, bool, leases)) {
	batches := blazar.Batches(s.due(&all))
	if len(batches) == 0 {
		return
	}
	for _, d := range batches[0] {
		i := int(d.Lease[0] - 'A')
		l, call, event := all.L[i], blazar.Terminate, &all.L[i].End
		if d.Type == blazar.StartLease {
			call, event = blazar.Start, &all.L[i].Start
			if s.inTheWay(&all, i) {
				continue
			}
		}
		if next, ok := s.begin(l, call, blazar.Manager); ok {
			after := all
			after.L[i] = next
			step(fmt.Sprintf("%s: %s", d.Lease, call), false, after)
			continue
		}
		if l.status().IsStable() && l.hopeless(call) {
			was := *event
			if s.fire(eventTable, event, blazar.Start) && s.fire(eventTable, event, blazar.Fail) {
				step(fmt.Sprintf("%s: %s never", d.Lease, call), false, all)
			}
			*event = was
		}
	}
}

// next yields the steps of the system.
func (s *Blazar) next(all leases, step func(string, bool, leases)) {
	with := func(i int, l lease, left spent) leases {
		next := all
		next.L[i], next.Left = l, left
		return next
	}
	for i := range s.Leases {
		l := all.L[i]
		name := string(rune('A' + i))
		if next, ok := s.begin(l, blazar.Create, blazar.User); ok && !l.Made && all.Now < startOf(i) {
			step(name+": create", false, with(i, next, all.Left))
		}
		for _, ask := range []struct {
			call blazar.Call
			left *uint8
		}{{blazar.Update, &all.Left.Updates}, {blazar.Delete, &all.Left.Deletes}} {
			if next, ok := s.begin(l, ask.call, blazar.User); ok && *ask.left > 0 {
				*ask.left--
				step(name+": "+string(ask.call), false, with(i, next, all.Left))
				*ask.left++
			}
		}
		s.works(all, i, false, step)
		s.works(all, i, true, step)
		if l.Present.At && all.Left.Deaths > 0 {
			dead := l
			dead.Present = work{}
			left := all.Left
			left.Deaths--
			step(name+": the process dies", true, with(i, dead, left))
		}
		s.sweep(all, i, step)
	}
	s.process(all, step)
	if int(all.Now) <= s.Leases {
		all.Now++
		step("time passes", false, all)
	}
}

// sweep is the sweeper: it ends a method that died, and abandons a method that hangs.
func (s *Blazar) sweep(all leases, i int, step func(string, bool, leases)) {
	l := all.L[i]
	rec := l.object().Record
	q, care := orShipped(s.Decisions).Sweep(leaseTable, &rec, decide.Cause{Overdue: true})
	hangs := l.Present.At
	if care != decide.FireEvent || hangs && (all.Left.Hangs == 0 || l.Late.At) {
		return
	}
	if !s.commit(&l, q) {
		return
	}
	if hangs {
		all.Left.Hangs--
		l.Late, l.Present = l.Present, work{}
	}
	all.L[i] = l
	step(fmt.Sprintf("%c: %s", 'A'+i, leaseTable.Events[q.Event]), hangs, all)
}

// Model returns the model.
func (s Blazar) Model() *explore.Model[leases] {
	return &explore.Model[leases]{
		Name:    "blazar",
		Initial: []leases{{Left: spent{s.Updates, s.Deletes, s.Refusals, s.Failures, s.Deaths, s.Hangs}}},
		Next:    s.next,
		Always: map[string]func(leases) error{
			"statuses go together":               s.together,
			"resources have one lease at a time": s.alone,
		},
		Rests:   s.rests,
		LeadsTo: map[string]explore.LeadsTo[leases]{"every operation ends": {To: s.rests}},
		Fair:    fairInBlazar,
	}
}

// fairInBlazar: users need not make requests, and a method that was interrupted or
// abandoned need not continue.
func fairInBlazar(label string) bool {
	_, does, _ := strings.Cut(label, ": ")
	request := slices.Contains([]blazar.Call{blazar.Create, blazar.Update, blazar.Delete}, blazar.Call(does))
	return !request && !strings.HasPrefix(does, "late ")
}

// rests reports whether no lease is between two states and no event is due.
func (s *Blazar) rests(all leases) bool {
	for i := range all.L {
		if o := all.L[i].object(); !o.Rests(leaseTable) {
			return false
		}
	}
	return len(s.due(&all)) == 0
}

// together: every combination of statuses is in the table, except for a lease in ERROR.
func (s *Blazar) together(all leases) error {
	for i := range all.L {
		if l := &all.L[i]; l.Exists && l.status() != blazar.LeaseError && !s.allowed(l) {
			return fmt.Errorf("lease %c is %s with reservations %v, start %s, end %s",
				'A'+i, l.status(), l.reservations(s.Reservations), l.start(), l.end())
		}
	}
	return nil
}

// alone: of two leases on the same resources, one releases them before the other gets
// them. A failed lease may keep them, also while it is deleted: package blazar does not
// guarantee it.
func (s *Blazar) alone(all leases) error {
	has := 0
	for i := range all.L {
		l := &all.L[i]
		if l.Exists && blazar.Lease.StateAt(int(l.Origin)) != blazar.LeaseError &&
			slices.Contains(l.reservations(s.Reservations), blazar.ReservationActive) {
			has++
		}
	}
	if has > 1 {
		return fmt.Errorf("both leases have the resources")
	}
	return nil
}
