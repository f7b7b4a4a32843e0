package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

// machine is a machine with its versions. A state has one number in all of them, so
// that an object may continue in another version.
type machine struct {
	name     string
	states   map[string]int32
	names    []string           // by number
	versions []*version         // by since
	ends     []bool             // by number: no version has a row that leads on
	objects  map[string]*object // by id
}

// version is one version of a table with its indexes.
type version struct {
	name    string
	since   time.Time
	t       *fsm.Table
	local   []int32 // by number of a state: its index in the table, -1 for none
	events  map[string]int
	actors  map[fsm.Actor]int
	cells   map[[2]int][]int // rows by state and event
	out     [][]int          // rows by state
	origins [][]int
	absent  []int // the absent states
}

// index returns the index of a numbered state in the table, or -1 if the version does
// not have it.
func (h *version) index(number int32) int {
	if h == nil || number < 0 {
		return -1
	}
	return int(h.local[number])
}

func (h *version) transitional(number int32) bool {
	i := h.index(number)
	return i >= 0 && h.t.States[i].Kind == fsm.Transitional
}

func (h *version) resting(number int32) bool {
	i := h.index(number)
	return i >= 0 && h.t.States[i].Kind.Resting()
}

func newVersion(v TableVersion) *version {
	t := v.Table
	h := &version{
		name: v.Name, since: v.Since, t: t, events: make(map[string]int, len(t.Events)),
		actors: make(map[fsm.Actor]int, len(t.Actors)), cells: make(map[[2]int][]int),
		out: make([][]int, len(t.States)), origins: t.Origins(),
	}
	for e, name := range t.Events {
		h.events[name] = e
	}
	for a, name := range t.Actors {
		h.actors[name] = a
	}
	for s := range t.States {
		if t.States[s].Kind == fsm.Absent {
			h.absent = append(h.absent, s)
		}
	}
	declared := func(s int) bool { return s >= 0 && s < len(t.States) }
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Then == fsm.ThenMove && !declared(row.To) {
			continue
		}
		for _, from := range row.From {
			if declared(from) {
				at := [2]int{from, row.Event}
				h.cells[at] = append(h.cells[at], i)
				h.out[from] = append(h.out[from], i)
			}
		}
	}
	return h
}

// newMachines checks the tables and groups them by machine.
func newMachines(tables []TableVersion) (map[string]*machine, error) {
	machines := make(map[string]*machine)
	for i, v := range tables {
		if v.Table == nil || v.Table.Name == "" {
			return nil, fmt.Errorf("%w: table %d is nil or has no name", fsm.ErrInvalid, i)
		}
		m := machines[v.Table.Name]
		if m == nil {
			m = &machine{name: v.Table.Name, states: make(map[string]int32), objects: make(map[string]*object)}
			machines[m.name] = m
		}
		if slices.ContainsFunc(m.versions, func(h *version) bool { return h.name == v.Name }) {
			return nil, fmt.Errorf("%w: two tables of machine %s are version %s", fsm.ErrInvalid, prose.Quote(m.name), prose.Quote(v.Name))
		}
		for s := range v.Table.States {
			name := v.Table.States[s].Name
			if _, ok := m.states[name]; !ok {
				m.states[name] = int32(len(m.names))
				m.names = append(m.names, name)
			}
		}
		m.versions = append(m.versions, newVersion(v))
	}
	if len(machines) == 0 {
		return nil, fmt.Errorf("%w: no table", fsm.ErrInvalid)
	}
	for _, m := range machines {
		slices.SortStableFunc(m.versions, func(a, b *version) int { return a.since.Compare(b.since) })
		for _, h := range m.versions {
			h.local = make([]int32, len(m.names))
			for i := range h.local {
				h.local[i] = -1
			}
			for s := range h.t.States {
				h.local[m.states[h.t.States[s].Name]] = int32(s)
			}
		}
		for n := range m.names {
			m.ends = append(m.ends, !slices.ContainsFunc(m.versions, func(h *version) bool {
				return h.local[n] >= 0 && !h.over(int(h.local[n]))
			}))
		}
	}
	return machines, nil
}

// of returns the version of a row, or nil if the row names an unknown one.
func (m *machine) of(row *Row) *version {
	if row.Version == "" {
		return m.at(row.At)
	}
	for _, h := range m.versions {
		if h.name == row.Version {
			return h
		}
	}
	return nil
}

