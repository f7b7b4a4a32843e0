package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// systemState is the rule of the Lattice document.
func systemState() lifecycle.AggregateSpec[lattice.ServiceState, lattice.State] {
	type states = []lattice.ServiceState
	return lifecycle.AggregateSpec[lattice.ServiceState, lattice.State]{
		Name: "system-state", Rule: lifecycle.Priority,
		Classes: []lifecycle.Class[lattice.ServiceState, lattice.State]{
			{State: lattice.Degraded, States: states{lattice.ServiceDegraded, lattice.ServiceFailed}},
			{State: lattice.Updating, States: states{lattice.ServiceUpdating, lattice.ServicePending, lattice.ServiceDeleting}},
			{State: lattice.Scaling, States: states{lattice.ServiceScaling}},
			{State: lattice.Stable, States: states{lattice.ServiceStable}},
		},
		Empty: lattice.Stable,
	}
}

// mciStatus is the rule of the CB-Tumblebug document.
func mciStatus() lifecycle.AggregateSpec[tumblebug.State, tumblebug.State] {
	return lifecycle.AggregateSpec[tumblebug.State, tumblebug.State]{
		Name: "mci-status", Rule: lifecycle.Dominant, Children: tumblebug.VM,
		Classes: lifecycle.Each(tumblebug.Failed, tumblebug.Suspended, tumblebug.Running, tumblebug.Terminated,
			tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			tumblebug.Terminating, tumblebug.Undefined),
		Empty: tumblebug.Undefined,
	}
}

func TestAggregatePriority(t *testing.T) {
	rule := lifecycle.MustAggregate(systemState())
	services := []lattice.ServiceState{"pending", "stable", "updating", "scaling", "degraded", "failed", "deleting"}
	lists := [][]lattice.ServiceState{nil}
	for n := range 5 {
		var longer [][]lattice.ServiceState
		for _, list := range lists {
			got, err := rule.Compute(slices.Values(list))
			require.NoError(t, err)
			require.Equal(t, lattice.Aggregate(slices.Values(list)), got.State, "%q", list)
			require.Equal(t, n, got.Total)
			require.Equal(t, got.Count < n, got.Partial)
			for _, s := range services {
				longer = append(longer, append(slices.Clone(list), s))
			}
		}
		lists = longer
	}
	_, err := rule.Compute(slices.Values([]lattice.ServiceState{"asleep"}))
	require.ErrorIs(t, err, fsm.ErrUnknownState)
	require.EqualError(t, err, "fsm: unknown state: system-state: in asleep")
}

// The examples of the document, and its eleven counts.
func TestAggregateDominant(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	many := func(pairs ...any) (vms []tumblebug.State) {
		for i := 0; i < len(pairs); i += 2 {
			vms = append(vms, slices.Repeat([]tumblebug.State{pairs[i].(tumblebug.State)}, pairs[i+1].(int))...)
		}
		return vms
	}
	type result = lifecycle.Aggregated[tumblebug.State]
	for _, c := range []struct {
		vms      []tumblebug.State
		expected int
		want     result
	}{
		{nil, 0, result{State: tumblebug.Undefined}},
		{nil, 3, result{State: tumblebug.Undefined, Total: 3, Partial: true}},
		{many(tumblebug.Running, 5), 0, result{tumblebug.Running, 5, 5, false}},
		{many(tumblebug.Running, 3, tumblebug.Suspending, 2), 0, result{tumblebug.Running, 3, 5, true}},
		{many(tumblebug.Suspended, 6, tumblebug.Running, 4), 0, result{tumblebug.Suspended, 6, 10, true}},
		{many(tumblebug.Terminated, 10), 0, result{tumblebug.Terminated, 10, 10, false}},
		{many(tumblebug.Running, 2, tumblebug.Failed, 2), 0, result{tumblebug.Failed, 2, 4, true}},
		{many(tumblebug.Running, 2, tumblebug.Suspended, 2), 0, result{tumblebug.Suspended, 2, 4, true}},
		{many(tumblebug.Undefined, 1, tumblebug.Terminating, 1), 0, result{tumblebug.Terminating, 1, 2, true}},
		// The total is remembered while VMs are still to come.
		{many(tumblebug.Running, 3), 5, result{tumblebug.Running, 3, 5, true}},
		{many(tumblebug.Running, 5), 3, result{tumblebug.Running, 5, 5, false}},
		// A VM that was removed is none.
		{many(tumblebug.Running, 3, tumblebug.Removed, 2), 0, result{tumblebug.Running, 3, 3, false}},
	} {
		var counts lifecycle.Counts
		require.NoError(t, counts.Expect(c.expected))
		byState := map[tumblebug.State]int{}
		for _, s := range c.vms {
			require.NoError(t, rule.Enter(&counts, s))
			byState[s]++
		}
		require.Equal(t, c.want, must(rule.Of(&counts))(t), "%v of %d", c.vms, c.expected)
		classes := 0
		for s, n := range rule.ByClass(&counts) {
			classes++
			require.Equal(t, byState[s], n, s)
		}
		require.Equal(t, 10, classes) // and the total
	}
	// Of any two states with as many VMs, the one that is named first holds.
	order := []tumblebug.State{
		"Failed", "Suspended", "Running", "Terminated", "Creating", "Suspending", "Resuming", "Rebooting", "Terminating", "Undefined",
	}
	for i, a := range order {
		for _, b := range order[i+1:] {
			for _, vms := range [][]tumblebug.State{{a, b}, {b, a}} {
				require.Equal(t, a, must(rule.Compute(slices.Values(vms)))(t).State, "%v", vms)
			}
		}
	}
}

