package aggregate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/aggregate"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// systemState is the rule of the Lattice document.
func systemState() aggregate.Spec[lattice.ServiceState, lattice.State] {
	type states = []lattice.ServiceState
	return aggregate.Spec[lattice.ServiceState, lattice.State]{
		Name: "system-state", Rule: aggregate.Priority, Children: lattice.Service,
		Classes: []aggregate.Class[lattice.ServiceState, lattice.State]{
			{State: lattice.Degraded, States: states{lattice.ServiceDegraded, lattice.ServiceFailed}},
			{State: lattice.Updating, States: states{lattice.ServiceUpdating, lattice.ServicePending, lattice.ServiceDeleting}},
			{State: lattice.Scaling, States: states{lattice.ServiceScaling}},
			{State: lattice.Stable, States: states{lattice.ServiceStable}},
		},
		Empty: lattice.Stable,
	}
}

// mciStatus is the rule of the CB-Tumblebug document.
func mciStatus() aggregate.Spec[tumblebug.State, tumblebug.State] {
	return aggregate.Spec[tumblebug.State, tumblebug.State]{
		Name: "mci-status", Rule: aggregate.Dominant, Children: tumblebug.VM,
		Classes: aggregate.Each(tumblebug.Failed, tumblebug.Suspended, tumblebug.Running, tumblebug.Terminated,
			tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			tumblebug.Terminating, tumblebug.Undefined),
		Empty: tumblebug.Undefined,
	}
}

func count[S comparable](states []S) map[S]int {
	counts := make(map[S]int)
	for _, s := range states {
		counts[s]++
	}
	return counts
}

// pseudocode is the rule of the Lattice document for the state of a system.
func pseudocode(services []lattice.ServiceState) lattice.State {
	counted := map[lattice.ServiceState]lattice.ServiceState{"failed": "degraded", "pending": "updating", "deleting": "updating"}
	for _, s := range []lattice.ServiceState{"degraded", "updating", "scaling"} {
		if slices.ContainsFunc(services, func(x lattice.ServiceState) bool { return x == s || counted[x] == s }) {
			return lattice.State(s)
		}
	}
	return "stable"
}

// The rule gives the state of the document for every list of up to four services.
func TestPriority(t *testing.T) {
	rule := aggregate.Must(systemState())
	services := []lattice.ServiceState{"pending", "stable", "updating", "scaling", "degraded", "failed", "deleting"}
	lists := [][]lattice.ServiceState{nil}
	for n := range 5 {
		var longer [][]lattice.ServiceState
		for _, list := range lists {
			got, err := rule.Of(count(list))
			require.NoError(t, err)
			require.Equal(t, pseudocode(list), got.State, "%q", list)
			require.Equal(t, n, got.Total)
			require.Equal(t, got.Count < n, got.Partial)
			for _, s := range services {
				longer = append(longer, append(slices.Clone(list), s))
			}
		}
		lists = longer
	}
}

// The examples of the document.
func TestDominant(t *testing.T) {
	rule := aggregate.Must(mciStatus())
	type (
		result = aggregate.Result[tumblebug.State]
		counts = map[tumblebug.State]int
	)
	for _, c := range []struct {
		vms  counts
		want result
	}{
		{nil, result{State: tumblebug.Undefined}},
		{counts{tumblebug.Running: 5}, result{tumblebug.Running, 5, 5, false}},
		{counts{tumblebug.Running: 3, tumblebug.Suspending: 2}, result{tumblebug.Running, 3, 5, true}},
		{counts{tumblebug.Suspended: 6, tumblebug.Running: 4}, result{tumblebug.Suspended, 6, 10, true}},
		{counts{tumblebug.Terminated: 10}, result{tumblebug.Terminated, 10, 10, false}},
		{counts{tumblebug.Running: 2, tumblebug.Failed: 2}, result{tumblebug.Failed, 2, 4, true}},
		{counts{tumblebug.Running: 2, tumblebug.Suspended: 2}, result{tumblebug.Suspended, 2, 4, true}},
		{counts{tumblebug.Undefined: 1, tumblebug.Terminating: 1}, result{tumblebug.Terminating, 1, 2, true}},
		// A removed VM is not counted, also if changes count it backwards.
		{counts{tumblebug.Running: 3, tumblebug.Removed: 2}, result{tumblebug.Running, 3, 3, false}},
		{counts{tumblebug.Running: 3, tumblebug.Removed: -2}, result{tumblebug.Running, 3, 3, false}},
	} {
		t.Run(fmt.Sprint(c.vms), func(t *testing.T) {
			got, err := rule.Of(c.vms)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	// Of any two states with as many VMs, the first in this order counts.
	order := []tumblebug.State{
		"Failed", "Suspended", "Running", "Terminated", "Creating", "Suspending", "Resuming", "Rebooting", "Terminating", "Undefined",
	}
	for i, a := range order {
		for _, b := range order[i+1:] {
			got2, err := rule.Of(counts{a: 1, b: 1})
			require.NoError(t, err)
			require.Equal(t, a, got2.State, "%v %v", a, b)
		}
	}
}

// Counts that follow every change give the result that a look at every child gives.
func TestCountsFollowChanges(t *testing.T) {
	states := slices.Collect(tumblebug.VM.States())
	for _, kind := range []aggregate.Rule{aggregate.Priority, aggregate.Dominant} {
		spec := mciStatus()
		spec.Rule = kind
		rule := aggregate.Must(spec)
		rapid.Check(t, func(t *rapid.T) {
			vms := make([]tumblebug.State, 8)
			for i := range vms {
				vms[i] = tumblebug.Removed
			}
			counts := make(map[tumblebug.State]int)
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				i, to := rapid.IntRange(0, 7).Draw(t, "vm"), rapid.SampledFrom(states).Draw(t, "to")
				counts[vms[i]]--
				counts[to]++
				vms[i] = to
				require.Equal(t, naive(kind, vms), of(t, rule, counts), "%v", vms)
			}
			var read map[tumblebug.State]int
			data, err := json.Marshal(counts)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &read))
			require.Equal(t, naive(kind, vms), of(t, rule, read))
		})
	}
}

