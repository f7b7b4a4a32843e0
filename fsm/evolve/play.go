package evolve

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// maxStatuses is the largest number of pairs of state and origin.
const maxStatuses = 1 << 20

// mixStatus is the state and origin of an object in the common numbering. State -1
// stands for no object.
type mixStatus struct{ state, origin int }

var noObject = mixStatus{-1, -1}

// knows reports whether a node of this version can read a record.
func (x *half) knows(at mixStatus) bool {
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
func (x *half) source(at mixStatus) (mixStatus, bool) {
	if at == noObject {
		return mixStatus{x.absent, x.absent}, x.absent >= 0
	}
	return at, true
}

// fits reports whether an object with this origin may take the row.
func (x *half) fits(a *arrow, origin int) bool {
	if a.origin != nil {
		if _, ok := slices.BinarySearch(a.origin, origin); !ok {
			return false
		}
	}
	return a.then != fsm.ThenReturn || x.kind[origin].Resting()
}

// after returns the status after a row.
func (x *half) after(a *arrow, at mixStatus) mixStatus {
	if a.then == fsm.ThenIgnore {
		return at
	}
	from, _ := x.source(at)
	to := mixStatus{from.origin, from.origin}
	if a.then == fsm.ThenMove {
		switch {
		case x.kind[a.to].Resting():
			to = mixStatus{a.to, a.to}
		case x.kind[from.state].Resting():
			to = mixStatus{a.to, from.state}
		default:
			to = mixStatus{a.to, from.origin}
		}
	}
	if x.kind[to.state] == fsm.Absent {
		return noObject
	}
	return to
}

// begins reports whether the row starts an operation.
func (x *half) begins(a *arrow, to mixStatus) bool {
	return a.then != fsm.ThenIgnore && to != noObject && x.kind[to.state] == fsm.Transitional &&
		(x.kind[a.from].Resting() || a.supersede)
}

// deadline returns the row of the next deadline: the one with the shortest timeout,
// the first declared among equals.
func (x *half) deadline(at mixStatus) *arrow {
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

// mix plays nodes of one or both versions on one object.
type mix struct {
	j       *joint
	plays   [2]bool
	held    map[[2]int]bool // state (the absent ones are -1) and event (adding is -1)
	drained map[int]bool    // states
	field   []mixStatus     // the statuses of objects at the start
	index   map[mixStatus]int
	visits  []visit
}

// visit is a status that can occur, with the last step of a shortest way to it.
type visit struct {
	at     mixStatus
	before int // index of the visit, -1 none
	act    mixStep
	border bool // a step leads here from a status that both versions can read
	byOld  bool // an old node writes it
}

// mixStep is an [Act] in numbers.
type mixStep struct {
	half   int    // -1: the object is in the field already
	row    *arrow // nil: the node adds the object
	actor  int    // -1: none
	forced bool
	agree  []string
	refuse []string
	from   mixStatus
	to     mixStatus
}

// explore visits every status that can occur, nearest first. It reports whether there
// were few enough.
func (m *mix) explore() bool {
	m.index = make(map[mixStatus]int)
	m.reach(noObject, -1, mixStep{half: -1, from: noObject, to: noObject})
	for h := range m.j.halves {
		x := &m.j.halves[h]
		if !m.plays[h] || m.held[[2]int{-1, -1}] {
			continue
		}
		for _, s := range x.starts {
			to := mixStatus{s, s}
			m.reach(to, 0, mixStep{half: h, actor: -1, from: noObject, to: to})
		}
	}
	next := 0
	if next = m.spread(next); next < 0 {
		return false
	}
	for _, at := range m.field {
		m.reach(at, -1, mixStep{half: -1, from: noObject, to: at})
	}
	return m.spread(next) >= 0
}

// inField lists every status that old nodes alone may have left behind. An operator
// may have put an object into a state of rest to which no row leads.
func (j *joint) inField() ([]mixStatus, error) {
	m := &mix{j: j, plays: [2]bool{oldHalf: true}}
	old := &j.halves[oldHalf]
	for s, here := range old.here {
		if here && old.kind[s].Resting() && old.kind[s] != fsm.Absent {
			m.field = append(m.field, mixStatus{s, s})
		}
	}
	if !m.explore() {
		return nil, ErrTooLarge
	}
	field := make([]mixStatus, len(m.visits))
	for i := range m.visits {
		field[i] = m.visits[i].at
	}
	return field, nil
}

// spread takes the steps from every visit from a place on.
func (m *mix) spread(next int) int {
	for ; next < len(m.visits); next++ {
		if len(m.visits) > maxStatuses {
			return -1
		}
		at := m.visits[next].at
		for h := range m.j.halves {
			if m.plays[h] && m.j.halves[h].knows(at) {
				m.steps(h, at, func(s mixStep) { m.reach(s.to, next, s) })
			}
		}
	}
	return next
}

func (m *mix) reach(at mixStatus, before int, by mixStep) {
	if m.drained[at.state] || m.drained[at.origin] {
		return
	}
	i, ok := m.index[at]
	if !ok {
		i = len(m.visits)
		m.index[at] = i
		m.visits = append(m.visits, visit{at: at, before: before, act: by})
	}
	if before < 0 || m.j.halves[oldHalf].knows(m.visits[before].at) && m.j.halves[newHalf].knows(m.visits[before].at) {
		m.visits[i].border = true
	}
	m.visits[i].byOld = m.visits[i].byOld || by.half != newHalf
}

// steps yields the steps of a node of one version, each row once, with the first
// actor that can fire it.
func (m *mix) steps(h int, at mixStatus, yield func(mixStep)) {
	x := &m.j.halves[h]
	from, ok := x.source(at)
	if !ok {
		return
	}
	late := x.deadline(at)
	arrows := x.from[from.state]
	for i := range arrows {
		a := &arrows[i]
		if !x.fits(a, from.origin) {
			continue
		}
		sweeps := late != nil && late.event == a.event
		for actor := range m.j.actors.in[h] {
			if !a.actors.Has(actor) || m.withheld(at, a.event) && !(sweeps && m.sweeper(actor)) {
				continue
			}
			if agree, refuse, ok := x.chosen(arrows, i, from.origin, actor); ok {
				yield(mixStep{
					half: h, row: a, actor: actor, forced: a.forced, agree: agree, refuse: refuse,
					from: at, to: x.after(a, at),
				})
				break
			}
		}
	}
}

// chosen returns the results of the guards with which a row fires for an actor, by
// force if the row needs it. ok is false if there are none.
func (x *half) chosen(arrows []arrow, i, origin, actor int) (agree, refuse []string, ok bool) {
	a := &arrows[i]
	for k := range i {
		b := &arrows[k]
		if b.event != a.event || !b.actors.Has(actor) || b.forced && !a.forced || !x.fits(b, origin) {
			continue
		}
		if b.guard == "" || b.guard == a.guard {
			return nil, nil, false
		}
		refuse = append(refuse, x.t.Rows[b.row].Guard)
	}
	if a.guard != "" {
		agree = []string{x.t.Rows[a.row].Guard}
	}
	return agree, refuse, true
}

func (m *mix) withheld(at mixStatus, event int) bool { return m.held[[2]int{at.state, event}] }

func (m *mix) sweeper(actor int) bool {
	return m.j.name(&m.j.actors, oldHalf, actor) == string(fsm.Sweeper)
}

// way returns a shortest way to a status, with further steps.
func (m *mix) way(at mixStatus, then ...mixStep) []Act {
	var acts []Act
	for i := m.index[at]; i >= 0; i = m.visits[i].before {
		if v := &m.visits[i]; v.at != noObject || v.act.half >= 0 {
			acts = append(acts, m.j.act(&v.act))
		}
	}
	slices.Reverse(acts)
	for i := range then {
		acts = append(acts, m.j.act(&then[i]))
	}
	return acts
}

// act names a step with the names of its node's table.
func (j *joint) act(s *mixStep) Act {
	h := max(s.half, 0)
	a := Act{
		Row: -1, Agree: s.agree, Refuse: s.refuse, Force: s.forced,
		State: j.state(h, s.from.state), Origin: j.state(h, s.from.origin),
		To: j.state(h, s.to.state), ToOrigin: j.state(h, s.to.origin),
	}
	if s.half >= 0 {
		a.Node = halfNames[s.half]
	}
	if s.row != nil {
		a.Event, a.Row = j.name(&j.events, h, s.row.event), s.row.row
	}
	if s.actor >= 0 && s.half >= 0 {
		a.Actor = j.name(&j.actors, h, s.actor)
	}
	return a
}
