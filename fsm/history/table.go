package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

// machine is a machine with its versions. States have their names, so that an object may
// continue in another version.
type machine struct {
	versions []*version         // by since
	absent   map[string]bool    // by state: it is an absent one in the last version that has it
	ends     map[string]bool    // by state: no version has a row that leads on
	objects  map[string]*object // by id
}

// version is one version of a table with its indexes.
type version struct {
	name    string
	since   time.Time
	t       *fsm.Table
	states  map[string]int
	rows    map[[2]int][]int // by state and event; event -1: all of the state
	origins [][]int
	absent  []int // the absent states
}

// index returns the index of a state in the table, or -1 if the version does not have it.
func (v *version) index(state string) int {
	if v != nil {
		if i, ok := v.states[state]; ok {
			return i
		}
	}
	return -1
}

func (v *version) transitional(state string) bool {
	i := v.index(state)
	return i >= 0 && v.t.States[i].Kind == fsm.Transitional
}

func (v *version) resting(state string) bool {
	i := v.index(state)
	return i >= 0 && v.t.States[i].Kind.Resting()
}

func newVersion(given TableVersion) *version {
	t := given.Table
	v := &version{
		name: given.Name, since: given.Since, t: t, states: make(map[string]int, len(t.States)),
		rows: make(map[[2]int][]int), origins: t.Origins(),
	}
	for s := range t.States {
		v.states[t.States[s].Name] = s
		if t.States[s].Kind == fsm.Absent {
			v.absent = append(v.absent, s)
		}
	}
	declared := func(s int) bool { return s >= 0 && s < len(t.States) }
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Event < 0 || row.Event >= len(t.Events) || row.Then == fsm.ThenMove && !declared(row.To) {
			continue
		}
		for _, from := range row.From {
			if declared(from) {
				for _, at := range [][2]int{{from, row.Event}, {from, -1}} {
					v.rows[at] = append(v.rows[at], i)
				}
			}
		}
	}
	return v
}

// newMachines checks the tables and groups them by machine.
func newMachines(tables []TableVersion) (map[string]*machine, error) {
	machines := make(map[string]*machine)
	for i, given := range tables {
		if given.Table == nil || given.Table.Name == "" {
			return nil, fmt.Errorf("%w: table %d is nil or has no name", fsm.ErrInvalid, i)
		}
		m := machines[given.Table.Name]
		if m == nil {
			m = &machine{absent: make(map[string]bool), ends: make(map[string]bool), objects: make(map[string]*object)}
			machines[given.Table.Name] = m
		}
		if slices.ContainsFunc(m.versions, func(v *version) bool { return v.name == given.Name }) {
			return nil, fmt.Errorf("%w: two tables of machine %s are version %s", fsm.ErrInvalid, prose.Quote(given.Table.Name), prose.Quote(given.Name))
		}
		m.versions = append(m.versions, newVersion(given))
	}
	if len(machines) == 0 {
		return nil, fmt.Errorf("%w: no table", fsm.ErrInvalid)
	}
	for _, m := range machines {
		slices.SortStableFunc(m.versions, func(a, b *version) int { return a.since.Compare(b.since) })
		for _, v := range m.versions {
			for state, i := range v.states {
				ends, seen := m.ends[state]
				m.ends[state] = (ends || !seen) && v.ends(i)
				m.absent[state] = v.t.States[i].Kind == fsm.Absent
			}
		}
	}
	return machines, nil
}

// versionOf returns the version of a row, or nil if the row names an unknown one. A row that
// names none is of the version at its time: of the first one if it is older than all, and of
// the last one if it has no time. The version without a name comes before others of the same
// Since.
func (m *machine) versionOf(row *Row) *version {
	if row.Version != "" {
		i := slices.IndexFunc(m.versions, func(v *version) bool { return v.name == row.Version })
		if i < 0 {
			return nil
		}
		return m.versions[i]
	}
	i := len(m.versions) - 1
	for i > 0 && !row.At.IsZero() && m.versions[i].since.After(row.At) {
		i--
	}
	newest := m.versions[i]
	for _, v := range m.versions {
		if v.name == "" && v.since.Equal(newest.since) {
			return v
		}
	}
	return newest
}

// has reports whether a version has the state.
func (m *machine) has(state string) bool {
	_, ok := m.ends[state]
	return ok
}

// change is a row by the indexes of a table. -1 stands for what the row or the table
// does not have.
type change struct {
	from, origin, to, event, actor int

	named      bool // the row names an actor
	renumbered bool // its operation is not that of the last row
}

// verdict is the result for a change. A smaller one is better.
type verdict uint8

const (
	allowed verdict = iota
	wrongActor
	refused
)

