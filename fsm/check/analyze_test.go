package check_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// Every definition where it could be read in two ways. Only the facts that are
// named are compared.
func TestDefinitions(t *testing.T) {
	const abc = `"states":[{"name":"S","kind":"stable"},{"name":"T","kind":"transitional"},{"name":"F","kind":"final"},{"name":"E","kind":"error"}]`
	tests := map[string]struct {
		document string
		want     string // a subset of the report
	}{
		"an empty table has no facts and no nulls": {
			`{"name":"m","states":[],"transitions":[]}`,
			`{"actors":[],"cannot_reach_final":[],"cannot_reach_rest":[],"cells_defined":0,"cells_total":0,"confidence":"",
			"distance_from_initial":{},"eccentricity":0,"error_without_exit":[],"events":0,"final_with_outgoing":[],"guarded":0,
			"ignored":0,"initial":"","initials":[],"kinds":{},"largest_scc":0,"nondeterministic":[],"sccs":0,"self_loops":0,
			"states":0,"transitional_only_one_actor_can_leave":[],"transitional_without_error_exit":[],"transitions":0,"traps":[],
			"unreachable_from_initial":[],"unreachable_from_initials":[]}`,
		},
		"without an initial state nothing is reached": {
			`{"name":"m",` + abc + `,"transitions":[{"from":"S","event":"e","to":"T"}]}`,
			`{"initial":"","initials":[],"unreachable_from_initial":["S","T","F","E"],"unreachable_from_initials":["S","T","F","E"],"distance_from_initial":{}}`,
		},
		"an initial state that is not declared": {
			`{"name":"m","initial":"ghost",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T"}]}`,
			`{"initial":"","initials":[],"unreachable_from_initial":["S","T","F","E"],"traps":["T","E"]}`,
		},
		"an ignored event defines a cell, counts as transition, and is no edge": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T","ignore":true},{"from":"S","event":"f","actor":"a","ignore":true,"guard":"g"}]}`,
			`{"transitions":2,"ignored":2,"guarded":1,"cells_defined":2,"cells_total":8,"events":2,"self_loops":0,"traps":["S","T","E"],"unreachable_from_initial":["T","F","E"]}`,
		},
		"an ignored event beside a move leaves no choice of targets": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T","guard":"g"},{"from":"S","event":"e","actor":"a","ignore":true}]}`,
			`{"nondeterministic":[],"cells_defined":1}`,
		},
		"two ways to the same target are not a choice": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T","guard":"g"},{"from":"S","event":"e","actor":"b","to":"T"}]}`,
			`{"nondeterministic":[],"cells_defined":1,"transitions":2}`,
		},
		"actors decide among targets, the event alone does not": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T"},{"from":"S","event":"e","actor":"b","to":"E"}]}`,
			`{"nondeterministic":[{"from":"S","event":"e","to":["E","T"],"unguarded":2,"all_guarded":false}]}`,
		},
		"guarded and otherwise": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T","guard":"g"},{"from":"S","event":"e","actor":"a","to":"E"}]}`,
			`{"nondeterministic":[{"from":"S","event":"e","to":["E","T"],"unguarded":1,"all_guarded":false}]}`,
		},
		"a self loop is not an exit: not of a trap, of an error, of a final state": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"S"},{"from":"F","event":"e","actor":"a","to":"F"},{"from":"E","event":"e","actor":"a","to":"E"}]}`,
			`{"traps":["S","T","E"],"error_without_exit":["E"],"final_with_outgoing":[],"self_loops":3,"cells_defined":3}`,
		},
		"a self loop frees no object from the one actor that can": {
			`{"name":"m","initial":"T",` + abc + `,"transitions":[{"from":"T","event":"again","actor":"a","to":"T"},{"from":"T","event":"done","actor":"b","to":"S"}]}`,
			`{"transitional_only_one_actor_can_leave":["T"]}`,
		},
		"a row of any actor belongs to every declared one": {
			`{"name":"m","initial":"T","actors":["a","b"],` + abc + `,"transitions":[{"from":"T","event":"e","to":"S"}]}`,
			`{"transitional_only_one_actor_can_leave":[],"actors":["a","b"]}`,
		},
		"any actor, and there is one": {
			`{"name":"m","initial":"T","actors":["b"],` + abc + `,"transitions":[{"from":"T","event":"e","to":"S"}]}`,
			`{"transitional_only_one_actor_can_leave":["T"]}`,
		},
		"several actors on one row": {
			`{"name":"m","initial":"T",` + abc + `,"transitions":[{"from":"T","event":"e","actors":["b","a"],"to":"S"}]}`,
			`{"transitional_only_one_actor_can_leave":[],"actors":["a","b"]}`,
		},
		"a deadline is an exit by another actor": {
			`{"name":"m","initial":"T",` + abc + `,"transitions":[{"from":"T","event":"e","actor":"a","to":"S"},{"from":"T","event":"late","to":"E","within":"1m"}]}`,
			`{"transitional_only_one_actor_can_leave":[],"actors":["a","sweeper"]}`,
		},
		"a state without exit has no actor that leaves it": {
			`{"name":"m","initial":"T",` + abc + `,"transitions":[]}`,
			`{"transitional_only_one_actor_can_leave":[],"cannot_reach_rest":["T"],"cannot_reach_final":["S","T","E"]}`,
		},
		"without error states no error exit is missed": {
			`{"name":"m","initial":"T","states":[{"name":"T","kind":"transitional"},{"name":"S","kind":"stable"}],"transitions":[{"from":"T","event":"e","actor":"a","to":"S"}]}`,
			`{"transitional_without_error_exit":[],"cannot_reach_final":[],"traps":["S"]}`,
		},
		"an error exit is one step away": {
			`{"name":"m","initial":"T","states":[{"name":"T","kind":"transitional"},{"name":"U","kind":"transitional"},{"name":"E","kind":"error"}],"transitions":[{"from":"T","event":"e","actor":"a","to":"U"},{"from":"U","event":"e","actor":"a","to":"E"}]}`,
			`{"transitional_without_error_exit":["T"],"cannot_reach_rest":[],"error_without_exit":["E"]}`,
		},
		"transitional states that only lead to each other never rest": {
			`{"name":"m","initial":"S","states":[{"name":"S","kind":"stable"},{"name":"T","kind":"transitional"},{"name":"U","kind":"transitional"}],"transitions":[{"from":"S","event":"e","actor":"a","to":"T"},{"from":"T","event":"e","actor":"a","to":"U"},{"from":"U","event":"e","actor":"a","to":"T"}]}`,
			`{"cannot_reach_rest":["T","U"],"traps":[],"sccs":2,"largest_scc":2}`,
		},
		"the exit of a final state counts, by force or not": {
			`{"name":"m","initial":"F",` + abc + `,"transitions":[{"from":"F","event":"retry","actor":"a","to":"T","forced":true},{"from":"T","event":"e","actor":"a","to":"F"}]}`,
			`{"final_with_outgoing":["F"],"cannot_reach_final":["S","E"]}`,
		},
		"an absent state is stable to plain readers, the end of a life, and no trap": {
			`{"name":"m","initial":"S","states":[{"name":"S","kind":"stable"},{"name":"gone","kind":"stable","absent":true},{"name":"lost","kind":"stable"}],"transitions":[{"from":"S","event":"delete","actor":"a","to":"gone"}]}`,
			`{"kinds":{"stable":3},"traps":["lost"],"cannot_reach_final":["lost"],"final_with_outgoing":[]}`,
		},
		"an isolated state": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T"},{"from":"T","event":"e","actor":"a","to":"F"}]}`,
			`{"unreachable_from_initial":["E"],"traps":["E"],"error_without_exit":["E"],"cannot_reach_final":["E"],"sccs":4,"largest_scc":1,"transitional_without_error_exit":["T"]}`,
		},
		"several entries": {
			`{"name":"m","initial":"S","initials":["S","E"],` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"F"},{"from":"E","event":"e","actor":"a","to":"T"}]}`,
			`{"initial":"S","initials":["S","E"],"unreachable_from_initial":["T","E"],"unreachable_from_initials":[],"distance_from_initial":{"S":0,"F":1}}`,
		},
		"a return row leads to every origin, and is no choice alone": {
			`{"name":"m","initial":"A","states":[{"name":"A","kind":"stable"},{"name":"B","kind":"stable"},{"name":"C","kind":"stable"},{"name":"T","kind":"transitional"}],"transitions":[{"from":"A","event":"e","actor":"a","to":"T"},{"from":"B","event":"e","actor":"a","to":"T"},{"from":"A","event":"b","actor":"a","to":"B"},{"from":"T","event":"undo","actor":"a","return":true}]}`,
			`{"nondeterministic":[],"distance_from_initial":{"A":0,"B":1,"T":1},"largest_scc":3,"sccs":2,"transitions":4,"traps":["C"]}`,
		},
		"the origin decides between two rows": {
			`{"name":"m","initial":"A","states":[{"name":"A","kind":"stable"},{"name":"B","kind":"stable"},{"name":"T","kind":"transitional"}],"transitions":[{"from":"A","event":"e","actor":"a","to":"T"},{"from":"B","event":"e","actor":"a","to":"T"},{"from":"T","event":"f","actor":"a","to":"A","origin":["B"]},{"from":"T","event":"f","actor":"a","to":"B","origin":["A"]}]}`,
			`{"nondeterministic":[{"from":"T","event":"f","to":["A","B"],"unguarded":0,"all_guarded":true}],"guarded":0}`,
		},
		"one row with several sources counts as often": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"F","guard":"g","row":0},{"from":"T","event":"e","actor":"a","to":"F","guard":"g","row":0}]}`,
			`{"transitions":2,"guarded":2,"cells_defined":2}`,
		},
		"one row with several sources leaves a choice in one of them": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"F","row":0},{"from":"T","event":"e","actor":"a","to":"F","row":0},{"from":"T","event":"e","actor":"b","to":"E"}]}`,
			`{"nondeterministic":[{"from":"T","event":"e","to":["E","F"],"unguarded":2,"all_guarded":false}]}`,
		},
		"no object comes from a state that is not declared": {
			`{"name":"m","initial":"S",` + abc + `,"transitions":[{"from":"S","event":"e","actor":"a","to":"T"},{"from":"T","event":"f","actor":"a","to":"E","origin":["ghost"]},{"from":"T","event":"g","actor":"a","to":"F","origin":["ghost","S"]}]}`,
			`{"unreachable_from_initial":["E"],"transitions":3}`,
		},
		"what is not declared has no edges": {
			`{"name":"m","initial":"S","initials":["S","ghost"],"actors":["a"],` + abc + `,"transitions":[{"from":"S","event":"e","actor":"stranger","to":"T"},{"from":"ghost","event":"e","actor":"a","to":"F"},{"from":"S","event":"e","actor":"a","to":"ghost"},{"from":"T","event":"f","actor":"stranger","to":"E"}]}`,
			`{"transitions":4,"cells_defined":2,"events":2,"cells_total":8,"actors":["a"],"initials":["S"],"unreachable_from_initials":["F"],"nondeterministic":[],"transitional_only_one_actor_can_leave":[]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			marshalled, err := json.Marshal(check.Analyze(tabletest.Parse(t, test.document)))
			require.NoError(t, err)
			want, got := decoded(t, []byte(test.want)), decoded(t, marshalled)
			for fact := range got {
				if _, ok := want[fact]; !ok {
					delete(got, fact)
				}
			}
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}

