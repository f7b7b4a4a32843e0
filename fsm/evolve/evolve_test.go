package evolve_test

import (
	"encoding/json"
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

// short reads a table in a short form: "A stable, B transitional", the first is initial,
// and rows such as "A go B user [guard] within=1m origin=A,B forced supersede".
func short(t require.TestingT, states string, rows ...string) *fsm.Table {
	doc := map[string]any{"name": "short", "actors": []string{"user", "agent", "sweeper"}}
	var list []any
	for i, s := range strings.Split(states, ", ") {
		name, kind, _ := strings.Cut(s, " ")
		state := map[string]any{"name": name, "kind": kind}
		if i == 0 {
			doc["initial"] = name
		}
		if kind == "absent" {
			state["kind"], state["absent"] = "stable", true
		}
		list = append(list, state)
	}
	doc["states"] = list
	transitions := []any{}
	for _, r := range rows {
		words := strings.Fields(r)
		row := map[string]any{"from": words[0], "event": words[1]}
		switch words[2] {
		case "return", "ignore":
			row[words[2]] = true
		default:
			row["to"] = words[2]
		}
		for _, w := range words[3:] {
			key, value, ok := strings.Cut(w, "=")
			switch {
			case strings.HasPrefix(w, "["):
				row["guard"] = strings.Trim(w, "[]")
			case key == "origin":
				row[key] = strings.Split(value, ",")
			case ok:
				row[key] = value
			case w == "forced" || w == "supersede":
				row[w] = true
			default:
				row["actors"] = strings.Split(w, ",")
			}
		}
		transitions = append(transitions, row)
	}
	doc["transitions"] = transitions
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	table, err := fsm.ParseTable(data)
	require.NoError(t, err)
	return table
}

// TestDiffVerdicts compares tables with one change each.
func TestDiffVerdicts(t *testing.T) {
	const states = "Off stable, Starting transitional, On stable, Broken error"
	rows := []string{
		"Off start Starting user", "Starting done On agent", "Starting fail Broken agent",
		"Starting late Broken within=5m", "On stop Off user", "Broken repair Off user [sound]",
	}
	edit := func(old, new string) []string {
		out := slices.Clone(rows)
		if i := slices.Index(out, old); i >= 0 {
			out = slices.Delete(out, i, i+1)
			if new != "" {
				out = slices.Insert(out, i, new)
			}
			return out
		}
		require.Empty(t, old)
		return append(out, new)
	}
	tests := map[string]struct {
		states string // default: as above
		rows   []string
		config *evolve.Config
		level  evolve.Compatibility
		codes  string
		drain  string
		hold   string
	}{
		"nothing":                                {rows: rows},
		"a row more":                             {rows: edit("", "On fail Broken agent"), codes: "refused-by-old"},
		"a row that is ignored more":             {rows: edit("", "On done ignore agent"), codes: "refused-by-old"},
		"a row less":                             {rows: edit("Starting fail Broken agent", ""), level: evolve.Unsafe, codes: "forbidden"},
		"a row less on a held event":             {rows: edit("On stop Off user", "On halt Off user"), config: &evolve.Config{Hold: []evolve.Withheld{{State: "On", Event: "stop"}}}, codes: "refused-by-old"},
		"a row less on an event held everywhere": {rows: edit("On stop Off user", "On halt Off user"), config: &evolve.Config{Hold: []evolve.Withheld{{Event: "stop"}}}, codes: "refused-by-old"},
		"elsewhere":                              {rows: edit("Starting fail Broken agent", "Starting fail Off agent"), level: evolve.Unsafe, codes: "two-results"},
		"back instead of ahead to the same":      {rows: edit("On stop Off user", "On stop On user"), level: evolve.Unsafe, codes: "two-results"},
		"ignored instead":                        {rows: edit("On stop Off user", "On stop ignore user"), level: evolve.Unsafe, codes: "two-results"},
		"a return to the only origin":            {rows: edit("Starting fail Broken agent", "Starting fail return agent"), level: evolve.Unsafe, codes: "two-results"},
		"a guard more":                           {rows: edit("On stop Off user", "On stop Off user [idle]"), level: evolve.Unsafe, codes: "forbidden"},
		"a guard less":                           {rows: edit("Broken repair Off user [sound]", "Broken repair Off user"), codes: "refused-by-old"},
		"another guard":                          {rows: edit("Broken repair Off user [sound]", "Broken repair Off user [whole]"), level: evolve.Unsafe, codes: "forbidden refused-by-old"},
		"the same guard by another name":         {rows: edit("Broken repair Off user [sound]", "Broken repair Off user [whole]"), config: &evolve.Config{Guards: map[string]string{"sound": "whole"}}},
		"an actor more":                          {rows: edit("On stop Off user", "On stop Off user,agent"), codes: "refused-by-old"},
		"an actor less":                          {rows: edit("Starting late Broken within=5m", "Starting late Broken agent within=5m"), codes: "refused-by-old"},
		"another actor":                          {rows: edit("On stop Off user", "On stop Off agent"), level: evolve.Unsafe, codes: "forbidden refused-by-old"},
		"by force only":                          {rows: edit("On stop Off user", "On stop Off user forced"), level: evolve.Unsafe, codes: "forbidden"},
		"without force":                          {rows: edit("", "Off scrap Broken user forced"), codes: "refused-by-old"},
		"an operation of its own":                {rows: edit("Starting done On agent", "Starting done On agent supersede")}, // at rest: nothing begins
		"a longer deadline":                      {rows: edit("Starting late Broken within=5m", "Starting late Broken within=9m"), codes: "deadline-time"},
		"another event when late":                {rows: edit("Starting late Broken within=5m", "Starting fail Broken within=5m"), level: evolve.Unsafe, codes: "deadline-action forbidden refused-by-old"},
		"no deadline":                            {rows: edit("Starting late Broken within=5m", "Starting late Broken sweeper"), level: evolve.Unsafe, codes: "deadline-action"},
		"a deadline where there was none":        {rows: edit("", "On idle Off within=1h"), level: evolve.NeedsDrain, codes: "deadline-added", drain: "Starting On", hold: "Off/start"},
		"a new way from the start":               {states: states + ", Test transitional", rows: edit("", "Off test Test user"), level: evolve.Unsafe, codes: "unknown-to-old refused-by-old"},
		"a new way on a held event yet":          {states: states + ", Test transitional", rows: edit("", "Off test Test user"), config: &evolve.Config{Hold: []evolve.Withheld{{State: "Off", Event: "test"}}}},
		"a state without any way there":          {states: states + ", Test stable", rows: rows},
		"a failure that is none":                 {states: "Off stable, Starting transitional, On stable, Broken stable", rows: rows, level: evolve.NeedsDrain, codes: "undo", drain: "Starting Broken", hold: "Off/start"},
		"an end that was at rest":                {states: "Off stable, Starting transitional, On final, Broken error", rows: rows},
		"work that was rest":                     {states: "Off stable, Starting transitional, On transitional, Broken error", rows: rows, level: evolve.Unsafe, codes: "kind two-results unknown-to-old"},
		"gone that was there":                    {states: "Off stable, Starting transitional, On absent, Broken error", rows: rows, level: evolve.Unsafe, codes: "kind two-results refused-by-old"},
		"another beginning":                      {states: "On stable, Starting transitional, Off stable, Broken error", rows: rows, level: evolve.Unsafe, codes: "entry-forbidden"},
		"a name that the config maps":            {states: "Off stable, Starting transitional, On stable, Failed error", rows: []string{"Off start Starting user", "Starting done On agent", "Starting fail Failed agent", "Starting late Failed within=5m", "On stop Off user", "Failed repair Off user [sound]"}, config: &evolve.Config{States: map[string]string{"Broken": "Failed"}}, level: evolve.NeedsMapping, codes: "renamed"},
		"a name that the config does not map":    {states: "Off stable, Starting transitional, On stable, Failed error", rows: []string{"Off start Starting user", "Starting done On agent", "Starting fail Failed agent", "Starting late Failed within=5m", "On stop Off user", "Failed repair Off user [sound]"}, level: evolve.NeedsDrain, codes: "unknown-to-new", drain: "Starting Broken", hold: "Off/start"},
		"an event by another name":               {rows: edit("On stop Off user", "On halt Off user"), level: evolve.Unsafe, codes: "forbidden refused-by-old"},
		"a state less that is kept empty":        {states: "Off stable, Starting transitional, On stable", rows: []string{"Off start Starting user", "Starting done On agent", "Starting late Off within=5m", "On stop Off user"}, level: evolve.NeedsDrain, codes: "unknown-to-new", drain: "Starting Broken", hold: "Off/start"},
		"a state less in which objects begin":    {states: "On stable, Starting transitional, Broken error", rows: []string{"Starting done On agent", "Starting fail Broken agent", "Starting late Broken within=5m"}, level: evolve.Unsafe, codes: "unknown-to-new forbidden"},
	}
	old := short(t, states, rows...)
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			if c.states == "" {
				c.states = states
			}
			e, err := evolve.Diff(old, short(t, c.states, c.rows...), c.config)
			require.NoError(t, err)
			codes, seen := []string{}, map[string]bool{}
			for _, h := range e.Hazards {
				if !seen[h.ID] {
					seen[h.ID] = true
					codes = append(codes, h.ID)
				}
				require.LessOrEqual(t, h.Level, e.Level)
			}
			var hold []string
			for _, w := range e.Hold {
				hold = append(hold, w.State+"/"+w.Event)
			}
			want := strings.Fields(c.codes)
			slices.Sort(want)
			slices.Sort(codes)
			got := fmt.Sprint(e.Level, codes, e.Drain, hold)
			require.Equal(t, fmt.Sprint(c.level, want, strings.Fields(c.drain), strings.Fields(c.hold)), got, "%s", e)
		})
	}
}

