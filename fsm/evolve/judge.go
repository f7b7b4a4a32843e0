package evolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// judge finds the hazards, and the states that have to be drained.
func (p *pair) judge(e *Report, config *Config) error {
	base, err := p.heldCells(config.Hold)
	if err != nil {
		return err
	}
	alone, err := p.alone()
	if err != nil {
		return err
	}
	d := &drains{pair: p, alone: alone, base: base, held: maps.Clone(base), states: map[int]bool{}, never: map[int]bool{}}
	if err := d.settle(); err != nil {
		return err
	}
	e.Drain, e.Hold = d.list()
	e.Hazards = append(e.Hazards, slices.Concat(d.left, d.gone, renamed(e.Mapping))...)
	slices.SortStableFunc(e.Hazards, func(a, b Hazard) int { return cmp.Compare(b.Level, a.Level) })
	if len(e.Hazards) > 0 {
		e.Level = e.Hazards[0].Level
	}
	return nil
}

// settle compares the versions until draining removes no further hazard.
func (d *drains) settle() error {
	for {
		m := &exploration{pair: d.pair, plays: []int{oldVersion, newVersion}, held: d.held, drained: d.states}
		for _, v := range d.alone[oldVersion].visits {
			m.field = append(m.field, v.at)
		}
		if err := m.explore(); err != nil {
			return err
		}
		c := &comparison{exploration: m, seen: map[hazardKey]bool{}}
		c.all()
		c.strand(d.alone)
		before := len(d.states)
		for _, f := range c.found {
			known := slices.ContainsFunc(d.gone, func(h Hazard) bool { return h.key() == f.key() })
			if f.Level == NeedsDrain && (d.states[f.drain] || d.add(f.drain)) && !known {
				d.gone = append(d.gone, f.Hazard)
			}
		}
		if len(d.states) > before {
			continue // it ends, because there are only so many states
		}
		for _, f := range c.found {
			if f.Level == NeedsDrain {
				f.Level = Unsafe
				f.Message += "; the state cannot be kept empty, because objects start there or get there by themselves"
			}
			d.left = append(d.left, f.Hazard)
		}
		d.last = m
		return nil
	}
}

// renamed returns the hazards of a mapping.
func renamed(mapping []Renaming) (list []Hazard) {
	for _, r := range mapping {
		h := Hazard{ID: "renamed", Level: NeedsMapping}
		then := "each node refuses the other name"
		switch r.Subject {
		case "machine":
			then = "stores keep records under the name, and each node finds only its own"
		case "state":
			h.State, then = r.Old, "neither node reads the other's records without translation"
		case "event":
			h.Event, then = r.Old, "each node refuses requests and reports with the other name"
		}
		h.Message = fmt.Sprintf("the %s %q is called %q now: %s", r.Subject, r.Old, r.New, then)
		list = append(list, h)
	}
	return list
}

// heldCells returns the cells that the config holds.
func (p *pair) heldCells(list []Withheld) (map[cell]bool, error) {
	held := make(map[cell]bool)
	for _, w := range list {
		events := p.events.find(w.Event)
		if w.Event == "" {
			held[addObject] = true
			continue
		}
		if len(events) == 0 {
			return nil, mappingError("neither table has an event %q to hold", w.Event)
		}
		states := p.states.find(w.State)
		if w.State == "" {
			states = []int{-1}
			for s := range p.states.in[oldVersion] {
				states = append(states, s)
			}
		}
		if len(states) == 0 {
			return nil, mappingError("neither table has a state %q in which to hold %q", w.State, w.Event)
		}
		for _, e := range events {
			for _, s := range states {
				p.versions[oldVersion].hold(held, cell{s, e})
				p.versions[newVersion].hold(held, cell{s, e})
			}
		}
	}
	return held, nil
}

