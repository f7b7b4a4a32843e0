package diagram

import (
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The functions below return names and texts of a table. They pass everything that
// comes from the table through esc. An index that refers to nothing reads "?".

// stateLabel returns the name of a state and the label of the config below it.
func (m model) stateLabel(i int, esc func(string) string, newLine string) string {
	label := esc(m.t.StateName(i))
	if below := m.config.Labels[m.t.StateName(i)]; below != "" {
		label += newLine + esc(below)
	}
	return label
}

func (m model) event(row int) string {
	if e := m.t.Rows[row].Event; e >= 0 && e < len(m.t.Events) {
		return m.t.Events[e]
	}
	return "?"
}

// join joins the escaped names of several states or actors.
func join(list []int, name func(int) string, esc func(string) string, sep string) string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = esc(name(x))
	}
	return strings.Join(names, sep)
}

// actors returns the names of the actors of a row.
func (m model) actors(row int, esc func(string) string) string {
	if list := m.t.Rows[row].Actors; len(list) > 0 {
		return join(list, m.t.ActorName, esc, ", ")
	}
	return "any actor"
}

// sources returns the wildcard of a row, or the names of its sources.
func (m model) sources(row int, esc func(string) string) string {
	r := &m.t.Rows[row]
	switch {
	case !r.Any && len(r.From) == 0:
		return "no state"
	case !r.Any:
		return join(r.From, m.t.StateName, esc, ", ")
	case len(r.Except) > 0:
		return "any state but " + join(r.Except, m.t.StateName, esc, ", ")
	}
	return "any state"
}

// labels returns the lines on an arrow, one for each row. If all rows have the same actors,
// the last line names them for all. With oneLine, a single row has a single line.
func (m model) labels(rows []int, esc func(string) string, oneLine bool) (lines []string) {
	var actors []string
	for _, row := range rows {
		actors = append(actors, "by "+m.actors(row, esc))
	}
	shared := len(slices.Compact(slices.Clone(actors))) == 1 && !(oneLine && len(rows) == 1)
	for i, row := range rows {
		by := ""
		if !shared {
			by = " " + actors[i]
		}
		lines = append(lines, m.label(row, esc, by))
	}
	if shared {
		lines = append(lines, actors[0])
	}
	return lines
}

// label returns the text of a row on an arrow, in one line:
//
//	event by actors [guard] after 5m, origin A or B, forced, return
func (m model) label(row int, esc func(string) string, by string) string {
	r := &m.t.Rows[row]
	var b strings.Builder
	b.WriteString(esc(m.event(row)) + by)
	if r.Guard != "" {
		b.WriteString(" [" + esc(r.Guard) + "]")
	}
	if r.Timeout > 0 {
		b.WriteString(" after " + duration(r.Timeout))
	}
	for _, mark := range m.marks(row, esc) {
		b.WriteString(", " + mark)
	}
	if r.Then == fsm.ThenReturn {
		b.WriteString(", return")
	}
	return b.String()
}

// marks returns the special properties of a row.
func (m model) marks(row int, esc func(string) string) (marks []string) {
	r := &m.t.Rows[row]
	if len(r.Origin) > 0 {
		marks = append(marks, "origin "+join(r.Origin, m.t.StateName, esc, " or "))
	}
	if r.Forced {
		marks = append(marks, "forced")
	}
	if r.Supersede {
		marks = append(marks, "supersedes")
	}
	return marks
}

// target returns the effect of a row on the state.
func (m model) target(row int, esc func(string) string) string {
	switch r := &m.t.Rows[row]; r.Then {
	case fsm.ThenMove:
		return esc(m.t.StateName(r.To))
	case fsm.ThenReturn:
		return "back to the origin"
	case fsm.ThenIgnore:
		return "ignored"
	}
	return ""
}

// duration writes 5m0s as 5m and 24h0m0s as 24h.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