// TestCompatibilityIsOrdered requires that each level is worse than the one before.
func TestCompatibilityIsOrdered(t *testing.T) {
	order := []evolve.Compatibility{evolve.Compatible, evolve.NeedsDrain, evolve.NeedsMapping, evolve.Unsafe}
	require.True(t, slices.IsSorted(order))
	require.Len(t, slices.Compact(order), 4)
	require.Equal(t, "[compatible drain mapping unsafe]", fmt.Sprint(order))
	require.Equal(t, "compatibility?", evolve.Compatibility(9).String())
}

func TestDiffRefusesBadMappings(t *testing.T) {
	old := short(t, "A stable, B stable", "A go B user [g]", "B back A user [h]")
	new := short(t, "A stable, C stable", "A go C user [k]", "C back A user [h]")
	for want, c := range map[string]evolve.Config{
		`the old table has no state "X" to rename`:                   {States: map[string]string{"X": "C"}},
		`the new table has no state "X", the new name of "B"`:        {States: map[string]string{"B": "X"}},
		`"A" and "B" have one new name: state "C"`:                   {States: map[string]string{"A": "C", "B": "C"}},
		`the old table has no event "X" to rename`:                   {Events: map[string]string{"X": "go"}},
		`the old table has no actor "X" to rename`:                   {Actors: map[string]string{"X": "user"}},
		`the old table has no guard "X" to rename`:                   {Guards: map[string]string{"X": "h"}},
		`the new table has no guard "X", the new name of "g"`:        {Guards: map[string]string{"g": "X"}},
		`"g" and "h" have one new name: guard "h"`:                   {Guards: map[string]string{"g": "h", "h": "h"}},
		`neither table has an event "X" to hold`:                     {Hold: []evolve.Withheld{{Event: "X"}}},
		`neither table has a state "X" in which to hold "go"`:        {Hold: []evolve.Withheld{{State: "X", Event: "go"}}},
		`the old table has no guard "" to rename`:                    {Guards: map[string]string{"": "h"}},
		`the new table has no guard "", the new name of "g"`:         {Guards: map[string]string{"g": ""}},
		`the new table has no event "back2", the new name of "back"`: {Events: map[string]string{"back": "back2"}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := evolve.Diff(old, new, &c)
			require.ErrorIs(t, err, evolve.ErrMapping)
			require.ErrorContains(t, err, want)
		})
	}
}