// at returns the version that applies at a time: the first one before all, and the
// last one without a time.
func (m *machine) at(at time.Time) *version {
	i := len(m.versions) - 1
	for i > 0 && !at.IsZero() && m.versions[i].since.After(at) {
		i--
	}
	return m.versions[i]
}

// number returns the number of a state, or -1 if no version has it.
func (m *machine) number(state string) int32 {
	if n, ok := m.states[state]; ok {
		return n
	}
	return -1
}

// change is a row by the indexes of a table. -1 stands for what the row or the table
// does not have.
type change struct {
	from, origin, to, event, actor int

	renumbered bool // its operation is not that of the last row
}

// verdict is the result for a change. A smaller one is better.
type verdict uint8

const (
	allowed verdict = iota
	wrongActor
	refused
)

// judge returns the row of the table that makes the change, or one for which only
// the actor is wrong, or -1. Without an actor or an event in the change, any fits.
// Several rows may fit, because judge runs no guards. The number of the operation
// decides between one that supersedes the operation and one that continues it.
func (h *version) judge(c change, named bool) (result verdict, row int) {
	result, row = refused, -1
	rows := h.out[c.from]
	if c.event >= 0 {
		rows = h.cells[[2]int{c.from, c.event}]
	}
	for _, i := range rows {
		r := &h.t.Rows[i]
		if len(r.Origin) > 0 && c.origin >= 0 && !slices.Contains(r.Origin, c.origin) || !h.leadsTo(r, c) {
			continue
		}
		mayFire := !named || len(r.Actors) == 0 && c.actor >= 0 || c.actor >= 0 && slices.Contains(r.Actors, c.actor)
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

// leadsTo reports whether the row leads to the target of the change. If the origin is
// unknown, a return row leads to every possible origin.
func (h *version) leadsTo(r *fsm.TableRow, c change) bool {
	switch r.Then {
	case fsm.ThenIgnore:
		return c.to == c.from
	case fsm.ThenReturn:
		if c.origin >= 0 {
			return c.to == c.origin && h.t.States[c.to].Kind.Resting()
		}
		_, possible := slices.BinarySearch(h.origins[c.from], c.to)
		return possible && h.t.States[c.to].Kind.Resting()
	}
	return c.to == r.To
}

// begins reports whether objects may start in a state without an event.
func (h *version) begins(state int) bool {
	if h.t.States[state].Kind == fsm.Absent {
		return false
	}
	if len(h.t.Initials) > 0 {
		return slices.Contains(h.t.Initials, state)
	}
	return state == h.t.Initial
}

// over reports whether a state ends an object: an absent state, or a final one
// without rows that lead out.
func (h *version) over(state int) bool {
	switch h.t.States[state].Kind {
	case fsm.Absent:
		return true
	case fsm.Final:
		return !slices.ContainsFunc(h.out[state], func(i int) bool { return h.t.Rows[i].Then != fsm.ThenIgnore })
	}
	return false
}

// offers lists the rows of a state as text: those of an event, or all if the event
// has none.
func (h *version) offers(state, event int) string {
	rows := h.out[state]
	if on := h.cells[[2]int{state, event}]; len(on) > 0 {
		rows = on
	}
	var list []string
	for _, i := range rows {
		list = append(list, h.offer(i))
		if len(list) > prose.Most {
			break
		}
	}
	if len(list) == 0 {
		return "nothing more"
	}
	return prose.List(list, "or")
}

func (h *version) offer(i int) string {
	r := &h.t.Rows[i]
	text := "to its origin"
	switch r.Then {
	case fsm.ThenIgnore:
		text = "nothing"
	case fsm.ThenMove:
		text = "to " + h.t.States[r.To].Name
	}
	if r.Event >= 0 && r.Event < len(h.t.Events) {
		text = h.t.Events[r.Event] + " " + text
	}
	if len(r.Actors) > 0 {
		text += " by " + h.actorsOf(i)
	}
	var origins []string
	for _, o := range r.Origin {
		if o >= 0 && o < len(h.t.States) {
			origins = append(origins, h.t.States[o].Name)
		}
	}
	if len(origins) > 0 {
		text += " if it came from " + prose.List(origins, "or")
	}
	return text
}

func (h *version) actorsOf(i int) string {
	var actors []string
	for _, a := range h.t.Rows[i].Actors {
		if a >= 0 && a < len(h.t.Actors) {
			actors = append(actors, string(h.t.Actors[a]))
		}
	}
	if len(actors) == 0 {
		return "a declared actor"
	}
	return prose.List(actors, "or")
}
