package history_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
)

// checked returns the summary of rows of a machine with two absent states.
func checked(t *testing.T, config *history.Config, rows ...history.Row) *history.Summary {
	t.Helper()
	m := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "x", Initial: "None", Actors: []fsm.Actor{"u"},
		States: []fsm.State[string]{{Name: "None", Kind: fsm.Absent}, {Name: "A"}, {Name: "Gone", Kind: fsm.Absent}},
		Rows:   fsm.Rows(fsm.Move("None", "create", "A"), fsm.Move("A", "delete", "Gone"), fsm.Move("A", "stay", "A")),
	})
	all := func(yield func(history.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
	s, err := history.Check(all, []history.TableVersion{{Table: m.Table()}}, config)
	require.NoError(t, err)
	return s
}

// An object that ended in one absent state begins again in another one.
func TestTwoAbsentStates(t *testing.T) {
	s := checked(t, nil,
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 2, From: "A", FromOrigin: "A", To: "Gone", Event: "delete", Actor: "u"},
		history.Row{ID: "1", Sequence: 3, From: "None", FromOrigin: "None", To: "A", Event: "create", Actor: "u"})
	require.True(t, s.OK(), "%v", s)
	require.Equal(t, []int{2, 1, 1}, []int{s.Objects, s.Alive, s.Most})
}

// A feed with gaps may have lost the rows between a removal and the next creation.
func TestGapAfterARemoval(t *testing.T) {
	s := checked(t, &history.Config{Gaps: true},
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 2, From: "A", To: "Gone", Event: "delete", Actor: "u"},
		history.Row{ID: "1", Sequence: 9, From: "None", FromOrigin: "None", To: "A", Event: "create", Actor: "u"})
	require.True(t, s.OK(), "%v", s)
	require.Equal(t, 6, s.Missing)
}

// A store may forget a removed object. If the object is created again, its numbers continue
// above those of all forgotten objects. A number that is missing elsewhere is a finding.
func TestNumbersAfterARemoval(t *testing.T) {
	life := []history.Row{
		{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		{ID: "1", Sequence: 2, From: "A", To: "Gone", Event: "delete", Actor: "u"},
	}
	for name, c := range map[string]struct {
		next  history.Row
		found map[string]int
	}{
		"created by a name":    {next: history.Row{From: "None", To: "A", Event: "create"}},
		"created without one":  {next: history.Row{To: "A", Event: "create"}},
		"not created":          {next: history.Row{From: "A", To: "A", Event: "stay"}, found: map[string]int{"skipped-sequence": 1}},
		"the number came late": {next: history.Row{Sequence: 2, To: "A", Event: "create"}, found: map[string]int{"repeated-sequence": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.next.ID, c.next.Actor, c.next.Sequence = "1", "u", cmp.Or(c.next.Sequence, 9)
			s := checked(t, nil, append(slices.Clone(life), c.next)...)
			require.Equal(t, len(c.found) == 0, s.OK(), "%v", s)
			for id, n := range c.found {
				require.Equal(t, n, s.Counts[id], "%v", s)
			}
		})
	}
}

// The count of missing rows ends at the greatest int of 32 bits.
func TestMostMissingRows(t *testing.T) {
	s := checked(t, &history.Config{Gaps: true},
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 1 << 40, From: "A", To: "A", Event: "stay", Actor: "u"},
		history.Row{ID: "1", Sequence: 1 << 50, From: "A", To: "A", Event: "stay", Actor: "u"})
	require.Equal(t, math.MaxInt32, s.Missing)
}

// No number follows the greatest one: every other one is late.
func TestAfterTheGreatestSequence(t *testing.T) {
	for name, gaps := range map[string]bool{"gaps": true, "no gaps": false} {
		t.Run(name, func(t *testing.T) {
			stay := func(sequence uint64) history.Row {
				return history.Row{ID: "1", Sequence: sequence, From: "A", To: "A", Event: "stay", Actor: "u"}
			}
			s := checked(t, &history.Config{Gaps: gaps}, stay(math.MaxUint64-1), stay(math.MaxUint64), stay(math.MaxUint64), stay(7))
			require.Zero(t, s.Counts["skipped-sequence"])
			require.Zero(t, s.Missing)
			if gaps {
				require.Equal(t, 2, s.Repeated)
			} else {
				require.Equal(t, 2, s.Counts["repeated-sequence"])
			}
		})
	}
}