// TestDiffOfSwappedNames compares tables in which two states swap their names.
func TestDiffOfSwappedNames(t *testing.T) {
	old := short(t, "A stable, B stable", "A go B user", "B back A user")
	new := short(t, "B stable, A stable", "B go A user", "A back B user")
	e, err := evolve.Diff(old, new, &evolve.Config{States: map[string]string{"A": "B", "B": "A"}})
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsMapping, e.Level)
	require.Equal(t, []evolve.Renaming{{Subject: "state", Old: "A", New: "B"}, {Subject: "state", Old: "B", New: "A"}}, e.Mapping)
	require.Contains(t, e.String(), "compatible with a mapping of names\n  map state A -> B\n  map state B -> A\n")
	level, err := e.Level.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "mapping", string(level))
	e, err = evolve.Diff(old, new, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
}

// TestDiffFindsStrandedObjects compares tables with a new origin in an old state. Only
// new nodes bring such an object to rest.
func TestDiffFindsStrandedObjects(t *testing.T) {
	old := short(t, "A stable, B stable, T transitional", "A go T user", "A over B user", "B over A user", "T done A agent origin=A")
	new := short(t, "A stable, B stable, T transitional", "A go T user", "A over B user", "B over A user", "T done A agent origin=A",
		"B go T user", "T done B agent origin=B")
	e, err := evolve.Diff(old, new, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
	require.Equal(t, "stranded", e.Hazards[0].ID, "%s", e)
	require.Equal(t, []string{"old node adds the object in A", "old node: A -over by user-> B, row 1", "new node: B -go by user-> T (from B), row 4"}, lines(e.Hazards[0].Witness))
}

// TestDiffHoldsEventsOfDrainedOrigins requires that Hold contains the events that
// create objects with a drained state as the origin.
func TestDiffHoldsEventsOfDrainedOrigins(t *testing.T) {
	rows := []string{"A leave E user", "E make D user", "D done A agent"}
	old := short(t, "A stable, D transitional, E transitional", rows...)
	e, err := evolve.Diff(old, short(t, "A stable, D transitional, E absent", rows...), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsDrain, e.Level, "%s", e)
	require.Equal(t, []string{"E"}, e.Drain)
	require.Equal(t, []evolve.Withheld{{State: "A", Event: "leave"}, {State: "E", Event: "make"}}, e.Hold)
}

// TestDiffHoldsEventsOfAbsentStates requires that Hold contains the events that create
// objects out of a state that is absent to one version and drained for the other.
func TestDiffHoldsEventsOfAbsentStates(t *testing.T) {
	rows := []string{"A make B user", "A over C user", "B leave C user", "C back A user"}
	old := short(t, "A stable, B transitional, C stable", append(slices.Clone(rows), "C late B within=1m")...)
	e, err := evolve.Diff(old, short(t, "A stable, B absent, C stable", rows...), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsDrain, e.Level, "%s", e)
	require.Equal(t, []string{"B", "C"}, e.Drain)
	require.Contains(t, e.Hold, evolve.Withheld{State: "B", Event: "leave"})
}

// TestDiffDrainsStateInWhichObjectsStart requires that a state in which objects start can
// be kept empty if no caller adds objects, and only then.
func TestDiffDrainsStateInWhichObjectsStart(t *testing.T) {
	old := short(t, "New stable, Used stable", "New use Used user", "Used wear Used user")
	new := short(t, "Used stable", "Used wear Used user")
	e, err := evolve.Diff(old, new, &evolve.Config{Hold: []evolve.Withheld{{}}})
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsDrain, e.Level, "%s", e)
	require.Equal(t, []string{"New"}, e.Drain)
	require.Empty(t, e.Hold)

	e, err = evolve.Diff(old, new, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level, "%s", e)
	require.Empty(t, e.Drain)
}

