package fsm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// documentFiles returns the tables of published systems, RFCs and documents.
func documentFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/tables/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func written(t require.TestingT, table *fsm.Table) string {
	var b bytes.Buffer
	require.NoError(t, fsm.WriteTable(&b, table))
	return b.String()
}

func parsed(t require.TestingT, document string) *fsm.Table {
	table, err := fsm.ParseTable([]byte(document))
	require.NoError(t, err)
	return table
}

// requireRoundTrip requires that writing and reading lose nothing.
func requireRoundTrip(t require.TestingT, table *fsm.Table) {
	first := written(t, table)
	again := parsed(t, first)
	require.Equal(t, first, written(t, again))
	require.Empty(t, cmp.Diff(table, again, cmpopts.IgnoreUnexported(fsm.Table{}), cmpopts.EquateEmpty()))
}

func TestDocumentsOfPublishedTables(t *testing.T) {
	for _, file := range documentFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			table, err := fsm.ParseTable(data)
			require.NoError(t, err)
			requireRoundTrip(t, table)

			// A reader of the published form sees no change.
			var before, after map[string]any
			require.NoError(t, json.Unmarshal(data, &before))
			require.NoError(t, json.Unmarshal([]byte(written(t, table)), &after))
			require.NotEmpty(t, after["actors"])
			delete(after, "actors")
			dropped := map[string][]string{ // not of the form
				"":            {"source", "notes", "known_anomalies", "illegal"},
				"states":      {"code", "on_owner_death"},
				"transitions": {"action", "section", "confidence"},
			}
			for _, key := range dropped[""] {
				delete(before, key)
			}
			for _, list := range []string{"states", "transitions"} {
				for _, x := range before[list].([]any) {
					for _, key := range dropped[list] {
						delete(x.(map[string]any), key)
					}
				}
			}
			require.Empty(t, cmp.Diff(before, after))
		})
	}
}

type (
	liftState string
	liftEvent string
	liftLoad  struct{ kilos int }
)

var lightEnough = fsm.When("light \"enough\" <&>", func(_ context.Context, _, l *liftLoad) error {
	if l.kilos > 500 {
		return fmt.Errorf("%d kg", l.kilos)
	}
	return nil
})

// lift is a machine with every field of a Spec.
func lift(t require.TestingT) *fsm.Machine[liftState, liftEvent, liftLoad] {
	m, err := fsm.New[liftLoad](fsm.Spec[liftState, liftEvent]{
		Name: "lift", Title: "A lift, with everything", Initial: "none", Actors: []fsm.Actor{"user", "motor", "admin"},
		States: []fsm.State[liftState]{
			{Name: "none", Kind: fsm.Absent, Doc: "not built"},
			{Name: "low"},
			{Name: "high"},
			{Name: "rising", Kind: fsm.Transitional, Target: new(liftState("high"))},
			{Name: "sinking", Kind: fsm.Transitional, Manual: "the operator\nstops it"},
			{Name: "stuck", Kind: fsm.Failed},
			{Name: "a b; x, <y> \u2028é", Kind: fsm.Stable},
			{Name: "scrapped", Kind: fsm.Final},
		},
		Rows: fsm.Rows(
			fsm.Move[liftState, liftEvent]("none", "build", "low").By("admin"),
			fsm.Move[liftState, liftEvent]("low", "go", "rising").By("user", "admin").If(lightEnough).Note("one way"),
			fsm.Move[liftState, liftEvent]("high", "go", "sinking").AlsoFrom("a b; x, <y> \u2028é"),
			fsm.Return[liftState, liftEvent]("rising", "cancel").AlsoFrom("sinking").Of("low", "high"),
			fsm.Move[liftState, liftEvent]("rising", "arrived", "high").By("motor"),
			fsm.Move[liftState, liftEvent]("rising", "late", "stuck").After(90*time.Second+time.Millisecond),
			fsm.Move[liftState, liftEvent]("sinking", "arrived", "low").By("motor"),
			fsm.Move[liftState, liftEvent]("rising", "down", "sinking").By("user").Superseding(),
			fsm.Ignore[liftState, liftEvent]("low", "arrived").AlsoFrom("high"),
			fsm.Move[liftState, liftEvent]("low", "polish", "low"),
			fsm.Move[liftState, liftEvent]("high", "rename", "a b; x, <y> \u2028é"),
			fsm.FromAny[liftState, liftEvent]("break", "stuck").By("motor"),
			fsm.FromAny[liftState, liftEvent]("scrap", "scrapped").By("admin").Excluding("rising", "sinking"),
			fsm.Move[liftState, liftEvent]("scrapped", "rebuild", "none").By("admin").OnlyForced(),
			fsm.Move[liftState, liftEvent]("stuck", "repaired", "low").By("motor"),
		),
	})
	require.NoError(t, err)
	return m
}

