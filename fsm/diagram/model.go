package diagram

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// arrow is one arrow of a picture: the rows that lead from one place to another, in
// order of declaration.
type arrow struct {
	from int // index of a state; ^i is box i
	to   int
	rows []int
}

// source returns the identifier of the place where the arrow starts.
func (a arrow) source() string {
	if a.from < 0 {
		return fmt.Sprintf("any%d", ^a.from)
	}
	return fmt.Sprintf("s%d", a.from)
}

// model is a table with the config of a picture.
type model struct {
	t      *fsm.Table
	config Config
	boxes  []int // the first of the wildcard rows that start at each box
}

func newModel(t *fsm.Table, c *Config) model {
	m := model{t: t, config: c.orDefault()}
	for row := range t.Rows {
		if m.collapsed(row) && m.box(row) < 0 {
			m.boxes = append(m.boxes, row)
		}
	}
	return m
}

// box returns the index of the box at which a wildcard row starts. Rows that exclude
// the same states share a box.
func (m model) box(row int) int {
	return slices.IndexFunc(m.boxes, func(first int) bool {
		return slices.Equal(m.t.Rows[first].Except, m.t.Rows[row].Except)
	})
}

// arrows returns the arrows in order of the first row of each. Rows with the same
// source, target and look share an arrow.
func (m model) arrows(look func(row int) string) []arrow {
	type way struct {
		from, to int
		look     string
	}
	var list []arrow
	index := make(map[way]int)
	origins := m.t.Origins()
	for row := range m.t.Rows {
		for from, to := range m.edges(row, origins) {
			w := way{from, to, look(row)}
			if m.collapsed(row) {
				w.from = ^m.box(row)
			}
			i, ok := index[w]
			if !ok {
				i = len(list)
				index[w] = i
				list = append(list, arrow{from: w.from, to: w.to})
			}
			// A collapsed row gives the same arrow once per source.
			if rows := list[i].rows; len(rows) == 0 || rows[len(rows)-1] != row {
				list[i].rows = append(rows, row)
			}
		}
	}
	return list
}

// edges yields the sources and targets of a row to draw. Unlike [fsm.Table.Edges] it
// includes undeclared states, because a picture shows the faults of a table.
func (m model) edges(row int, origins [][]int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		r := &m.t.Rows[row]
		for _, from := range r.From {
			var targets []int
			switch {
			case !m.has(from):
			case r.Then == fsm.ThenMove && m.has(r.To):
				targets = []int{r.To}
			case r.Then == fsm.ThenIgnore && m.config.ShowIgnored:
				targets = []int{from}
			case r.Then == fsm.ThenReturn && from < len(origins):
				targets = origins[from]
			}
			for _, to := range targets {
				if r.Then == fsm.ThenReturn && len(r.Origin) > 0 && !slices.Contains(r.Origin, to) {
					continue
				}
				if !yield(from, to) {
					return
				}
			}
		}
	}
}

// collapsed reports whether a row is drawn as one arrow from a box.
func (m model) collapsed(row int) bool {
	r := &m.t.Rows[row]
	return m.config.CollapseAny && r.Any && r.Then == fsm.ThenMove
}

// has reports whether the index is that of a declared or undeclared state.
func (m model) has(state int) bool { return state >= 0 && state < m.states() }

// states returns the number of states to draw, declared and undeclared.
func (m model) states() int { return len(m.t.States) + len(m.t.Undeclared) }

// entries returns the initial states.
func (m model) entries() []int {
	entries := m.t.Initials
	if len(entries) == 0 {
		entries = []int{m.t.Initial}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(s int) bool { return !m.has(s) })
}

func (m model) direction() string {
	if m.config.LeftToRight {
		return "LR"
	}
	return "TB"
}
