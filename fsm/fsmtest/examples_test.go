package fsmtest_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// output runs a test and returns its output.
func output(test func(testing.TB)) string { return suitetest.Record(nil, test).Text() }

func ExampleMutate() {
	fmt.Println(output(func(t testing.TB) {
		fsmtest.Mutate(t, doors, testDoors, nil)
	}))
	// Output:
	// door: 1 of 2 mutants detected; 0 are equivalent, fsm.New refuses 6
	// 	survived: row 1 (closed -open-> open) needs force: not explained
	// door: the test does not detect 1 mutants
}

func ExampleWatch() {
	fmt.Println(output(func(t testing.TB) {
		watched, coverage := fsmtest.Watch(doors, &fsmtest.CoverConfig{
			Except: map[string]string{"closed -open-> open": "opening is tested with the motor"},
		})
		testDoors(t, watched)
		coverage.Judge(t)
	}))
	// Output:
	// coverage of door: 2 of 2 states (100%) 1 of 2 transitions (50%)
	// 	not covered: closed -open-> open (opening is tested with the motor)
}

// jammed is a system in which closing does nothing.
type jammed struct{ fsmtest.Driver }

func (j jammed) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	if r.Event == "close" {
		return "open", nil
	}
	return j.Driver.Apply(t, r)
}

func ExampleTour() {
	fmt.Println(output(func(t testing.TB) {
		fsmtest.Tour(t, doors.Table(), jammed{fsmtest.Drive(doors, nil)}, nil)
	}))
	// Output:
	// door: sequence 1, step 1: open: close by user -> closed: is in open, refusal <nil>; 1 more steps are left out
	// door: 0 of 2 transitions in 0 steps and 1 sequences, 1 refusals; the driver does not support 0 requests
}

func ExampleRace() {
	fmt.Println(output(func(t testing.TB) {
		fsmtest.Race(t, doors.Table(), fsmtest.Drive(doors, nil))
	}))
	// Output: door: 4 races had one winner; 0 steps cannot have one
}
