package diagram_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// plain returns the text that a picture shows for a name.
func plain(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(fmt.Sprintf("<U+%04X>", r))
		}
	}
	if b.Len() == 0 {
		return "<empty>"
	}
	return b.String()
}

// stateName returns the name of a state by index. Undeclared states follow the declared
// ones.
func stateName(t *fsm.Table, i int) string {
	if i < len(t.States) {
		return t.States[i].Name
	}
	return t.Undeclared[i-len(t.States)]
}

func plainStates(t *fsm.Table, list []int, sep string) string {
	var names []string
	for _, s := range list {
		names = append(names, plain(stateName(t, s)))
	}
	return strings.Join(names, sep)
}

func plainActors(t *fsm.Table, r *fsm.TableRow) string {
	if len(r.Actors) == 0 {
		return "any actor"
	}
	var names []string
	for _, a := range r.Actors {
		names = append(names, plain(string(append(slices.Clip(t.Actors), t.UndeclaredActors...)[a])))
	}
	return strings.Join(names, ", ")
}

func plainSources(t *fsm.Table, r *fsm.TableRow) string {
	switch {
	case r.Any && len(r.Except) > 0:
		return "any state but " + plainStates(t, r.Except, ", ")
	case r.Any:
		return "any state"
	case len(r.From) == 0:
		return "no state"
	}
	return plainStates(t, r.From, ", ")
}

// plainLabel returns the text of a row on an arrow.
func plainLabel(t *fsm.Table, r *fsm.TableRow, by bool) string {
	label := plain(t.Events[r.Event])
	if by {
		label += " by " + plainActors(t, r)
	}
	if r.Guard != "" {
		label += " [" + plain(r.Guard) + "]"
	}
	if r.Timeout > 0 {
		label += " after " + shortDuration(r.Timeout.String())
	}
	if len(r.Origin) > 0 {
		label += ", origin " + plainStates(t, r.Origin, " or ")
	}
	if r.Forced {
		label += ", forced"
	}
	if r.Supersede {
		label += ", supersedes"
	}
	if r.Then == fsm.ThenReturn {
		label += ", return"
	}
	return label
}

// plainNotes returns the last cell of a row in a list.
func plainNotes(t *fsm.Table, r *fsm.TableRow) string {
	marked := &fsm.TableRow{Event: r.Event, Timeout: r.Timeout, Origin: r.Origin, Forced: r.Forced, Supersede: r.Supersede}
	marks := strings.TrimPrefix(plainLabel(t, marked, false), plain(t.Events[r.Event]))
	marks = strings.TrimPrefix(strings.TrimPrefix(marks, ","), " ")
	doc := strings.Join(strings.Fields(r.Doc), " ")
	switch {
	case doc == "":
		return marks
	case marks == "":
		return plain(doc)
	}
	return marks + "; " + plain(doc)
}

func shortDuration(s string) string {
	for _, tail := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, tail) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// checkPictures reads both pictures and both lists of a table back and compares
// them with the table. Its rows refer to states, events and actors that exist.
func checkPictures(t require.TestingT, table *fsm.Table, c *diagram.Config) {
	mermaid := readMermaid(t, diagram.Mermaid(table, c))
	dot := readDOT(t, diagram.DOT(table, c))
	for i, s := range table.States {
		alias := fmt.Sprintf("s%d", i)
		require.Equal(t, plain(s.Name), mermaid.states[alias])
		require.Equal(t, plain(s.Name), dot.states[alias])
		class := s.Kind.String()
		if s.Kind == fsm.Stable {
			class = ""
		}
		require.Equal(t, class, mermaid.looks[alias])
		require.Equal(t, s.Kind == fsm.Stable, dot.looks[alias] == "")
		require.Equal(t, s.Kind == fsm.Transitional, strings.Contains(dot.looks[alias], "dashed"))
		require.Equal(t, s.Kind == fsm.Final, strings.Contains(dot.looks[alias], "peripheries=2"))
	}
	for i, name := range table.Undeclared {
		alias := fmt.Sprintf("s%d", len(table.States)+i)
		require.Equal(t, plain(name), mermaid.states[alias])
		require.Equal(t, plain(name), dot.states[alias])
		require.Equal(t, "undeclared", mermaid.looks[alias])
	}
	require.Equal(t, expectArrows(table, false), mermaid.arrows)
	require.Equal(t, expectArrows(table, true), trimmed(dot.arrows))
	require.Equal(t, mermaid.entries, dot.entries)
	current := ""
	if i, ok := table.StateIndex(currentOf(c)); ok && currentOf(c) != "" {
		current = fmt.Sprintf("s%d", i)
	}
	require.Equal(t, current, mermaid.current)
	require.Equal(t, current, dot.current)
	require.Equal(t, expectLegend(table, current != "", false), mermaid.legend)
	require.Equal(t, expectLegend(table, current != "", true), dot.legend)
	checkLists(t, table, c)
}

func currentOf(c *diagram.Config) string {
	if c == nil {
		return ""
	}
	return c.Current
}

