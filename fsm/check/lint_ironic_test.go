package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// adapt makes a table of a version. What the form does not say is taken like this:
//
//   - Objects may begin in every stable state.
//   - A state that is not stable and that failures and aborts alone lead to, by the
//     words of their events, is of kind error. Every other one that is not stable is
//     transitional.
//   - Nobody is named, so that every event is for two who are made up.
func adapt(t testing.TB, v *tabletest.Version) *fsm.Table {
	words := check.DefaultVocabulary()
	otherwise := map[string]bool{}
	for _, e := range v.Transitions {
		role := words.RoleOf(e.Event)
		otherwise[e.To] = otherwise[e.To] || role != check.RoleFail && role != check.RoleAbort
	}
	type state struct {
		Name   string `json:"name"`
		Kind   string `json:"kind"`
		Target string `json:"target,omitempty"`
	}
	var states []state
	var initials []string
	for _, s := range v.States {
		next := state{Name: s.Name, Kind: "transitional"}
		switch {
		case s.Stable:
			next.Kind = "stable"
			initials = append(initials, s.Name)
		case !otherwise[s.Name]:
			next.Kind = "error"
		case s.Target != nil:
			next.Target = *s.Target
		}
		states = append(states, next)
	}
	require.NotEmpty(t, initials)
	var edges []tabletest.Edge
	for _, e := range v.Transitions {
		edges = append(edges, tabletest.Edge{From: e.From, Event: e.Event, To: e.To})
	}
	data, err := json.Marshal(map[string]any{
		"name": "version", "initial": initials[0], "initials": initials, "actors": []string{"one", "another"}, "states": states, "transitions": edges,
	})
	require.NoError(t, err)
	table, err := fsm.ParseTable(data)
	require.NoError(t, err)
	return table
}

// has returns the roles of the edges that leave the states of a version.
func has(v *tabletest.Version) map[string]map[check.Role]bool {
	words := check.DefaultVocabulary()
	roles := map[string]map[check.Role]bool{}
	for _, s := range v.States {
		roles[s.Name] = map[check.Role]bool{}
	}
	for _, e := range v.Transitions {
		roles[e.From][words.RoleOf(e.Event)] = true
	}
	return roles
}

// fixes returns the abort, delete and fail edges that a version adds to states that
// the one before it had. An event that leads to a state of another name than before
// is no fix, nor is another event of the same role between the same two states.
func fixes(v *tabletest.Version, before *tabletest.Version) (fixed []tabletest.VersionEdge) {
	had, role := has(before), check.DefaultVocabulary().RoleOf
	for _, e := range v.Transitions {
		there := slices.ContainsFunc(before.Transitions, func(b tabletest.VersionEdge) bool {
			return b.From == e.From && (b.Event == e.Event || b.To == e.To && b.To != b.From && role(b.Event) == role(e.Event))
		})
		if had[e.From] != nil && !there && role(e.Event) != check.RoleNone {
			fixed = append(fixed, e)
		}
	}
	return fixed
}

// naive is the rule to beat: it warns of every transitional state that lacks any
// of the three.
func naive(v *tabletest.Version, table *fsm.Table) (warned []string) {
	outOf := has(v)
	for _, s := range table.States {
		roles := outOf[s.Name]
		if s.Kind == fsm.Transitional && !(roles[check.RoleAbort] && roles[check.RoleDelete] && roles[check.RoleFail]) {
			warned = append(warned, s.Name)
		}
	}
	return warned
}

// later makes a version of a table in the full form, which gives the lints less to
// go by: it serves to see what was added after the last version of the series.
func later(t testing.TB, n int, table *fsm.Table) *tabletest.Version {
	v := &tabletest.Version{N: n, Date: "later"}
	for _, s := range table.States {
		state := tabletest.VersionState{Name: s.Name, Stable: s.Kind == fsm.Stable}
		if s.Target >= 0 {
			state.Target = &table.States[s.Target].Name
		}
		v.States = append(v.States, state)
	}
	for e := range table.Edges() {
		v.Transitions = append(v.Transitions, tabletest.VersionEdge{
			From: table.States[e.From].Name, Event: table.Events[e.Event], To: table.States[e.To].Name,
		})
	}
	return v
}

// tally counts warnings, and those of states that a later version fixes, of the
// lints and of the naive rule.
type tally struct{ warnings, hits, naive, naiveHits int }