// TestDiffSweeperTakesLaterRow requires that the sweeper takes another row of the event
// if the guard of the deadline's row refuses, also while callers hold the event.
func TestDiffSweeperTakesLaterRow(t *testing.T) {
	rows := []string{"B go A within=1m [p]", "A make B user"}
	old := short(t, "A stable, B stable", rows...)
	for _, by := range []string{"", "sweeper", "user"} {
		new := short(t, "A stable, B stable, X stable", append(slices.Clone(rows), "B go X "+by, "X leave B user")...)
		e, err := evolve.Diff(old, new, nil)
		require.NoError(t, err)
		require.Equal(t, evolve.Unsafe, e.Level)
		require.Contains(t, e.String(), "X", "%s", e)
	}
}

func lines[T fmt.Stringer](list []T) (out []string) {
	for _, x := range list {
		out = append(out, x.String())
	}
	return out
}

// TestEveryHazardIsDocumented requires that the package documentation lists every id
// with its levels.
func TestEveryHazardIsDocumented(t *testing.T) {
	lines := tabletest.Documented(t, "Verdict")
	seen := map[string]bool{}
	look := func(e *evolve.Report) {
		for _, h := range e.Hazards {
			seen[h.ID] = true
			level := h.Level.String()
			if h.Level == evolve.Compatible {
				level = "note"
			}
			columns := strings.Fields(strings.ReplaceAll(lines[h.ID], ",", ""))
			require.NotEmpty(t, columns, h.ID)
			if !slices.Contains(columns[:2], level) { // it could not be drained
				require.Equal(t, []string{"drain", "unsafe"}, []string{columns[0], level}, "%s", h.Message)
				require.Contains(t, h.Message, "cannot be kept empty")
			}
		}
	}
	var all []*fsm.Table
	for _, file := range tabletest.Files(t, "*") {
		all = append(all, tabletest.Read(t, file))
	}
	for i, new := range all[1:] {
		e, err := evolve.Diff(all[i], new, nil)
		require.NoError(t, err)
		look(e)
	}
	require.Greater(t, len(seen), 6, "%v", seen)
}