func TestDocumentOfMachine(t *testing.T) {
	table := lift(t).Table()
	requireRoundTrip(t, table)
	require.Empty(t, cmp.Diff(table, parsed(t, written(t, table)), cmpopts.IgnoreUnexported(fsm.Table{})),
		"nil where the machine's table has nil")

	const golden = "testdata/tables/lift.golden.json"
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(written(t, table)), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), written(t, table)), "UPDATE_DOCS=1 writes the file")
}

// A machine that Bind makes of a document has the answers of the machine that was
// written.
func TestDocumentIsBound(t *testing.T) {
	original := lift(t)
	table := parsed(t, written(t, original.Table()))
	require.Empty(t, table.Problems())
	bound, err := fsm.Bind[liftLoad, liftState, liftEvent](table, lightEnough)
	require.NoError(t, err)
	ctx := context.Background()
	for state := range original.States() {
		for origin := range original.States() {
			for event := range original.Events() {
				for _, actor := range append(original.Table().Actors, undeclared) {
					at := fsm.Status[liftState]{State: state, Origin: origin}
					for _, kilos := range []int{100, 1000} {
						want, wantErr := original.NextForced(ctx, at, event, actor, &liftLoad{kilos})
						got, gotErr := bound.NextForced(ctx, at, event, actor, &liftLoad{kilos})
						require.Equal(t, want, got)
						require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(gotErr))
					}
				}
			}
		}
	}
}

func TestDocumentDefaults(t *testing.T) {
	table := parsed(t, `{
		"transitions": [
			{"from": "B", "event": "z", "actor": "worker", "to": "A", "From": "C", "unknown": [{"deep": [1e400, null]}]},
			{"from": "A", "event": "y", "to": "B"},
			{"from": "A", "event": "z", "actors": ["user", "worker"], "to": "B", "forced": false, "any": false},
			{"from": "B", "event": "late", "to": "A", "within": "1m"},
			{"from": "B", "event": "late", "to": "A", "within": "2m", "actor": "user", "guard": ""},
			{"from": "B", "event": "x", "to": "nowhere", "ignore": true}
		],
		"states": [{"name": "A", "kind": "stable", "absent": false}, {"name": "B", "kind": "transitional"}],
		"initials": ["B"], "initial": "B", "name": "m", "source": { "a" : [ 1 , 2 ] }
	}`)
	want := &fsm.Table{
		Name: "m", Initial: 1,
		States: []fsm.TableState{{Name: "A", Target: -1}, {Name: "B", Kind: fsm.Transitional, Target: -1}},
		Events: []string{"z", "y", "late", "x"},
		Actors: []fsm.Actor{"worker", "user", "sweeper"},
		Rows: []fsm.TableRow{
			{From: []int{1}, Event: 0, Actors: []int{0}, To: 0},
			{From: []int{0}, Event: 1, To: 1},
			{From: []int{0}, Event: 0, Actors: []int{1, 0}, To: 1},
			{From: []int{1}, Event: 2, Actors: []int{2}, To: 0, Timeout: time.Minute},
			{From: []int{1}, Event: 2, Actors: []int{1, 2}, To: 0, Timeout: 2 * time.Minute},
			{From: []int{1}, Event: 3, To: -1, Then: fsm.ThenIgnore},
		},
	}
	require.Empty(t, cmp.Diff(want, table, cmpopts.IgnoreUnexported(fsm.Table{})))
}

func TestDocumentRows(t *testing.T) {
	table := parsed(t, `{"name": "m", "actors": ["user"], "states": [], "transitions": [
		{"from": "A", "event": "e", "to": "C", "row": 7},
		{"from": "A", "event": "f", "to": "C"},
		{"from": "B", "event": "e", "to": "C", "row": 7},
		{"from": "A", "event": "g", "ignore": true, "to": "A", "row": 0},
		{"from": "B", "event": "g", "ignore": true, "to": "B", "row": 0},
		{"from": "B", "event": "h", "to": "A", "row": 1, "within": "1m"}
	]}`)
	require.Equal(t, []fsm.Actor{"user", fsm.Sweeper}, table.Actors)
	require.Equal(t, []string{"A", "B", "C"}, table.Undeclared)
	var sources [][]int
	for _, r := range table.Rows {
		sources = append(sources, r.From)
	}
	require.Equal(t, [][]int{{0, 1}, {0}, {0, 1}, {1}}, sources, "a row has the place of its first transition")
	requireRoundTrip(t, table)
}