// judge writes down what was fixed in a version, and what the lints say of it.
func (sum *tally) judge(t testing.TB, b *strings.Builder, versions []*tabletest.Version, i int, table *fsm.Table, name, title string) {
	v := versions[i]
	if i > 0 {
		for _, e := range fixes(v, versions[i-1]) {
			fmt.Fprintf(b, "fix: %s %s -%s-> %s\n", name, e.From, e.Event, e.To)
		}
	}
	toCome := map[string]bool{} // states that are there now and fixed later
	for j := i + 1; j < len(versions); j++ {
		for _, e := range fixes(versions[j], versions[j-1]) {
			toCome[e.From] = true
		}
	}
	hits := func(warned []string) (n int) {
		for _, s := range warned {
			if toCome[s] {
				n++
			}
		}
		return n
	}
	var warned []string
	findings := check.Lint(table, nil).AtLeast(check.Warning)
	for _, f := range findings {
		require.NotEmpty(t, f.States)
		warned = append(warned, f.States...)
	}
	warnedNaively := naive(v, table)
	fmt.Fprintf(b, "%s: lints %d hits / %d warnings, naive %d / %d\n", title, hits(warned), len(warned), hits(warnedNaively), len(warnedNaively))
	for _, f := range findings {
		fmt.Fprintf(b, "  %s: %s\n", f.ID, f.Message)
	}
	require.LessOrEqual(t, len(warned), 10, "more warnings than anybody reads")
	sum.warnings += len(warned)
	sum.hits += hits(warned)
	sum.naive += len(warnedNaively)
	sum.naiveHits += hits(warnedNaively)
}

// TestWarningsBeforeFixes judges the lints by a table of which ten versions are
// known: what would they have warned about before it was fixed? A warning counts
// once for each state that it is about, and hits if a later version fixes the state.
func TestWarningsBeforeFixes(t *testing.T) {
	datadriven.RunTest(t, "testdata/lint/ironic", func(t *testing.T, d *datadriven.TestData) string {
		versions := tabletest.ReadVersions(t)
		if d.HasArg("and") {
			var file string
			d.ScanArgs(t, "and", &file)
			versions = append(versions, later(t, len(versions)+1, tabletest.Read(t, file)))
		}
		var b strings.Builder
		var sum tally
		for i, v := range versions {
			table := adapt(t, v)
			sum.judge(t, &b, versions, i, table, fmt.Sprintf("v%d", v.N), fmt.Sprintf("v%d %s", v.N, v.Date))
		}
		fmt.Fprintf(&b, "all: lints %d hits / %d warnings, naive %d / %d\n", sum.hits, sum.warnings, sum.naiveHits, sum.naive)
		require.Greater(t, sum.hits*sum.naive, sum.naiveHits*sum.warnings, "more fixes per warning than the naive rule")
		return b.String()
	})
}

// The other way round: what a grown table has is taken away from one state at a
// time. Each abort and each failure that a transitional state then lacks is missed but
// for one, and while nothing is taken away, nothing is.
func TestWarningsForWhatIsTakenAway(t *testing.T) {
	grown := later(t, 11, tabletest.Read(t, "real/openstack-ironic-provision.json"))
	require.Empty(t, check.Lint(adapt(t, grown), nil).AtLeast(check.Warning))
	role := check.DefaultVocabulary().RoleOf
	taken, missed := map[check.Role]int{}, []string{}
	for _, s := range adapt(t, grown).States {
		for _, r := range []check.Role{check.RoleAbort, check.RoleFail} {
			less := *grown
			less.Transitions = slices.DeleteFunc(slices.Clone(grown.Transitions), func(e tabletest.VersionEdge) bool {
				return e.From == s.Name && role(e.Event) == r
			})
			if s.Kind != fsm.Transitional || len(less.Transitions) == len(grown.Transitions) {
				continue
			}
			taken[r]++
			found := check.Lint(adapt(t, &less), nil).AtLeast(check.Warning)
			if !slices.ContainsFunc(found, func(f check.Finding) bool { return slices.Contains(f.States, s.Name) }) {
				missed = append(missed, fmt.Sprint(s.Name, " without ", r))
			}
			require.LessOrEqual(t, len(found), 3, "%s without %s: %s", s.Name, r, found)
		}
	}
	require.GreaterOrEqual(t, taken[check.RoleAbort], 5)
	require.GreaterOrEqual(t, taken[check.RoleFail], 10)
	require.Equal(t, []string{"service hold without fail"}, missed) // of whose siblings too few have one
}
