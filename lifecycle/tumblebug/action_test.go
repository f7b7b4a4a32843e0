package tumblebug_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// matrix is the document's table of allowed transitions.
const matrix = `
Current Status | Suspend | Resume | Reboot | Terminate
Running        | yes     | no     | yes    | yes
Suspended      | no      | yes    | no     | yes
Creating       | no      | no     | no     | no
Terminating    | no      | no     | no     | no
Terminated     | no      | no     | no     | no
Failed         | no      | no     | no     | force
`

// targets are the transitional states of the document's actions.
var targets = map[tumblebug.Event]tumblebug.State{
	tumblebug.Suspend:   tumblebug.Suspending,
	tumblebug.Resume:    tumblebug.Resuming,
	tumblebug.Reboot:    tumblebug.Rebooting,
	tumblebug.Terminate: tumblebug.Terminating,
}

func row(line string) []string {
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// allowed returns the cell of the matrix. Nothing is allowed in a state without a line.
func allowed(t *testing.T) func(tumblebug.State, tumblebug.Event) string {
	lines := strings.Split(strings.TrimSpace(matrix), "\n")
	head := row(lines[0])
	cells := make(map[tumblebug.State]map[tumblebug.Event]string)
	for _, line := range lines[1:] {
		r := row(line)
		cells[tumblebug.State(r[0])] = make(map[tumblebug.Event]string)
		for i, cell := range r[1:] {
			cells[tumblebug.State(r[0])][tumblebug.Event(head[i+1])] = cell
		}
	}
	require.Len(t, cells, 6)
	return func(s tumblebug.State, e tumblebug.Event) string {
		if cell := cells[s][e]; cell != "" {
			return cell
		}
		return "no"
	}
}

// Force starts a new operation during an action, so reports of the old one are stale.
func TestForceSupersedes(t *testing.T) {
	for _, table := range []*fsm.Table{tumblebug.VM.Table(), tumblebug.MCI.Table()} {
		for i := range table.Rows {
			r := &table.Rows[i]
			if _, action := targets[tumblebug.Event(table.Events[r.Event])]; !action || !r.Forced || r.To < 0 || table.States[r.To].Kind != fsm.Transitional {
				continue
			}
			for _, from := range r.From {
				if table.States[from].Kind == fsm.Transitional {
					require.True(t, r.Supersede, "%s: %s in %s", table.Name, table.Events[r.Event], table.States[from].Name)
				}
			}
		}
	}
}

// No event of the observer ends an action.
func TestObserverEndsNoAction(t *testing.T) {
	for _, table := range []*fsm.Table{tumblebug.VM.Table(), tumblebug.MCI.Table()} {
		observer := slices.Index(table.Actors, tumblebug.Observer)
		for _, r := range table.Rows {
			for _, from := range r.From {
				if slices.Contains(r.Actors, observer) && table.States[from].Kind == fsm.Transitional {
					require.Equal(t, from, r.To, "%s by %s", table.States[from].Name, table.Events[r.Event])
				}
			}
		}
	}
}