// TestRowTextIsStable requires that the text of a row does not depend on the other table.
func TestRowTextIsStable(t *testing.T) {
	const rows = "A go T user; T done B agent origin=A,B; B go T user"
	table := short(t, "A stable, B stable, T transitional", strings.Split(rows, "; ")...)
	other := short(t, "B stable, A stable, T transitional", strings.Split(strings.Replace(rows, "T done B agent origin=A,B", "T fail A agent", 1), "; ")...)
	for _, pair := range [][2]*fsm.Table{{table, other}, {other, table}} {
		e, err := evolve.Diff(pair[0], pair[1], nil)
		require.NoError(t, err)
		require.Contains(t, e.String(), "T -done-> B by agent of A, B", "%s", e)
	}
}

// TestWitnessNamesAGuardOnce requires that a renamed guard appears once in a witness.
func TestWitnessNamesAGuardOnce(t *testing.T) {
	old := short(t, "A stable, B stable", "A go B user [p]", "B back A user")
	new := short(t, "A stable, B stable", "A go A user [whole]", "B back A user")
	e, err := evolve.Diff(old, new, &evolve.Config{Guards: map[string]string{"p": "whole"}})
	require.NoError(t, err)
	require.Equal(t, "two-results", e.Hazards[0].ID)
	require.Contains(t, e.Hazards[0].Message, "if p agrees")
	last := e.Hazards[0].Witness[len(e.Hazards[0].Witness)-1]
	require.Equal(t, []string{"p"}, last.Agree)
	require.Empty(t, last.Refuse)
}

// TestDiffOfManyGuards compares cells with so many guards that their combinations cannot be
// tried one by one.
func TestDiffOfManyGuards(t *testing.T) {
	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf("A go B user [g%d]", i))
	}
	rows = append(rows, "B back A user")
	old := short(t, "A stable, B stable", rows...)
	e, err := evolve.Diff(old, old, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Compatible, e.Level)
	changed := slices.Clone(rows)
	changed[3] = "A go A user [g3]"
	e, err = evolve.Diff(old, short(t, "A stable, B stable", changed...), nil)
	require.NoError(t, err)
	require.Equal(t, "two-results", e.Hazards[0].ID)
	require.Equal(t, evolve.Unsafe, e.Level)
}