// What the rule counts incrementally is what it computes anew, whatever happens;
// what it refuses changes nothing.
func TestAggregateModel(t *testing.T) {
	states := slices.Collect(tumblebug.VM.States())
	for _, kind := range []lifecycle.Rule{lifecycle.Priority, lifecycle.Dominant} {
		spec := mciStatus()
		spec.Rule = kind
		rule := lifecycle.MustAggregate(spec)
		rapid.Check(t, func(t *rapid.T) {
			var counts lifecycle.Counts
			vms := map[int]tumblebug.State{} // those that count
			expected := 0
			anyState := rapid.SampledFrom(states)
			put := func(id int, s tumblebug.State) {
				vms[id] = s
				if s == tumblebug.Removed {
					delete(vms, id)
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"enter": func(t *rapid.T) {
					s, id := anyState.Draw(t, "state"), rapid.Int().Draw(t, "id")
					if _, there := vms[id]; there {
						t.Skip("taken")
					}
					require.NoError(t, rule.Enter(&counts, s))
					put(id, s)
				},
				"move": func(t *rapid.T) {
					if len(vms) == 0 {
						t.Skip("nobody")
					}
					id := rapid.SampledFrom(slices.Sorted(maps.Keys(vms))).Draw(t, "id")
					to := anyState.Draw(t, "to")
					require.NoError(t, rule.Move(&counts, vms[id], to))
					put(id, to)
				},
				"leave": func(t *rapid.T) {
					if len(vms) == 0 {
						t.Skip("nobody")
					}
					id := rapid.SampledFrom(slices.Sorted(maps.Keys(vms))).Draw(t, "id")
					require.NoError(t, rule.Leave(&counts, vms[id]))
					delete(vms, id)
				},
				"who was not there": func(t *rapid.T) {
					from, to := anyState.Draw(t, "from"), anyState.Draw(t, "to")
					if from == tumblebug.Removed || slices.Contains(slices.Collect(maps.Values(vms)), from) {
						t.Skip("there is one")
					}
					require.ErrorIs(t, rule.Leave(&counts, from), lifecycle.ErrMiscount)
					require.ErrorIs(t, rule.Move(&counts, from, to), lifecycle.ErrMiscount)
				},
				"expect": func(t *rapid.T) {
					n := rapid.IntRange(-1, 10).Draw(t, "n")
					if err := counts.Expect(n); n < 0 {
						require.ErrorIs(t, err, lifecycle.ErrInvalid)
						return
					}
					expected = n
				},
				"a state that nobody knows": func(t *rapid.T) {
					require.ErrorIs(t, rule.Enter(&counts, "Asleep"), fsm.ErrUnknownState)
					require.ErrorIs(t, rule.Move(&counts, tumblebug.Removed, "Asleep"), fsm.ErrUnknownState)
					require.ErrorIs(t, rule.Move(&counts, "Asleep", tumblebug.Running), fsm.ErrUnknownState)
				},
				"store": func(t *rapid.T) {
					data, err := json.Marshal(counts)
					require.NoError(t, err)
					read := counts.Clone()
					require.NoError(t, json.Unmarshal(data, &read))
					again, err := json.Marshal(read)
					require.NoError(t, err)
					require.Equal(t, string(data), string(again))
					counts = read
				},
				"": func(t *rapid.T) {
					got, err := rule.Of(&counts)
					require.NoError(t, err)
					require.Equal(t, naive(kind, vms, expected), got, "%v", vms)
					require.Equal(t, len(vms), counts.Len())
				},
			})
		})
	}
}

