package diagram_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// TestIndexesOutOfRange draws a table whose indexes refer to nothing.
func TestIndexesOutOfRange(t *testing.T) {
	table := &fsm.Table{
		Name: "faulty", Initial: 7, Initials: []int{-1, 0, 9},
		States: []fsm.TableState{{Name: "a", Target: 9, Kind: fsm.Transitional}, {Name: "b", Target: -5, Kind: 200}},
		Events: []string{"go"}, Actors: []fsm.Actor{"user"},
		Rows: []fsm.TableRow{
			{From: []int{0, -1, 5}, Event: 0, To: 1, Actors: []int{0, 3}},
			{From: []int{0}, Event: 4, To: 8, Origin: []int{-3}},
			{From: []int{9}, Event: -1, To: -1, Then: fsm.ThenReturn, Timeout: 1},
			{From: []int{1}, Event: 0, To: 0, Then: 77},
			{Any: true, Except: []int{6}, Event: 0, To: 1, Then: fsm.ThenMove},
		},
	}
	mermaid := readMermaid(t, diagram.Mermaid(table, nil))
	require.Equal(t, []string{"s0"}, mermaid.entries)
	require.Equal(t, []drawnArrow{{from: "s0", to: "s1", labels: []string{"go by user, ?"}}}, mermaid.arrows)
	require.Equal(t, map[string]string{"s0": "a", "s1": "b"}, mermaid.states)
	dot := readDOT(t, diagram.DOT(table, nil))
	require.Equal(t, mermaid.states, dot.states)
	require.Len(t, dot.arrows, 1)
	rows := columns(readMarkdown(t, diagram.Markdown(table, nil), false)[1])
	require.Equal(t, []string{"a, ?, ?", "a", "?", "b", "any state but ?"}, rows["From"])
	require.Equal(t, []string{"go", "?", "?", "go", "go"}, rows["Event"])
	require.Equal(t, []string{"b", "?", "back to the origin", "", "b"}, rows["To"])
	require.NotEmpty(t, diagram.Text(table, nil))
}

func TestEmptyTable(t *testing.T) {
	table := &fsm.Table{Initial: -1}
	require.Equal(t, "stateDiagram-v2\n    direction TB\n", diagram.Mermaid(table, nil))
	require.Empty(t, readDOT(t, diagram.DOT(table, nil)).states)
	for _, list := range readMarkdown(t, diagram.Markdown(table, nil), false) {
		require.Len(t, list, 1, "the head")
	}
	readMarkdown(t, diagram.Text(table, nil), true)
}

// TestConfig requires that a zero Config has the defaults and that no function
// modifies it.
func TestConfig(t *testing.T) {
	table := cranes.Table()
	config := new(diagram.Config)
	for _, draw := range []func(*fsm.Table, *diagram.Config) string{diagram.Mermaid, diagram.DOT, diagram.Markdown, diagram.Text} {
		require.Equal(t, draw(table, nil), draw(table, config))
		require.Equal(t, diagram.Config{}, *config)
	}
}

// TestLarge requires one line per row on an arrow of many rows.
func TestLarge(t *testing.T) {
	const states, rows = 500, 8000
	table := &fsm.Table{Name: "large", Events: []string{"go"}, Actors: []fsm.Actor{"user"}}
	for range states {
		table.States = append(table.States, fsm.TableState{Name: "s", Target: -1})
	}
	for i := range rows {
		table.Rows = append(table.Rows, fsm.TableRow{From: []int{i % states}, To: i % 7, Timeout: 1, Doc: "doc"})
	}
	require.Equal(t, rows, strings.Count(diagram.Mermaid(table, nil), "go after 1ns"))
	require.Equal(t, rows, strings.Count(diagram.DOT(table, nil), "go after 1ns"))
	require.Equal(t, rows, strings.Count(diagram.Markdown(table, nil), "| go | any actor |"))
	require.Equal(t, rows, strings.Count(diagram.Text(table, nil), "any actor"))
}

// TestLabels: a label is the second line of a state, and as harmless as its name.
func TestLabels(t *testing.T) {
	m, err := parseForm("machine m\nactors x\nstate a initial\nstate b final\nrow a go b")
	require.NoError(t, err)
	c := &diagram.Config{Labels: map[string]string{"a": `"3" <b>\n`, "unknown": "x"}}
	require.Contains(t, diagram.DOT(m, c), `s0 [label="a\n\"3\" <b>\\n"]`)
	require.Contains(t, diagram.DOT(m, c), `s1 [label="b" peripheries=2]`)
	require.Contains(t, diagram.Mermaid(m, c), `state "a<br/>#34;3#34; #60;b#62;#92;n" as s0`)
}
