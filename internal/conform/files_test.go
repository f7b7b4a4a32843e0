package conform

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const lampJSON = `{
	"name": "lamps", "schema": "lifecycle-table/1", "initial": "off", "initials": ["off", "gone"],
	"states": [
		{"name": "off", "kind": "stable"}, {"name": "gone", "kind": "stable", "absent": true},
		{"name": "warming", "kind": "transitional", "target": "on", "note": "n"},
		{"name": "broken", "kind": "error"}, {"name": "thrown away", "kind": "final"}
	],
	"transitions": [
		{"from": "off", "event": "switch", "actor": "user", "to": "warming", "guard": "power"},
		{"from": "warming", "event": "switch", "to": "warming", "ignore": true}
	],
	"illegal": [["broken", "switch"]]
}`

func TestReadDocument(t *testing.T) {
	d, err := ReadDocument(write(t, lampJSON))
	require.NoError(t, err)
	require.Equal(t, &Document{
		Name: "lamps", Initial: "off", Initials: []string{"off", "gone"},
		States: []State{
			{Name: "off", Kind: fsm.Stable},
			{Name: "gone", Kind: fsm.Absent},
			{Name: "warming", Kind: fsm.Transitional, Target: "on"},
			{Name: "broken", Kind: fsm.Failed},
			{Name: "thrown away", Kind: fsm.Final},
		},
		Rows:    Rows("off --switch by user--> warming if power", "warming --switch by anyone--> warming [ignored]"),
		Illegal: [][2]string{{"broken", "switch"}},
	}, d)
}

func TestUnreadableDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "unexpected end of JSON",
		`{"schema": "other"}`:            `schema "other"`,
		`{"schema":"lifecycle-table/1"}`: "0 states and 0 transitions is no table",
		`{"schema":"lifecycle-table/1","states":[{"name":"a","kind":"odd"}],"transitions":[{}]}`: `state a has the unknown kind "odd"`,
	} {
		_, err := ReadDocument(write(t, text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := ReadDocument("no such file")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestParseMapping(t *testing.T) {
	m, err := ParseMapping(`
# what it is
actors: why
	a b = c
events: two
lines
  e = f

  # between entries
  g h = i = j
states:
  old one stable = new one absent
  = added failed
rows: the reason
  a --e by u--> b if g
    = a --f by v--> c
    = a --f by w--> c [forced]
additions: more
  a --x by sweeper--> origin
prose: said
  a --y by u--> b
`)
	require.NoError(t, err)
	require.Equal(t, &Mapping{
		Actors: []Rename{{"a b", "c", "why"}},
		Events: []Rename{{"e", "f", "two lines"}, {"g h", "i = j", "two lines"}},
		States: []StateEntry{
			{Document: State{Name: "old one"}, Machine: State{Name: "new one", Kind: fsm.Absent}},
			{Machine: State{Name: "added", Kind: fsm.Failed}},
		},
		Rows: []RowEntry{{
			Document: Rows("a --e by u--> b if g")[0],
			Machine:  Rows("a --f by v--> c", "a --f by w--> c [forced]"), Reason: "the reason",
		}},
		Additions: []Addition{
			{Row: Rows("a --x by sweeper--> origin")[0], Reason: "more"},
			{Row: Rows("a --y by u--> b")[0], Prose: true, Reason: "said"},
		},
	}, m)
	require.Equal(t, m.Actors, MustMapping("actors: why\n a b = c").Actors)
}

func TestMalformedMappings(t *testing.T) {
	for text, want := range map[string]string{
		"  a = b":                             "line 1: an entry before the first section",
		"hello":                               `line 1: "hello" begins no section`,
		"actors: x\n a = b\nevents":           `line 3: "events" begins no section`,
		"actors: x\n a = b\nevent: y":         `line 3: "event: y" begins no section`,
		"\nactors: x\n a":                     `line 3: "a" is not of the form DOCUMENT = MACHINE`,
		"events: x\n a=b":                     `line 2: "a=b" is not of the form DOCUMENT = MACHINE`,
		"states: x\n a stable":                `line 2: "a stable" is not of the form NAME KIND = NAME KIND`,
		"states: x\n a stable = b odd":        `line 2: "b odd" is not a state and its kind`,
		"states: x\n stable = b stable":       `line 2: "stable" is not a state and its kind`,
		"states: x\n a stable = stable":       `line 2: "stable" is not a state and its kind`,
		"rows: x\n = a --e by u--> b":         "line 2: \"= a --e by u--> b\" represents no row",
		"rows: x\n a --e by u--> b":           "nothing represents a --e by u--> b",
		"rows: x\n a to b":                    `line 2: conform: row "a to b" is not of the form`,
		"rows: x\n a --e by u--> b\n = a":     `line 3: conform: row "a" is not of the form`,
		"additions: x\n a --e by u--> b [so]": `line 2: conform: row "a --e by u--> b [so]": unknown mark "so"`,
		"prose: x\n a --e by u":               `line 2: conform: row "a --e by u" is not of the form`,
	} {
		_, err := ParseMapping(text)
		require.ErrorContains(t, err, want, "%q", text)
		require.Panics(t, func() { MustMapping(text) }, "%q", text)
	}
	file := write(t, "hello")
	_, err := ReadMapping(file)
	require.ErrorContains(t, err, file)
	_, err = ReadMapping("no such file")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCheckReadsFiles(t *testing.T) {
	table := tableOf(t, boats())
	document, mapping := write(t, lampJSON), write(t, "actors: why\n a = b\n")
	require.NotEmpty(t, record(func(r testing.TB) { Check(r, table, document, mapping) }))
	require.Len(t, record(func(r testing.TB) { Check(r, table, "no such file", mapping) }), 1)
	require.Len(t, record(func(r testing.TB) { Check(r, table, document, "no such file") }), 1)
}
