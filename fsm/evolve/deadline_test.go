package evolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// TestDiffOfForcedDeadlines compares rows after a deadline that became forced, or that
// is forced no longer. The sweeper fires the event of a forced deadline by force, so it
// takes the forced row before it too. Only tables from files have forced deadlines.
func TestDiffOfForcedDeadlines(t *testing.T) {
	table := func(first, deadline string) *fsm.Table {
		return short(t, "A stable, B stable, C stable, X stable", "A make B user", "A more X user", "A most C user",
			"B late X sweeper forced"+first, "B late C within=1m"+deadline, "X back A user", "C back A user")
	}
	for _, c := range []struct {
		name     string
		old, new *fsm.Table
		want     string
	}{
		{"force removed", table("", " forced"), table("", ""), `unsafe deadline-action: on late in "B" by sweeper, by force: an old node moves the object to "X" by force, a new node moves the object to "C"`},
		{"force removed, first row guarded", table(" [p]", " forced"), table(" [p]", ""), `unsafe deadline-action: on late in "B" by sweeper, by force, if p agrees: an old node moves the object to "X" by force, a new node moves the object to "C"`},
		{"force added", table("", ""), table("", " forced"), `unsafe deadline-action: on late in "B" by sweeper: an old node moves the object to "C", a new node moves the object to "X" by force`},
		{"force added, first row guarded", table(" [p]", ""), table(" [p]", " forced"), `unsafe deadline-action: on late in "B" by sweeper, if p agrees: an old node moves the object to "C", a new node moves the object to "X" by force`},
		{"force removed, deadline guarded", table("", " [p] forced"), table("", " [p]"), `unsafe deadline-action: on late in "B" by sweeper, by force, if p agrees: an old node moves the object to "X" by force, a new node moves the object to "C"`},
		{"same target", short(t, "A stable, B stable", "A make B user", "B late A within=1m forced"), short(t, "A stable, B stable", "A make B user", "B late A within=1m"), "compatible refused-by-old: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := evolve.Diff(c.old, c.new, nil)
			require.NoError(t, err)
			require.NotEmpty(t, e.Hazards)
			require.Contains(t, fmt.Sprintf("%v %s: %s", e.Level, e.Hazards[0].ID, e.Hazards[0].Message), c.want, "%s", e)
		})
	}
}

// TestForcedDeadlinesAgainstReference compares random rows of a deadline's event, some of
// which are forced in one version only, with a naive sweeper.
func TestForcedDeadlinesAgainstReference(t *testing.T) {
	type row struct {
		to, guard        string // guard: "", p or q
		deadline, forced bool
	}
	words := func(r row) string {
		text := "B late " + r.to + " sweeper"
		if r.guard != "" {
			text += " [" + r.guard + "]"
		}
		if r.deadline {
			text += " within=1m"
		}
		if r.forced {
			text += " forced"
		}
		return text
	}
	// sweep returns the target of the row that the sweeper takes, or "" if it is refused.
	sweep := func(rows []row, agree string) string {
		force := rows[slices.IndexFunc(rows, func(r row) bool { return r.deadline })].forced
		for _, r := range rows {
			if (force || !r.forced) && (r.guard == "" || strings.Contains(agree, r.guard)) {
				return r.to
			}
		}
		return ""
	}
	differed := 0
	tabletest.CheckUntil(t, func() bool { return differed > 50 }, func(t *rapid.T) {
		var versions [2][]row
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			r := row{
				rapid.SampledFrom([]string{"A", "C", "X"}).Draw(t, "to"), rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "guard"),
				rapid.Bool().Draw(t, "deadline"), false,
			}
			for h := range versions {
				r.forced = rapid.Bool().Draw(t, "forced")
				versions[h] = append(versions[h], r)
			}
		}
		if !slices.ContainsFunc(versions[0], func(r row) bool { return r.deadline }) {
			versions[0][0].deadline, versions[1][0].deadline = true, true
		}
		var tables [2]*fsm.Table
		for h, rows := range versions {
			text := []string{"A make B user", "A more X user", "A most C user", "X back A user", "C back A user"}
			for _, r := range rows {
				text = append(text, words(r))
			}
			tables[h] = short(t, "A stable, B stable, C stable, X stable", text...)
		}
		e, err := evolve.Diff(tables[0], tables[1], nil)
		require.NoError(t, err)
		for _, agree := range []string{"", "p", "q", "pq"} {
			if to := sweep(versions[0], agree); to != "" && to != sweep(versions[1], agree) {
				differed++
				require.Equal(t, evolve.Unsafe, e.Level, "guards that agree: %q\n%s", agree, e)
			}
		}
	})
}

// TestDiffOfReorderedDeadlines compares tables that declare equal deadlines in another
// order. The sweeper fires the first of them.
func TestDiffOfReorderedDeadlines(t *testing.T) {
	rows := []string{"A make B user", "B stop A within=1m", "B go A within=1m", "B wait A within=2m"}
	swapped := []string{"A make B user", "B wait A within=2m", "B go A within=1m", "B stop A within=1m"}
	old, new := short(t, "A stable, B stable", rows...), short(t, "A stable, B stable", swapped...)
	e, err := evolve.Diff(old, new, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
	require.Equal(t, "deadline-action", e.Hazards[0].ID)
	require.Equal(t, []string{"row reordered: B -stop->"}, lines(e.Differences))

	later := short(t, "A stable, B stable", "A make B user", "B wait A within=2m", "B stop A within=1m", "B go A within=1m")
	e, err = evolve.Diff(old, later, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Compatible, e.Level)
	require.Empty(t, e.Differences, "in what order they are declared that are not over at the same time, does not matter")
}
