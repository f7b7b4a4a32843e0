package fsm_test

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

func ExampleTable_StateIndex() {
	fmt.Println(Cranes.Table().StateIndex("Moving"))
	// Output: 1 true
}

func ExampleTable_EventIndex() {
	fmt.Println(Cranes.Table().EventIndex("Lost"))
	// Output: 2 true
}

func ExampleTable_ActorIndex() {
	fmt.Println(Cranes.Table().ActorIndex(fsm.Sweeper))
	// Output: 2 true
}

// The return row leads from Moving to each possible origin.
func ExampleTable_Edges() {
	table := Cranes.Table()
	for e := range table.Edges() {
		fmt.Println(table.States[e.From].Name, "-"+table.Events[e.Event]+"->", table.States[e.To].Name)
	}
	// Output:
	// Idle -Lift-> Moving
	// Moving -Arrived-> Idle
	// Moving -Lost-> Broken
	// Broken -Repair-> Idle
}

func ExampleTable_Origins() {
	fmt.Println(Cranes.Table().Origins())
	// Output: [[0] [0] [2]]
}

func ExampleTable_ParseStatus() {
	state, origin, err := Cranes.Table().ParseStatus("Moving", "Idle")
	fmt.Println(state, origin, err)
	// Output: 1 0 <nil>
}

// Problems reports why no machine can be made of a table.
func ExampleTable_Problems() {
	table := &fsm.Table{
		Name: "lamp", Actors: []fsm.Actor{"user"}, Events: []string{"push"},
		States: []fsm.TableState{{Name: "off", Target: -1}, {Name: "on", Target: -1}, {Name: "blinking", Target: -1}},
		Rows:   []fsm.TableRow{{From: []int{0}, To: 1}, {From: []int{1, 2}, To: 0}},
	}
	for _, p := range table.Problems() {
		fmt.Println(p.Code, "-", p)
	}
	fmt.Println(len(Cranes.Table().Problems()))
	// Output:
	// unreachable - state blinking: no object gets there
	// 0
}

// Candidates is for code that decides about objects of many machines. The caller runs
// the guards.
func ExampleTable_Candidates() {
	table := Cranes.Table()
	idle, _ := table.StateIndex("Idle")
	lift, _ := table.EventIndex("Lift")
	rows, err := table.Candidates(nil, idle, idle, lift, User, false)
	for _, row := range rows {
		fmt.Println(row, "if", table.Rows[row].Guard)
	}
	fmt.Println(err)
	_, err = table.Candidates(rows[:0], idle, idle, lift, Worker, false)
	fmt.Println(err)
	// Output:
	// 0 if light enough
	// <nil>
	// fsm: wrong actor: crane: Lift in Idle by worker
}

func ExampleTable_After() {
	table := Cranes.Table()
	state, origin := table.After(0, 0, 0) // an idle crane lifts
	fmt.Println(table.States[state].Name, table.States[origin].Name)
	// Output: Moving Idle
}

func ExampleTable_Refused() {
	err := Cranes.Table().Refused(0, 0, User, []int{0}, []error{errors.New("12 t is too heavy")})
	fmt.Println(err)
	// Output: fsm: refused by a guard: crane: Lift in Idle by user: light enough: 12 t is too heavy
}

func ExampleTable_Timeout() {
	within, row := Cranes.Table().Timeout(1, 0)
	fmt.Println(within, row)
	// Output: 1m0s 2
}