// find returns the row of the table that makes the change, or one for which only
// the actor is wrong, or one that takes the event elsewhere, or -1. Without an actor or an
// event in the change, any fits.
// Several rows may fit, because find runs no guards. The number of the operation
// decides between one that supersedes the operation and one that continues it.
func (v *version) find(c change) (result verdict, row int) {
	result, row = refused, -1
	rows := v.rows[[2]int{c.from, c.event}]
	for k, i := range rows {
		r := &v.t.Rows[i]
		if len(r.Origin) > 0 && c.origin >= 0 && !slices.Contains(r.Origin, c.origin) || !v.leadsTo(r, c) {
			continue
		}
		mayFire := !c.named || v.mayFire(r, c.actor)
		if mayFire && c.event >= 0 {
			if first := v.taker(rows[:k], r, c); first >= 0 {
				if result == refused {
					row = first
				}
				continue
			}
		}
		switch {
		case mayFire && r.Supersede == c.renumbered:
			return allowed, i
		case mayFire:
			result, row = allowed, i
		case result != allowed:
			result, row = wrongActor, i
		}
	}
	return result, row
}

// mayFire reports whether the row is for an actor, which is -1 if it is not declared.
func (v *version) mayFire(r *fsm.TableRow, actor int) bool {
	return slices.Contains(r.Actors, actor) || len(r.Actors) == 0 && (actor >= 0 || len(v.t.Actors) == 0)
}

// taker returns the first of the rows before r that takes every request of the change, so
// that r is not tried, or -1. Such a row is for the same actors, has no guard, needs no
// force, and fits the origin.
func (v *version) taker(before []int, r *fsm.TableRow, c change) int {
	for _, i := range before {
		first := &v.t.Rows[i]
		switch {
		case first.Guard != "" || first.Forced:
		case len(first.Origin) > 0 && !slices.Contains(first.Origin, c.origin):
		case first.Then == fsm.ThenReturn && (c.origin < 0 || !v.t.States[c.origin].Kind.Resting()):
		case c.named && v.mayFire(first, c.actor), !c.named && forAll(first.Actors, r.Actors):
			return i
		}
	}
	return -1
}

// forAll reports whether a row for the first actors is for all of the others too. No
// actors are every declared one.
func forAll(actors, others []int) bool {
	other := func(a int) bool { return !slices.Contains(actors, a) }
	return len(actors) == 0 || len(others) > 0 && !slices.ContainsFunc(others, other)
}

// leadsTo reports whether the row leads to the target of the change. If the origin is
// unknown, a return row leads to every possible origin.
func (v *version) leadsTo(r *fsm.TableRow, c change) bool {
	switch r.Then {
	case fsm.ThenIgnore:
		return c.to == c.from
	case fsm.ThenReturn:
		possible := c.to == c.origin || c.origin < 0 && slices.Contains(v.origins[c.from], c.to)
		return possible && v.t.States[c.to].Kind.Resting()
	}
	return c.to == r.To
}

// begins reports whether objects may start in a state without an event.
func (v *version) begins(state int) bool {
	return v.t.States[state].Kind != fsm.Absent && slices.Contains(v.t.Entries(), state)
}

// ends reports whether a state ends an object: an absent state, or a final one
// without rows that lead out.
func (v *version) ends(state int) bool {
	leads := func(row int) bool { return v.t.Rows[row].Then != fsm.ThenIgnore }
	kind := v.t.States[state].Kind
	return kind == fsm.Absent || kind == fsm.Final && !slices.ContainsFunc(v.rows[[2]int{state, -1}], leads)
}

// offers lists the rows of a state as text: those of an event, or all if the event
// has none.
func (v *version) offers(state, event int) string {
	rows := v.rows[[2]int{state, event}]
	if len(rows) == 0 {
		rows = v.rows[[2]int{state, -1}]
	}
	if len(rows) == 0 {
		return "nothing more"
	}
	list := make([]string, len(rows))
	for i, row := range rows[:min(len(rows), prose.Most)] { // List counts the others
		list[i] = v.offer(row)
	}
	return prose.List(list, "or")
}

func (v *version) offer(i int) string {
	r := &v.t.Rows[i]
	text := v.t.Events[r.Event]
	switch r.Then {
	case fsm.ThenIgnore:
		text += " nothing"
	case fsm.ThenReturn:
		text += " to its origin"
	case fsm.ThenMove:
		text += " to " + v.t.States[r.To].Name
	}
	if len(r.Actors) > 0 {
		text += " by " + v.actorsOf(i)
	}
	if len(r.Origin) > 0 {
		text += " if it came from " + names(r.Origin, v.t.StateName)
	}
	return text
}

func (v *version) actorsOf(i int) string {
	if len(v.t.Rows[i].Actors) == 0 {
		return "a declared actor"
	}
	return names(v.t.Rows[i].Actors, v.t.ActorName)
}

func names(list []int, name func(int) string) string {
	var names []string
	for _, i := range list {
		names = append(names, name(i))
	}
	return prose.List(names, "or")
}
