package fsm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// randomTable draws a table with every field of a document, sound or not. Events and
// undeclared names are in the order of their use, because a document has no other.
var randomTable = rapid.Custom(func(r *rapid.T) *fsm.Table {
	often := func(label string) bool { return rapid.IntRange(0, 2).Draw(r, label) > 0 }
	rarely := func(label string) bool { return rapid.IntRange(0, 4).Draw(r, label) == 0 }
	text := func(label string) string {
		if often(label) {
			return ""
		}
		return rapid.StringN(0, 20, 200).Draw(r, label)
	}
	name := func(prefix string, i int) string { // unique by the prefix
		return fmt.Sprint(prefix, i, rapid.StringN(0, 3, 100).Draw(r, "name"))
	}
	t := &fsm.Table{
		Name: text("table"), Title: text("title"), Initial: -1, Confidence: text("confidence"),
	}
	for i := range rapid.IntRange(0, 5).Draw(r, "states") {
		t.States = append(t.States, fsm.TableState{
			Name: name("s", i), Kind: fsm.Kind(rapid.IntRange(0, 4).Draw(r, "kind")), Target: -1,
			Manual: text("manual"), Doc: text("doc"),
		})
	}
	// One beyond the last index is a new name.
	state := func() int {
		n := len(t.States) + len(t.Undeclared)
		if i := rapid.IntRange(0, n).Draw(r, "state"); i < n {
			return i
		}
		t.Undeclared = append(t.Undeclared, name("u", n))
		return n
	}
	states := func(label string) (list []int) {
		for range rapid.IntRange(0, 2).Draw(r, label) {
			list = append(list, state())
		}
		return list
	}
	for i := range rapid.IntRange(0, 3).Draw(r, "actors") {
		t.Actors = append(t.Actors, fsm.Actor(name("a", i)))
	}
	sweeper := len(t.Actors)
	if rapid.Bool().Draw(r, "deadlines") {
		t.Actors = append(t.Actors, fsm.Sweeper)
	}
	actors := func() (list []int) {
		for range rapid.IntRange(0, 2).Draw(r, "actors") {
			n := len(t.Actors) + len(t.UndeclaredActors)
			i := rapid.IntRange(0, n).Draw(r, "actor")
			if i == n {
				t.UndeclaredActors = append(t.UndeclaredActors, fsm.Actor(name("v", n)))
			}
			list = append(list, i)
		}
		return list
	}
	event := func() int {
		i := rapid.IntRange(0, len(t.Events)).Draw(r, "event")
		if i == len(t.Events) {
			t.Events = append(t.Events, name("e", i))
		}
		return i
	}

	if often("initial") {
		t.Initial = state()
	}
	if t.Initials = states("initials"); slices.Equal(t.Initials, []int{t.Initial}) {
		t.Initials = nil
	}
	for i := range t.States {
		if rarely("target") {
			t.States[i].Target = state()
		}
	}
	for range rapid.IntRange(0, 6).Draw(r, "rows") {
		row := fsm.TableRow{
			From: append([]int{state()}, states("from")...), Except: states("except"), Origin: states("origin"),
			Any: rarely("any"), Event: event(), To: -1, Then: fsm.Then(rapid.IntRange(0, 2).Draw(r, "then")),
			Guard: text("guard"), Forced: rarely("forced"), Supersede: rarely("supersede"),
			Doc: text("doc"),
		}
		if row.Then == fsm.ThenMove {
			row.To = state()
		}
		row.Actors = actors()
		if sweeper < len(t.Actors) && rarely("within") {
			row.Timeout = time.Duration(rapid.Int64Range(1, 1<<50).Draw(r, "within"))
			if !slices.Contains(row.Actors, sweeper) {
				row.Actors = append(row.Actors, sweeper)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
})

func TestRandomDocuments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { requireRoundTrip(r, randomTable.Draw(r, "table")) })
}

// ParseTable returns a usable table, or an error with an offset in the document.
func FuzzParseTable(f *testing.F) {
	files := append(documentFiles(f), "testdata/tables/lift.golden.json")
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(head + `{"from":"B","event":"e","actors":["x","y"],"to":"C","row":0},` + plain + `,{"from":"C","event":"e","actors":["x","y"],"to":"C","row":0}]}`))
	f.Add([]byte(`{"name":"\ud83d\ude00","states":[],"transitions":[],"other":{"a":[1e9,null,{}]},"list":[["A","e"]]}`))
	f.Add([]byte("{\"x\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := fsm.ParseTable(data)
		if err != nil {
			require.Nil(t, table)
			require.ErrorIs(t, err, fsm.ErrInvalid)
			de, ok := errors.AsType[*fsm.DocumentError](err)
			require.True(t, ok)
			require.GreaterOrEqual(t, de.Offset, int64(0))
			require.LessOrEqual(t, de.Offset, int64(len(data)))
			return
		}
		require.True(t, json.Valid(data), "a document is JSON")
		for e := range table.Edges() {
			require.Less(t, e.To, len(table.States))
		}
		require.Len(t, table.Origins(), len(table.States))
		_ = table.Problems()
		requireRoundTrip(t, table)
	})
}
