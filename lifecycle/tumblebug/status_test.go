package tumblebug_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// many returns n VMs in each of these states.
func many(n int, states ...tumblebug.State) (vms []tumblebug.State) {
	for _, s := range states {
		vms = append(vms, slices.Repeat([]tumblebug.State{s}, n)...)
	}
	return vms
}

// The texts are those of the document's table and of its picture.
func TestStatusText(t *testing.T) {
	const (
		running, suspended, terminated = tumblebug.Running, tumblebug.Suspended, tumblebug.Terminated
	)
	for _, c := range []struct {
		vms      []tumblebug.State
		expected int
		want     string
	}{
		{many(5, running), 0, "Running:5 (R:5/5)"},
		{append(many(3, running), tumblebug.Failed, suspended), 0, "Partial-Running:3 (R:3/5)"},
		{append(many(4, suspended), running), 0, "Partial-Suspended:4 (R:1/5)"},
		{many(5, terminated), 0, "Terminated:5 (R:0/5)"},
		{many(10, running), 0, "Running:10 (R:10/10)"},
		{append(many(6, suspended), many(4, running)...), 0, "Partial-Suspended:6 (R:4/10)"},
		{many(10, terminated), 0, "Terminated:10 (R:0/10)"},
		{many(2, running), 5, "Partial-Running:2 (R:2/5)"},
		{many(2, running), 1, "Running:2 (R:2/2)"},
		{nil, 0, "Undefined:0 (R:0/0)"},
		// Of equal counts, the first in the order of preference.
		{many(1, tumblebug.Undefined, tumblebug.Terminating, tumblebug.Rebooting), 0, "Partial-Rebooting:1 (R:0/3)"},
		{many(2, tumblebug.Resuming, tumblebug.Suspending, tumblebug.Creating), 0, "Partial-Creating:2 (R:0/6)"},
		{many(1, tumblebug.Creating, terminated), 0, "Partial-Terminated:1 (R:0/2)"},
		{many(1, terminated, running), 0, "Partial-Running:1 (R:1/2)"},
		{many(1, running, suspended), 0, "Partial-Suspended:1 (R:1/2)"},
		{many(1, suspended, tumblebug.Failed), 0, "Partial-Failed:1 (R:0/2)"},
	} {
		t.Run(c.want, func(t *testing.T) {
			now, _, err := tumblebug.Summarize(c.vms, c.expected)
			require.NoError(t, err)
			require.Equal(t, c.want, now.String())
		})
	}
	for _, bad := range []tumblebug.State{"Gone", tumblebug.Preparing, ""} {
		_, _, err := tumblebug.Summarize(many(1, running, bad), 0)
		require.ErrorIs(t, err, fsm.ErrUnknownState, bad)
	}
	_, _, err := tumblebug.Summarize(nil, -1)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// Every status has its count under the name of the document, and they add up.
func TestStatusCounts(t *testing.T) {
	names := map[string]tumblebug.State{
		"countCreating": "Creating", "countRunning": "Running", "countFailed": "Failed", "countSuspended": "Suspended",
		"countRebooting": "Rebooting", "countTerminated": "Terminated", "countSuspending": "Suspending",
		"countResuming": "Resuming", "countTerminating": "Terminating", "countUndefined": "Undefined",
	}
	rapid.Check(t, func(t *rapid.T) {
		var all []tumblebug.State
		for s := range tumblebug.VM.States() {
			if s != tumblebug.Removed {
				all = append(all, s)
			}
		}
		vms := rapid.SliceOf(rapid.SampledFrom(all)).Draw(t, "vms")
		expected := rapid.IntRange(0, 20).Draw(t, "expected")
		now, counts, err := tumblebug.Summarize(vms, expected)
		require.NoError(t, err)
		data, err := json.Marshal(counts)
		require.NoError(t, err)
		var got map[string]int
		require.NoError(t, json.Unmarshal(data, &got))
		require.Len(t, got, 11)
		require.Equal(t, max(len(vms), expected), got["countTotal"])
		for name, state := range names {
			n := 0
			for _, vm := range vms {
				if vm == state {
					n++
				}
			}
			require.Equal(t, n, got[name], name)
			require.LessOrEqual(t, n, now.Count)
		}
		require.Equal(t, got["countRunning"], now.Running)
		require.Equal(t, now.Count < now.Total, now.Partial)
	})
}

// The matrix of the document, as a function. Nothing is allowed in the states that only
// MCIs have.
func TestAllowed(t *testing.T) {
	cell := allowed(t)
	actions := []tumblebug.Action{
		tumblebug.ActionSuspend, tumblebug.ActionResume, tumblebug.ActionReboot, tumblebug.ActionTerminate,
	}
	for s := range tumblebug.MCI.States() {
		for _, a := range actions {
			err := tumblebug.Allowed(s, a, false)
			forced := tumblebug.Allowed(s, a, true)
			switch {
			case cell(s, tumblebug.Event(a)) == "yes":
				require.NoError(t, err)
				require.NoError(t, forced)
			case s == tumblebug.Terminated || s == tumblebug.Removed:
				require.ErrorIs(t, err, fsm.ErrNotAllowed)
				require.ErrorIs(t, forced, fsm.ErrNotAllowed)
			default:
				require.ErrorIs(t, err, fsm.ErrForcedOnly, "%s in %s", a, s)
				require.NoError(t, forced)
			}
		}
	}
	require.ErrorIs(t, tumblebug.Allowed("Gone", tumblebug.ActionSuspend, true), fsm.ErrUnknownState)
	for _, a := range []tumblebug.Action{tumblebug.ActionCreate, tumblebug.ActionRefine, tumblebug.ActionWithdraw, "Provision", "SeeRunning", ""} {
		require.ErrorIs(t, tumblebug.Allowed(tumblebug.Running, a, true), fsm.ErrUnknownEvent, a)
	}
}

// The document's table of actions and their target statuses.
func TestActions(t *testing.T) {
	for _, c := range []struct {
		text   string
		action tumblebug.Action
		target tumblebug.State
	}{
		{"suspend", tumblebug.ActionSuspend, tumblebug.Suspended},
		{"Resume", tumblebug.ActionResume, tumblebug.Running},
		{"REBOOT", tumblebug.ActionReboot, tumblebug.Running},
		{"terminate", tumblebug.ActionTerminate, tumblebug.Terminated},
		{"refine", tumblebug.ActionRefine, tumblebug.StatusComplete},
		{"continue", tumblebug.ActionContinue, tumblebug.StatusComplete},
		{"withdraw", tumblebug.ActionWithdraw, tumblebug.StatusComplete},
	} {
		t.Run(c.text, func(t *testing.T) {
			a, err := tumblebug.ParseAction(c.text)
			require.NoError(t, err)
			require.Equal(t, c.action, a)
			require.Equal(t, c.target, a.Target())
		})
	}
	for _, bad := range []string{"", "create", "none", "suspend "} {
		_, err := tumblebug.ParseAction(bad)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, bad)
	}
}

