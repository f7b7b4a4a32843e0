package evolve_test

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
)

// turbines returns one of two versions of a table. The second has an inspection.
func turbines(inspection bool) *fsm.Table {
	spec := fsm.Spec[string, string]{
		Name: "turbine", Initial: "Still", Actors: []fsm.Actor{"operator", "plant"},
		States: []fsm.State[string]{{Name: "Still"}, {Name: "Starting", Kind: fsm.Transitional}, {Name: "Running"}},
		Rows: fsm.Rows(
			fsm.Move("Still", "Start", "Starting").By("operator"),
			fsm.Move("Starting", "Up", "Running").By("plant"),
			fsm.Return("Starting", "Late").After(60e9),
			fsm.Move("Running", "Stop", "Still").By("operator"),
		),
	}
	if inspection {
		spec.States = append(spec.States, fsm.State[string]{Name: "Inspected"})
		spec.Rows = append(spec.Rows,
			fsm.Move("Still", "Inspect", "Inspected").By("operator"),
			fsm.Move("Inspected", "Close", "Still").By("operator"),
		)
	}
	return fsm.Must[struct{}](spec).Table()
}

// A new state is safe if no caller uses it while an old binary runs.
func ExampleDiff() {
	e, err := evolve.Diff(turbines(false), turbines(true), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Level)
	fmt.Println(e.Hazards[0].Message)
	for _, act := range e.Hazards[0].Witness {
		fmt.Println("-", act)
	}

	e, err = evolve.Diff(turbines(false), turbines(true), &evolve.Config{
		Hold: []evolve.Withheld{{State: "Still", Event: "Inspect"}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Level)
	// Output:
	// unsafe
	// an old node cannot read what a new one has written: the state "Inspected" is unknown; it refuses every request about the object, fails to list it, and does not sweep it
	// - old node adds the object in Still
	// - new node: Still -Inspect by operator-> Inspected, row 4
	// compatible
}

// A rollback of the same change: the removed state must be empty.
func ExampleReport() {
	e, err := evolve.Diff(turbines(true), turbines(false), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(e)
	// Output:
	// turbine: compatible once drained
	//   drain: Inspected
	//   hold: Inspect in Still
	// drain: unknown-to-new: a new node cannot read what an old one has written: the state "Inspected" is unknown; it refuses every request about the object, fails to list it, and does not sweep it
	//     1. old node adds the object in Still
	//     2. old node: Still -Inspect by operator-> Inspected, row 4
	// differences:
	//   state removed: Inspected
	//   event removed: Inspect
	//   event removed: Close
	//   row removed: Still -Inspect-> Inspected by operator
	//   row removed: Inspected -Close-> Still by operator
}
