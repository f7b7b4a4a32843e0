package fsmtest

import (
	"cmp"
	"errors"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// RaceConfig refines [Race]. The zero value and nil are the defaults.
type RaceConfig struct {
	Goroutines int // that fire at once; default 8
	Rounds     int // how often; default 4
}

// Race leads a system along the tour of its table, see [tour.New], and has every
// step fired by many goroutines at once: exactly one of them may win. It fails t if
// none or several are accepted, or if the object is elsewhere afterwards. Steps that
// the table accepts again in the status to which they lead have no single winner and
// are fired once. Under the race detector it also finds what is not synchronized.
//
// Of the driver, Apply is called concurrently. The table is that of a machine.
func Race(t testing.TB, table *fsm.Table, d Driver, config *RaceConfig) {
	t.Helper()
	if config == nil {
		config = &RaceConfig{}
	}
	tour, err := tour.New(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	raced, once := 0, 0
	for range cmp.Or(config.Rounds, 4) {
		for _, steps := range tour.Sequences {
			if state := d.Reset(t); state != steps[0].From {
				t.Errorf("%s: a new object begins in %s instead of %s", table.Name, state, steps[0].From)
				return
			}
			for i := range steps {
				s := &steps[i]
				n := cmp.Or(config.Goroutines, 8)
				if again(table, s) {
					n = 1
					once++
				} else {
					raced++
				}
				if !race(t, table, d, s, n) {
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

// again reports whether the table takes the same request in the status to which
// the step leads.
func again(table *fsm.Table, s *tour.Step) bool {
	m := &model{t: table}
	m.state, _ = table.StateIndex(s.To)
	m.origin, _ = table.StateIndex(s.ToOrigin)
	_, refusal := m.Apply(nil, requestOf(s))
	return refusal == nil
}

// race fires a step n times at once.
func race(t testing.TB, table *fsm.Table, d Driver, s *tour.Step, n int) bool {
	t.Helper()
	type answer struct {
		state   string
		refusal error
	}
	answers := make([]answer, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			answers[i].state, answers[i].refusal = d.Apply(t, requestOf(s))
		})
	}
	close(start)
	all.Wait()
	winners := 0
	for _, a := range answers {
		switch {
		case errors.Is(a.refusal, ErrCannot):
			t.Errorf("%s: %s: %v", table.Name, s, a.refusal)
			return false
		case a.refusal != nil:
		case a.state != s.To:
			t.Errorf("%s: %s: a winner is in %s", table.Name, s, a.state)
			return false
		default:
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%s: %s: %d of %d are accepted; the first answer is %s", table.Name, s, winners, n, answered(answers[0].state, answers[0].refusal))
		return false
	}
	return true
}
