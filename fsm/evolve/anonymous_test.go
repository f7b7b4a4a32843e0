package evolve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

func parsed(t testing.TB, d *tabletest.Document) *fsm.Table {
	t.Helper()
	data, err := json.Marshal(d)
	require.NoError(t, err)
	return tabletest.Parse(t, string(data))
}

// otherVersions reads the versions of a table from testdata/history/others. The form
// of the lines is documented with the tests of package check. A row with several
// targets becomes rows with guards.
func otherVersions(t *testing.T, file string) (documents []*tabletest.Document) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	start := tabletest.Document{Name: filepath.Base(file)}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch words[0] {
		case "#":
		case "initial":
			start.Initial = words[1]
		case "initials":
			start.Initials = words[1:]
		case "kind":
			for _, s := range words[2:] {
				start.States = append(start.States, tabletest.State{Name: s, Kind: words[1]})
			}
		case "version":
			next := start
			documents = append(documents, &next)
		case "change":
			next := *documents[len(documents)-1]
			next.Transitions = slices.Clone(next.Transitions)
			documents = append(documents, &next)
		default:
			d := documents[len(documents)-1]
			for _, e := range edges(strings.TrimLeft(line, "+- ")) {
				if words[0] != "-" {
					d.Transitions = append(d.Transitions, e)
					continue
				}
				d.Transitions = slices.DeleteFunc(d.Transitions, func(x tabletest.Edge) bool {
					return x.From == e.From && x.Event == e.Event && x.To == e.To
				})
			}
		}
	}
	for _, d := range documents {
		for i := range d.Transitions {
			e := &d.Transitions[i]
			e.Guard = ""
			for _, other := range d.Transitions {
				if other.From == e.From && other.Event == e.Event && other.To != e.To {
					e.Guard = "leads to " + e.To
				}
			}
		}
	}
	return documents
}

// edges reads "A,B event,event C,D".
func edges(line string) (list []tabletest.Edge) {
	words := strings.Fields(line)
	for from := range strings.SplitSeq(words[0], ",") {
		for event := range strings.SplitSeq(words[1], ",") {
			for to := range strings.SplitSeq(words[2], ",") {
				list = append(list, tabletest.Edge{From: from, Event: event, To: to})
			}
		}
	}
	return list
}

// publishedWithoutActors returns the versions of the published tables that name no
// actors.
func publishedWithoutActors(t *testing.T) map[string][]*tabletest.Document {
	published := map[string][]*tabletest.Document{}
	for _, v := range tabletest.ReadVersions(t) {
		published["ironic"] = append(published["ironic"], v.Document())
	}
	files, err := filepath.Glob("../testdata/history/others/*")
	require.NoError(t, err)
	for _, file := range files {
		published[filepath.Base(file)] = otherVersions(t, file)
	}
	return published
}

// TestDiffWithoutActors retargets every row of every version, one at a time. Diff
// reports all of them.
func TestDiffWithoutActors(t *testing.T) {
	var reported, all int
	for name, documents := range publishedWithoutActors(t) {
		for _, d := range documents {
			old := parsed(t, d)
			require.Empty(t, old.Actors)
			for i, e := range d.Transitions {
				elsewhere := slices.IndexFunc(d.States, func(s tabletest.State) bool { return s.Name != e.To && s.Name != e.From })
				changed := *d
				changed.Transitions = slices.Clone(d.Transitions)
				changed.Transitions[i].To = d.States[elsewhere].Name
				report, err := evolve.Diff(old, parsed(t, &changed), nil)
				require.NoError(t, err)
				if all++; report.Level > evolve.Compatible {
					reported++
				} else {
					t.Logf("%s: %s", name, report)
				}
			}
		}
	}
	require.Equal(t, "1308 of 1308", fmt.Sprintf("%d of %d", reported, all))
}

// TestDiffWithoutActorsIsQuiet requires no hazard for a version and itself, a mapping
// for a version with other names, and notes only for further rows on new events.
func TestDiffWithoutActorsIsQuiet(t *testing.T) {
	for name, documents := range publishedWithoutActors(t) {
		for _, d := range documents {
			old := parsed(t, d)
			e, err := evolve.Diff(old, parsed(t, d), nil)
			require.NoError(t, err)
			require.Empty(t, e.Hazards, name)

			other, config := withOtherNames(d)
			e, err = evolve.Diff(old, parsed(t, other), config)
			require.NoError(t, err)
			require.Equal(t, evolve.NeedsMapping, e.Level, "%s", e)

			more := *d
			for _, s := range d.States {
				more.Transitions = append(more.Transitions[:len(more.Transitions):len(more.Transitions)],
					tabletest.Edge{From: s.Name, Event: "extra", To: d.Initial})
			}
			e, err = evolve.Diff(old, parsed(t, &more), nil)
			require.NoError(t, err)
			require.Equal(t, evolve.Compatible, e.Level, "%s", e)
			require.Equal(t, "refused-by-old", e.Hazards[0].ID)
		}
	}
}

