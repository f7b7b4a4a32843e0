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
	// retargeted. A row is reordered if the rows of its state are the same, but are tried in
	// another order or have another order of equal timeouts.
	Change string `json:"change"`
	Old    string `json:"old,omitempty"` // the name, or the row as text
	New    string `json:"new,omitempty"`
	// Fields are the changed fields of a state: kind, manual, target and initial.
	Fields []string `json:"fields,omitempty"`

	// The following fields are those of a row, with old names if there are some.
	From  string `json:"from,omitempty"`
	Event string `json:"event,omitempty"`
	OldTo string `json:"old_to,omitempty"` // or (return), (ignore)
	NewTo string `json:"new_to,omitempty"`
}

// differences lists the differences: names and states, then rows.
func (p *pair) differences() []Difference {
	list := []Difference{}
	for _, n := range []*names{p.machine, p.guards, p.states, p.events, p.actors} {
		for _, key := range n.keys {
			d := Difference{Subject: n.what, Old: n.name[oldVersion][key], New: n.name[newVersion][key]}
			if n == p.states {
				d.Fields = p.stateFields(key)
			}
			switch {
			case !n.in(newVersion, key):
				d.Change = "removed"
			case !n.in(oldVersion, key):
				d.Change = "added"
			case d.Old != d.New:
				d.Change = "renamed"
			case len(d.Fields) > 0:
				d.Change = "changed"
			default:
				continue
			}
			list = append(list, d)
		}
	}
	for _, state := range p.states.keys {
		list = append(list, p.rowDifferences(state)...)
	}
	return list
}

// stateFields lists the changed fields of a state of both tables.
func (p *pair) stateFields(state string) (fields []string) {
	old, new := p.versions[oldVersion], p.versions[newVersion]
	if !old.has(state) || !new.has(state) {
		return nil
	}
	a, b := &old.States[old.state[state]], &new.States[new.state[state]]
	differs := func(name string, yes bool) {
		if yes {
			fields = append(fields, name)
		}
	}
	first := func(x *version) bool { return state == cmp.Or(x.first, x.absent) }
	differs("kind", a.Kind != b.Kind)
	differs("manual", a.Manual != b.Manual)
	differs("target", old.StateName(a.Target) != new.StateName(b.Target))
	differs("initial", first(old) != first(new) || slices.Contains(old.starts, state) != slices.Contains(new.starts, state))
	return fields
}

// arrow is a row out of one state. Equal rows of the two tables have one key.
type arrow struct {
	key      string
	event    string // by key
	timeout  time.Duration
	to, text string // with the names of its table, lists sorted
}

// rowDifferences compares the rows out of a state. It pairs the rows that differ by their
// event and, if it can, by their target.
func (p *pair) rowDifferences(state string) (list []Difference) {
	olds, news := p.arrows(oldVersion, state), p.arrows(newVersion, state)
	added := without(news, olds)
	differ := func(change string, a, b arrow) {
		list = append(list, Difference{
			Subject: "row", Change: change, Old: a.text, New: b.text, OldTo: a.to, NewTo: b.to,
			From: p.states.of(oldVersion, state), Event: p.events.of(oldVersion, cmp.Or(a.event, b.event)),
		})
	}
	for _, a := range without(olds, news) {
		k := slices.IndexFunc(added, func(b arrow) bool { return a.event == b.event && a.to == b.to })
		if k < 0 {
			k = slices.IndexFunc(added, func(b arrow) bool { return a.event == b.event })
		}
		switch {
		case k < 0:
			differ("removed", a, arrow{})
			continue
		case a.to == added[k].to:
			differ("changed", a, added[k])
		default:
			differ("retargeted", a, added[k])
		}
		added = slices.Delete(added, k, k+1)
	}
	for _, b := range added {
		differ("added", arrow{}, b)
	}
	if len(list) == 0 {
		olds, news = inOrder(olds), inOrder(news)
		for i, a := range olds {
			if a.key != news[i].key {
				differ("reordered", arrow{event: a.event}, arrow{})
				break
			}
		}
	}
	return list
}

// without returns the rows that are not among others.
func without(arrows, others []arrow) (rest []arrow) {
	keys := make(map[string]bool)
	for _, b := range others {
		keys[b.key] = true
	}
	return slices.DeleteFunc(slices.Clone(arrows), func(a arrow) bool { return keys[a.key] })
}

// inOrder returns the order in which rows are tried, event by event, and then that in which
// their deadlines pass.
func inOrder(arrows []arrow) []arrow {
	trial, deadlines := slices.Clone(arrows), slices.Clone(arrows)
	slices.SortStableFunc(trial, func(a, b arrow) int { return cmp.Compare(a.event, b.event) })
	slices.SortStableFunc(deadlines, func(a, b arrow) int { return cmp.Compare(a.timeout, b.timeout) })
	return append(trial, slices.DeleteFunc(deadlines, func(a arrow) bool { return a.timeout == 0 })...)
}

// arrows returns the rows out of a state, equal ones once: the second cannot fire.
func (p *pair) arrows(v int, state string) (list []arrow) {
	x, seen := p.versions[v], make(map[string]bool)
	for _, row := range x.leaving[state] {
		r := &x.Rows[row]
		to := "(" + r.Then.String() + ")"
		if r.Then == fsm.ThenMove {
			to = x.StateName(r.To)
		}
		actors, origins := unique(column(r.Actors, x.ActorName)), unique(column(r.Origin, x.StateName))
		if len(actors) == len(x.Actors) {
			actors = nil // every one
		}
		a := arrow{event: x.Events[r.Event], timeout: r.Timeout, to: p.states.of(v, to)}
		a.key = fmt.Sprintf("%q %v %q %q %q %q %v %v %v", a.event, r.Then, to, actors, origins, r.Guard, r.Timeout, r.Forced, r.Supersede)
		a.text = fmt.Sprintf("%s -%s-> %s%s", p.states.of(v, state), p.events.of(v, a.event), a.to, p.clauses(v, r, actors, origins))
		if !seen[a.key] {
			seen[a.key] = true
			list = append(list, a)
		}
	}
	return list
}

// clauses returns the conditions of a row as text.
func (p *pair) clauses(v int, r *fsm.TableRow, actors, origins []string) (text string) {
	if len(actors) > 0 {
		text += " by " + strings.Join(p.actors.list(v, actors), ", ")
	}
	if r.Guard != "" {
		text += " [" + p.guards.of(v, r.Guard) + "]"
	}
	if r.Timeout > 0 {
		text += fmt.Sprintf(" after %v", r.Timeout)
	}
	if len(origins) > 0 {
		text += " of " + strings.Join(p.states.list(v, origins), ", ")
	}
	if r.Forced {
		text += " (forced)"
	}
	if r.Supersede {
		text += " (supersedes)"
	}
	return text
}
