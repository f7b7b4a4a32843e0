package diagram

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Markdown returns two Markdown tables, of the states and of the rows, in order of
// declaration. Each line is one state or row. It omits empty columns.
func Markdown(t *fsm.Table, c *Config) string {
	m := newModel(t, c)
	return m.stateGrid(nil).markdown() + "\n" + m.rowGrid(nil).markdown()
}

// Text returns the tables of [Markdown] for a terminal. It aligns the columns, and
// continues long cells in the next line. The Doc texts of states and rows follow as
// numbered notes.
func Text(t *fsm.Table, c *Config) string {
	m := newModel(t, c)
	var n notes
	s := m.stateGrid(&n).text() + "\n" + m.rowGrid(&n).text()
	if len(n.list) > 0 {
		s += "\n" + n.text()
	}
	return s
}

// stateGrid returns the table of states.
func (m model) stateGrid(n *notes) grid {
	g := grid{head: []string{"State", "Kind", "Timeout", "Notes"}}
	timeouts := m.timeouts()
	for i, s := range m.t.States {
		kind := s.Kind.String()
		if slices.Contains(m.entries(), i) {
			kind += ", initial"
		}
		if i == m.current() {
			kind += ", current"
		}
		var marks []string
		if m.has(s.Target) && s.Kind == fsm.Transitional {
			marks = append(marks, "towards "+markdownText(m.t.StateName(s.Target)))
		}
		g.add(markdownText(s.Name), kind, timeouts[i], n.cell(marks, s.Doc))
	}
	for _, name := range m.t.Undeclared {
		g.add(markdownText(name), "not declared", "", "")
	}
	return g
}

// timeouts returns for every state its timeouts, or the reason why it has none.
func (m model) timeouts() []string {
	all := make([][]string, len(m.t.States))
	for row := range m.t.Rows {
		r := &m.t.Rows[row]
		if r.Timeout <= 0 {
			continue
		}
		for _, from := range r.From {
			if from >= 0 && from < len(all) {
				all[from] = append(all[from], duration(r.Timeout)+", "+markdownText(m.event(row)))
			}
		}
	}
	cells := make([]string, len(all))
	for i, s := range m.t.States {
		if s.Manual != "" {
			all[i] = append(all[i], "manual: "+markdown(oneLine(s.Manual)))
		}
		cells[i] = strings.Join(all[i], "; ")
	}
	return cells
}

// rowGrid returns the table of rows.
func (m model) rowGrid(n *notes) grid {
	g := grid{head: []string{"From", "Event", "Actor", "Guard", "To", "Notes"}}
	for row := range m.t.Rows {
		r := &m.t.Rows[row]
		guard := ""
		if r.Guard != "" {
			guard = markdownText(r.Guard)
		}
		var marks []string
		if r.Timeout > 0 {
			marks = append(marks, "after "+duration(r.Timeout))
		}
		marks = append(marks, m.marks(row, markdownText)...)
		g.add(m.sources(row, markdownText), markdownText(m.event(row)), m.actors(row, markdownText), guard,
			m.target(row, markdownText), n.cell(marks, r.Doc))
	}
	return g
}
