package evolve_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
)

// drawFleet draws a machine, a changed version of it and the config of Diff.
func drawFleet(t *rapid.T) (*fleet, evolve.Config) {
	spec := plans.Draw(t, "old")
	changed, renamed := changes(t, spec)
	specs := [2]plan{spec, changed}
	var initials [2][]string
	for h, spec := range specs {
		if rapid.IntRange(0, 5).Draw(t, "one initial state") > 0 {
			continue
		}
		for _, s := range spec.States {
			if s.Kind != fsm.Absent && (s.Name == spec.Initial || rapid.Bool().Draw(t, "initial")) {
				initials[h] = append(initials[h], s.Name)
			}
		}
	}
	return newFleet(t, specs, initials, renamed), evolve.Config{
		States: renamed.states, Events: renamed.events, Actors: renamed.actors, Guards: renamed.guards,
	}
}

// TestVerdictsHold requires that no node does what the other's table forbids under the
// conditions of a verdict. Notes name the events that only the new table allows.
func TestVerdictsHold(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f, config := drawFleet(t)
		if rapid.IntRange(0, 3).Draw(t, "hold") == 0 {
			config.Hold = f.drawHold(t)
		}
		e, err := evolve.Diff(f.tables[0], f.tables[1], &config)
		require.NoError(t, err)
		seen[e.Level.String()]++
		may := func(state, event string) bool {
			return slices.ContainsFunc(e.Hazards, func(h evolve.Hazard) bool {
				return h.ID == "refused-by-old" && h.Event == event &&
					(h.State == state || state == "" && h.State == f.absent(1))
			})
		}
		if e.Level < evolve.Unsafe {
			require.Empty(t, f.wrong(t, e.Drain, append(e.Hold, config.Hold...), may), "%s\nheld: %v\n%s\n%s", e, config.Hold, plain(f.tables[0]), plain(f.tables[1]))
		}
		if level := e.Level; level == evolve.Compatible {
			require.Empty(t, e.Drain)
			require.Empty(t, e.Hold)
		}
	})
	t.Log(seen)
	levels := []string{"compatible", "unsafe"}
	if seen["compatible"]+seen["unsafe"] > 1000 { // these two are rare
		levels = append(levels, "drain", "mapping")
	}
	for _, level := range levels {
		require.Positive(t, seen[level], "nothing was %s", level)
	}
}

// drawHold draws the events that no caller fires.
func (f *fleet) drawHold(t *rapid.T) (hold []evolve.Withheld) {
	for range rapid.IntRange(1, 3).Draw(t, "held") {
		table := f.tables[rapid.IntRange(0, 1).Draw(t, "of")]
		w := evolve.Withheld{Event: rapid.SampledFrom(append([]string{""}, table.Events...)).Draw(t, "event")}
		if w.Event != "" && rapid.Bool().Draw(t, "somewhere") {
			w.State = rapid.SampledFrom(table.States).Draw(t, "state").Name
		}
		hold = append(hold, w)
	}
	return hold
}

// plain returns a table as text.
func plain(t *fsm.Table) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestWitnessesReplay requires that every witness replays and ends with its hazard.
func TestWitnessesReplay(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f, config := drawFleet(t)
		e, err := evolve.Diff(f.tables[0], f.tables[1], &config)
		require.NoError(t, err)
		for _, h := range e.Hazards {
			// No machine has the anonymous actor of a table that names the sweeper only.
			anonymous := slices.ContainsFunc(h.Witness, func(a evolve.Act) bool { return a.Event != "" && a.Actor == "" })
			if len(h.Witness) > 0 && !anonymous {
				f.replay(t, h)
				seen[h.ID]++
			}
		}
	})
	t.Log(seen)
}

func (f *fleet) replay(t require.TestingT, h evolve.Hazard) {
	var r, last record
	var node int
	var q request
	for _, a := range h.Witness {
		last, node = r, 1
		if a.Node != "new" {
			node = 0
		}
		to := f.named(node, a.To, a.ToOrigin)
		switch {
		case a.Node == "": // it is there
			require.Contains(t, f.field(t), to, "%s", a)
		case a.Event == "":
			require.Contains(t, f.starts(node), to)
			q = request{actor: fsm.Actor(a.Actor)}
		default:
			q = request{a.Event, fsm.Actor(a.Actor), a.Force, valuation{}}
			if node == 0 {
				q.event, q.actor = translated(f.renamed.events, a.Event), fsm.Actor(translated(f.renamed.actors, a.Actor))
			}
			for _, g := range a.Agree {
				if slices.ContainsFunc(f.tables[0].Rows, func(r fsm.TableRow) bool { return r.Guard == g }) {
					g = translated(f.renamed.guards, g)
				}
				q.agrees[g] = true
			}
			require.Equal(t, r, f.named(node, a.State, a.Origin), "%s", a)
			got, _, _, err := f.fire(node, r, q)
			require.NoError(t, err, "%s", a)
			require.Equal(t, to, got, "%s", a)
		}
		r = to
	}
	other := func(node int) (record, bool, bool, error) { return f.fire(node, last, q) }
	read := func(node int) fsm.Status[string] {
		at, err := f.read(node, r)
		require.NoError(t, err)
		return at
	}
	switch h.ID {
	case "unknown-to-old", "unknown-to-new":
		reader := 0
		if h.ID == "unknown-to-new" {
			reader = 1
		}
		_, err := f.read(reader, r)
		require.Error(t, err)
		_, err = f.read(1-reader, r)
		require.NoError(t, err)
	case "forbidden", "ignored":
		require.Equal(t, 0, node)
		_, _, _, err := other(1)
		require.Error(t, err, "%s", h.Message)
		_, ignored, _, err := other(0)
		require.NoError(t, err)
		require.Equal(t, h.ID == "ignored", ignored)
	case "refused-by-old":
		require.Equal(t, 1, node)
		_, _, _, err := other(0)
		require.Error(t, err, "%s", h.Message)
	case "two-results":
		to, ignored, begins, err := other(node)
		require.NoError(t, err)
		to2, ignored2, begins2, err := other(1 - node)
		require.NoError(t, err)
		require.False(t, to == to2 && ignored == ignored2 && begins == begins2, "%s", h.Message)
	case "deadline-action":
		event, _ := f.deadline(0, read(0))
		other, _ := f.deadline(1, read(1))
		require.NotEqual(t, event, other)
	case "deadline-time":
		event, _ := f.deadline(0, read(0))
		other, _ := f.deadline(1, read(1))
		require.Equal(t, event, other)
	case "deadline-added":
		_, has := f.deadline(0, read(0))
		require.False(t, has)
		_, has = f.deadline(1, read(1))
		require.True(t, has)
	case "kind", "undo":
		require.NotEqual(t, f.nodes[0].Kind(read(0).State), f.nodes[1].Kind(read(1).State))
	case "stranded":
		require.False(t, f.rests(t, 0, r) && f.rests(t, 1, r))
	case "entry-forbidden":
		if r == f.write(1, f.nodes[1].Start()) {
			require.NotContains(t, f.tables[1].Actors, fsm.Actor(translated(f.renamed.actors, string(q.actor))))
		}
	default:
		require.Fail(t, "a hazard that is not replayed", h.ID)
	}
}