// At the limits of package fsm: a ring of MaxStates states as deep as a search
// can get, every state with as many rows as fit.
func TestAtTheLimits(t *testing.T) {
	n, most := tabletest.Sized(fsm.MaxStates), tabletest.Sized(fsm.MaxRows)
	table := &fsm.Table{Name: "ring", Actors: []fsm.Actor{"a"}}
	for i := range n {
		table.States = append(table.States, fsm.TableState{Name: fmt.Sprint(i), Target: -1})
	}
	for e := range most / n {
		table.Events = append(table.Events, fmt.Sprint("e", e))
		for from := range n {
			table.Rows = append(table.Rows, fsm.TableRow{From: []int{from}, Event: e, To: (from + 1) % n})
		}
	}
	r := check.Analyze(table)
	require.Equal(t, most, r.Transitions)
	require.Equal(t, 1, r.Components)
	require.Equal(t, n, r.LargestComponent)
	require.Equal(t, n-1, r.Eccentricity)
	require.Empty(t, r.Problems)

	for i := range table.Rows { // cut the ring
		if table.Rows[i].To == 0 {
			table.Rows[i].To = n - 1
		}
	}
	r = check.Analyze(table)
	require.Equal(t, n, r.Components)
	require.Equal(t, 1, r.LargestComponent)
	require.Equal(t, []string{fmt.Sprint(n - 1)}, r.Traps)
}

