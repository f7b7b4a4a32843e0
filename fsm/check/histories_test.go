package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// series is the versions of one table of a running system, in a form of lines:
//
//	initial STATE              where objects begin; initials where there are several
//	kind KIND STATE...         with the kinds of lifecycle-table/1, for all versions
//	version NAME COMMIT        rows follow
//	change NAME COMMIT         as the version before; "+" adds rows, "-" removes some
//	A,B event,event C,D        every event in every one of the states leads to the target
//
// Where a row has several targets, the code of the source decides: the transitions
// are guarded. The sources have no actors, so that every event is for two invented
// ones.
type series struct {
	initials []string
	names    []string
	kind     map[string]string
	versions []*tabletest.Version
}

func readSeries(t testing.TB, file string) *series {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	h := &series{kind: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		h.line(t, strings.Fields(line))
	}
	for _, v := range h.versions {
		for _, s := range h.names {
			if s == h.initials[0] || slices.ContainsFunc(v.Transitions, func(e tabletest.VersionEdge) bool { return e.From == s || e.To == s }) {
				v.States = append(v.States, tabletest.VersionState{Name: s, Stable: h.kind[s] == "stable"})
			}
		}
	}
	return h
}

func (h *series) line(t testing.TB, words []string) {
	last := len(h.versions) - 1
	switch words[0] {
	case "#":
	case "initial", "initials":
		h.initials = words[1:]
	case "kind":
		for _, s := range words[2:] {
			h.kind[s] = words[1]
			h.names = append(h.names, s)
		}
	case "version":
		h.versions = append(h.versions, &tabletest.Version{N: last + 2, Date: words[1]})
	case "change":
		h.versions = append(h.versions, &tabletest.Version{N: last + 2, Date: words[1], Transitions: slices.Clone(h.versions[last].Transitions)})
	case "+":
		h.versions[last].Transitions = append(h.versions[last].Transitions, h.rows(t, words[1:])...)
	case "-":
		for _, row := range h.rows(t, words[1:]) {
			at := slices.Index(h.versions[last].Transitions, row)
			require.GreaterOrEqual(t, at, 0, words)
			h.versions[last].Transitions = slices.Delete(h.versions[last].Transitions, at, at+1)
		}
	default:
		h.versions[last].Transitions = append(h.versions[last].Transitions, h.rows(t, words)...)
	}
}

func (h *series) rows(t testing.TB, words []string) (rows []tabletest.VersionEdge) {
	require.Len(t, words, 3)
	for from := range strings.SplitSeq(words[0], ",") {
		for event := range strings.SplitSeq(words[1], ",") {
			for to := range strings.SplitSeq(words[2], ",") {
				require.NotEmpty(t, h.kind[from], words)
				require.NotEmpty(t, h.kind[to], words)
				rows = append(rows, tabletest.VersionEdge{From: from, Event: event, To: to})
			}
		}
	}
	return rows
}

// ironic is the series of versions that has its own form. A state is failed by its
// name, because the form has no kinds.
func ironic(t testing.TB) *series {
	h := &series{kind: map[string]string{}, versions: tabletest.ReadVersions(t)}
	for _, v := range h.versions {
		for _, s := range v.States {
			switch {
			case s.Stable:
				h.kind[s.Name] = "stable"
			case strings.Contains(s.Name, "fail") || s.Name == "error":
				h.kind[s.Name] = "error"
			default:
				h.kind[s.Name] = "transitional"
			}
			if s.Stable && !slices.Contains(h.initials, s.Name) {
				h.initials = append(h.initials, s.Name)
			}
		}
	}
	return h
}

// document makes a document of a version.
func (h *series) document(v *tabletest.Version) *tabletest.Document {
	d := &tabletest.Document{Name: "version", Actors: []string{"one", "another"}}
	for _, s := range v.States {
		d.States = append(d.States, tabletest.State{Name: s.Name, Kind: h.kind[s.Name]})
		if slices.Contains(h.initials, s.Name) {
			d.Initials = append(d.Initials, s.Name)
		}
	}
	d.Initial = d.Initials[0]
	for _, e := range v.Transitions {
		edge := tabletest.Edge{From: e.From, Event: e.Event, To: e.To}
		for _, other := range v.Transitions {
			if other.From == e.From && other.Event == e.Event && other.To != e.To {
				edge.Guard = "leads to " + e.To
			}
		}
		d.Transitions = append(d.Transitions, edge)
	}
	return d
}

// cell is a state and an event.
type cell struct{ state, event string }

// fixes returns the cells that a version adds to states and of events that the
// version before it had.
func fixes(v, before *tabletest.Version) map[cell]bool {
	states, events, had := map[string]bool{}, map[string]bool{}, map[cell]bool{}
	for _, s := range before.States {
		states[s.Name] = true
	}
	for _, e := range before.Transitions {
		events[e.Event], had[cell{e.From, e.Event}] = true, true
	}
	fixed := map[cell]bool{}
	for _, e := range v.Transitions {
		if c := (cell{e.From, e.Event}); states[c.state] && events[c.event] && !had[c] {
			fixed[c] = true
		}
	}
	return fixed
}

// TestHistories judges the lints by the histories of running systems: which warnings
// are about a state that a later version gives another row? The naive rule warns
// about every transitional state. The facts of every version agree with the
// reference.
func TestHistories(t *testing.T) {
	var warnings, hits, naive, naiveHits int
	seen := 0
	datadriven.RunTest(t, "testdata/lint/histories", func(t *testing.T, d *datadriven.TestData) string {
		seen++
		var h *series
		if name := d.CmdArgs[0].Key; name == "ironic" {
			h = ironic(t)
		} else {
			h = readSeries(t, filepath.Join("../testdata/history/others", name))
		}
		var b strings.Builder
		for i, v := range h.versions {
			later := map[string]bool{}
			for j := i + 1; j < len(h.versions); j++ {
				for c := range fixes(h.versions[j], h.versions[j-1]) {
					later[c.state] = true
				}
			}
			document := h.document(v)
			data, err := json.Marshal(document)
			require.NoError(t, err)
			table := tabletest.Parse(t, string(data))
			got, err := json.Marshal(check.Analyze(table))
			require.NoError(t, err)
			want, err := json.Marshal(facts(document))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(decoded(t, want), decoded(t, got)), v.Date)

			findings := check.Lint(table, nil).AtLeast(check.Warning)
			n, hit := 0, 0
			for _, f := range findings {
				for _, s := range f.States {
					n++
					if later[s] {
						hit++
					}
				}
			}
			all, allHit := 0, 0
			for _, s := range table.States {
				if s.Kind == fsm.Transitional {
					all++
					if later[s.Name] {
						allHit++
					}
				}
			}
			fmt.Fprintf(&b, "%s: lints %d hits / %d warnings, naive %d / %d\n", v.Date, hit, n, allHit, all)
			for _, f := range findings {
				fmt.Fprintf(&b, "  %s: %s\n", f.ID, f.Message)
			}
			warnings, hits, naive, naiveHits = warnings+n, hits+hit, naive+all, naiveHits+allHit
		}
		return b.String()
	})
	files, err := filepath.Glob("../testdata/history/others/*")
	require.NoError(t, err)
	require.Equal(t, len(files)+1, seen)
	t.Logf("all: lints %d hits / %d warnings, naive %d / %d", hits, warnings, naiveHits, naive)
}