// TestDiffTakesEveryTable compares tables with errors and with indexes out of range.
func TestDiffTakesEveryTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tables [2]*fsm.Table
		for i := range tables {
			data, err := json.Marshal(tabletest.Random.Draw(t, "doc"))
			require.NoError(t, err)
			tables[i], err = fsm.ParseTable(data)
			require.NoError(t, err)
		}
		e, err := evolve.Diff(tables[0], tables[1], nil)
		require.NoError(t, err)
		require.NotEmpty(t, e.String())
		e, err = evolve.Diff(tables[0], tables[0], nil)
		require.NoError(t, err)
		require.Equal(t, evolve.Compatible, e.Level, "%s", e)
		require.Empty(t, e.Differences)
	})
	odd := &fsm.Table{
		Initial: 7, Initials: []int{-3, 9}, States: []fsm.TableState{{Name: "A", Target: 99}}, Events: []string{"e"},
		Rows: []fsm.TableRow{
			{From: []int{0, 5, -1}, Event: 4, To: 0},
			{From: []int{0}, Event: 0, To: 3},
			{From: []int{0, 0}, Event: 0, To: 0, Origin: []int{8}},
			{From: []int{0}, Event: -1, Then: 77},
			{From: []int{0}, Actors: []int{6}, Then: 9},
		},
	}
	for _, pair := range [][2]*fsm.Table{{odd, odd}, {odd, {}}, {{}, odd}, {{}, {}}} {
		_, err := evolve.Diff(pair[0], pair[1], nil)
		require.NoError(t, err)
	}
}

// TestDiffOfSupersede compares rows that start a new operation in one version only. A
// late report of the operation before is stale for one node and accepted by the other.
func TestDiffOfSupersede(t *testing.T) {
	const states = "Off stable, Starting transitional, Deleting transitional, Gone absent"
	rows := []string{"Off start Starting user", "Starting done Off agent", "Starting delete Deleting user", "Deleting done Gone agent", "Gone make Off user"}
	old := short(t, states, rows...)
	rows[2] += " supersede"
	e, err := evolve.Diff(old, short(t, states, rows...), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
	require.Equal(t, "two-results", e.Hazards[0].ID)
	require.Equal(t, `on delete in "Starting" by user: an old node moves the object to "Deleting" with the origin "Off", `+
		`a new node moves the object to "Deleting" with the origin "Off" in a new operation`, e.Hazards[0].Message)
}

// TestDiffAtTheLimits compares the largest tables of package fsm, which differ in the
// last row.
func TestDiffAtTheLimits(t *testing.T) {
	states := tabletest.Sized(fsm.MaxStates)
	large := func(last string) *fsm.Table {
		table := &fsm.Table{Name: "large", Actors: []fsm.Actor{"a"}, Events: []string{"go", "back", last}}
		for i := range states {
			s := fsm.TableState{Name: fmt.Sprint(i), Target: -1}
			if i%2 == 1 {
				s.Kind = fsm.Transitional
			}
			table.States = append(table.States, s)
			for k := range fsm.MaxRows/fsm.MaxStates - 1 {
				table.Events = append(table.Events, fmt.Sprintf("%d-%d", i, k))
				to := (i*7 + k*131) % states
				if i%2 == 1 {
					to &^= 1 // to rest
				}
				table.Rows = append(table.Rows, fsm.TableRow{From: []int{i}, Event: len(table.Events) - 1, To: to})
			}
		}
		table.Rows = append(table.Rows, fsm.TableRow{From: []int{states - 1}, Event: 2, Then: fsm.ThenReturn})
		return table
	}
	e, err := evolve.Diff(large("last"), large("last"), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Compatible, e.Level)
	e, err = evolve.Diff(large("last"), large("other"), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
	require.Equal(t, "forbidden", e.Hazards[0].ID)
}

// TestDiffOfTooLargeTables requires an error for too many pairs of state and origin.
func TestDiffOfTooLargeTables(t *testing.T) {
	if !tabletest.Full {
		t.Skip("a million pairs")
	}
	table := &fsm.Table{Name: "crowd", Actors: []fsm.Actor{"a"}, Events: []string{"go"}}
	for i := range fsm.MaxStates {
		s := fsm.TableState{Name: fmt.Sprint(i), Target: -1}
		if i >= fsm.MaxStates/2 {
			s.Kind = fsm.Transitional
		}
		table.States = append(table.States, s)
	}
	row := fsm.TableRow{Event: 0, To: fsm.MaxStates / 2}
	for i := range fsm.MaxStates / 2 {
		row.From = append(row.From, i)
	}
	table.Rows = append(table.Rows, row)
	for i := fsm.MaxStates / 2; i < fsm.MaxStates-1; i++ {
		table.Rows = append(table.Rows, fsm.TableRow{From: []int{i}, Event: 0, To: i + 1})
	}
	_, err := evolve.Diff(table, table, nil)
	require.ErrorIs(t, err, evolve.ErrTooLarge)
}

// TestDiffOfTooManyNames requires an error for more states or actors in both tables
// together than one table may have.
func TestDiffOfTooManyNames(t *testing.T) {
	named := func(prefix string, states, actors int) *fsm.Table {
		table := &fsm.Table{Name: "names"}
		for i := range states {
			table.States = append(table.States, fsm.TableState{Name: fmt.Sprint(prefix, i), Target: -1})
		}
		for i := range actors {
			table.Actors = append(table.Actors, fsm.Actor(fmt.Sprint(prefix, i)))
		}
		return table
	}
	for want, sizes := range map[string][2]int{
		"":                                   {fsm.MaxStates / 2, fsm.MaxActors / 2},
		"more than 4096 states or 64 actors": {fsm.MaxStates/2 + 1, 1},
		"4096 states or 64 actors in both":   {1, fsm.MaxActors/2 + 1},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := evolve.Diff(named("a", sizes[0], sizes[1]), named("b", sizes[0], sizes[1]), nil)
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, evolve.ErrTooLarge)
			require.ErrorContains(t, err, want)
		})
	}
}

