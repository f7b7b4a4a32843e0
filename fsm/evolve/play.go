package evolve

import (
	"cmp"
	"fmt"
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

func (x *version) kind(state int) fsm.Kind { return x.t.States[state].Kind }

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
	return x.here[at.origin] && x.kind(at.state) == fsm.Transitional
}

// source returns the status in which rows are tried: the absent state if no object
// exists. It returns false if the version has no absent state.
func (x *version) source(at status) (status, bool) {
	if at == noObject {
		return status{x.absent, x.absent}, x.absent >= 0
	}
	return at, true
}

// after returns the status after a row.
func (x *version) after(a *arrow, at status) status {
	if a.Then == fsm.ThenIgnore {
		return at
	}
	from, _ := x.source(at)
	var to status
	if to.state, to.origin = x.t.After(from.state, from.origin, a.row); x.kind(to.state) == fsm.Absent {
		return noObject
	}
	return to
}

// begins reports whether the row starts an operation.
func (x *version) begins(a *arrow, to status) bool {
	return a.Then != fsm.ThenIgnore && to != noObject && x.kind(to.state) == fsm.Transitional &&
		(x.kind(a.from).Resting() || a.Supersede)
}

// deadline returns the row of the next deadline, or nil.
func (x *version) deadline(at status) *arrow {
	if at == noObject {
		return nil
	}
	if _, row := x.t.Deadline(at.state, at.origin); row >= 0 {
		return &arrow{&x.t.Rows[row], row, at.state}
	}
	return nil
}

// events lists the events of the rows that leave a status in one of the versions.
func events(at status, versions ...*version) []int {
	var rows [][]*arrow
	for _, x := range versions {
		if from, ok := x.source(at); ok {
			rows = append(rows, x.from[from.state])
		}
	}
	return eventsOf(rows...)
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
	plays   []int         // the versions
	held    map[cell]bool // no caller fires these
	drained map[int]bool  // states
	field   []status      // the statuses of objects at the start
	index   map[status]int
	visits  []visit
	taken   int // number of visits whose steps are taken
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

// explore visits every status that can occur, nearest first. The error is [ErrTooLarge].
func (m *exploration) explore() error {
	m.index = make(map[status]int)
	m.reach(noObject, -1, step{version: -1, from: noObject, to: noObject})
	for _, h := range m.plays {
		for _, s := range m.versions[h].starts {
			if to := (status{s, s}); !m.held[addObject] {
				m.reach(to, 0, step{version: h, actor: -1, from: noObject, to: to})
			}
		}
	}
	m.spread()
	for _, at := range m.field {
		m.reach(at, -1, step{version: -1, from: noObject, to: at})
	}
	m.spread()
	if len(m.visits) > maxStatuses {
		return fmt.Errorf("%w: more than %d pairs of state and origin", ErrTooLarge, maxStatuses)
	}
	return nil
}

// alone explores what the nodes of each version do without the other. What old nodes may
// have left behind is in the field: an operator may have put an object into a state of rest
// to which no row leads.
func (p *pair) alone() (alone [2]*exploration, err error) {
	for h := range alone {
		alone[h] = &exploration{pair: p, plays: []int{h}}
	}
	old := &p.versions[oldVersion]
	for s, here := range old.here {
		if here && old.kind(s).Resting() && old.kind(s) != fsm.Absent {
			alone[oldVersion].field = append(alone[oldVersion].field, status{s, s})
		}
	}
	return alone, cmp.Or(alone[oldVersion].explore(), alone[newVersion].explore())
}

// spread takes the steps of the visits, until there are too many.
func (m *exploration) spread() {
	for ; m.taken < len(m.visits) && len(m.visits) <= maxStatuses; m.taken++ {
		at := m.visits[m.taken].at
		for _, h := range m.plays {
			if m.versions[h].canRead(at) {
				m.steps(h, at, func(s step) { m.reach(s.to, m.taken, s) })
			}
		}
	}
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
	found := make(map[int]step) // by row
	for _, event := range events(at, x) {
		for _, actor := range m.trial {
			if m.withheld(at, event) && !(late != nil && late.Event == event && m.sweeper(actor)) {
				continue
			}
			for _, force := range []bool{false, true} {
				var refuse []string
				for _, a := range x.candidates(at, event, actor, force) {
					s := m.step(h, a, actor, at)
					if _, again := found[a.row]; !again && a.Forced == force {
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
	s := step{version: h, row: a, actor: actor, forced: a.Forced, from: at, to: x.after(a, at)}
	if guard := x.given.Rows[a.row].Guard; guard != "" {
		s.agree = []string{guard}
	}
	return s
}

// fitting returns the rows that a request may take if their guards agree, in order of
// trial.
func (x *version) fitting(at status, event, actor int, force bool) (list []*arrow) {
	from, ok := x.source(at)
	if !ok {
		return nil
	}
	rows, _ := x.t.Candidates(nil, from.state, from.origin, event, x.t.Actors[actor], force)
	for _, row := range rows {
		list = append(list, &arrow{&x.t.Rows[row], row, from.state})
	}
	return list
}

// candidates returns the fitting rows up to the first without a guard. A row cannot fire if
// one before it has the same guard.
func (x *version) candidates(at status, event, actor int, force bool) (list []*arrow) {
	for _, a := range x.fitting(at, event, actor, force) {
		if slices.ContainsFunc(list, func(b *arrow) bool { return b.Guard == a.Guard }) {
			continue
		}
		list = append(list, a)
		if a.Guard == "" {
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
		a.Event, a.Row = p.events.name(h, s.row.Event), s.row.row
	}
	if s.actor >= 0 && s.version >= 0 {
		a.Actor = p.actors.name(h, s.actor)
	}
	return a
}
