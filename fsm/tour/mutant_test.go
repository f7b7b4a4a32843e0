package tour_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/fsm/tour"
)

// document writes a table down again, a transition for each row. REQUIRES: every
// row has one source.
func document(t *fsm.Table) *tabletest.Document {
	d := &tabletest.Document{Name: t.Name, Actors: []string{}}
	if t.Initial >= 0 && t.Initial < len(t.States) {
		d.Initial = t.States[t.Initial].Name
	}
	state := func(i int) string {
		if i < len(t.States) {
			return t.States[i].Name
		}
		return "ghost"
	}
	for _, i := range t.Initials {
		d.Initials = append(d.Initials, state(i))
	}
	for _, a := range t.Actors {
		d.Actors = append(d.Actors, string(a))
	}
	for _, s := range t.States {
		d.States = append(d.States, tabletest.State{Name: s.Name, Kind: map[fsm.Kind]string{
			fsm.Stable: "stable", fsm.Absent: "stable", fsm.Transitional: "transitional", fsm.Final: "final", fsm.Failed: "error",
		}[s.Kind]})
	}
	for _, r := range t.Rows {
		e := tabletest.Edge{
			From: state(r.From[0]), Event: t.Events[r.Event], Guard: r.Guard, Forced: r.Forced,
			Ignore: r.Then == fsm.ThenIgnore, Return: r.Then == fsm.ThenReturn,
		}
		if r.Then == fsm.ThenMove {
			e.To = state(r.To)
		}
		for _, o := range r.Origin {
			e.Origin = append(e.Origin, state(o))
		}
		for _, a := range r.Actors {
			name := "stranger"
			if a < len(t.Actors) {
				name = string(t.Actors[a])
			}
			e.Actors = append(e.Actors, name)
		}
		d.Transitions = append(d.Transitions, e)
	}
	return d
}

// answers is everything that can be asked, and what comes of it.
func (n *naive) answers(events []string) map[string]string {
	found := map[string]string{}
	seen := map[pair]bool{}
	for queue := n.entries(); len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, event := range events {
			for _, actor := range append(slices.Clone(n.actors), "stranger") {
				for _, force := range []bool{false, true} {
					for _, agree := range [][]string{nil, {"p"}, {"q"}, {"p", "q"}} {
						row, to, refusal := n.fire(at, event, actor, force, agree)
						question, _ := json.Marshal([]any{at.a, at.b, event, actor, force, agree})
						answer := ""
						if refusal == nil {
							queue = append(queue, to)
							answer = to.a + " " + to.b
							if n.Transitions[row].Ignore {
								answer = "ignored"
							}
						} else {
							answer = refusal.Error()
						}
						found[string(question)] = answer
					}
				}
			}
		}
	}
	return found
}

// An equivalent mutant answers every request as before. Without guards, another
// mutant answers some request differently.
func TestMutantsAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := tabletest.Random.Draw(t, "doc")
		data, err := json.Marshal(d)
		require.NoError(t, err)
		table, err := fsm.ParseTable(data)
		require.NoError(t, err)
		before := newNaive(document(table)).answers(table.Events)
		guarded := slices.ContainsFunc(d.Transitions, func(e tabletest.Edge) bool { return e.Guard != "" })
		all, err := tour.Mutants(table)
		require.NoError(t, err)
		texts := map[string]bool{}
		n, asked := 0, 1 // one in so many is asked, which is most of the work
		if !tabletest.Full {
			asked = 8
			n = rapid.IntRange(0, asked-1).Draw(t, "asked")
		}
		for m := range all {
			require.False(t, texts[m.Text], "twice: %s", m)
			texts[m.Text] = true
			require.Len(t, m.Rows, len(m.Table.Rows))
			require.NotEqual(t, table.Rows, m.Table.Rows, m)
			for i, row := range m.Rows {
				if row != m.Row {
					require.Equal(t, table.Rows[row], m.Table.Rows[i])
				}
			}
			if n++; n%asked != 0 {
				continue
			}
			after := newNaive(document(m.Table)).answers(table.Events)
			if m.Equivalent {
				require.Equal(t, before, after, m)
			} else if !guarded {
				require.NotEqual(t, before, after, m)
			}
		}
		again, err := fsm.ParseTable(data)
		require.NoError(t, err)
		require.Equal(t, again.Rows, table.Rows, "the table is as it was")
	})
}

// A deadline makes a difference that no request shows.
func TestDeadlinesAreBehaviour(t *testing.T) {
	table := tabletest.Parse(t, `{"name":"m","initial":"T","actors":["a","sweeper"],
		"states":[{"name":"T","kind":"transitional"},{"name":"S","kind":"stable"}],
		"transitions":[
		 {"from":"T","event":"late","actors":["a","sweeper"],"to":"S"},
		 {"from":"T","event":"late","actor":"sweeper","to":"S"}]}`)
	equivalent := func(row int) (dropped bool) {
		all, err := tour.Mutants(table)
		require.NoError(t, err)
		for m := range all {
			if m.Row == row && strings.HasSuffix(m.Text, "is dropped") {
				return m.Equivalent
			}
		}
		t.Fatal("no such mutant")
		return false
	}
	require.True(t, equivalent(1), "the row before it always goes first")
	table.Rows[1].Timeout = time.Minute
	require.False(t, equivalent(1), "but it is the one that is due")
	table.Rows[1].Timeout = 0
	table.Rows[0], table.Rows[1] = table.Rows[1], table.Rows[0]
	require.True(t, equivalent(0), "the sweeper has a row of its own that does the same")
	table.Rows[1].Supersede = true
	require.False(t, equivalent(0), "but only one of them begins an operation")
	table.States[0].Kind = fsm.Stable
	require.True(t, equivalent(0), "an object at rest is in no operation that a row can supersede")
}

