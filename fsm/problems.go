package fsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/visible"
)

// Problems returns the faults of the table, demands of New last, and those that one check finds in
// order of declaration. It is empty for the table of a machine. A table over a limit, or with
// a row that has no event or an unknown Then, is not checked further.
func (t *Table) Problems() []Problem {
	if t.compiled != nil {
		return nil // a table with problems is not compiled
	}
	p := problems{t: t}
	p.names()
	if slices.ContainsFunc(p.list, func(x Problem) bool { return x.Code == TooLarge }) {
		return p.list // the further checks are expensive on a table without limits
	}
	if !p.shape() {
		return p.list // rows without an event cannot be compared
	}
	p.cells()
	p.reach()
	return p.list
}

// A fault in the name of a state must not hide the other faults of a table, and
// must not cause false ones. The misspelt name may stand for any state. So the
// rows are checked without it, and these faults are left out:
//
//   - unreachable and never-fits, if a target, a source, an origin or the initial
//     state is not declared: the row may lead to the state;
//   - dead-end, if a source is not declared: the row may lead out of the state;
//   - no-deadline, if such a row has a timeout.
//
// An actor that is not declared hides nothing.
type problems struct {
	t       *Table
	list    []Problem
	origins [][]int // by row: its origin condition, sorted, without repetitions
	actors  [][]int // by row: likewise its actors

	vague       bool // a name that decides where rows lead is not declared
	vagueSource bool // a row with an unknown source may leave any state
	vagueLate   bool // such a row has a timeout
}

// report adds a problem with its text, in one line whatever the names are.
func (p *problems) report(x Problem, format string, args ...any) {
	x.Text = visible.Text(fmt.Sprintf(format, args...))
	p.list = append(p.list, x)
}

func (p *problems) add(code string, format string, args ...any) {
	p.report(Problem{Code: code, Row: -1}, format, args...)
}

func (p *problems) state(code string, state int, format string, args ...any) {
	name := p.t.States[state].Name
	demand := code == NoDeadline || code == NeedlessManual || code == EndlessTimeout
	p.report(Problem{Code: code, Demand: demand, Row: -1, State: name}, "state %s: %s", name, fmt.Sprintf(format, args...))
}

func (p *problems) row(code string, row int, format string, args ...any) {
	p.report(Problem{Code: code, Row: row}, "row %d (%s): %s", row, p.t.Describe(row), fmt.Sprintf(format, args...))
}

func (p *problems) names() {
	t := p.t
	check := func(what string, name string) {
		if name == "" {
			p.add(NoName, "%s: empty name", what)
		} else if fault := badName(name); fault != "" {
			p.add(BadName, "%s: %s", what, fault)
		}
	}
	unique := func(what string, n int, name func(int) string) {
		seen := make(map[string]bool, n)
		for i := range n {
			check(fmt.Sprintf("%s %d", what, i), name(i))
			if seen[name(i)] {
				p.add(DuplicateName, "%s %d: name %q is taken", what, i, name(i))
			}
			seen[name(i)] = true
		}
	}
	check("machine", t.Name)
	unique("state", len(t.States), func(i int) string { return t.States[i].Name })
	unique("event", len(t.Events), func(i int) string { return t.Events[i] })
	unique("actor", len(t.Actors), func(i int) string { return string(t.Actors[i]) })
	limit := func(what string, n, limit int) {
		if n > limit {
			p.add(TooLarge, "%d %s, more than %d", n, what, limit)
		}
	}
	limit("states", len(t.States), MaxStates)
	limit("events", len(t.Events), MaxEvents)
	limit("actors", len(t.Actors), MaxActors)
	limit("rows", len(t.Rows), MaxRows)
	if len(t.Actors) == 0 && len(t.Rows) > 0 {
		p.add(NoActor, "no actor is declared, and the table has rows")
	}
}

// badName returns what is wrong with a name, or "".
func badName(name string) string {
	switch {
	case len(name) > MaxName:
		return fmt.Sprintf("name of %d bytes, more than %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("name %q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("control character in name %q", name)
	}
	return ""
}

// Describe returns a row as text: from -event-> to. It writes "?" for an index out of
// range, and for a row that the table does not have, such as -1.
func (t *Table) Describe(row int) string {
	if row < 0 || row >= len(t.Rows) {
		return "?"
	}
	r := &t.Rows[row]
	var from []string
	for i, f := range r.From {
		if i == 2 && len(r.From) > 3 { // a row may have many sources, and be described for each
			from = append(from, "...")
			break
		}
		from = append(from, t.StateName(f))
	}
	if r.Any {
		from = []string{"any"}
	}
	event := "?"
	if r.Event >= 0 && r.Event < len(t.Events) {
		event = t.Events[r.Event]
	}
	to := t.StateName(r.To)
	switch r.Then {
	case ThenReturn:
		to = "origin"
	case ThenIgnore:
		to = "ignored"
	}
	return strings.Join(from, "|") + " -" + event + "-> " + to
}

// called returns a name for the text of a problem, unless it is that of an index out of
// range; see [Table.StateName].
func called(name string) string {
	if name == "?" {
		return ""
	}
	return ": " + strconv.Quote(name)
}
