package diagramtest_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// recorder is a testing.TB that records errors and messages.
type recorder struct {
	testing.TB
	errors []string
	logs   []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

var doors = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "door", Initial: "Open", Actors: []fsm.Actor{"visitor"},
	States: []fsm.State[string]{{Name: "Open"}, {Name: "Closed"}},
	Rows: fsm.Rows(
		fsm.Move("Open", "close", "Closed"),
		fsm.Move("Closed", "open", "Open").Note("the key fits"),
	),
})

var lamps = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "lamp/1", Initial: "Off", Actors: []fsm.Actor{"visitor"},
	States: []fsm.State[string]{{Name: "Off"}, {Name: "On"}},
	Rows: fsm.Rows(
		fsm.Move("Off", "switch", "On"),
		fsm.Move("On", "switch", "Off"),
	),
})

// byName are the tables of the scripts; "twin" has the heading of lamp/1.
func byName(name string) *fsm.Table {
	switch name {
	case "door":
		return doors.Table()
	case "lamp":
		return lamps.Table()
	case "twin":
		return &fsm.Table{Name: "lamp/1"}
	}
	panic(name)
}