// withOtherNames returns the document with another name for every state and event.
func withOtherNames(d *tabletest.Document) (*tabletest.Document, *evolve.Config) {
	config := &evolve.Config{States: map[string]string{}, Events: map[string]string{}}
	state := func(name string) string {
		config.States[name] = name + "2"
		return name + "2"
	}
	other := *d
	other.Initial, other.Initials, other.States, other.Transitions = state(d.Initial), nil, nil, nil
	for _, s := range d.Initials {
		other.Initials = append(other.Initials, state(s))
	}
	for _, s := range d.States {
		s.Name = state(s.Name)
		other.States = append(other.States, s)
	}
	for _, e := range d.Transitions {
		config.Events[e.Event] = e.Event + "2"
		e.From, e.Event, e.To = state(e.From), e.Event+"2", state(e.To)
		other.Transitions = append(other.Transitions, e)
	}
	for i := range other.States {
		if target := &other.States[i].Target; *target != "" {
			*target = state(*target)
		}
	}
	return &other, config
}

// TestDiffOfAddedActors compares tables without actors with tables that name some.
func TestDiffOfAddedActors(t *testing.T) {
	table := func(start, stop string, more ...tabletest.Edge) *fsm.Table {
		return parsed(t, &tabletest.Document{
			Name: "lamp", Initial: "Off", States: []tabletest.State{{Name: "Off", Kind: "stable"}, {Name: "On", Kind: "stable"}},
			Transitions: append(more,
				tabletest.Edge{From: "Off", Event: "start", Actor: start, To: "On"},
				tabletest.Edge{From: "On", Event: "stop", Actor: stop, To: "Off"}),
		})
	}
	late := tabletest.Edge{From: "On", Event: "late", To: "Off", Within: "1m"} // by the sweeper
	for _, c := range []struct {
		name     string
		old, new *fsm.Table
		want     string
	}{
		{"none to user", table("", ""), table("user", "user"), "unsafe [entry-forbidden forbidden start forbidden stop]"},
		{"two to none", table("user", "agent"), table("", ""), "compatible [refused-by-old start refused-by-old stop]"},
		{"one to none", table("user", "user"), table("", ""), "compatible [refused-by-old start refused-by-old stop]"},
		{"second row to the same", table("user", ""), table("user", "user"), "compatible []"},
		{"second row to another", table("user", ""), table("user", "agent"), "unsafe [forbidden stop refused-by-old stop]"},
		{"sweeper alone", table("", "", late), table("", "", late), "compatible []"},
		{"sweeper to user", table("", "", late), table("user", "user", late), "unsafe [entry-forbidden forbidden start forbidden stop refused-by-old start refused-by-old stop]"},
		{"user to sweeper", table("user", "user", late), table("", "", late), "unsafe [entry-forbidden forbidden start forbidden stop refused-by-old start refused-by-old stop]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := evolve.Diff(c.old, c.new, nil)
			require.NoError(t, err)
			hazards := []string{}
			for _, h := range e.Hazards {
				hazards = append(hazards, strings.TrimSpace(h.ID+" "+h.Event))
			}
			require.Equal(t, c.want, fmt.Sprint(e.Level, " ", hazards), "%s", e)
		})
	}
}

// TestAnonymousActorIsAnActor requires that tables without actors have the hazards that
// they have if the anonymous actor is named.
func TestAnonymousActorIsAnActor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, config := drawFleet(t)
		config.Actors = nil
		named, unnamed := f.tables, f.tables
		open := rapid.SampledFrom([][]int{{0}, {1}, {0, 1}}).Draw(t, "open")
		if len(open) == 1 && len(f.tables[1-open[0]].Actors) == 1 && f.tables[1-open[0]].Actors[0] == fsm.Sweeper {
			open = []int{0, 1} // the other table is open too: only the sweeper is named in it
		}
		for _, h := range open {
			named[h] = openTo(f.tables[h], "guest")
			unnamed[h] = openTo(f.tables[h])
		}
		if len(open) == 1 {
			h := open[0]
			for i := range unnamed[h].Rows { // a table without any actor has no deadlines
				unnamed[h].Rows[i].Timeout, unnamed[h].Rows[i].Actors = 0, nil
			}
			unnamed[h].Actors = nil
			*named[h] = *unnamed[h]
			named[h].Actors = append([]fsm.Actor{"guest"}, f.tables[1-h].Actors...)
		}
		want, err := evolve.Diff(named[0], named[1], &config)
		require.NoError(t, err)
		got, err := evolve.Diff(unnamed[0], unnamed[1], &config)
		require.NoError(t, err)
		require.Equal(t, outline(want), outline(got), "%s\n%s", want, got)
	})
}

// outline returns the verdict and the hazards without their texts.
func outline(e *evolve.Report) string {
	var hazards []string
	for _, h := range e.Hazards {
		hazards = append(hazards, fmt.Sprintln(h.ID, h.Level, h.State, h.Event, len(h.Witness)))
	}
	slices.Sort(hazards)
	return fmt.Sprintln(e.Level, e.Drain, e.Hold) + strings.Join(hazards, "")
}

// openTo returns the table with these actors and the sweeper. The rows with a timeout are
// the sweeper's, and all others are open.
func openTo(table *fsm.Table, actors ...fsm.Actor) *fsm.Table {
	changed := *table
	changed.Actors, changed.Rows = append(slices.Clone(actors), fsm.Sweeper), slices.Clone(table.Rows)
	for i := range changed.Rows {
		r := &changed.Rows[i]
		r.Actors = nil
		if r.Timeout > 0 {
			r.Actors = []int{len(actors)}
		}
	}
	return &changed
}
