package fsmtest_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// said runs a test and returns what it says.
func said(test func(testing.TB)) string { return suitetest.Record(nil, test).Text() }

func ExampleMutate() {
	fmt.Println(said(func(t testing.TB) {
		fsmtest.Mutate(t, doors, testDoors, &fsmtest.MutateConfig{Least: 40})
	}))
	// Output:
	// door: 1 of 2 mutants noticed (50%); 0 are equivalent, 6 make no machine
	// 	survived: row 1 (closed -open-> open) needs force: not explained
}

func ExampleCover() {
	fmt.Println(said(func(t testing.TB) {
		testDoors(t, fsmtest.Cover(t, doors, &fsmtest.CoverConfig{
			Except: map[string]string{"closed -open-> open": "opening is tested with the motor"},
		}))
	}))
	// Output:
	// coverage of door: 2 of 2 states (100%) 1 of 2 transitions (50%)
	// 	not covered: closed -open-> open (opening is tested with the motor)
}

// What a table demands of its state is said without the table, too.
func ExampleMatrixFunc() {
	fmt.Println(said(func(t testing.TB) {
		fsmtest.MatrixFunc(t, doors, nil, func(at fsm.Status[string], e string, _ fsm.Actor) (string, error) {
			switch {
			case at.State == "open" && e == "close":
				return "closed", nil
			case at.State == "closed":
				return "open", nil // whatever the event
			}
			return "", fsm.ErrNotAllowed
		})
	}))
	// Output: door: closed: close by user: is refused instead of leading to open: fsm: not allowed: door: close in closed by user
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
	fmt.Println(said(func(t testing.TB) {
		fsmtest.Tour(t, doors.Table(), jammed{fsmtest.Drive(doors, nil)}, nil)
	}))
	// Output:
	// door: sequence 1, step 1: open: close by user -> closed: ends in open; 1 more steps are left out
	// door: 0 of 2 transitions in 0 steps and 1 sequences, 1 refusals; the driver could not make 0 requests
}

func ExampleWalk() {
	fmt.Println(said(func(t testing.TB) {
		fsmtest.Walk(t, doors.Table(), jammed{fsmtest.Drive(doors, nil)}, &fsmtest.WalkConfig{Seed: 1})
	}))
	// Output:
	// a random sequence (Seed 1) fails: request 1, close by user, ends in open and should end in closed
	//   1 close by user
}

func ExampleRace() {
	fmt.Println(said(func(t testing.TB) {
		fsmtest.Race(t, doors.Table(), fsmtest.Drive(doors, nil), &fsmtest.RaceConfig{Goroutines: 3, Rounds: 5})
	}))
	// Output: door: 10 races had one winner; 0 steps cannot have one
}
