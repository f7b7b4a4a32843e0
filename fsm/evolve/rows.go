package evolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Difference is one difference of two tables. A row counts once for each source.
type Difference struct {
	Subject string `json:"subject"` // machine, state, event, actor, guard or row
	// Change is added, removed, renamed or changed. A row with another target is
	// retargeted. It is reordered for the rows of one event, or for deadlines of a state
	// with equal timeouts.
	Change string `json:"change"`
	Old    string `json:"old,omitempty"` // the name, or the row as text
	New    string `json:"new,omitempty"`
	// Fields are the changed fields: kind, manual, target, owner-death, code and
	// initial of a state; to, guard, actors, origin, within, forced and supersede of a
	// row.
	Fields []string `json:"fields,omitempty"`

	// The following fields are those of a row, with old names if there are some.
	From  string `json:"from,omitempty"`
	Event string `json:"event,omitempty"`
	OldTo string `json:"old_to,omitempty"` // or (return), (ignore)
	NewTo string `json:"new_to,omitempty"`
}

// differences lists the differences: machine, states, events, actors, rows.
func (p *pair) differences(e *Report) {
	add := func(d Difference) { e.Differences = append(e.Differences, d) }
	for _, r := range slices.Concat(p.renamings(), p.guards.renamings()) {
		if r.Subject == "machine" || r.Subject == "guard" {
			add(Difference{Subject: r.Subject, Change: "renamed", Old: r.Old, New: r.New})
		}
	}
	for _, l := range []*numbering{&p.states, &p.events, &p.actors} {
		for number := range l.in[oldVersion] {
			i, k := l.in[oldVersion][number], l.in[newVersion][number]
			switch {
			case i < 0 && k < 0:
			case k < 0:
				add(Difference{Subject: l.what, Change: "removed", Old: l.name(oldVersion, number)})
			case i < 0:
				add(Difference{Subject: l.what, Change: "added", New: l.name(newVersion, number)})
			default:
				d := Difference{Subject: l.what, Old: l.name(oldVersion, number), New: l.name(newVersion, number)}
				if d.Change = "changed"; d.Old != d.New {
					d.Change = "renamed"
				}
				if l == &p.states {
					d.Fields = p.stateFields(number)
				}
				if d.Old != d.New || len(d.Fields) > 0 {
					add(d)
				}
			}
		}
	}
	for state := range p.states.in[oldVersion] {
		p.rowDifferences(state, add)
	}
}

// stateFields lists the changed fields of a state of both tables.
func (p *pair) stateFields(number int) (fields []string) {
	o, n := &p.versions[oldVersion], &p.versions[newVersion]
	a, b := &o.given.States[p.states.in[oldVersion][number]], &n.given.States[p.states.in[newVersion][number]]
	differs := func(name string, yes bool) {
		if yes {
			fields = append(fields, name)
		}
	}
	differs("kind", a.Kind != b.Kind)
	differs("manual", a.Manual != b.Manual)
	differs("target", p.states.number(oldVersion, a.Target) != p.states.number(newVersion, b.Target))
	differs("owner-death", a.OnOwnerDeath != b.OnOwnerDeath)
	differs("code", (a.Code == nil) != (b.Code == nil) || a.Code != nil && b.Code != nil && *a.Code != *b.Code)
	first := func(x *version) bool {
		return number == x.first || x.first < 0 && number == x.absent
	}
	differs("initial", first(o) != first(n) || slices.Contains(o.starts, number) != slices.Contains(n.starts, number))
	return fields
}

// rowDifferences compares the rows out of a state, event by event.
func (p *pair) rowDifferences(state int, add func(Difference)) {
	olds, news := cellsOf(p.versions[oldVersion].from[state]), cellsOf(p.versions[newVersion].from[state])
	for _, event := range eventsOf(p.versions[oldVersion].from[state], p.versions[newVersion].from[state]) {
		p.cellDifferences(olds[event], news[event], add)
	}
	if event := p.reorderedDeadlines(state); event >= 0 {
		add(p.reordered(state, event))
	}
}

// reorderedDeadlines returns the first event of the old version that another event
// with the same timeout precedes in the new one, or -1.
func (p *pair) reorderedDeadlines(state int) int {
	type deadline struct {
		within time.Duration
		event  int
	}
	var order [2][]deadline
	var has [2]map[deadline]bool
	for h := range p.versions {
		has[h] = make(map[deadline]bool)
		for _, a := range p.versions[h].from[state] {
			if d := (deadline{a.Timeout, a.Event}); a.Timeout > 0 && !has[h][d] {
				has[h][d] = true
				order[h] = append(order[h], d)
			}
		}
		slices.SortStableFunc(order[h], func(a, b deadline) int { return cmp.Compare(a.within, b.within) })
	}
	for h := range order { // those that both have
		order[h] = slices.DeleteFunc(order[h], func(d deadline) bool { return !has[1-h][d] })
	}
	for i, d := range order[oldVersion] {
		if order[newVersion][i] != d {
			return d.event
		}
	}
	return -1
}