// expectLegend returns the meaning of the looks of a picture.
func expectLegend(table *fsm.Table, current, dot bool) string {
	var list []string
	add := func(text string, here bool) {
		if here {
			list = append(list, text)
		}
	}
	kind := func(k fsm.Kind) bool {
		return slices.ContainsFunc(table.States, func(s fsm.TableState) bool { return s.Kind == k })
	}
	arrow := func(look string) bool {
		return dot && slices.ContainsFunc(expectArrows(table, true), func(a drawnArrow) bool { return strings.Contains(a.look, look) })
	}
	add("dashed: transitional", kind(fsm.Transitional))
	add("red: failed", kind(fsm.Failed))
	add(map[bool]string{false: "thick border: final", true: "double border: final"}[dot], kind(fsm.Final))
	add("grey: absent", kind(fsm.Absent))
	add("dotted: undeclared", len(table.Undeclared) > 0)
	add("yellow: current state", current)
	add("dashed arrow: return", arrow("dashed"))
	add("red arrow: forced", arrow("color"))
	return strings.Join(list, ", ")
}

// trimmed removes the spaces around the labels of DOT.
func trimmed(arrows []drawnArrow) []drawnArrow {
	for i := range arrows {
		for k, l := range arrows[i].labels {
			arrows[i].labels[k] = l[1 : len(l)-1]
		}
	}
	return arrows
}

// expectArrows returns the arrows of a picture. Those of DOT have looks, and a line of
// actors for a single row too.
func expectArrows(table *fsm.Table, dot bool) (arrows []drawnArrow) {
	origins := table.Origins()
	var rows [][]*fsm.TableRow // by arrow
	add := func(from string, to int, r *fsm.TableRow) {
		a := drawnArrow{from: from, to: fmt.Sprintf("s%d", to)}
		if dot {
			a.look = strings.TrimSpace([...]string{"", "style=dashed", ""}[r.Then] +
				map[bool]string{true: ` color="#c0392b" fontcolor="#c0392b"`}[r.Forced])
		}
		at := slices.IndexFunc(arrows, func(b drawnArrow) bool { return a.from == b.from && a.to == b.to && a.look == b.look })
		if at < 0 {
			at = len(arrows)
			arrows, rows = append(arrows, a), append(rows, nil)
		}
		rows[at] = append(rows[at], r)
	}
	for i := range table.Rows {
		r := &table.Rows[i]
		for _, from := range r.From {
			alias := fmt.Sprintf("s%d", from)
			switch r.Then {
			case fsm.ThenMove:
				add(alias, r.To, r)
			case fsm.ThenReturn:
				if from >= len(table.States) {
					continue
				}
				for _, o := range origins[from] {
					if len(r.Origin) == 0 || slices.Contains(r.Origin, o) {
						add(alias, o, r)
					}
				}
			}
		}
	}
	for i, list := range rows {
		differ := slices.ContainsFunc(list, func(r *fsm.TableRow) bool { return plainActors(table, r) != plainActors(table, list[0]) })
		inline := differ || !dot && len(list) == 1
		for _, r := range list {
			arrows[i].labels = append(arrows[i].labels, plainLabel(table, r, inline))
		}
		if !inline {
			arrows[i].labels = append(arrows[i].labels, "by "+plainActors(table, list[0]))
		}
	}
	return arrows
}

// checkLists reads Markdown and Text back.
func checkLists(t require.TestingT, table *fsm.Table, c *diagram.Config) {
	md := readMarkdown(t, diagram.Markdown(table, c), false)
	require.Len(t, md, 2)
	states, rows := columns(md[0]), columns(md[1])
	require.Len(t, md[0], len(table.States)+len(table.Undeclared)+1)
	require.Len(t, md[1], len(table.Rows)+1)
	for i, s := range table.States {
		require.Equal(t, plain(s.Name), states["State"][i])
		kind, current := strings.CutSuffix(states["Kind"][i], ", current")
		require.Equal(t, s.Kind.String(), strings.TrimSuffix(kind, ", initial"))
		first, _ := table.StateIndex(s.Name) // a faulty table may declare a state twice
		require.Equal(t, currentOf(c) != "" && currentOf(c) == s.Name && first == i, current)
	}
	for i := range table.Rows {
		r := &table.Rows[i]
		require.Equal(t, plainSources(table, r), rows["From"][i])
		require.Equal(t, plain(table.Events[r.Event]), rows["Event"][i])
		require.Equal(t, plainActors(table, r), rows["Actor"][i])
		to := [...]string{"", "back to the origin", "ignored"}[r.Then]
		if r.Then == fsm.ThenMove {
			to = plain(stateName(table, r.To))
		}
		require.Equal(t, to, rows["To"][i])
		guard := ""
		if r.Guard != "" {
			guard = plain(r.Guard)
		}
		require.Equal(t, guard, at(rows["Guard"], i))
		require.Equal(t, plainNotes(table, r), at(rows["Notes"], i))
	}
	// The aligned form has the same words in every column. A cell may continue in the
	// next line.
	for n, text := range readMarkdown(t, diagram.Text(table, c), true) {
		want := columns(md[n])
		for head, cells := range columns(text) {
			if head != "Notes" {
				require.Equal(t, words(want[head]), words(cells), head)
			}
		}
	}
}

// columns turns rows into columns by head. An omitted column is nil.
func columns(rows [][]string) map[string][]string {
	byHead := make(map[string][]string)
	for c, head := range rows[0] {
		byHead[head] = []string{}
		for _, row := range rows[1:] {
			byHead[head] = append(byHead[head], row[c])
		}
	}
	return byHead
}

func at(column []string, i int) string {
	if column == nil {
		return ""
	}
	return column[i]
}

func words(cells []string) []string { return strings.Fields(strings.Join(cells, " ")) }
