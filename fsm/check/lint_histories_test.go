package check_test

import (
	"encoding/json"
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
//	change NAME COMMIT         as the version before; "+" adds rows, "-" takes some away
//	A,B event,event C,D        every event in every one of the states leads to the target
//
// Where several targets are named, the code of the source decides: the transitions
// are guarded. The sources know no actors, so that every event is for two who are
// made up. Where they know no kinds, a state is final if nothing leads out, at work
// if objects leave it without being asked to, and failed if its name says so.
type series struct {
	initials []string
	names    []string
	kind     map[string]string
	versions []*tabletest.Version
}

func readHistory(t testing.TB, file string) *series {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	h := &series{kind: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		rows := func(words []string) (rows []tabletest.VersionEdge) {
			require.Len(t, words, 3, line)
			for from := range strings.SplitSeq(words[0], ",") {
				for event := range strings.SplitSeq(words[1], ",") {
					for to := range strings.SplitSeq(words[2], ",") {
						require.NotEmpty(t, h.kind[from], line)
						require.NotEmpty(t, h.kind[to], line)
						rows = append(rows, tabletest.VersionEdge{From: from, Event: event, To: to})
					}
				}
			}
			return rows
		}
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
			h.versions[last].Transitions = append(h.versions[last].Transitions, rows(words[1:])...)
		case "-":
			for _, row := range rows(words[1:]) {
				at := slices.Index(h.versions[last].Transitions, row)
				require.GreaterOrEqual(t, at, 0, line)
				h.versions[last].Transitions = slices.Delete(h.versions[last].Transitions, at, at+1)
			}
		default:
			h.versions[last].Transitions = append(h.versions[last].Transitions, rows(words)...)
		}
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

// doc makes a document of a version.
func (h *series) doc(v *tabletest.Version) *tabletest.Document {
	d := &tabletest.Document{Name: "version", Initial: h.initials[0], Actors: []string{"one", "another"}}
	for _, s := range v.States {
		d.States = append(d.States, tabletest.State{Name: s.Name, Kind: h.kind[s.Name]})
		if len(h.initials) > 1 && slices.Contains(h.initials, s.Name) {
			d.Initials = append(d.Initials, s.Name)
		}
	}
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

// TestOtherHistories judges the lints by histories of other systems, as
// TestWarningsBeforeFixes does, and the facts of every version by the naive
// reference. Between two of these versions lie years.
func TestOtherHistories(t *testing.T) {
	var sum tally
	seen := map[string]bool{}
	datadriven.RunTest(t, "testdata/lint/histories", func(t *testing.T, d *datadriven.TestData) string {
		name := d.CmdArgs[0].Key
		seen[name] = true
		h := readHistory(t, filepath.Join("../testdata/history/others", name))
		var b strings.Builder
		for i, v := range h.versions {
			plain := h.doc(v)
			data, err := json.Marshal(plain)
			require.NoError(t, err)
			table, err := fsm.ParseTable(data)
			require.NoError(t, err)
			got, err := json.Marshal(check.Analyze(table))
			require.NoError(t, err)
			want, err := json.Marshal(facts(plain))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(decoded(t, want), decoded(t, got)), "%s %s", name, v.Date)

			sum.judge(t, &b, h.versions, i, table, v.Date, v.Date)
		}
		return b.String()
	})
	files, err := filepath.Glob("../testdata/history/others/*")
	require.NoError(t, err)
	require.Len(t, seen, len(files))
	require.Greater(t, sum.hits*sum.naive, sum.naiveHits*sum.warnings,
		"more fixes per warning than the naive rule: %+v", sum)
	t.Logf("all: lints %d hits / %d warnings, naive %d / %d", sum.hits, sum.warnings, sum.naiveHits, sum.naive)
}