// A hand-made table may have any index.
func TestIndexesOfNothing(t *testing.T) {
	table := &fsm.Table{
		Name: "m", Initial: 7, Initials: []int{-1, 9}, Actors: []fsm.Actor{"a"}, Events: []string{"e"},
		States: []fsm.TableState{{Name: "S", Target: -1}, {Name: "T", Kind: 99, Target: 12}},
		Rows: []fsm.TableRow{
			{From: []int{0}, Event: -1, To: 1},
			{From: []int{0}, Event: 5, To: 0, Guard: "g"},
			{From: []int{-1, 9}, Event: 0, To: 1},
			{From: []int{1}, Event: 0, To: -1},
			{From: []int{1}, Event: 0, To: 8, Actors: []int{-3, 44}},
			{From: []int{1}, Event: 0, To: -1, Then: 77},
			{From: []int{1}, Event: 0, To: -1, Then: fsm.ThenReturn, Origin: []int{-5, 5}},
			{From: nil, Event: 0, To: 1},
		},
	}
	r := check.Analyze(table)
	require.Equal(t, []string{"S", "T"}, r.Traps, "a row with an event that does not exist leads nowhere")
	require.Equal(t, 1, r.CellsDefined)
	require.NotEmpty(t, r.Problems)
	require.NotPanics(t, func() { _ = r.String() })
}
