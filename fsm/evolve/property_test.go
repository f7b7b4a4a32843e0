package evolve_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
)

// rowWords counts the rows of a table, once for each source.
func rowWords(t *fsm.Table) map[string]int {
	words := map[string]int{}
	for _, r := range t.Rows {
		to := "(" + r.Then.String() + ")"
		if r.Then == fsm.ThenMove {
			to = t.States[r.To].Name
		}
		actors, origins := []string{}, []string{}
		for _, a := range r.Actors {
			actors = append(actors, string(t.Actors[a]))
		}
		for _, o := range r.Origin {
			origins = append(origins, t.States[o].Name)
		}
		slices.Sort(actors) // a row may name an actor twice
		slices.Sort(origins)
		actors, origins = slices.Compact(actors), slices.Compact(origins)
		for _, from := range r.From {
			text := t.States[from].Name + " -" + t.Events[r.Event] + "-> " + to
			if len(actors) > 0 && len(actors) < len(t.Actors) {
				text += " by " + strings.Join(actors, ", ")
			}
			if r.Guard != "" {
				text += " [" + r.Guard + "]"
			}
			if r.Timeout > 0 {
				text += " after " + r.Timeout.String()
			}
			if len(origins) > 0 {
				text += " of " + strings.Join(origins, ", ")
			}
			if r.Forced {
				text += " (forced)"
			}
			if r.Supersede {
				text += " (supersedes)"
			}
			words[text]++
		}
	}
	return words
}

// net returns how many rows of each text the differences add.
func net(e *evolve.Report) map[string]int {
	words := map[string]int{}
	for _, d := range e.Differences {
		if d.Subject != "row" {
			continue
		}
		if d.Old != "" {
			words[d.Old]--
		}
		if d.New != "" {
			words[d.New]++
		}
	}
	maps.DeleteFunc(words, func(_ string, n int) bool { return n == 0 })
	return words
}

func sum(a, b map[string]int) map[string]int {
	out := maps.Clone(a)
	for k, n := range b {
		out[k] += n
	}
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}

// TestDifferencesAddUp requires that the old table with the differences is the new
// table, and that the differences of two changes add up. Verdicts do not add up, because
// the second change may revert the first.
func TestDifferencesAddUp(t *testing.T) {
	config := &evolve.Config{}
	rapid.Check(t, func(t *rapid.T) {
		first := plans.Draw(t, "first")
		second, _ := changes(t, first)
		third, _ := changes(t, second)
		var tables []*fsm.Table
		for _, spec := range []plan{first, second, third} {
			m, err := fsm.New[valuation](spec)
			require.NoError(t, err)
			tables = append(tables, m.Table())
		}
		diff := func(a, b int) *evolve.Report {
			e, err := evolve.Diff(tables[a], tables[b], config)
			require.NoError(t, err)
			return e
		}
		ab, bc, ac, ba := diff(0, 1), diff(1, 2), diff(0, 2), diff(1, 0)
		if slices.Equal(tables[0].Actors, tables[1].Actors) && slices.Equal(tables[1].Actors, tables[2].Actors) {
			// A row for every actor changes with the actors.
			require.Equal(t, rowWords(tables[1]), sum(rowWords(tables[0]), net(ab)))
			require.Empty(t, cmp.Diff(sum(net(ab), net(bc)), net(ac)))
			require.Empty(t, sum(net(ab), net(ba)))
		}
		for i := range tables {
			e := diff(i, i)
			require.Equal(t, evolve.Compatible, e.Level)
			require.Empty(t, e.Differences)
			require.Empty(t, e.Hazards)
		}
		if len(ab.Differences) == 0 {
			require.Equal(t, evolve.Compatible, ab.Level, "%s\n%s\n%s", ab, plain(tables[0]), plain(tables[1]))
			require.Empty(t, ab.Hazards)
		}
	})
}

// TestConditionsOnlyHelp requires that a further held event makes no verdict worse,
// except where states are drained: their held events prevent other hazards too.
func TestConditionsOnlyHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, config := drawFleet(t)
		old, new := f.tables[0], f.tables[1]
		plain, err := evolve.Diff(old, new, &config)
		require.NoError(t, err)
		config.Hold = []evolve.Withheld{{Event: rapid.SampledFrom(old.Events).Draw(t, "held")}}
		held, err := evolve.Diff(old, new, &config)
		require.NoError(t, err)
		if len(plain.Drain)+len(plain.Hold) == 0 {
			require.LessOrEqual(t, held.Level, plain.Level, "held: %s\nplain: %s", held, plain)
		}
	})
}
