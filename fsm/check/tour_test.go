package check_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
)

// published are the tables of running systems, of RFCs and of the documents.
func published(t testing.TB) (files []string) {
	t.Helper()
	for _, dir := range []string{"real", "seeds"} {
		found, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, file := range found {
			files = append(files, filepath.Join(dir, filepath.Base(file)))
		}
	}
	return files
}

// TestTours shows tours and refusals:
//
//	published                   a line for every published table
//	tour [every-actor] [restart=N]  of the document that follows, or of file=F
//	negatives [stranger=A]      likewise
//	mutants [every-target]      likewise
func TestTours(t *testing.T) {
	datadriven.Walk(t, "testdata/tours", func(t *testing.T, path string) {
		var table *fsm.Table
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Input != "" {
				table = parse(t, d.Input)
			} else if d.HasArg("file") {
				var file string
				d.ScanArgs(t, "file", &file)
				table = readTable(t, file)
			}
			switch d.Cmd {
			case "published":
				return publishedTours(t)
			case "tour":
				config := &check.TourConfig{EveryActor: d.HasArg("every-actor")}
				d.MaybeScanArgs(t, "restart", &config.Restart)
				tour, err := check.NewTour(table, config)
				if err != nil {
					return err.Error()
				}
				return tour.String() + "\n"
			case "negatives":
				config := &check.NegativeConfig{}
				if d.HasArg("stranger") {
					var name string
					d.ScanArgs(t, "stranger", &name)
					config.Stranger = fsm.Actor(name)
				}
				all, err := check.Negatives(table, config)
				if err != nil {
					return err.Error()
				}
				var b strings.Builder
				for n := range all {
					fmt.Fprintln(&b, n)
				}
				return b.String()
			case "mutants":
				all, err := check.Mutants(table, &check.MutantConfig{EveryTarget: d.HasArg("every-target")})
				require.NoError(t, err)
				var b strings.Builder
				for m := range all {
					equivalent := ""
					if m.Equivalent {
						equivalent = " (equivalent)"
					}
					fmt.Fprintf(&b, "%s: %s%s\n", m.Kind, m, equivalent)
				}
				return b.String()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func publishedTours(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-38s %11s %6s %6s %9s %7s %10s %8s\n", "table", "transitions", "steps", "bound", "sequences", "missed", "every actor", "refusals")
	for _, file := range published(t) {
		table := readTable(t, file)
		tour, err := check.NewTour(table, nil)
		require.NoError(t, err)
		byAll, err := check.NewTour(table, &check.TourConfig{EveryActor: true})
		require.NoError(t, err)
		refusals := 0
		all, err := check.Negatives(table, nil)
		require.NoError(t, err)
		for range all {
			refusals++
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		fmt.Fprintf(&b, "%-38s %11d %6d %6d %9d %7d %11d %8d\n", name,
			tour.Transitions, tour.Steps, tour.Bound, len(tour.Sequences), len(tour.Missed), byAll.Steps, refusals)
	}
	return b.String()
}
