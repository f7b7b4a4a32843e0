package ovc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// The tables of the document, row by row: initial states, transition states,
// desired state.
const document = `
vm
	VIRTUAL | DEPLOYING | RUNNING
	RUNNING | PAUSING | PAUSED
	PAUSED | RESUMING | RUNNING
	RUNNING/PAUSED | STOPPING | HALTED
	RUNNING/PAUSED | DELETING | DELETED
	RUNNING/PAUSED | DESTROYING | DESTROYED
	HALTED | DELETING | DELETED
	HALTED | DESTROYING | DESTROYED
	RUNNING | REBOOTING | RUNNING
	PAUSED | REBOOTING | RUNNING
	RUNNING | RESETTING | RUNNING
	RUNNING | ADDING_DISK/ATTACHING_DISK/DETACHING_DISK | RUNNING
	PAUSED | ADDING_DISK/ATTACHING_DISK/DETACHING_DISK | PAUSED
	HALTED | ADDING_DISK/ATTACHING_DISK/DETACHING_DISK | HALTED
cloudspace
	VIRTUAL | DEPLOYING | DEPLOYED
	DEPLOYED | DISABLING | DISABLED
	DISABLED | ENABLING | DEPLOYED
	DEPLOYED/DISABLED | DELETING | DELETED
	DELETED | DESTROYING | DESTROYED
	DELETED | RESTORING | DEPLOYED
	DEPLOYED | PAUSING | PAUSED
	PAUSED | RESUMING | DEPLOYED
	DEPLOYED | RESETTING | DEPLOYED
account
	CONFIRMED | DISABLING | DISABLED
	DISABLED | ENABLING | CONFIRMED
	CONFIRMED/DISABLED | DESTROYING | DESTROYED
	CONFIRMED/DISABLED | DELETING | DELETED
disk
	MODELED | CREATING | CREATED
	MODELED | ASSIGNING | ASSIGNED
	CREATED | ATTACHING | ASSIGNED
	ASSIGNED | DETACHING | CREATED
	CREATED | DELETING | DELETED
	CREATED | DESTROYING | DESTROYED
	ASSIGNED | DELETING | TOBEDELETED
	ASSIGNED | DESTROYING | DESTROYED
image
	VIRTUAL | CREATING | CREATED
	CREATED | DISABLING | DISABLED
	DISABLED | DISABLING | CREATED
	CREATED/DISABLED | DELETING | DELETED
	CREATED/DISABLED | DESTROYING | DESTROYED
node
	ENABLED | PUTTING_IN_MAINTENANCE | MAINTENANCE
	MAINTENANCE | ENABLING | ENABLED
	ENABLED/MAINTENANCE | DECOMMISSIONING | DECOMMISSIONED
`

// row is one row of the document with one initial and one transition state.
type row struct {
	kind                         ovc.Kind
	initial, transition, desired ovc.State
}

func documentRows() (rows []row) {
	var kind ovc.Kind
	for line := range strings.Lines(strings.TrimSpace(document)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 1 {
			kind = ovc.Kind(cells[0])
			continue
		}
		for initial := range strings.SplitSeq(cells[0], "/") {
			for transition := range strings.SplitSeq(cells[1], "/") {
				rows = append(rows, row{kind, ovc.State(initial), ovc.State(transition), ovc.State(cells[2])})
			}
		}
	}
	return rows
}

// All pairs of states of all kinds, transition states and unknown ones included: exactly the
// rows of the document give true.
func TestValidateTransitionOverAllPairs(t *testing.T) {
	want := make(map[row]bool)
	for _, r := range documentRows() {
		want[row{r.kind, r.initial, "", r.desired}] = true
	}
	var states []ovc.State
	for kind := range ovc.Kinds() {
		states = slices.AppendSeq(states, kind.Machine().States())
	}
	slices.Sort(states)
	states = append(slices.Compact(states), "", "running", "MIGRATING")
	allowed := 0
	for _, kind := range append(slices.Collect(ovc.Kinds()), "", "VM", "machines") {
		for _, initial := range states {
			for _, desired := range states {
				got := ovc.ValidateTransition(kind, initial, desired)
				require.Equal(t, want[row{kind, initial, "", desired}], got, "%s from %s to %s", kind, initial, desired)
				if got {
					allowed++
				}
			}
		}
	}
	require.Equal(t, 14+10+6+8+7+4, allowed, "pairs counted in the document by hand")
}

func TestTransitionStates(t *testing.T) {
	for kind, want := range map[ovc.Kind][]ovc.State{
		ovc.KindVM: {
			"DEPLOYING", "PAUSING", "RESUMING", "STOPPING", "DELETING", "DESTROYING", "REBOOTING", "RESETTING",
			"ADDING_DISK", "ATTACHING_DISK", "DETACHING_DISK",
		},
		ovc.KindCloudspace: {
			"DEPLOYING", "DISABLING", "ENABLING", "DELETING", "DESTROYING", "RESTORING", "PAUSING", "RESUMING", "RESETTING",
		},
		ovc.KindAccount: {"DISABLING", "ENABLING", "DESTROYING", "DELETING"},
		ovc.KindDisk:    {"CREATING", "ASSIGNING", "ATTACHING", "DETACHING", "DELETING", "DESTROYING"},
		ovc.KindImage:   {"CREATING", "DISABLING", "DELETING", "DESTROYING"},
		ovc.KindNode:    {"PUTTING_IN_MAINTENANCE", "ENABLING", "DECOMMISSIONING"},
		"machines":      nil,
		"":              nil,
	} {
		t.Run(string(kind), func(t *testing.T) { require.Equal(t, want, ovc.TransitionStates(kind)) })
	}
	for _, r := range documentRows() {
		states := ovc.TransitionStates(r.kind)
		require.Contains(t, states, r.transition, "%v", r)
		require.NotContains(t, states, r.initial, "%v", r)
		require.NotContains(t, states, r.desired, "%v", r)
	}
}

func TestDeadlines(t *testing.T) {
	bin := map[ovc.State]bool{ovc.Deleted: true, ovc.ToBeDeleted: true}
	for kind := range ovc.Kinds() {
		m := kind.Machine()
		within := make(map[ovc.State]string)
		for _, r := range m.Table().Rows {
			for _, s := range r.From {
				if r.Timeout > 0 {
					within[m.StateAt(s)] += r.Timeout.String()
				}
			}
		}
		for s := range m.States() {
			want := ""
			switch {
			case m.Kind(s) == fsm.Transitional:
				want = ovc.StuckAfter.String()
			case bin[s]:
				want = ovc.Retention.String()
			}
			require.Equal(t, want, within[s], "%s in %s", kind, s)
		}
	}
}
