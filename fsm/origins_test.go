package fsm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// pairs visits every pair of state and origin that an object can have, one by one.
func pairs(table *fsm.Table) map[[2]int]bool {
	seen := map[[2]int]bool{}
	var work [][2]int
	visit := func(state, origin int) {
		if p := [2]int{state, origin}; !seen[p] {
			seen[p] = true
			work = append(work, p)
		}
	}
	entries := table.Initials
	if len(entries) == 0 && table.Initial >= 0 {
		entries = []int{table.Initial}
	}
	for _, s := range entries {
		visit(s, s)
	}
	resting := func(s int) bool { return table.States[s].Kind != fsm.Transitional }
	for len(work) > 0 {
		state, origin := work[0][0], work[0][1]
		work = work[1:]
		for _, r := range table.Rows {
			if !slices.Contains(r.From, state) || len(r.Origin) > 0 && !slices.Contains(r.Origin, origin) {
				continue
			}
			switch {
			case r.Then == fsm.ThenIgnore:
			case r.Then == fsm.ThenReturn:
				visit(origin, origin)
			case resting(r.To):
				visit(r.To, r.To)
			case resting(state):
				visit(r.To, state)
			default:
				visit(r.To, origin)
			}
		}
	}
	return seen
}

// tables draws tables with any fault but an index out of range.
func tables() *rapid.Generator[*fsm.Table] {
	return rapid.Custom(func(t *rapid.T) *fsm.Table {
		n := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 70}).Draw(t, "states")
		state := rapid.IntRange(0, min(n, 9)-1)
		if n > 64 { // states in more than one word of a set
			state = rapid.SampledFrom([]int{0, 1, 2, 31, 62, 63, 64, 65, 66, 69})
		}
		table := &fsm.Table{Name: "drawn", Initial: rapid.SampledFrom([]int{0, 0, 0, n - 1, -1}).Draw(t, "initial"), Actors: []fsm.Actor{user}}
		if rapid.IntRange(0, 4).Draw(t, "entries") == 4 {
			table.Initials = rapid.SliceOfNDistinct(state, 1, min(n, 3), rapid.ID[int]).Draw(t, "initials")
		}
		kinds := []fsm.Kind{fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Transitional, fsm.Final, fsm.Absent}
		for i := range n {
			table.States = append(table.States, fsm.TableState{
				Name: fmt.Sprintf("s%d", i), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Target: -1,
			})
		}
		table.Events = []string{"e", "f"}
		for range rapid.IntRange(4, 30).Draw(t, "rows") {
			r := fsm.TableRow{
				From:  rapid.SliceOfNDistinct(state, 1, min(n, 3), rapid.ID[int]).Draw(t, "from"),
				Event: rapid.IntRange(0, 1).Draw(t, "event"), To: -1,
				Then: rapid.SampledFrom([]fsm.Then{fsm.ThenMove, fsm.ThenMove, fsm.ThenMove, fsm.ThenReturn, fsm.ThenIgnore}).Draw(t, "then"),
			}
			if r.Then == fsm.ThenMove {
				r.To = state.Draw(t, "to")
			}
			if rapid.IntRange(0, 2).Draw(t, "conditional") == 2 {
				r.Origin = rapid.SliceOfNDistinct(state, 1, min(n, 3), rapid.ID[int]).Draw(t, "origin")
			}
			table.Rows = append(table.Rows, r)
		}
		return table
	})
}

func TestOriginsAreThoseOfAllPaths(t *testing.T) {
	richest := 0 // one table at least has a state with several origins
	tabletest.CheckUntil(t, func() bool { return richest >= 3 }, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		seen := pairs(table)
		got := table.Origins()
		require.Len(t, got, len(table.States))
		for s := range table.States {
			var want []int
			for o := range table.States {
				if seen[[2]int{s, o}] {
					want = append(want, o)
				}
			}
			require.Equal(t, want, got[s], "of state %d", s)
			richest = max(richest, len(want))
		}
	})
}

func TestEdgesAreTheRowsOfEveryObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		seen := pairs(table)
		var want []fsm.Edge
		for i, r := range table.Rows {
			for _, from := range r.From {
				switch r.Then {
				case fsm.ThenMove:
					want = append(want, fsm.Edge{From: from, Event: r.Event, Row: i, To: r.To})
				case fsm.ThenIgnore:
					want = append(want, fsm.Edge{From: from, Event: r.Event, Row: i, To: from})
				case fsm.ThenReturn:
					for o := range table.States {
						if seen[[2]int{from, o}] && (len(r.Origin) == 0 || slices.Contains(r.Origin, o)) {
							want = append(want, fsm.Edge{From: from, Event: r.Event, Row: i, To: o})
						}
					}
				}
			}
		}
		require.Equal(t, want, slices.Collect(table.Edges()))
	})
}

// Problems reports the errors about origins that the pairs have.
func TestProblemsOfOriginsAreThoseOfThePairs(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		if table.Initial < 0 {
			return // Problems does not check the paths of such a table
		}
		seen := pairs(table)
		never, lacks, unreached := map[int]bool{}, map[int]bool{}, map[string]bool{}
		for i, r := range table.Rows {
			never[i] = len(r.Origin) > 0
			for _, from := range r.From {
				for o, s := range table.States {
					met := seen[[2]int{from, o}] && (len(r.Origin) == 0 || slices.Contains(r.Origin, o))
					if met {
						never[i] = false
					}
					if met && r.Then == fsm.ThenReturn && s.Kind == fsm.Transitional {
						lacks[i] = true
					}
				}
			}
		}
		for s, st := range table.States {
			unreached[st.Name] = true
			for o := range table.States {
				if seen[[2]int{s, o}] {
					unreached[st.Name] = false
				}
			}
		}
		for _, p := range table.Problems() {
			found[p.Code]++
			switch p.Code {
			case fsm.NeverFits:
				require.True(t, never[p.Row], p.Text)
				delete(never, p.Row)
			case fsm.NoOrigin:
				require.True(t, lacks[p.Row], p.Text)
			case fsm.Unreachable:
				require.True(t, unreached[p.State], p.Text)
				delete(unreached, p.State)
			}
		}
		for row, missed := range never {
			require.False(t, missed, "row %d never fits and is not reported", row)
		}
		for state, missed := range unreached {
			require.False(t, missed, "state %s is not reached and not reported", state)
		}
		for row := range lacks {
			require.True(t, slices.ContainsFunc(table.Problems(), func(p fsm.Problem) bool { return p.Code == fsm.NoOrigin && p.Row == row }), "row %d", row)
		}
	})
	for _, code := range []string{fsm.NeverFits, fsm.NoOrigin, fsm.Unreachable} {
		require.Positive(t, found[code], code)
	}
}