// naive looks at every child.
func naive(rule lifecycle.Rule, vms map[int]tumblebug.State, expected int) lifecycle.Aggregated[tumblebug.State] {
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
		if n := in(class.State); n > 0 && (rule == lifecycle.Priority || n >= in(best)) {
			best = class.State
		}
	}
	total := max(len(vms), expected)
	return lifecycle.Aggregated[tumblebug.State]{State: best, Count: in(best), Total: total, Partial: in(best) != total}
}

// One change costs the same with ten children and with a hundred thousand: no
// operation allocates, and what they walk over is a number for each state.
func TestAggregateCostsTheSame(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	for _, n := range []int{10, 100_000} {
		var counts lifecycle.Counts
		roster := lifecycle.NewRoster(rule)
		for i := range n {
			require.NoError(t, rule.Enter(&counts, tumblebug.Running))
			must(roster.Apply(vmRow(fmt.Sprint(i), 1, "", tumblebug.Running)))(t)
		}
		there, sequence := false, uint64(1)
		got := testing.AllocsPerRun(100, func() {
			from, to := tumblebug.Running, tumblebug.Suspended
			if there {
				from, to = to, from
			}
			there = !there
			sequence++
			if err := rule.Move(&counts, from, to); err != nil {
				t.Fatal(err)
			}
			if _, err := rule.Of(&counts); err != nil {
				t.Fatal(err)
			}
			if news, err := roster.Apply(vmRow("1", sequence, from, to)); err != nil || !news {
				t.Fatal(news, err)
			}
			if roster.Now().Total != n {
				t.Fatal("lost one")
			}
		})
		if !raceEnabled {
			require.Zero(t, got, n)
		}
		numbers := 0
		for range counts.All() {
			numbers++
		}
		require.LessOrEqual(t, numbers, 2)
		data := must(json.Marshal(counts))(t)
		require.Less(t, len(data), 64, "%d children: %s", n, data)
	}
}