func cellsOf(arrows []*arrow) map[int][]*arrow {
	cells := make(map[int][]*arrow)
	for _, a := range arrows {
		cells[a.Event] = append(cells[a.Event], a)
	}
	return cells
}

// eventsOf lists the events of some rows, each once, in order of appearance.
func eventsOf(lists ...[]*arrow) (events []int) {
	seen := make(map[int]bool)
	for _, a := range slices.Concat(lists...) {
		if !seen[a.Event] {
			seen[a.Event] = true
			events = append(events, a.Event)
		}
	}
	return events
}

// cellDifferences pairs the rows of one cell, the most alike first, and lists the
// differences.
func (p *pair) cellDifferences(olds, news []*arrow, add func(Difference)) {
	partner := make([]int, len(olds)) // index in news
	for i := range partner {
		partner[i] = -1
	}
	used := make([]bool, len(news))
	most := len(rowFields)
	if len(olds)*len(news) > 1<<20 { // fsm.New refuses such a cell
		for i := range min(len(olds), len(news)) {
			partner[i], used[i] = i, true
		}
		most = -1
	}
	for apart := 0; apart <= most; apart++ {
		for i, a := range olds {
			for k, b := range news {
				if partner[i] < 0 && !used[k] && len(fieldsOf(a, b)) == apart {
					partner[i], used[k] = k, true
				}
			}
		}
	}
	last, swapped := -1, false
	for i, a := range olds {
		k := partner[i]
		if k < 0 {
			add(p.rowDifference("removed", a, nil))
			continue
		}
		if k < last {
			swapped = true
		}
		last = k
		if fields := fieldsOf(a, news[k]); len(fields) > 0 {
			d := p.rowDifference("changed", a, news[k])
			if d.Fields = fields; fields[0] == "to" {
				d.Change = "retargeted"
			}
			add(d)
		}
	}
	for k, b := range news {
		if !used[k] {
			add(p.rowDifference("added", nil, b))
		}
	}
	if swapped {
		add(p.reordered(olds[0].from, olds[0].Event))
	}
}

func (p *pair) reordered(state, event int) Difference {
	return Difference{Subject: "row", Change: "reordered", From: p.states.name(oldVersion, state), Event: p.events.name(oldVersion, event)}
}

var rowFields = []struct {
	name    string
	differs func(a, b *arrow) bool
}{
	{"to", func(a, b *arrow) bool { return a.Then != b.Then || a.To != b.To }},
	{"guard", func(a, b *arrow) bool { return a.Guard != b.Guard }},
	{"actors", func(a, b *arrow) bool { return !slices.Equal(a.Actors, b.Actors) }},
	{"origin", func(a, b *arrow) bool { return !slices.Equal(a.Origin, b.Origin) }},
	{"within", func(a, b *arrow) bool { return a.Timeout != b.Timeout }},
	{"forced", func(a, b *arrow) bool { return a.Forced != b.Forced }},
	{"supersede", func(a, b *arrow) bool { return a.Supersede != b.Supersede }},
}

func fieldsOf(a, b *arrow) (fields []string) {
	for _, f := range rowFields {
		if f.differs(a, b) {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func (p *pair) rowDifference(change string, a, b *arrow) Difference {
	d := Difference{Subject: "row", Change: change}
	if b != nil {
		d.From, d.Event = p.states.name(newVersion, b.from), p.events.name(newVersion, b.Event)
		d.New, d.NewTo = p.rowText(newVersion, b), p.target(newVersion, b)
	}
	if a != nil {
		d.From, d.Event = p.states.name(oldVersion, a.from), p.events.name(oldVersion, a.Event)
		d.Old, d.OldTo = p.rowText(oldVersion, a), p.target(oldVersion, a)
	}
	return d
}

func (p *pair) target(h int, a *arrow) string {
	if a.Then == fsm.ThenMove {
		return p.states.name(h, a.To)
	}
	return "(" + a.Then.String() + ")"
}

// rowText returns a row as text, with the names of its table. Lists are sorted, so that
// the text does not depend on the other table.
func (p *pair) rowText(h int, a *arrow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s -%s-> %s", p.states.name(h, a.from), p.events.name(h, a.Event), p.target(h, a))
	guard := p.versions[h].given.Rows[a.row].Guard
	if !slices.Equal(a.Actors, p.versions[h].actors) {
		b.WriteString(" by " + strings.Join(p.actors.members(h, a.Actors), ", "))
	}
	if guard != "" {
		b.WriteString(" [" + guard + "]")
	}
	if a.Timeout > 0 {
		fmt.Fprintf(&b, " after %v", a.Timeout)
	}
	if len(a.Origin) > 0 {
		b.WriteString(" of " + strings.Join(p.states.members(h, a.Origin), ", "))
	}
	if a.Forced {
		b.WriteString(" (forced)")
	}
	if a.Supersede {
		b.WriteString(" (supersedes)")
	}
	return b.String()
}

func (l *numbering) members(h int, numbers []int) (names []string) {
	for _, number := range numbers {
		names = append(names, l.name(h, number))
	}
	slices.Sort(names)
	return names
}
