package tour_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/fsm/tour"
)

// TestTourOfAnyOrigin requires that a tour without origins takes the rows of the full one,
// each in the same sources, and no more transitions than that.
func TestTourOfAnyOrigin(t *testing.T) {
	shorter := 0
	for _, file := range tabletest.Files(t, "*") {
		table := tabletest.Read(t, file)
		full, err := tour.New(table, nil)
		require.NoError(t, err)
		plan, err := tour.New(table, &tour.Config{AnyOrigin: true})
		require.NoError(t, err)
		type source struct {
			row  int
			from string
		}
		taken := func(p *tour.Tour) map[source]bool {
			all := map[source]bool{}
			for _, s := range slices.Concat(p.Sequences...) {
				all[source{s.Row, s.From}] = true
			}
			return all
		}
		require.Equal(t, taken(full), taken(plan), file)
		require.Equal(t, full.Missed, plan.Missed)
		require.Len(t, taken(plan), plan.Transitions)
		require.LessOrEqual(t, plan.Steps, full.Steps, file)
		if plan.Steps < full.Steps {
			shorter++
		}
		for _, steps := range plan.Sequences {
			for i := range steps[1:] {
				require.Equal(t, [2]string{steps[i].To, steps[i].ToOrigin}, [2]string{steps[i+1].From, steps[i+1].Origin})
			}
		}
	}
	require.Greater(t, shorter, 5)
}

// TestTours shows tours and refusals:
//
//	published    a line for every published table
//	tour         of the document that follows, or of file=F
//	negatives    likewise
//	mutants      likewise
func TestTours(t *testing.T) {
	datadriven.Walk(t, "testdata/tours", func(t *testing.T, path string) {
		var table *fsm.Table
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Input != "" {
				table = tabletest.Parse(t, d.Input)
			} else if d.HasArg("file") {
				var file string
				d.ScanArgs(t, "file", &file)
				table = tabletest.Read(t, file)
			}
			switch d.Cmd {
			case "published":
				return publishedTours(t)
			case "tour":
				plan, err := tour.New(table, nil)
				if err != nil {
					return err.Error()
				}
				return plan.String() + "\n"
			case "negatives":
				all, err := tour.Negatives(table)
				if err != nil {
					return err.Error()
				}
				var b strings.Builder
				for n := range all {
					fmt.Fprintln(&b, n)
				}
				return b.String()
			case "mutants":
				all, err := tour.Mutants(table)
				require.NoError(t, err)
				var b strings.Builder
				for m := range all {
					equivalent := ""
					if m.Equivalent {
						equivalent = " (equivalent)"
					}
					fmt.Fprintf(&b, "%s%s\n", m, equivalent)
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
	fmt.Fprintf(&b, "%-38s %11s %6s %9s %7s %8s\n", "table", "transitions", "steps", "sequences", "missed", "refusals")
	for _, file := range tabletest.Files(t, "*") {
		table := tabletest.Read(t, file)
		plan, err := tour.New(table, nil)
		require.NoError(t, err)
		refusals := 0
		all, err := tour.Negatives(table)
		require.NoError(t, err)
		for range all {
			refusals++
		}
		name := strings.TrimSuffix(path.Base(file), ".json")
		fmt.Fprintf(&b, "%-38s %11d %6d %9d %7d %8d\n", name,
			plan.Transitions, plan.Steps, len(plan.Sequences), len(plan.Missed), refusals)
	}
	return b.String()
}

// A caller may stop before the last negative.
func TestNegativesEndEarly(t *testing.T) {
	all, err := tour.Negatives(large(3, fsm.Stable, move(0, 0, 1), move(1, 1, 2)))
	require.NoError(t, err)
	n := 0
	for range all {
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
}

// A row for an event that the table does not declare is missed.
func TestRowWithoutEvent(t *testing.T) {
	table := large(2, fsm.Stable, move(0, 0, 1), move(1, 0, 0))
	for _, event := range []int{-1, len(table.Events)} {
		table.Rows[1].Event = event
		plan, err := tour.New(table, nil)
		require.NoError(t, err)
		require.Contains(t, plan.String(), "missed: row 1 from s1")
	}
}