// An empty list of exceptions is none.
func TestDocumentOfNoExceptions(t *testing.T) {
	table := parsed(t, `{"name": "m", "states": [{"name": "A", "kind": "stable"}, {"name": "B", "kind": "stable"}], "transitions": [
		{"from": "A", "event": "e", "to": "A", "row": 1, "except": []},
		{"from": "B", "event": "e", "to": "A", "row": 1}]}`)
	require.Equal(t, []int{0, 1}, table.Rows[0].From)
}

// A well-formed document gives a table, and Problems reports its faults. The table
// keeps undeclared names.
func TestDocumentWithFaults(t *testing.T) {
	table := parsed(t, `{"name": "", "initial": "ghost", "initials": ["A", "ghost"], "actors": ["user", "user"],
		"states": [{"name": "A", "kind": "stable"}, {"name": "A", "kind": "transitional", "target": "heaven"}],
		"transitions": [
			{"from": "A", "event": "e", "to": "ghost"},
			{"from": "hell", "event": "e", "actor": "devil", "to": "A"},
			{"from": "A", "event": "e", "actors": ["user", "devil"], "return": true, "origin": ["hell", "A"], "except": ["limbo"]}
		]
	}`)
	require.Equal(t, []string{"ghost", "heaven", "hell", "limbo"}, table.Undeclared)
	require.Equal(t, []fsm.Actor{"devil"}, table.UndeclaredActors)
	require.Equal(t, []string{"e"}, table.Events)
	require.Equal(t, 2, table.Initial, "the first after the two that are declared")
	require.NotEmpty(t, table.Problems())
	require.Equal(t, []fsm.Edge{{From: 0, Row: 2, To: 0}}, edgesOf(table), "undeclared states have no edges")
	require.Equal(t, [][]int{{0}, nil}, table.Origins())
	requireRoundTrip(t, table)

	bound, err := fsm.Bind[struct{}, string, string](table)
	require.Nil(t, bound)
	require.ErrorIs(t, err, fsm.ErrInvalid)
}

func edgesOf(table *fsm.Table) (list []fsm.Edge) {
	for e := range table.Edges() {
		list = append(list, e)
	}
	return list
}

func TestDocumentWithoutInitialState(t *testing.T) {
	table := parsed(t, `{"name": "m", "states": [{"name": "A", "kind": "final"}], "transitions": []}`)
	require.Equal(t, -1, table.Initial)
	require.Equal(t, fsm.NoInitial, table.Problems()[0].Code)
	requireRoundTrip(t, table)
}

// A list without elements has one line.
func TestDocumentOfEmptyLists(t *testing.T) {
	table := &fsm.Table{
		Name: "m", Initial: 0, States: []fsm.TableState{{Name: "A", Kind: fsm.Final, Target: -1}},
	}
	require.Equal(t, `{
 "name": "m",
 "schema": "lifecycle-table/1",
 "initial": "A",
 "actors": [],
 "states": [
  {"name":"A","kind":"final"}
 ],
 "transitions": []
}
`, written(t, table))
}

func TestDocumentOfANegativeTimeout(t *testing.T) {
	table := parsed(t, head+`{"from":"A","event":"e","to":"A","within":"-1m"}]}`)
	require.Empty(t, table.Actors, "the sweeper fires it never")
	require.Equal(t, -time.Minute, table.Rows[0].Timeout)
	requireRoundTrip(t, table)
}

