package tour_test

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

const doors = `{
 "name": "door", "initial": "closed",
 "states": [
  {"name": "closed", "kind": "stable"},
  {"name": "opening", "kind": "transitional", "target": "open"},
  {"name": "open", "kind": "stable"},
  {"name": "jammed", "kind": "error"}
 ],
 "transitions": [
  {"from": "closed", "event": "open", "actor": "user", "to": "opening"},
  {"from": "opening", "event": "done", "actor": "motor", "to": "open", "guard": "free"},
  {"from": "opening", "event": "done", "actor": "motor", "to": "jammed"},
  {"from": "open", "event": "close", "actor": "user", "to": "closed"}
 ]
}`

func ExampleNew() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := tour.New(table, nil)
	fmt.Println(plan, err)
	// Output:
	// door: 4 transitions in 5 steps and 1 sequences
	// sequence 1
	//   closed: open by user -> opening (from closed)
	//   opening (from closed): done by motor, free -> open
	//   open: close by user -> closed
	//   closed: open by user -> opening (from closed)
	//   opening (from closed): done by motor, not free -> jammed <nil>
}

func ExampleNegatives() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := tour.Negatives(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range all {
		if n.State == "opening" {
			fmt.Println(n)
		}
	}
	// Output:
	// opening (from closed): open by user is refused: not allowed
	// opening (from closed): open by motor is refused: not allowed
	// opening (from closed): done by user is refused: wrong actor
	// opening (from closed): close by user is refused: not allowed
	// opening (from closed): close by motor is refused: not allowed
}

func ExampleMutants() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := tour.Mutants(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	for m := range all {
		if m.Row == 1 {
			fmt.Println(m)
		}
	}
	// Output:
	// row 1 (opening -done-> open) is dropped
	// row 1 (opening -done-> open) leads to closed
	// row 1 (opening -done-> open) is for user
	// row 1 (opening -done-> open) is for every actor
	// row 1 (opening -done-> open) has no guard
	// row 1 (opening -done-> open) needs force
	// row 1 (opening -done-> open) is ignored
}
