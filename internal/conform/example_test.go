package conform_test

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/conform"
)

// A document with two rows, and a machine that renames an event, adds a
// deadline and forgets a row.
func ExampleCompare() {
	doors := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "door", Initial: "closed", Actors: []fsm.Actor{"user", "motor"},
		States: []fsm.State[string]{{Name: "closed"}, {Name: "opening", Kind: fsm.Transitional}, {Name: "open", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move("closed", "open", "opening").By("user"),
			fsm.Move("opening", "timed out", "open").After(time.Minute).Note("nobody looked"),
		),
	})
	document := &conform.Document{
		Name: "doors", Initial: "closed",
		States: []conform.State{{Name: "closed"}, {Name: "opening", Kind: fsm.Transitional}, {Name: "open", Kind: fsm.Final}},
		Rows:   conform.Rows("closed --press button by user--> opening", "opening --opened by motor--> open"),
	}
	for _, f := range conform.Compare(doors.Table(), document, conform.MustMapping(`
events: what it is for
    press button = open
additions: motors fail
    opening --timed out by sweeper--> open
`)) {
		fmt.Println(f.Code, f.Text)
	}
	// Output: missing document row opening --opened by motor--> open: the machine has no row opening --opened by motor--> open
}