// TestDiffOfNames compares renamed machines, events, actors and guards, with and
// without a mapping.
func TestDiffOfNames(t *testing.T) {
	const document = `{"name":"lamp","initial":"Off","actors":["user","device"],
		"states":[{"name":"Off","kind":"stable"},{"name":"On","kind":"stable"}],
		"transitions":[{"from":"Off","event":"start","actor":"user","to":"On","guard":"sound"},
			{"from":"On","event":"stop","actor":"user","to":"Off"},{"from":"On","event":"burst","actor":"device","to":"Off"}]}`
	old := tabletest.Parse(t, document)
	for _, c := range []struct {
		from, to string
		given    evolve.Config
		mapping  []evolve.Renaming
		unmapped string // the worst hazard without the mapping
	}{
		{"device", "lamp2", evolve.Config{Actors: map[string]string{"device": "lamp2"}}, []evolve.Renaming{{Subject: "actor", Old: "device", New: "lamp2"}}, "entry-forbidden"},
		{"burst", "pop", evolve.Config{Events: map[string]string{"burst": "pop"}}, []evolve.Renaming{{Subject: "event", Old: "burst", New: "pop"}}, "forbidden"},
		{"sound", "whole", evolve.Config{Guards: map[string]string{"sound": "whole"}}, []evolve.Renaming{}, "forbidden"},
	} {
		t.Run(c.from, func(t *testing.T) {
			new := tabletest.Parse(t, strings.ReplaceAll(document, `"`+c.from+`"`, `"`+c.to+`"`))
			e, err := evolve.Diff(old, new, &c.given)
			require.NoError(t, err)
			require.Less(t, e.Level, evolve.Unsafe, "%s", e)
			require.Equal(t, c.mapping, e.Mapping)
			require.Len(t, e.Differences, 1)
			require.Equal(t, "renamed", e.Differences[0].Change)

			e, err = evolve.Diff(old, new, nil)
			require.NoError(t, err)
			require.Equal(t, evolve.Unsafe, e.Level)
			require.Equal(t, c.unmapped, e.Hazards[0].ID, "%s", e)
		})
	}
	e, err := evolve.Diff(old, tabletest.Parse(t, strings.Replace(document, `"lamp"`, `"light"`, 1)), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsMapping, e.Level)
	require.Equal(t, []evolve.Renaming{{Subject: "machine", Old: "lamp", New: "light"}}, e.Mapping)
}