func TestWriteTableRefuses(t *testing.T) {
	tooLong := fmt.Sprintf("the document has more than %d bytes", fsm.MaxDocument)
	tests := map[string]struct {
		change func(t *fsm.Table)
		path   string
		text   string
	}{
		"long name":          {func(t *fsm.Table) { t.Name = long }, "name", "a string of 257 bytes, more than 256"},
		"long actor":         {func(t *fsm.Table) { t.Actors = append(t.Actors, fsm.Actor(long)) }, "actors[1]", "a string of 257 bytes, more than 256"},
		"long note":          {func(t *fsm.Table) { t.States[0].Doc = strings.Repeat("x", fsm.MaxText+1) }, "states[0].note", "a string of 65537 bytes, more than 65536"},
		"title not UTF-8":    {func(t *fsm.Table) { t.Title = "\\\xff" }, "title", "not UTF-8"},
		"guard not UTF-8":    {func(t *fsm.Table) { t.Rows[1].Guard = "\xff" }, "transitions[1]", "not UTF-8"},
		"unknown initial":    {func(t *fsm.Table) { t.Initial = 1 }, "initial", "no state has the index 1"},
		"unknown kind":       {func(t *fsm.Table) { t.States[0].Kind = 5 }, "states[0].kind", "no kind has the number 5"},
		"unknown hint":       {func(t *fsm.Table) { t.States[0].Target = 9 }, "states[0].target", "no state has the index 9"},
		"row without source": {func(t *fsm.Table) { t.Rows[1].From = nil }, "transitions[1].from", "a row without source"},
		"no sweeper":         {func(t *fsm.Table) { t.Rows[1].Timeout = time.Second }, "transitions[1].within", "the row is not for the sweeper"},
		"not for the sweeper": {func(t *fsm.Table) {
			t.Actors = append(t.Actors, fsm.Sweeper)
			t.Rows[1].Timeout, t.Rows[1].Actors = time.Second, []int{0}
		}, "transitions[1].within", "the row is not for the sweeper"},
		"unknown source": {func(t *fsm.Table) { t.Rows[1].From = []int{0, -1} }, "transitions[1].from", "no state has the index -1"},
		"unknown target": {func(t *fsm.Table) { t.Rows[1].To = -1 }, "transitions[1].to", "no state has the index -1"},
		"unknown event":  {func(t *fsm.Table) { t.Rows[1].Event = 1 }, "transitions[1].event", "no event has the index 1"},
		"unknown actor":  {func(t *fsm.Table) { t.Rows[1].Actors = []int{0, 1} }, "transitions[1].actors", "no actor has the index 1"},
		"negative event": {func(t *fsm.Table) { t.Rows[1].Event = -1 }, "transitions[1].event", "no event has the index -1"},
		"negative actor": {func(t *fsm.Table) { t.Rows[1].Actors = []int{-1} }, "transitions[1].actors", "no actor has the index -1"},
		"unknown Then":   {func(t *fsm.Table) { t.Rows[1].Then = 3 }, "transitions[1].to", "no Then has the number 3"},
		"many states":    {func(t *fsm.Table) { t.States = append(t.States, make([]fsm.TableState, fsm.MaxStates)...) }, "states[4096]", "more than 4096 states"},
		"many transitions": {func(t *fsm.Table) {
			for range 4000 {
				t.States = append(t.States, fsm.TableState{Name: strings.Repeat("x", 200), Target: -1})
			}
			for i := range t.States {
				t.Rows[0].From = append(t.Rows[0].From, i)
			}
			t.Rows = slices.Repeat(t.Rows[:1], fsm.MaxRows)
		}, "transitions[13408]", tooLong},
		"many notes": {func(t *fsm.Table) {
			for range fsm.MaxDocument / fsm.MaxText {
				t.States = append(t.States, fsm.TableState{Name: "S", Target: -1, Doc: strings.Repeat("x", fsm.MaxText)})
			}
		}, "states[64]", tooLong},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			row := fsm.TableRow{From: []int{0}, To: 0}
			table := &fsm.Table{
				Name: "m", States: []fsm.TableState{{Name: "S", Target: -1}}, Actors: []fsm.Actor{"a"}, Events: []string{"e"},
				Rows: []fsm.TableRow{row, row},
			}
			requireRoundTrip(t, table)
			test.change(table)
			var b bytes.Buffer
			err := fsm.WriteTable(&b, table)
			require.Equal(t, &fsm.DocumentError{Path: test.path, Offset: -1, Text: test.text}, err)
			require.EqualError(t, err, "fsm: invalid table: "+test.path+": "+test.text)
			require.ErrorIs(t, err, fsm.ErrInvalid)
			require.Zero(t, b.Len(), "nothing is written")
		})
	}
}

// A timeout without actors is for every actor in a table, and for the sweeper alone in a
// document, so the document names them.
func TestDocumentOfATimeoutForEveryActor(t *testing.T) {
	table := parsed(t, `{"name": "m", "initial": "A", "actors": ["user"],
		"states": [{"name": "A", "kind": "stable"}, {"name": "B", "kind": "transitional"}],
		"transitions": [{"from": "A", "event": "go", "to": "B"}, {"from": "B", "event": "late", "to": "A", "within": "1m"}]}`)
	rows := slices.Clone(table.Rows)
	rows[1].Actors = nil
	table = table.WithRows(rows)
	require.Empty(t, table.Problems())
	for _, actor := range table.Actors {
		_, err := table.Candidates(nil, 1, 0, 1, actor, false)
		require.NoError(t, err)
		_, err = parsed(t, written(t, table)).Candidates(nil, 1, 0, 1, actor, false)
		require.NoError(t, err)
	}
}