// find returns the numbers of a name in either table.
func (l *numbering) find(name string) (numbers []int) {
	for number := range l.in[oldVersion] {
		if l.name(oldVersion, number) == name || l.name(newVersion, number) == name {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// drains are the states to keep empty, and the events that no caller may fire so
// that they stay empty. Callers can hold back an event out of a state of rest, which
// starts an operation. They cannot hold back how an operation continues or when a
// deadline passes. So a transitional state that leads into a drained one, and a state
// with a deadline that does, are drained too.
type drains struct {
	pair       *pair
	alone      [2]*exploration
	base, held map[cell]bool // as in exploration
	states     map[int]bool
	never      map[int]bool // cannot be drained, because objects start there
	gone       []Hazard     // removed by the drained states
	left       []Hazard
	last       *exploration
}

// add drains one more state and reports whether that is possible.
func (d *drains) add(state int) bool {
	if d.never[state] {
		return false
	}
	states, held := maps.Clone(d.states), maps.Clone(d.held)
	work := []int{state}
	states[state] = true
	for len(work) > 0 {
		to := work[0]
		work = work[1:]
		for h := range d.pair.versions {
			x := &d.pair.versions[h]
			if !d.base[addObject] && slices.Contains(x.starts, to) {
				d.never[state] = true
				return false
			}
			for from, arrows := range x.from {
				for _, a := range arrows {
					at := cell{from, a.Event}
					byCaller := !d.pair.sweeperTakes(arrows, a)
					switch {
					case a.Then != fsm.ThenMove || a.To != to:
					case states[from] && from != x.absent: // the absent state creates objects nevertheless
					case byCaller && d.base[at]:
					case byCaller && x.kind(from).Resting():
						x.hold(held, at)
					case !states[from]:
						states[from] = true
						work = append(work, from)
					}
				}
			}
		}
	}
	// Neither may objects be created with a drained state as their origin: an absent state.
	for h := range d.pair.versions {
		x := &d.pair.versions[h]
		if x.absent < 0 || !states[x.absent] {
			continue
		}
		for _, a := range x.from[x.absent] {
			if a.Then == fsm.ThenMove && x.kind(a.To) == fsm.Transitional {
				x.hold(held, cell{x.absent, a.Event})
			}
		}
	}
	d.states, d.held = states, held
	return true
}

// hold holds a cell. In the absent state the event creates objects.
func (x *version) hold(held map[cell]bool, at cell) {
	held[at] = true
	if at.state == x.absent {
		held[cell{-1, at.event}] = true
	}
}

// sweeperTakes reports whether the sweeper may take a row: the row has a deadline, or a
// row of the same cell has one and the sweeper may fire this row.
func (p *pair) sweeperTakes(arrows []*arrow, a *arrow) bool {
	if a.Timeout > 0 {
		return true
	}
	return slices.ContainsFunc(p.sweepers, func(sweeper int) bool { return slices.Contains(a.Actors, sweeper) }) &&
		slices.ContainsFunc(arrows, func(b *arrow) bool { return b.Timeout > 0 && b.Event == a.Event })
}

// list names the states that objects have to leave, and the events that lead there.
// States that only the new table has are empty at the start.
func (d *drains) list() (drain []string, hold []Withheld) {
	p, reached := d.pair, map[int]bool{}
	for at := range d.last.index {
		reached[at.state] = true
	}
	drain, hold = []string{}, []Withheld{}
	for state := range p.states.in[oldVersion] {
		if d.states[state] && p.versions[oldVersion].here[state] {
			drain = append(drain, p.states.name(oldVersion, state))
		}
	}
	added := make([]cell, 0, len(d.held))
	for at := range d.held {
		if d.base[at] {
			continue
		}
		for h := range p.versions {
			if at.state < 0 { // an event that creates objects
				at.state = p.versions[h].absent
			}
		}
		absent := at.state == p.versions[oldVersion].absent || at.state == p.versions[newVersion].absent
		if reached[at.state] || absent {
			added = append(added, at)
		}
	}
	slices.SortFunc(added, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.event, b.event))
	})
	for _, at := range slices.Compact(added) {
		hold = append(hold, Withheld{p.states.name(oldVersion, at.state), p.events.name(oldVersion, at.event)})
	}
	return drain, hold
}

// strand finds objects that one version alone cannot bring to rest. If a version
// gets there by itself, the fault is in its table and not in the change.
func (c *comparison) strand(alone [2]*exploration) {
	stuck := func(h int, at status) bool {
		x := &c.versions[h]
		return at != noObject && x.canRead(at) && !x.kind(at.state).Resting() && !alone[h].rests(h, at)
	}
	for _, v := range c.visits {
		var stays [2]bool
		faulty := false
		for h := range alone {
			_, gets := alone[h].index[v.at]
			stays[h] = stuck(h, v.at)
			faulty = faulty || gets && stays[h]
		}
		for h := range alone {
			if faulty || !stays[h] {
				continue
			}
			state, origin := c.states.name(h, v.at.state), c.states.name(h, v.at.origin)
			c.add(Hazard{
				ID: "stranded", Level: Unsafe, State: state, Witness: c.path(v.at),
				Message: fmt.Sprintf("no %s node can bring an object in %q to rest that has the origin %q", versionNames[h], state, origin),
			}, -1)
		}
	}
}

// rests reports whether the rows of one version lead to rest from a status.
func (m *exploration) rests(h int, from status) bool {
	x := &m.versions[h]
	seen := map[status]bool{from: true}
	for work := []status{from}; len(work) > 0; {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if at == noObject || x.kind(at.state).Resting() {
			return true
		}
		m.steps(h, at, func(s step) {
			if !seen[s.to] {
				seen[s.to] = true
				work = append(work, s.to)
			}
		})
	}
	return false
}