// A table may list its entry states and name none of them as the initial one. Nodes then
// add objects in the states of the list only.
func TestDiffOfEntryStates(t *testing.T) {
	table := func(states string, entries ...int) *fsm.Table {
		t := short(t, states, "Off start On", "On stop Off")
		t.Initial, t.Initials = -1, entries
		return t
	}
	const states, more = "Off stable, On stable", "Off stable, On stable, Test stable"
	e, err := evolve.Diff(table(states, 0), table(states, 0, 1), nil)
	require.NoError(t, err)
	require.Equal(t, "short: compatible\ndifferences:\n  state changed: On (initial)", e.String())

	e, err = evolve.Diff(table(states, 0), table(more, 0), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Compatible, e.Level, "no node adds an object in Test: %s", e)
	e, err = evolve.Diff(table(states, 0), table(more, 0, 2), nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Unsafe, e.Level)
	require.Equal(t, "new node adds the object in Test", e.Hazards[0].Witness[0].String())
}

// TestDiffOfDuplicateNames requires that a table with duplicate names equals itself.
func TestDiffOfDuplicateNames(t *testing.T) {
	table := short(t, "A stable, B transitional, B stable, A stable", "A go B user", "B back A user")
	e, err := evolve.Diff(table, table, nil)
	require.NoError(t, err)
	require.Equal(t, evolve.Compatible, e.Level)
	require.Empty(t, e.Differences)
}

// TestDiffOfFaultyNames requires that a table with a state that has no name equals itself,
// and that names with line breaks have one line.
func TestDiffOfFaultyNames(t *testing.T) {
	unnamed := tabletest.Parse(t, `{"name":"m","initial":"A","transitions":[],
		"states":[{"name":"A","kind":"stable","absent":true},{"name":"","kind":"stable"}]}`)
	e, err := evolve.Diff(unnamed, unnamed, nil)
	require.NoError(t, err)
	require.Equal(t, "m: compatible, nothing differs", e.String())

	broken := tabletest.Parse(t, `{"name":"m","initial":"a\nb","states":[{"name":"a\nb","kind":"stable"}],"transitions":[]}`)
	e, err = evolve.Diff(unnamed, broken, nil)
	require.NoError(t, err)
	require.Equal(t, "state added: a<U+000A>b", e.Differences[len(e.Differences)-1].String())
	require.Equal(t, "new node adds the object in a<U+000A>b", e.Hazards[0].Witness[0].String())
}

// TestDiffOfReturn requires that a row that returns differs from one to a state of that name.
func TestDiffOfReturn(t *testing.T) {
	const states = "A stable, T transitional, (return) stable"
	rows := []string{"A go T user", "(return) go T user", "A move (return) user", "T done return agent"}
	old := short(t, states, rows...)
	e, err := evolve.Diff(old, short(t, states, append(rows[:3:3], "T done (return) agent")...), nil)
	require.NoError(t, err)
	require.Len(t, e.Differences, 1, "%s", e)
}

// TestDiffOfDuplicateRows requires that a row that cannot fire, because an equal one comes
// first, is no difference.
func TestDiffOfDuplicateRows(t *testing.T) {
	once := short(t, "A stable, B stable", "A go B user", "B back A user")
	twice := short(t, "A stable, B stable", "A go B user", "A go B user", "B back A user")
	for _, pair := range [][2]*fsm.Table{{once, twice}, {twice, once}} {
		e, err := evolve.Diff(pair[0], pair[1], nil)
		require.NoError(t, err)
		require.Equal(t, "short: compatible, nothing differs", e.String())
	}
}
