package evolve

import (
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// maxStatuses is the largest number of pairs of state and origin.
const maxStatuses = 1 << 20

// status is the state and origin of an object in the common numbering. State -1
// stands for no object.
type status struct{ state, origin int }

var noObject = status{-1, -1}

// canRead reports whether a node of this version can read a record.
func (x *version) canRead(at status) bool {
	switch {
	case at == noObject:
		return true
	case !x.here[at.state]:
		return false
	case at.origin == at.state:
		return true
	}
	return x.here[at.origin] && x.kind[at.state] == fsm.Transitional
}

// source returns the status in which rows are tried: the absent state if no object
// exists. It returns false if the version has no absent state.
func (x *version) source(at status) (status, bool) {
	if at == noObject {
		return status{x.absent, x.absent}, x.absent >= 0
	}
	return at, true
}

// fits reports whether an object with this origin may take the row.
func (x *version) fits(a *arrow, origin int) bool {
	if a.origin != nil {
		if _, ok := slices.BinarySearch(a.origin, origin); !ok {
			return false
		}
	}
	return a.then != fsm.ThenReturn || x.kind[origin].Resting()
}

// after returns the status after a row.
func (x *version) after(a *arrow, at status) status {
	if a.then == fsm.ThenIgnore {
		return at
	}
	from, _ := x.source(at)
	to := status{from.origin, from.origin}
	if a.then == fsm.ThenMove {
		switch {
		case x.kind[a.to].Resting():
			to = status{a.to, a.to}
		case x.kind[from.state].Resting():
			to = status{a.to, from.state}
		default:
			to = status{a.to, from.origin}
		}
	}
	if x.kind[to.state] == fsm.Absent {
		return noObject
	}
	return to
}

// begins reports whether the row starts an operation.
func (x *version) begins(a *arrow, to status) bool {
	return a.then != fsm.ThenIgnore && to != noObject && x.kind[to.state] == fsm.Transitional &&
		(x.kind[a.from].Resting() || a.supersede)
}

// deadline returns the row of the next deadline: the one with the shortest timeout,
// the first declared among equals.
func (x *version) deadline(at status) *arrow {
	var first *arrow
	if at == noObject || !x.here[at.state] {
		return nil
	}
	arrows := x.from[at.state]
	for i := range arrows {
		if a := &arrows[i]; a.within > 0 && (first == nil || a.within < first.within) && x.fits(a, at.origin) {
			first = a
		}
	}
	return first
}

// cell is a state and an event. State -1 is no object: the absent states of both
// versions. Event -1 adds an object.
type cell struct{ state, event int }

// addObject is the cell of adding an object without an event.
var addObject = cell{-1, -1}

// exploration visits the statuses that nodes of one or both versions give to an
// object.
type exploration struct {
	*pair
	plays   [2]bool
	held    map[cell]bool // no caller fires these
	drained map[int]bool  // states
	field   []status      // the statuses of objects at the start
	index   map[status]int
	visits  []visit
}

// visit is a status that can occur, with the last step of a shortest path to it.
type visit struct {
	at     status
	before int // index of the visit, -1 none
	act    step
	border bool // a step leads here from a status that both versions can read
	byOld  bool // an old node writes it
}

// step is an [Act] in numbers.
type step struct {
	version int    // -1: the object is in the field already
	row     *arrow // nil: the node adds the object
	actor   int    // -1: none
	forced  bool
	agree   []string
	refuse  []string
	from    status
	to      status
}

// explore visits every status that can occur, nearest first. It reports whether there
// were few enough.
func (m *exploration) explore() bool {
	m.index = make(map[status]int)
	m.reach(noObject, -1, step{version: -1, from: noObject, to: noObject})
	for h := range m.versions {
		x := &m.versions[h]
		if !m.plays[h] || m.held[addObject] {
			continue
		}
		for _, s := range x.starts {
			to := status{s, s}
			m.reach(to, 0, step{version: h, actor: -1, from: noObject, to: to})
		}
	}
	next := 0
	if next = m.spread(next); next < 0 {
		return false
	}
	for _, at := range m.field {
		m.reach(at, -1, step{version: -1, from: noObject, to: at})
	}
	return m.spread(next) >= 0
}

// alone explores what the nodes of each version do without the other. What old nodes may
// have left behind is in the field: an operator may have put an object into a state of rest
// to which no row leads.
func (p *pair) alone() (alone [2]*exploration, err error) {
	for h := range alone {
		alone[h] = &exploration{pair: p}
		alone[h].plays[h] = true
	}
	old := &p.versions[oldVersion]
	for s, here := range old.here {
		if here && old.kind[s].Resting() && old.kind[s] != fsm.Absent {
			alone[oldVersion].field = append(alone[oldVersion].field, status{s, s})
		}
	}
	if !alone[oldVersion].explore() || !alone[newVersion].explore() {
		return alone, ErrTooLarge
	}
	return alone, nil
}

// spread takes the steps of every visit, from the visit next on.
func (m *exploration) spread(next int) int {
	for ; next < len(m.visits); next++ {
		if len(m.visits) > maxStatuses {
			return -1
		}
		at := m.visits[next].at
		for h := range m.versions {
			if m.plays[h] && m.versions[h].canRead(at) {
				m.steps(h, at, func(s step) { m.reach(s.to, next, s) })
			}
		}
	}
	return next
}

func (m *exploration) reach(at status, before int, by step) {
	if m.drained[at.state] || m.drained[at.origin] {
		return
	}
	i, ok := m.index[at]
	if !ok {
		i = len(m.visits)
		m.index[at] = i
		m.visits = append(m.visits, visit{at: at, before: before, act: by})
	}
	if before < 0 || m.versions[oldVersion].canRead(m.visits[before].at) && m.versions[newVersion].canRead(m.visits[before].at) {
		m.visits[i].border = true
	}
	m.visits[i].byOld = m.visits[i].byOld || by.version != newVersion
}

// steps yields the steps of a node of one version, each row once, with the first
// actor that can fire it.
func (m *exploration) steps(h int, at status, yield func(step)) {
	x := &m.versions[h]
	late := x.deadline(at)
	_, cells := x.rowsAt(at)
	found := make(map[int]step) // by row
	for event, cell := range cells {
		for _, actor := range m.trial {
			if m.withheld(at, event) && !(late != nil && late.event == event && m.sweeper(actor)) {
				continue
			}
			for _, force := range []bool{false, true} {
				var refuse []string
				for _, a := range candidates(cell, actor, force) {
					s := m.step(h, a, actor, at)
					if _, again := found[a.row]; !again && a.forced == force {
						s.refuse = slices.Clip(refuse)
						found[a.row] = s
					}
					refuse = append(refuse, s.agree...)
				}
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(found)) {
		yield(found[row])
	}
}

// step is that of a node of one version that takes a row.
func (p *pair) step(h int, a *arrow, actor int, at status) step {
	x := &p.versions[h]
	s := step{version: h, row: a, actor: actor, forced: a.forced, from: at, to: x.after(a, at)}
	if guard := x.t.Rows[a.row].Guard; guard != "" {
		s.agree = []string{guard}
	}
	return s
}

// rowsAt returns the rows of a state, and by event those that an object of this origin may
// take, in order of trial.
func (x *version) rowsAt(at status) (rows []arrow, cells map[int][]*arrow) {
	from, ok := x.source(at)
	if !ok {
		return nil, nil
	}
	rows, cells = x.from[from.state], make(map[int][]*arrow)
	for i := range rows {
		if a := &rows[i]; x.fits(a, from.origin) {
			cells[a.event] = append(cells[a.event], a)
		}
	}
	return rows, cells
}

// candidates returns the rows that a request may take, in order of trial, up to the
// first without a guard. A row cannot fire if one before it has the same guard.
func candidates(cell []*arrow, actor int, force bool) (list []*arrow) {
	for _, a := range cell {
		same := func(b *arrow) bool { return b.guard == a.guard }
		if !a.actors.Has(actor) || a.forced && !force || slices.ContainsFunc(list, same) {
			continue
		}
		list = append(list, a)
		if a.guard < 0 {
			break
		}
	}
	return list
}

func (m *exploration) withheld(at status, event int) bool { return m.held[cell{at.state, event}] }

// path returns a shortest path to a status, with further steps.
func (m *exploration) path(at status, then ...step) []Act {
	var acts []Act
	for i := m.index[at]; i >= 0; i = m.visits[i].before {
		if v := &m.visits[i]; v.at != noObject || v.act.version >= 0 {
			acts = append(acts, m.act(&v.act))
		}
	}
	slices.Reverse(acts)
	for i := range then {
		acts = append(acts, m.act(&then[i]))
	}
	return acts
}

// act names a step with the names of its node's table.
func (p *pair) act(s *step) Act {
	h := max(s.version, 0)
	a := Act{
		Row: -1, Agree: s.agree, Refuse: s.refuse, Force: s.forced,
		State: p.states.name(h, s.from.state), Origin: p.states.name(h, s.from.origin),
		To: p.states.name(h, s.to.state), ToOrigin: p.states.name(h, s.to.origin),
	}
	if s.version >= 0 {
		a.Node = versionNames[s.version]
	}
	if s.row != nil {
		a.Event, a.Row = p.events.name(h, s.row.event), s.row.row
	}
	if s.actor >= 0 && s.version >= 0 {
		a.Actor = p.actors.name(h, s.actor)
	}
	return a
}