// TargetAction and TargetStatus are None in the states without a running action. The
// target is that of the table.
func TestDoing(t *testing.T) {
	table := tumblebug.MCI.Table()
	for s := range tumblebug.MCI.States() {
		action, target := tumblebug.Doing(s)
		if tumblebug.MCI.Kind(s) != fsm.Transitional {
			require.Equal(t, tumblebug.ActionComplete, action)
			require.Equal(t, tumblebug.StatusComplete, target)
			require.EqualValues(t, "None", action)
			continue
		}
		require.NotEqual(t, tumblebug.ActionComplete, action)
		require.Equal(t, action.Target(), target)
		if i := table.States[tumblebug.MCI.StateIndex(s)].Target; i >= 0 {
			require.Equal(t, tumblebug.MCI.StateAt(i), target)
		}
	}
}

func TestCached(t *testing.T) {
	for s := range tumblebug.VM.States() {
		cached := s == tumblebug.Terminated || s == tumblebug.Failed || s == tumblebug.Suspended
		require.Equal(t, cached, tumblebug.Cached(s), s)
	}
}

// The action alone decides how a shown state is corrected: every action, with every state.
func TestCorrect(t *testing.T) {
	corrected := map[tumblebug.Action]map[tumblebug.State]tumblebug.State{
		tumblebug.ActionCreate:  {"Undefined": "Creating"},
		tumblebug.ActionSuspend: {"Undefined": "Suspending", "Running": "Suspending", "Resuming": "Suspending"},
		tumblebug.ActionResume:  {"Undefined": "Resuming", "Creating": "Resuming", "Suspended": "Resuming"},
		tumblebug.ActionReboot: {
			"Undefined": "Rebooting", "Suspending": "Rebooting", "Suspended": "Rebooting", "Creating": "Rebooting", "Resuming": "Rebooting",
		},
		tumblebug.ActionTerminate: {"Undefined": "Terminated", "Suspending": "Terminating"},
	}
	for _, a := range []tumblebug.Action{
		tumblebug.ActionComplete, tumblebug.ActionCreate, tumblebug.ActionSuspend, tumblebug.ActionResume, tumblebug.ActionReboot,
		tumblebug.ActionTerminate, tumblebug.ActionRefine, tumblebug.ActionContinue, tumblebug.ActionWithdraw,
	} {
		for shown := range tumblebug.VM.States() {
			want, ok := corrected[a][shown]
			if !ok {
				want = shown
			}
			require.Equal(t, want, tumblebug.Correct(a, shown), "%s shows %s", a, shown)
		}
	}
}

