package fsmtest_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

var doors = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "door", Initial: "open", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "open"}, {Name: "closed"}},
	Rows:   fsm.Rows(fsm.Move("open", "close", "closed"), fsm.Move("closed", "open", "open")),
})

func testDoors(t testing.TB, m *fsm.Machine[string, string, struct{}]) {
	fsmtest.Run(t, m, []fsmtest.Case[string, string, struct{}]{
		{From: "open", Event: "close", Actor: "user", To: "closed"},
		{From: "open", Event: "open", Actor: "user", Err: fsm.ErrNotAllowed},
	})
}

func Example() { // a test passes its t; output records the messages
	fmt.Println(output(func(t testing.TB) { fsmtest.Tour(t, doors.Table(), fsmtest.Drive(doors, nil), nil) }))
	// Output: door: 2 of 2 transitions in 2 steps and 1 sequences, 2 refusals; the driver does not support 0 requests
}
