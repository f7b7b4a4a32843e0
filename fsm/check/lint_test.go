package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// shipped are the machines of the five systems.
func shipped() []*fsm.Table {
	return []*fsm.Table{
		edgecloud.ClusterInst.Table(), edgecloud.AppInst.Table(), edgecloud.CloudletCreate.Table(), edgecloud.CloudletUpgrade.Table(),
		ovc.Account.Table(), ovc.Cloudspace.Table(), ovc.Disk.Table(), ovc.Image.Table(), ovc.Node.Table(), ovc.VM.Table(),
		blazar.Lease.Table(), blazar.Reservation.Table(), blazar.Event.Table(),
		lattice.System.Table(), lattice.Service.Table(), lattice.Deploy.Table(), lattice.Teardown.Table(),
		tumblebug.MCI.Table(), tumblebug.VM.Table(),
	}
}

// TestLintScripts runs the scripts in testdata/lint/rules. A case is
//
//	lint [id=ID]... [skip=ID]...
//	lines of ParseLines
//
// and gives the findings of these ids, of all if there is none, without advice.
func TestLintScripts(t *testing.T) {
	seen := map[string]bool{}
	datadriven.Walk(t, "testdata/lint/rules", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			table, err := tabletest.ParseLines(d.Input)
			if err != nil {
				return err.Error()
			}
			config := &check.LintConfig{}
			var ids []string
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "id":
					ids = append(ids, arg.Vals...)
				case "skip":
					config.Skip = append(config.Skip, arg.Vals...)
				}
			}
			var b strings.Builder
			for _, f := range check.Lint(table, config) {
				seen[f.ID] = true
				if len(ids) == 0 || slices.Contains(ids, f.ID) {
					line, _, _ := strings.Cut(f.String(), ". "+f.Advice)
					fmt.Fprintln(&b, line)
				}
			}
			return b.String()
		})
	})
	// What a document cannot have, or what the parser above cannot write.
	for _, id := range []string{
		fsm.NoName, fsm.BadName, fsm.DuplicateName, fsm.TooLarge, fsm.BadState, fsm.BadGuard, fsm.NoSource, fsm.UnknownActor, fsm.NeedlessManual,
	} {
		require.False(t, seen[id], id)
		seen[id] = true
	}
	for id := range tabletest.Documented(t, "Findings") {
		require.True(t, seen[id], "no script has a finding %s", id)
	}
}

func TestEveryIDIsDocumented(t *testing.T) {
	lines := tabletest.Documented(t, "Findings")
	var want, got []string
	for id := range lines {
		want = append(want, id)
	}
	got = check.LintIDs()
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, got, want)

	// No finding has another id, or another severity than the documentation has.
	look := func(table *fsm.Table) {
		for _, f := range check.Lint(table, nil) {
			require.Contains(t, strings.Fields(strings.ReplaceAll(lines[f.ID][:min(len(lines[f.ID]), 16)], ",", "")), f.Severity.String(), f.ID)
			require.NotEmpty(t, f.Message)
			require.NotEmpty(t, f.Advice, f.ID)
			require.Equal(t, ".", f.Advice[len(f.Advice)-1:], f.ID)
		}
	}
	for _, file := range tabletest.Files(t, "*") {
		look(tabletest.Read(t, file))
	}
	for _, table := range shipped() {
		look(table)
	}
}

// TestLintOfTables shows every error and warning about the published tables and
// the shipped machines, and how much there is besides. Each was looked at: what
// is to be thought of it stands above the case.
func TestLintOfTables(t *testing.T) {
	byName := map[string]*fsm.Table{}
	for _, file := range tabletest.Files(t, "*") {
		byName[strings.TrimSuffix(file, ".json")] = tabletest.Read(t, file)
	}
	for _, table := range shipped() {
		byName["shipped/"+table.Name] = table
	}
	datadriven.RunTest(t, "testdata/lint/tables", func(t *testing.T, d *datadriven.TestData) string {
		table := byName[d.CmdArgs[0].Key]
		require.NotNil(t, table, "%s: used twice, or unknown", d.CmdArgs[0].Key)
		delete(byName, d.CmdArgs[0].Key)
		var b strings.Builder
		all := check.Lint(table, nil)
		for _, f := range all.AtLeast(check.Warning) {
			fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.ID, f.Message)
		}
		fmt.Fprintf(&b, "%d errors, %d warnings, %d infos\n",
			len(all.AtLeast(check.Error)), len(all.AtLeast(check.Warning))-len(all.AtLeast(check.Error)), len(all)-len(all.AtLeast(check.Warning)))
		return b.String()
	})
	require.Empty(t, byName, "tables without a case")
}

// The same table gives the same findings, whatever the table; nothing in them is
// null, and what is skipped is gone.
func TestLintOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(tabletest.Random.Draw(t, "doc"))
		require.NoError(t, err)
		table, err := fsm.ParseTable(data)
		require.NoError(t, err)
		found := check.Lint(table, nil)
		again, err := fsm.ParseTable(data)
		require.NoError(t, err)
		require.Equal(t, found, check.Lint(again, nil))

		text, err := json.Marshal(found)
		require.NoError(t, err)
		require.NotContains(t, string(text), "null")
		require.True(t, slices.IsSortedFunc(found, func(a, b check.Finding) int { return int(b.Severity) - int(a.Severity) }))

		// The facts and the findings agree.
		r := check.Analyze(table)
		of := func(id string) (states []string) {
			for _, f := range found {
				if f.ID == id {
					states = append(states, f.States...)
				}
			}
			return states
		}
		require.ElementsMatch(t, r.ErrorWithoutExit, of("error-no-exit"))
		if len(found) == 0 {
			return
		}
		f := rapid.SampledFrom(found).Draw(t, "finding")
		for _, left := range check.Lint(table, &check.LintConfig{Skip: []string{f.ID}}) {
			require.NotEqual(t, f.ID, left.ID)
		}
		if len(f.States) > 0 {
			s := rapid.SampledFrom(f.States).Draw(t, "state")
			for _, left := range check.Lint(table, &check.LintConfig{Skip: []string{f.ID + ":" + s}}) {
				require.False(t, left.ID == f.ID && slices.Contains(left.States, s), "%v", left)
			}
		}
	})
}

func TestTextsOfFindings(t *testing.T) {
	require.Equal(t, "severity?", check.Severity(9).String())
	f := check.Finding{ID: "choice", Severity: check.Info, Rows: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Message: "m", Advice: "A."}
	require.Equal(t, "info choice: m (row 0, 1, 2, 3, 4, 5, 6, 7 and 2 more). A.", f.String())
}
