package fsm_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// A table from a file decides like the table of a machine, whatever its faults are. A row
// that names an undeclared state is never taken.
func TestTableFromAFileDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(tabletest.Random.Draw(t, "document"))
		require.NoError(t, err)
		table, err := fsm.ParseTable(data)
		require.NoError(t, err)
		outside := func(s int) bool { return s >= len(table.States) }
		actors := append([]fsm.Actor{"stranger"}, table.Actors...)
		for state := range table.States {
			for event := range table.Events {
				actor := rapid.SampledFrom(actors).Draw(t, "actor")
				force := rapid.Bool().Draw(t, "force")
				origin := state
				if !table.States[state].Kind.Resting() {
					origin = rapid.IntRange(0, len(table.States)-1).Draw(t, "origin")
				}
				a, declared := table.ActorIndex(actor)
				var want []int
				for i, r := range table.Rows {
					mayFire := len(r.Actors) == 0 && (declared || len(table.Actors) == 0) || declared && slices.Contains(r.Actors, a)
					fits := len(r.Origin) == 0 || slices.Contains(r.Origin, origin)
					home := r.Then != fsm.ThenReturn || table.States[origin].Kind.Resting()
					known := r.Then != fsm.ThenMove || !outside(r.To)
					if slices.Contains(r.From, state) && r.Event == event && mayFire && fits && home && known && (force || !r.Forced) {
						want = append(want, i)
					}
				}
				got, err := table.Candidates(nil, state, origin, event, actor, force)
				require.Equal(t, want, got)
				require.Equal(t, len(want) == 0, err != nil)
				for _, row := range got {
					next, home := table.After(state, origin, row)
					require.False(t, outside(next) || outside(home))
				}
				table.Timeout(state, origin)
			}
		}
	})
}

// In a table without actors every row is for every actor.
func TestTableWithoutActorsDecides(t *testing.T) {
	table, err := tabletest.ParseLines("stable A, B\nA -go-> B")
	require.NoError(t, err)
	rows, err := table.Candidates(nil, 0, 0, 0, "", false)
	require.NoError(t, err)
	require.Equal(t, []int{0}, rows)
	_, err = table.Candidates(nil, 1, 1, 0, "", false)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)

	table = parsed(t, `{"name": "m", "actors": [], "states": [{"name":"A","kind":"stable"}], "transitions": [
		{"from": "A", "event": "e", "to": "A", "actor": "x"}, {"from": "A", "event": "f", "to": "A", "actor": "y"}]}`)
	for event := range table.Events {
		rows, err := table.Candidates(nil, 0, 0, event, "z", false)
		require.NoError(t, err)
		require.Equal(t, []int{event}, rows)
	}
}

// A row with an event that the table does not have is never taken, also not in the next
// state.
func TestEventOutOfRangeIsNeverTaken(t *testing.T) {
	table, err := tabletest.ParseLines("stable A, B\nA -go-> B")
	require.NoError(t, err)
	for _, event := range []int{-1, 1} {
		faulty := table.WithRows([]fsm.TableRow{{From: []int{0, 1}, Event: event, To: 0}})
		for state := range table.States {
			_, err := faulty.Candidates(nil, state, state, 0, "", false)
			require.ErrorIs(t, err, fsm.ErrNotAllowed)
		}
	}
}

func TestSourceNamedTwiceIsOneCandidate(t *testing.T) {
	twice := `{"from":"A","event":"e","actor":"a","to":"A","row":1}`
	table := parsed(t, head+twice+","+twice+"]}")
	require.Equal(t, []int{0, 0}, table.Rows[0].From)
	rows, err := table.Candidates(nil, 0, 0, 0, "a", false)
	require.NoError(t, err)
	require.Equal(t, []int{0}, rows)
}

// A row with an origin condition of undeclared states only is for no object. The other rows
// of the table stay, whatever the number of states is.
func TestUndeclaredOriginsAreOfNoObject(t *testing.T) {
	for _, n := range []int{2, 64} {
		table := parsed(t, `{"name": "m", "initial": "0", "actors": ["a"], "states": [`+
			strings.TrimSuffix(numbered(n, `{"name":"%d","kind":"stable"},`), ",")+`], "transitions": [
			{"from": "0", "event": "e", "to": "1", "origin": ["ghost"]},
			{"from": "1", "event": "e", "to": "0"}]}`)
		_, err := table.Candidates(nil, 0, 0, 0, "a", false)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		rows, err := table.Candidates(nil, 1, 1, 0, "a", false)
		require.NoError(t, err)
		require.Equal(t, []int{1}, rows)
		require.Equal(t, []int{0}, table.Origins()[0])
		require.Empty(t, table.Origins()[1])
	}
}
