package conform

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// boat is a machine with a row of every form.
func boat(t testing.TB) *fsm.Machine[string, string, struct{}] {
	t.Helper()
	rested := fsm.When("rested", func(context.Context, *struct{}, *struct{}) error { return nil })
	m, err := fsm.New[struct{}](fsm.Spec[string, string]{
		Name: "boat", Initial: "none", Actors: []fsm.Actor{"skipper", "crew", "observer"},
		States: []fsm.State[string]{
			{Name: "none", Kind: fsm.Absent},
			{Name: "moored"},
			{Name: "dry"},
			{Name: "cleaning", Kind: fsm.Transitional, Target: new("moored")},
			{Name: "leaving", Kind: fsm.Transitional, Target: new("at sea")},
			{Name: "at sea"},
			{Name: "leaking", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move("none", "launch", "moored").By("skipper"),
			fsm.Move("moored", "lift", "dry"),
			fsm.Move("moored", "clean", "cleaning").AlsoFrom("dry").By("crew"),
			fsm.Return("cleaning", "cleaned").By("crew"),
			fsm.Move("moored", "leave", "leaving").By("skipper", "crew").If(rested),
			fsm.Move("cleaning", "leave", "leaving").By("skipper").Superseding(),
			fsm.Move("leaving", "left", "at sea").Of("moored").By("crew"),
			fsm.Move("leaving", "left", "leaking").Of("dry").By("crew"),
			fsm.Move("at sea", "return", "moored").By("skipper").Note("the text has it"),
			fsm.Ignore("at sea", "launch").By("skipper"),
			fsm.Return("cleaning", "late").AlsoFrom("leaving").After(time.Hour).Note("the crew works by day"),
			fsm.Move("at sea", "seen leaking", "leaking").By("observer").Note("another boat reports it"),
			fsm.Move("leaking", "repair", "moored").By("crew").OnlyForced().Note("the text has it"),
		),
	})
	require.NoError(t, err)
	return m
}

const documentFile, mapFile = "testdata/boat.json", "testdata/boat.map.txt"

func TestCheck(t *testing.T) {
	Check(t, boat(t).Table(), documentFile, mapFile)
}

// Check reports every small fault of the machine.
func TestCheckReportsEveryMutant(t *testing.T) {
	fsmtest.Mutate(t, boat(t), func(t testing.TB, m *fsm.Machine[string, string, struct{}]) {
		Check(t, m.Table(), documentFile, mapFile)
	}, nil)
}

// Each case replaces a text of the map file or of the document.
func TestFaultsOfMapAndDocument(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, want string }{
		"rename without effect":   {mapFile, "actor captain = skipper", "actor captain = skipper\n    actor cook = crew", "the document has no actor cook"},
		"name renamed again":      {mapFile, "actor captain = skipper", "actor captain = skipper\n    actor captain = crew", `entry "actor captain = crew" renames a name again`},
		"missing rename":          {mapFile, "state absent = none", "# none", `"state none is absent"`},
		"line not in document":    {mapFile, "- cleaning --leave by captain--> leaving", "- cleaning --sink by captain--> leaving", `the document has no line "cleaning --sink by captain--> leaving"`},
		"line already there":      {mapFile, "+ leaving --late by sweeper--> dry", "+ at sea --return by skipper--> moored\n    + leaving --late by sweeper--> dry", `the document has the added line "at sea --return by skipper--> moored"`},
		"line not in the machine": {mapFile, "+ leaving --late by sweeper--> dry", "+ leaving --late by sweeper--> at sea", `"leaving --late by sweeper--> at sea [return]"`},
		"actor of the document":   {mapFile, "text: The boat", "addition: The boat", `addition "at sea --return by skipper--> moored" is neither forced nor by an observer, and has no timeout`},
		"addition without Doc":    {mapFile, "The launch is ignored", "addition: The launch is ignored", `addition "at sea --launch by skipper--> at sea [ignored]" has no Doc`},
		"no reason":               {mapFile, "The captain commands several boats.\n", "", `line 3: entry "actor captain = skipper" has no reason`},
		"not an entry":            {mapFile, "actor captain = skipper", "cook captain = skipper", `line 4: entry "cook captain = skipper" is neither a line with - or + nor a new name`},
		"another initial state":   {documentFile, `"initial": "absent"`, `"initial": "moored"`, `"initial moored"`},
		"another target":          {documentFile, `"target": "at sea"`, `"target": "dry"`, `"state leaving leads to dry"`},
		"not a table":             {documentFile, `"initial"`, `"initial`, "fsm: "},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(test.file)
			require.NoError(t, err)
			require.Contains(t, string(text), test.old)
			changed := filepath.Join(t.TempDir(), "changed")
			require.NoError(t, os.WriteFile(changed, []byte(strings.ReplaceAll(string(text), test.old, test.new)), 0o600))
			files := map[string]string{documentFile: documentFile, mapFile: mapFile}
			files[test.file] = changed
			r := suitetest.Record(t, func(t testing.TB) { Check(t, boat(t).Table(), files[documentFile], files[mapFile]) })
			require.Contains(t, r.Text(), test.want)
		})
	}
}

func TestMissingFiles(t *testing.T) {
	for _, files := range [][2]string{{documentFile, "no such file"}, {"no such file", mapFile}} {
		r := suitetest.Record(t, func(t testing.TB) { Check(t, boat(t).Table(), files[0], files[1]) })
		require.Contains(t, r.Text(), "no such file")
	}
}

func TestSweeperNeedsATimeout(t *testing.T) {
	table := boat(t).Table()
	table = table.WithRows(slices.Clone(table.Rows))
	for i := range table.Rows {
		table.Rows[i].Timeout = 0
	}
	r := suitetest.Record(t, func(t testing.TB) { Check(t, table, documentFile, mapFile) })
	require.Contains(t, r.Text(), `row "leaving --late by sweeper--> moored [return]" has no timeout`)
}

// A row with a text like that of a target is still a row.
func TestGuardThatLeadsTo(t *testing.T) {
	table := boat(t).Table()
	extra := fsm.TableRow{From: []int{1}, Event: 0, Actors: []int{0}, To: 1, Guard: "it leads to a port"}
	faults := compare(table.WithRows(append(slices.Clone(table.Rows), extra)), table, &mapping{})
	require.Len(t, faults, 1)
	require.Contains(t, faults[0], "it leads to a port")
}