// Mutants of faulty tables, and the limits of all three functions.
func TestFaultyTables(t *testing.T) {
	table := large(4, fsm.Stable, move(0, 0, 1), move(1, 0, 9), move(9, 0, 1), fsm.TableRow{Event: 0, To: 1})
	table.Rows[0].From = []int{0, 9, 2, 3}
	all, err := tour.Mutants(table)
	require.NoError(t, err)
	n := 0
	for m := range all {
		require.NotEqual(t, 1, m.Row, "a row without a target has no mutants")
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)

	plan, err := tour.New(table, nil)
	require.NoError(t, err)
	require.Contains(t, plan.String(), "missed: row 3 from <empty>")

	odd := large(2, fsm.Stable, move(0, 0, 1), move(1, 0, 0))
	odd.Actors, odd.Rows[0].Actors = []fsm.Actor{"a\nb", "c"}, []int{-1, 70}
	plan, err = tour.New(odd, nil)
	require.NoError(t, err)
	require.Len(t, plan.Missed, 2)
	all, err = tour.Mutants(odd)
	require.NoError(t, err)
	for m := range all {
		require.NotContains(t, m.Text, "\n")
	}

	huge := &fsm.Table{Name: "hu\nge", Actors: []fsm.Actor{"a"}, Events: []string{"e"}}
	for range 300 {
		huge.States = append(huge.States, fsm.TableState{Name: "s", Target: -1}, fsm.TableState{Name: "t", Kind: fsm.Transitional, Target: -1})
	}
	for i := range 300 {
		huge.Rows = append(huge.Rows, move(2*i, 0, 2*((i+1)%300)), move(2*i, 1, 1), move(2*i+1, 0, 2*((i+1)%300)+1))
	}
	huge.Events = append(huge.Events, "f")
	_, err = tour.Mutants(huge)
	require.ErrorIs(t, err, tour.ErrTooLarge)
	require.ErrorContains(t, err, "hu<U+000A>ge")
}

// The actor that no row names is another one than those of the table, whatever their names.
func TestActorNamedStranger(t *testing.T) {
	equivalents := func(actor fsm.Actor) (list []bool) {
		table := large(2, fsm.Stable, move(0, 0, 1), move(1, 0, 0))
		table.Actors = []fsm.Actor{actor}
		table.Rows[0].Actors = []int{0}
		all, err := tour.Mutants(table)
		require.NoError(t, err)
		for m := range all {
			list = append(list, m.Equivalent)
		}
		return list
	}
	require.Equal(t, equivalents("user"), equivalents("stranger"))
}

// A row with a deadline stays one of the sweeper. It is for every actor if the table has a
// third one.
func TestMutantsOfActors(t *testing.T) {
	for actors, want := range map[string][]string{
		`"a","sweeper"`: {
			"row 0 (S -go-> W) is for sweeper", "row 0 (S -go-> W) is for every actor",
			"row 1 (W -late-> S) is for a and sweeper",
			"row 2 (W -tick-> S) is for a", "row 2 (W -tick-> S) is for every actor",
		},
		`"a","b","sweeper"`: {
			"row 0 (S -go-> W) is for b", "row 0 (S -go-> W) is for every actor",
			"row 1 (W -late-> S) is for a and sweeper", "row 1 (W -late-> S) is for every actor",
			"row 2 (W -tick-> S) is for a", "row 2 (W -tick-> S) is for every actor",
		},
	} {
		t.Run(actors, func(t *testing.T) {
			all, err := tour.Mutants(tabletest.Parse(t, `{"name":"m","initial":"S","actors":[`+actors+`],
				"states":[{"name":"S","kind":"stable"},{"name":"W","kind":"transitional"}],
				"transitions":[
				 {"from":"S","event":"go","actor":"a","to":"W"},
				 {"from":"W","event":"late","actor":"sweeper","to":"S","within":"1m"},
				 {"from":"W","event":"tick","actor":"sweeper","to":"S"}]}`))
			require.NoError(t, err)
			var texts []string
			for m := range all {
				if strings.Contains(m.Text, " is for ") {
					texts = append(texts, m.Text)
				}
			}
			require.Equal(t, want, texts)
		})
	}
}

// Behind a row with the same guard no row is tried, behind one with another guard it is.
func TestSecondGuardIsBehaviour(t *testing.T) {
	for second, equivalent := range map[string]bool{"p": true, "q": false} {
		t.Run(second, func(t *testing.T) {
			all, err := tour.Mutants(tabletest.Parse(t, `{"name":"m","initial":"S",
				"states":[{"name":"S","kind":"stable"},{"name":"A","kind":"stable"},{"name":"B","kind":"stable"}],
				"transitions":[
				 {"from":"S","event":"go","actor":"a","to":"A","guard":"p"},
				 {"from":"S","event":"go","actor":"a","to":"B","guard":"`+second+`"}]}`))
			require.NoError(t, err)
			for m := range all {
				if m.Text == "row 1 (S -go-> B) is dropped" {
					require.Equal(t, equivalent, m.Equivalent)
					return
				}
			}
			t.Fatal("no such mutant")
		})
	}
}
