package fsmtest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

const (
	raceGoroutines = 8 // that fire at once
	raceRounds     = 2
)

// Race leads a system along the tour of the table of a machine, see [tour.New].
// Eight goroutines fire each step at once, and the system has to accept exactly one
// of them. Race reports to t a step that has no winner or several, and a winner in
// another state. It fires a step once if the table accepts the same request again in
// the next status, because such a step has no single winner. A table without any other
// step is a fault. Under the race detector, Race also finds accesses that are not
// synchronized.
func Race(t testing.TB, table *fsm.Table, d Driver) {
	t.Helper()
	tour, err := tour.New(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	raced, once := 0, 0
	for range raceRounds {
		for _, steps := range tour.Sequences {
			if state := d.Reset(t, steps[0].From); state != steps[0].From {
				t.Errorf("%s: a new object is in %s instead of %s", table.Name, state, steps[0].From)
				return
			}
			for i := range steps {
				n := raceGoroutines
				if acceptsAgain(table, &steps[i]) {
					n = 1
					once++
				} else {
					raced++
				}
				if !race(t, table, d, &steps[i], n) {
					return
				}
			}
		}
	}
	if raced == 0 {
		t.Errorf("%s: no step has a single winner", table.Name)
	}
	t.Logf("%s: %d races had one winner; %d steps cannot have one", table.Name, raced, once)
}

// acceptsAgain reports whether the table accepts the same request in the status to
// which the step leads.
func acceptsAgain(table *fsm.Table, s *tour.Step) bool {
	state, _ := table.StateIndex(s.To)
	origin, _ := table.StateIndex(s.ToOrigin)
	event, _ := table.EventIndex(s.Event)
	rows, _ := table.Candidates(nil, state, origin, event, s.Actor, s.Force)
	return slices.ContainsFunc(rows, func(row int) bool {
		guard := table.Rows[row].Guard
		return guard == "" || slices.Contains(s.Agree, guard)
	})
}

// race fires a step from n goroutines at once. It returns false after a fault.
func race(t testing.TB, table *fsm.Table, d Driver, s *tour.Step, n int) bool {
	t.Helper()
	states, refusals := make([]string, n), make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			states[i], refusals[i] = d.Apply(t, Request(s.Request))
		})
	}
	close(start)
	all.Wait()
	winners := 0
	for i, refusal := range refusals {
		switch {
		case errors.Is(refusal, ErrUnsupported):
			t.Errorf("%s: %s: %v", table.Name, s, refusal)
			return false
		case refusal != nil:
		case states[i] != s.To:
			t.Errorf("%s: %s: a winner is in %s", table.Name, s, states[i])
			return false
		default:
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%s: %s: %d of %d are accepted; the first answer is %s, %v", table.Name, s, winners, n, states[0], refusals[0])
		return false
	}
	return true
}