func TestCountsFromBytes(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	for _, c := range []struct {
		data string
		want error
	}{
		{`{"states":{"Running":0}}`, lifecycle.ErrMiscount},
		{`{"states":{"Running":-1,"Failed":3}}`, lifecycle.ErrMiscount},
		{`{"states":{"":1}}`, lifecycle.ErrMiscount},
		{fmt.Sprintf(`{"states":{"Running":%d,"Failed":1}}`, math.MaxInt), lifecycle.ErrMiscount},
		{`{"expected":-1}`, lifecycle.ErrMiscount},
		{`{"states":[]}`, nil},
		{`7`, nil},
	} {
		var counts lifecycle.Counts
		require.NoError(t, rule.Enter(&counts, tumblebug.Failed))
		err := json.Unmarshal([]byte(c.data), &counts)
		require.Error(t, err, c.data)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, c.data)
		}
		require.Equal(t, `{"states":{"Failed":1}}`, string(must(json.Marshal(counts))(t)), c.data)
	}
	var counts lifecycle.Counts
	require.Equal(t, `{}`, string(must(json.Marshal(counts))(t)))
	require.NoError(t, json.Unmarshal([]byte(`{"states":{"Running":3,"Asleep":1,"Adrift":1},"expected":4}`), &counts))
	_, err := rule.Of(&counts)
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.ErrorContains(t, err, `"Adrift"`)
	require.Equal(t, 5, counts.Len())
	require.Equal(t, 4, counts.Expected())

	full := lifecycle.Counts{}
	require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"states":{"Running":%d}}`, math.MaxInt), &full))
	require.ErrorIs(t, rule.Enter(&full, tumblebug.Failed), lifecycle.ErrMiscount)
	require.Equal(t, math.MaxInt, full.Len())

	clone := counts.Clone()
	require.NoError(t, rule.Enter(&clone, tumblebug.Running))
	require.Equal(t, `{"states":{"Adrift":1,"Asleep":1,"Running":3},"expected":4}`, string(must(json.Marshal(counts))(t)))
	require.Equal(t, 6, clone.Len())
}

// Every fault of a specification is found, all at once.
func TestAggregateFaults(t *testing.T) {
	spec := mciStatus()
	spec.Name, spec.Rule = "", 7
	spec.Classes = append(spec.Classes[1:], // Failed is in no class
		lifecycle.Class[tumblebug.State, tumblebug.State]{State: "Asleep", States: []tumblebug.State{"Asleep", "Removed"}},
		lifecycle.Class[tumblebug.State, tumblebug.State]{State: "Running", States: []tumblebug.State{"Running"}},
		lifecycle.Class[tumblebug.State, tumblebug.State]{State: "Empty"})
	spec.Uncounted = []tumblebug.State{"Suspended"}
	_, err := lifecycle.NewAggregate(spec)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, `lifecycle: invalid rule:
	the aggregate has no name
	unknown rule 7
	class Asleep: machine vm has no state Asleep
	class Asleep: in the absent state Removed there is no child
	class Running is there twice
	class Running: state Running counts already, or has no name of its own
	class Empty: no state counts as it
	uncounted: state Suspended counts already, or has no name of its own
	state Failed of machine vm is in no class`)
	_, err = lifecycle.NewAggregate(lifecycle.AggregateSpec[state, state]{Name: "nothing"})
	require.EqualError(t, err, "lifecycle: invalid rule nothing:\n\tno class: the children would never matter")
	require.PanicsWithValue(t, err.Error(), func() {
		lifecycle.MustAggregate(lifecycle.AggregateSpec[state, state]{Name: "nothing"})
	})
}

// A child in an uncounted state is there and counts as none.
func TestAggregateUncounted(t *testing.T) {
	spec := mciStatus()
	spec.Classes = slices.DeleteFunc(spec.Classes, func(c lifecycle.Class[tumblebug.State, tumblebug.State]) bool {
		return c.State == tumblebug.Terminated
	})
	spec.Uncounted = []tumblebug.State{tumblebug.Terminated}
	rule := lifecycle.MustAggregate(spec)
	var counts lifecycle.Counts
	require.NoError(t, rule.Enter(&counts, tumblebug.Terminated))
	require.NoError(t, rule.Leave(&counts, tumblebug.Terminated))
	require.NoError(t, rule.Enter(&counts, tumblebug.Running))
	require.NoError(t, rule.Move(&counts, tumblebug.Running, tumblebug.Terminated))
	require.Equal(t, lifecycle.Aggregated[tumblebug.State]{State: tumblebug.Undefined}, must(rule.Of(&counts))(t))
	// Counts that were written while the state still counted.
	require.NoError(t, json.Unmarshal([]byte(`{"states":{"Terminated":2,"Running":1}}`), &counts))
	require.Equal(t, lifecycle.Aggregated[tumblebug.State]{State: tumblebug.Running, Count: 1, Total: 1}, must(rule.Of(&counts))(t))
}

// Counts in a parent's payload change in the same commit as a child, or neither
// does: a commit of two changes.
func TestCountsInTheCommitOfTheChild(t *testing.T) {
	type mciSpec struct{ VMs lifecycle.Counts }
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	rule := lifecycle.MustAggregate(mciStatus())
	mcis := lifecycle.New(fsm.Must[mciSpec](tumblebug.MCITable()), store, nil)
	vms := lifecycle.New(tumblebug.VM, store, nil)
	must(vms.Add(ctx, "v", tumblebug.User, tumblebug.VMSpec{}))(t)
	var first mciSpec
	require.NoError(t, rule.Enter(&first.VMs, tumblebug.Creating))
	must(mcis.Add(ctx, "m", tumblebug.User, first))(t)

	prepare := func() lifecycle.Commit {
		commit := lifecycle.Commit{Token: lifecycle.NewToken()}
		for _, key := range []lifecycle.Key{{Machine: "vm", ID: "v"}, {Machine: "mci", ID: "m"}} {
			was := must(store.Get(ctx, key))(t)
			to := was
			to.Sequence++
			to.Event = "Succeed"
			if key.Machine == "vm" {
				to.State, to.Origin = "Running", "Running"
			} else {
				var spec mciSpec
				require.NoError(t, json.Unmarshal(must(was.Payload.Bytes())(t), &spec))
				require.NoError(t, rule.Move(&spec.VMs, tumblebug.Creating, tumblebug.Running))
				to.Payload = lifecycle.RawPayload(must(json.Marshal(spec))(t))
			}
			commit.Changes = append(commit.Changes, lifecycle.StoredChange{
				Expect: was.Revision, From: was.State, FromOrigin: was.Origin, To: to,
			})
		}
		return commit
	}
	check := func(vm tumblebug.State) {
		require.Equal(t, vm, must(vms.Get(ctx, "v"))(t).State)
		mci := must(mcis.Get(ctx, "m"))(t)
		require.Equal(t, vm, must(rule.Of(&mci.Payload.VMs))(t).State)
	}
	late := prepare()
	must(mcis.Fire(ctx, "m", tumblebug.Succeed, tumblebug.Tumblebug, nil))(t)
	require.ErrorIs(t, store.Commit(ctx, &late), lifecycle.ErrConflict)
	check(tumblebug.Creating)
	commit := prepare()
	require.NoError(t, store.Commit(ctx, &commit))
	require.NoError(t, store.Commit(ctx, &commit), "the answer was lost; it is sent again")
	check(tumblebug.Running)
}
