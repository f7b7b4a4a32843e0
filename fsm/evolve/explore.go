package evolve

import (
	"fmt"
	"slices"
)

// maxStatuses is the largest number of pairs of state and origin.
const maxStatuses = 1 << 20

// exploration visits the statuses that nodes of both versions give to an object.
type exploration struct {
	*pair
	held    map[Withheld]bool // no caller fires these
	drained map[string]bool   // states
	index   map[status]int
	visits  []visit
	taken   int // number of visits whose steps are taken
}

// addObject stands for adding an object without an event.
var addObject = Withheld{}

// visit is a status that can occur, with the last step of a shortest path to it.
type visit struct {
	at     status
	before int // index of the visit, -1: none
	by     step
	byOld  bool // an old node writes it
}

// step is what a node of one version does on a request, and what one of the other version
// would do, for one result of the guards. It is an [Act] in keys. A step without an event
// adds an object.
type step struct {
	version       int // -1: the object is in the field already
	event, actor  string
	force         [2]bool
	from          status
	agree, refuse []string // guards
	row           [2]int   // -1: none
	result        [2]result
}

// add is the step that adds an object.
func add(version int, actor string, to status) step {
	return step{version: version, actor: actor, row: [2]int{-1, -1}, result: [2]result{{to: to}, {to: to}}}
}

// explore visits every status that can occur, nearest first. It prefers paths from no
// object to those from an object in the field. The error is [ErrTooLarge].
func (e *exploration) explore(field []visit) error {
	e.reach(-1, add(-1, "", noObject))
	for v, x := range e.versions {
		for _, s := range x.starts {
			if !e.held[addObject] {
				e.reach(0, add(v, "", status{s, s}))
			}
		}
	}
	e.spread()
	for _, v := range field {
		e.reach(-1, add(-1, "", v.at))
	}
	e.spread()
	if len(e.visits) > maxStatuses {
		return fmt.Errorf("%w: more than %d pairs of state and origin", ErrTooLarge, maxStatuses)
	}
	return nil
}

// reach visits the status to which a step leads.
func (e *exploration) reach(before int, by step) {
	at := by.result[max(by.version, 0)].to
	if e.drained[at.state] || e.drained[at.origin] {
		return
	}
	i, ok := e.index[at]
	if !ok {
		i = len(e.visits)
		e.index[at] = i
		e.visits = append(e.visits, visit{at: at, before: before, by: by})
	}
	e.visits[i].byOld = e.visits[i].byOld || by.version != newVersion
}

// spread takes the steps of all visits, until there are too many.
func (e *exploration) spread() {
	for e.taken < len(e.visits) && len(e.visits) <= maxStatuses {
		e.next()
	}
}

// next takes the steps of one visit. It does not follow a status that a version cannot read.
func (e *exploration) next() {
	at, before := e.visits[e.taken].at, e.taken
	e.taken++
	if !e.versions[oldVersion].canRead(at) || !e.versions[newVersion].canRead(at) {
		return
	}
	e.steps(at, func(s step) {
		for s.version = range e.versions {
			if !s.result[s.version].refused {
				e.reach(before, s)
			}
		}
	})
}

// steps yields what the nodes do on every request in a status, for all results of the
// guards. Callers do not fire held events. The sweeper fires the events of rows that name it.
func (e *exploration) steps(at status, yield func(step)) {
	old, new := e.versions[oldVersion], e.versions[newVersion]
	for _, event := range e.eventsIn(at) {
		oldCell, newCell := Withheld{old.source(at).state, event}, Withheld{new.source(at).state, event}
		held, swept := e.held[oldCell] || e.held[newCell], old.swept[oldCell] || new.swept[newCell]
		for _, actor := range e.roles {
			forces := [][2]bool{{false, false}, {true, true}}
			switch {
			case actor != sweeper && held, actor == sweeper && !swept:
				continue
			case actor == sweeper:
				a, b := old.deadline(at), new.deadline(at)
				forces = slices.Insert(forces, 0, [2]bool{a.event == event && a.force, b.event == event && b.force})
			}
			for _, force := range forces {
				rows := [2][]int{
					old.candidates(at, event, actor, force[oldVersion]), new.candidates(at, event, actor, force[newVersion]),
				}
				e.decide(step{event: event, actor: actor, force: force, from: at}, rows, yield)
			}
		}
	}
}

// eventsIn returns the events of the rows that leave a status, each once.
func (e *exploration) eventsIn(at status) (events []string) {
	seen := make(map[string]bool)
	for _, x := range e.versions {
		for _, row := range x.leaving[x.source(at).state] {
			if event := x.Events[x.Rows[row].Event]; !seen[event] {
				seen[event] = true
				events = append(events, event)
			}
		}
	}
	return events
}

// decide yields the steps of a request for the rows that are left to try. A guard agrees or
// refuses, and does the same in every row that has it.
func (e *exploration) decide(s step, rows [2][]int, yield func(step)) {
	for v, x := range e.versions {
		for len(rows[v]) > 0 && slices.Contains(s.refuse, x.Rows[rows[v][0]].Guard) {
			rows[v] = rows[v][1:]
		}
		if s.row[v] = -1; len(rows[v]) == 0 {
			continue
		}
		s.row[v] = rows[v][0]
		if guard := x.Rows[s.row[v]].Guard; guard != "" && !slices.Contains(s.agree, guard) {
			agrees, refuses := s, s
			agrees.agree = append(slices.Clip(s.agree), guard)
			refuses.refuse = append(slices.Clip(s.refuse), guard)
			e.decide(agrees, rows, yield)
			e.decide(refuses, rows, yield)
			return
		}
	}
	for v, x := range e.versions {
		s.result[v] = x.result(s.from, s.row[v])
	}
	yield(s)
}

// alone returns an exploration of what nodes of one version do without the other.
func (p *pair) alone(v int) *exploration {
	same := *p
	same.versions = [2]*version{p.versions[v], p.versions[v]}
	return &exploration{pair: &same, index: make(map[status]int)}
}

// rests reports whether nodes of one version alone can bring an object to rest.
func (p *pair) rests(v int, from status) bool {
	e := p.alone(v)
	for e.reach(-1, add(-1, "", from)); e.taken < len(e.visits); e.next() {
		if at := e.visits[e.taken].at; at == noObject || p.versions[v].kind(at.state).Resting() {
			return true
		}
	}
	return false
}

// path returns a shortest path to a status.
func (e *exploration) path(to status) (acts []Act) {
	for i := e.index[to]; i > 0; i = e.visits[i].before {
		acts = append(acts, e.act(e.visits[i].by))
	}
	slices.Reverse(acts)
	return acts
}

// act names a step with the names of its node's table.
func (p *pair) act(s step) Act {
	v, node := 0, ""
	if s.version >= 0 {
		v, node = s.version, versionNames[s.version]
	}
	to := s.result[v].to
	return Act{
		Node: node, Event: p.events.of(v, s.event), Actor: p.actors.of(v, s.actor), Force: s.force[v],
		Agree: p.guards.list(v, s.agree), Refuse: p.guards.list(v, s.refuse), Row: s.row[v],
		State: p.states.of(v, s.from.state), Origin: p.states.of(v, s.from.origin),
		To: p.states.of(v, to.state), ToOrigin: p.states.of(v, to.origin),
	}
}