func of(t require.TestingT, rule *aggregate.Aggregate[tumblebug.State, tumblebug.State], counts map[tumblebug.State]int) aggregate.Result[tumblebug.State] {
	result, err := rule.Of(counts)
	require.NoError(t, err)
	return result
}

// naive looks at every child.
func naive(rule aggregate.Rule, vms []tumblebug.State) aggregate.Result[tumblebug.State] {
	in := func(s tumblebug.State) (n int) {
		for _, vm := range vms {
			if vm == s {
				n++
			}
		}
		return n
	}
	best := tumblebug.Undefined
	for _, class := range slices.Backward(mciStatus().Classes) { // so that the first of equals comes last
		if n := in(class.State); n > 0 && (rule == aggregate.Priority || n >= in(best)) {
			best = class.State
		}
	}
	total := len(vms) - in(tumblebug.Removed)
	return aggregate.Result[tumblebug.State]{State: best, Count: in(best), Total: total, Partial: in(best) != total}
}

func TestOfRefuses(t *testing.T) {
	rule := aggregate.Must(mciStatus())
	_, err := rule.Of(map[tumblebug.State]int{tumblebug.Running: 1, "Asleep": 1})
	require.ErrorIs(t, err, fsm.ErrUnknownState)
	require.EqualError(t, err, `aggregate: compute "mci-status": fsm: unknown state: machine "vm" has no state "Asleep"`)
	_, err = rule.Of(map[tumblebug.State]int{tumblebug.Running: 1, tumblebug.Failed: -1})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, `aggregate: compute "mci-status": lifecycle: invalid request: -1 children in state "Failed"`)
	_, err = rule.Of(map[tumblebug.State]int{tumblebug.Running: math.MaxInt, tumblebug.Failed: 1})
	require.ErrorIs(t, err, lifecycle.ErrInvalid, "the sum overflows")
	most, err := rule.Of(map[tumblebug.State]int{tumblebug.Running: math.MaxInt, tumblebug.Removed: math.MaxInt})
	require.NoError(t, err)
	require.Equal(t, math.MaxInt, most.Total)
}

// New reports every fault of a specification at once.
func TestFaults(t *testing.T) {
	type class = aggregate.Class[tumblebug.State, tumblebug.State]
	spec := mciStatus()
	spec.Name, spec.Rule = "", 7
	spec.Classes = append(spec.Classes[1:], // Failed is in no class
		class{State: "Asleep", States: []tumblebug.State{"Asleep", "Removed"}},
		class{State: "Running", States: []tumblebug.State{"Running"}},
		class{State: "Empty"})
	_, err := aggregate.New(spec)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, `aggregate: compile "": lifecycle: invalid request:
	the aggregate has no name
	rule 7 is unknown
	class Asleep: machine vm has no state Asleep
	class Asleep: state Removed is absent, and an absent child is not counted
	class Running is declared twice
	class Running: state Running is already in class Running
	class Empty has no states
	state Failed of machine vm is in no class`)
	nothing := aggregate.Spec[tumblebug.State, tumblebug.State]{Name: "nothing"}
	_, err = aggregate.New(nothing)
	require.EqualError(t, err, "aggregate: compile \"nothing\": lifecycle: invalid request:\n"+
		"\tthe aggregate has no classes\n\tthe aggregate has no machine of the children")
	require.PanicsWithValue(t, err.Error(), func() { aggregate.Must(nothing) })
}

// A later change of the specification does not change the rule.
func TestAggregateKeepsNothing(t *testing.T) {
	spec := mciStatus()
	rule := aggregate.Must(spec)
	for i := range spec.Classes {
		spec.Classes[i].State, spec.Classes[i].States[0] = "changed", "changed"
	}
	got, err := rule.Of(map[tumblebug.State]int{tumblebug.Running: 1})
	require.NoError(t, err)
	require.Equal(t, tumblebug.Running, got.State)
}
