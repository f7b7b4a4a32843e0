package diagram

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// arrow is what a picture draws between two places: the rows that lead from
// one to the other, in order of declaration.
type arrow struct {
	from int // index of a state; ^i is box i
	to   int
	rows []int
}

// source is the identifier of the place where the arrow starts.
func (a arrow) source() string {
	if a.from < 0 {
		return fmt.Sprintf("any%d", ^a.from)
	}
	return fmt.Sprintf("s%d", a.from)
}

// model is a table as the pictures need it.
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

// box returns the index of the box at which a wildcard row starts: rows that
// leave out the same states share one.
func (m model) box(row int) int {
	return slices.IndexFunc(m.boxes, func(first int) bool {
		return slices.Equal(m.t.Rows[first].Except, m.t.Rows[row].Except)
	})
}

// arrows returns the arrows in order of the first row of each. Rows that lead
// the same way and have the same look share one arrow.
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

// edges yields source and target of a row that is drawn. Unlike those of
// [fsm.Table.Edges] they include states that are not declared: what is wrong
// with a table is what one wants to see of it.
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

// has reports whether a state by index is declared, or at least named.
func (m model) has(state int) bool { return state >= 0 && state < m.states() }

// states is the number of states that are drawn: those declared, then those
// that are named only.
func (m model) states() int { return len(m.t.States) + len(m.t.Undeclared) }

// entries returns the states in which an object may begin.
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