// Rows of one event are tried in order. A step of the second row is legal only if the first
// one does not take the request.
func TestEarlierRowTakesTheRequest(t *testing.T) {
	table := func(first fsm.Row[string, string]) *fsm.Table {
		return fsm.Must[struct{}](fsm.Spec[string, string]{
			Name: "x", Initial: "Up", Actors: []fsm.Actor{"u", "v"},
			States: []fsm.State[string]{
				{Name: "Up"}, {Name: "Full", Kind: fsm.Failed}, {Name: "Work", Kind: fsm.Transitional, Manual: "a test"},
			},
			Rows: fsm.Rows(
				fsm.Move("Up", "fill", "Full"), fsm.Move("Up", "work", "Work").AlsoFrom("Full"),
				first, fsm.Return("Work", "done").By("u"),
			),
		}).Table()
	}
	healed := fsm.Move("Work", "done", "Up").Of("Full")
	guard := fsm.When("healed", func(context.Context, *struct{}, *struct{}) error { return nil })
	row := history.Row{ID: "1", From: "Work", FromOrigin: "Full", To: "Full", Event: "done", Actor: "u"}
	noActor, noEvent := row, row
	noActor.Actor, noEvent.Event = "", ""
	for name, c := range map[string]struct {
		first fsm.Row[string, string]
		row   history.Row
		legal bool
	}{
		"taken":              {first: healed.By("u"), row: row},
		"taken, any actor":   {first: healed.By("u", "v"), row: noActor},
		"another actor":      {first: healed.By("v"), row: row, legal: true},
		"another, no actor":  {first: healed.By("v"), row: noActor, legal: true},
		"a guard may refuse": {first: healed.By("u").If(guard), row: row, legal: true},
		"only by force":      {first: healed.By("u").OnlyForced(), row: row, legal: true},
		"taken, any event":   {first: healed.By("u"), row: noEvent},
	} {
		t.Run(name, func(t *testing.T) {
			rows := []history.Row{
				{ID: "1", To: "Up"},
				{ID: "1", From: "Up", To: "Full", Event: "fill", Actor: "u"},
				{ID: "1", From: "Full", To: "Work", Event: "work", Actor: "u"},
				c.row,
			}
			all := func(yield func(history.Row, error) bool) {
				for _, r := range rows {
					if !yield(r, nil) {
						return
					}
				}
			}
			s, err := history.Check(all, []history.TableVersion{{Table: table(c.first)}}, nil)
			require.NoError(t, err)
			require.Equal(t, c.legal, s.OK(), "%v", s)
			if !c.legal {
				require.Equal(t, "illegal-step", s.Findings[0].ID)
				require.Equal(t, "Work -done-> Up", s.Findings[0].Expected)
			}
		})
	}
}

// A row that skips the table still starts where the row before it ended.
func TestOverrideOfAnotherState(t *testing.T) {
	s := checked(t, nil,
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 2, From: "A", To: "Gone", Event: "(override)", Actor: "operator"},
		history.Row{ID: "1", Sequence: 3, From: "A", To: "Gone", Event: "(override)", Actor: "operator"})
	require.Equal(t, map[string]int{"broken-chain": 1}, s.Counts, "%v", s)
}

// A table that the caller has put together may have rows without an event. No step is theirs.
func TestRowsWithoutAnEvent(t *testing.T) {
	table := &fsm.Table{
		Name: "x", States: []fsm.TableState{{Name: "A", Target: -1}, {Name: "B", Target: -1}}, Events: []string{"go"},
		Rows: []fsm.TableRow{
			{From: []int{0}, Event: -1, To: 1}, {From: []int{0}, Event: 1, To: 1}, {From: []int{0}, Event: 0, To: 1},
		},
	}
	s, err := history.Check(seq(nil, history.Row{ID: "1", To: "A"}, history.Row{ID: "1", From: "A", To: "B", Event: "fly"}),
		[]history.TableVersion{{Table: table}}, nil)
	require.NoError(t, err)
	require.Len(t, s.Findings, 1)
	require.Equal(t, "A -go-> B", s.Findings[0].Expected)
}

// A row that leaves origin, event and actor open is checked at once in a large table, too.
func TestRowThatLeavesAllOpen(t *testing.T) {
	const most = 2000
	table := &fsm.Table{Name: "x"}
	for i := range most {
		name := strconv.Itoa(i)
		table.States = append(table.States, fsm.TableState{Name: name, Target: -1})
		table.Events = append(table.Events, name)
		if i < fsm.MaxActors {
			table.Actors = append(table.Actors, fsm.Actor(name))
		}
		table.Initials = append(table.Initials, i)
		table.Rows = append(table.Rows,
			fsm.TableRow{From: []int{i}, Event: 0, To: most}, fsm.TableRow{From: []int{most}, Event: i, To: most})
	}
	table.States = append(table.States, fsm.TableState{Name: "work", Kind: fsm.Transitional, Target: -1})
	s, err := history.Check(seq(nil, history.Row{ID: "1", From: "work", To: "0"}),
		[]history.TableVersion{{Table: table}}, &history.Config{Gaps: true})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"illegal-step": 1}, s.Counts)
}