// The end of an action on an MCI by the document's diagram, for every list of up to four
// VMs.
func TestConclude(t *testing.T) {
	type state = tumblebug.State
	some := func(vms []state, s state) bool { return slices.Contains(vms, s) }
	all := func(vms []state, s state) bool {
		return !slices.ContainsFunc(vms, func(x state) bool { return x != s })
	}
	diagram := map[tumblebug.Action]func(vms []state) (state, bool){
		tumblebug.ActionCreate:    func(vms []state) (state, bool) { return "Running", some(vms, "Running") },
		tumblebug.ActionSuspend:   func(vms []state) (state, bool) { return "Suspended", some(vms, "Suspended") || len(vms) == 0 },
		tumblebug.ActionResume:    func(vms []state) (state, bool) { return "Running", some(vms, "Running") || len(vms) == 0 },
		tumblebug.ActionReboot:    func(vms []state) (state, bool) { return "Running", some(vms, "Running") || len(vms) == 0 },
		tumblebug.ActionTerminate: func(vms []state) (state, bool) { return "Terminated", all(vms, "Terminated") },
	}
	resting := []state{"Running", "Suspended", "Terminated", "Failed", "Undefined"}
	lists := [][]state{nil}
	for range 5 {
		var longer [][]state
		for _, vms := range lists {
			for action, ends := range diagram {
				want, ok := ends(vms)
				switch {
				case ok:
				case some(vms, "Undefined"):
					want = "Undefined"
				default:
					want = "Failed"
				}
				got, ok := tumblebug.Conclude(action, vms)
				require.True(t, ok)
				require.Equal(t, want, got, "%s of %v", action, vms)
			}
			for _, s := range resting {
				longer = append(longer, append(slices.Clone(vms), s))
			}
		}
		lists = longer
	}
	for s := range tumblebug.MCI.States() {
		for action := range diagram {
			_, ok := tumblebug.Conclude(action, []state{s, "Running"})
			require.Equal(t, slices.Contains(resting, s), ok, s)
		}
	}
	for _, a := range []tumblebug.Action{tumblebug.ActionComplete, tumblebug.ActionRefine, tumblebug.ActionContinue, ""} {
		_, ok := tumblebug.Conclude(a, many(1, tumblebug.Running))
		require.False(t, ok, a)
	}
}

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
