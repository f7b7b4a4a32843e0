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
	actors  []fsm.Actor      // an empty one for a table without actors
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
	t := given.Table.WithRows(given.Table.Rows) // for decisions: the caller may have put the table together
	v := &version{
		name: given.Name, since: given.Since, t: t, states: make(map[string]int, len(t.States)), actors: t.Actors,
		rows: make(map[[2]int][]int), origins: t.Origins(),
	}
	if len(t.Actors) == 0 {
		v.actors = []fsm.Actor{""}
	}
	for s := range t.States {
		if len(v.origins[s]) == 0 {
			v.origins[s] = []int{s} // the table leads no object there
		}
		v.states[t.States[s].Name] = s
		if t.States[s].Kind == fsm.Absent {
			v.absent = append(v.absent, s)
		}
	}
	declared := func(s int) bool { return s >= 0 && s < len(t.States) }
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Event < 0 || row.Event >= len(t.Events) || row.Then == fsm.ThenMove && !declared(row.To) ||
			len(row.Origin) > 0 && !slices.ContainsFunc(row.Origin, declared) {
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
		if t := given.Table; len(t.States) > fsm.MaxStates || len(t.Events) > fsm.MaxEvents || len(t.Actors) > fsm.MaxActors {
			return nil, fmt.Errorf("%w: table %d has too many states, events or actors", fsm.ErrInvalid, i)
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

// change is a row by the indexes of a table, with what the row leaves open: every origin and
// actor that it may have.
type change struct {
	from       int
	to         int // -1: any
	event      int // -1: any
	origins    []int
	actors     []fsm.Actor
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
// the actor is wrong, or -1.
func (v *version) find(c change) (result verdict, row int) {
	if row = v.maker(c); row >= 0 {
		return allowed, row
	}
	anyActor := c
	anyActor.actors = v.actors
	if row = v.maker(anyActor); row >= 0 && !v.isFor(row, c.actors[0]) {
		return wrongActor, row
	}
	return refused, -1
}

// maker returns a row that makes the change for one of its actors, or -1. Several rows may
// do, because no guard runs. The number of the operation decides between one that supersedes
// the operation and one that continues it.
func (v *version) maker(c change) (row int) {
	row = -1
	for _, i := range v.rows[[2]int{c.from, c.event}] {
		switch right := v.t.Rows[i].Supersede == c.renumbered; {
		case !right && row >= 0 || !v.makes(i, c):
		case right:
			return i
		default:
			row = i
		}
	}
	return row
}

// makes reports whether a request that the row may take makes the change.
func (v *version) makes(row int, c change) bool {
	for _, origin := range c.origins {
		if to, _ := v.t.After(c.from, origin, row); to != c.to && c.to >= 0 {
			continue
		}
		for _, actor := range c.actors {
			if v.isFor(row, actor) && slices.Contains(v.mayFire(c.from, origin, v.t.Rows[row].Event, actor), row) {
				return true
			}
		}
	}
	return false
}

// isFor reports whether the row is for the actor.
func (v *version) isFor(row int, actor fsm.Actor) bool {
	i, declared := v.t.ActorIndex(actor)
	actors := v.t.Rows[row].Actors
	return len(v.t.Actors) == 0 || declared && (len(actors) == 0 || slices.Contains(actors, i))
}

// mayFire returns the rows that a request may take, depending on guards and force: those up to
// the first one that takes every request.
func (v *version) mayFire(from, origin, event int, actor fsm.Actor) []int {
	rows, _ := v.t.Candidates(nil, from, origin, event, actor, true)
	for n, i := range rows {
		if v.t.Rows[i].Guard == "" && !v.t.Rows[i].Forced {
			return rows[:n+1]
		}
	}
	return rows
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

// offers lists as text the rows that may take a change to any state: for its actors, for others, or
// with another event.
func (v *version) offers(c change) string {
	others := c
	others.actors = v.actors
	all := others
	all.event = -1
	for _, c := range []change{c, others, all} {
		var list []string
		for _, i := range v.rows[[2]int{c.from, c.event}] {
			if v.makes(i, c) {
				list = append(list, v.t.Describe(i))
			}
		}
		if len(list) > 0 {
			return prose.List(list, "or")
		}
	}
	return "nothing more"
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
