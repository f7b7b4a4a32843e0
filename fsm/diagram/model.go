package diagram

import (
	"cmp"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Config selects the form of a picture or list. The zero Config and nil are the
// defaults. The functions do not modify it, and several may share it.
type Config struct {
	// Labels are second lines below the names of states in a picture, by name of the state,
	// such as the number of objects in it. Default: none.
	Labels map[string]string

	// Current is the name of the state that is marked as the current one. A name that the
	// table does not have marks nothing. Default: none.
	Current string
}

// model is a table with the config of a picture.
type model struct {
	t      *fsm.Table
	config Config
}

func newModel(t *fsm.Table, c *Config) model {
	return model{t, *cmp.Or(c, &Config{})}
}

// arrow is one arrow of a picture: the rows that lead from one state to another, in
// order of declaration.
type arrow struct {
	from, to int
	rows     []int
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
		for _, from := range m.t.Rows[row].From {
			for _, to := range m.targets(row, from, origins) {
				w := way{from, to, look(row)}
				i, ok := index[w]
				if !ok {
					i = len(list)
					index[w] = i
					list = append(list, arrow{from: from, to: to})
				}
				list[i].rows = append(list[i].rows, row)
			}
		}
	}
	return list
}

// targets returns where a row leads from one source. Unlike [fsm.Table.Edges] it includes
// undeclared states, because a picture shows the faults of a table.
func (m model) targets(row, from int, origins [][]int) []int {
	r := &m.t.Rows[row]
	switch {
	case !m.has(from):
	case r.Then == fsm.ThenMove && m.has(r.To):
		return []int{r.To}
	case r.Then == fsm.ThenReturn && from < len(origins):
		return slices.DeleteFunc(slices.Clone(origins[from]), func(o int) bool {
			return len(r.Origin) > 0 && !slices.Contains(r.Origin, o)
		})
	}
	return nil
}

// has reports whether the index is that of a declared or undeclared state.
func (m model) has(state int) bool { return state >= 0 && state < m.states() }

// current returns the index of the marked state, or -1.
func (m model) current() int {
	i, ok := m.t.StateIndex(m.config.Current)
	if m.config.Current == "" || !ok {
		return -1
	}
	return i
}

// states returns the number of states to draw, declared and undeclared.
func (m model) states() int { return len(m.t.States) + len(m.t.Undeclared) }

// entries returns the initial states.
func (m model) entries() []int {
	return slices.DeleteFunc(slices.Clone(m.t.Entries()), func(s int) bool { return !m.has(s) })
}
