package evolve

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// judge finds the hazards, and the states that have to be drained. It compares the versions
// until draining removes no further hazard.
func (p *pair) judge(r *Report, config *Config) error {
	base, err := p.heldCells(config.Hold)
	if err != nil {
		return err
	}
	alone := [2]*exploration{p.alone(oldVersion), p.alone(newVersion)}
	if err := cmp.Or(alone[oldVersion].explore(p.untouched()), alone[newVersion].explore(nil)); err != nil {
		return err
	}
	d := &drains{pair: p, base: base, held: base, empty: map[string]bool{}}
	for drained := true; drained; { // it ends, because there are only so many states
		e := &exploration{pair: p, held: d.held, drained: d.empty, index: make(map[status]int)}
		if err := e.explore(alone[oldVersion].visits); err != nil {
			return err
		}
		var left []Hazard
		drained = false
		for _, f := range e.hazards(alone) {
			switch {
			case f.Level != NeedsDrain:
				left = append(left, f.Hazard)
			case d.empty[f.state] || d.add(f.state):
				drained = true
				r.Hazards = append(r.Hazards, f.Hazard)
			default:
				f.Level = Unsafe
				f.Message += "; the state cannot be kept empty, because objects start there or get there by themselves"
				left = append(left, f.Hazard)
			}
		}
		if !drained {
			r.Hazards = append(r.Hazards, left...)
			r.Drain, r.Hold = d.list(e)
		}
	}
	r.Hazards = append(r.Hazards, renamings(r.Mapping)...)
	slices.SortStableFunc(r.Hazards, func(a, b Hazard) int { return cmp.Compare(b.Level, a.Level) })
	if len(r.Hazards) > 0 {
		r.Level = r.Hazards[0].Level
	}
	return nil
}

// untouched returns the old states of rest: an operator may have put an object there, also
// if no row leads there.
func (p *pair) untouched() (list []visit) {
	for _, s := range p.versions[oldVersion].States {
		if s.Kind.Resting() && s.Kind != fsm.Absent {
			list = append(list, visit{at: status{s.Name, s.Name}})
		}
	}
	return list
}

// heldCells returns the cells that the config holds.
func (p *pair) heldCells(list []Withheld) (map[Withheld]bool, error) {
	held := make(map[Withheld]bool)
	for _, w := range list {
		events, states := p.events.called(w.Event), p.states.called(w.State)
		if w.State == "" {
			states = p.states.keys
		}
		switch {
		case w.Event == "":
			held[addObject] = true
		case len(events) == 0:
			return nil, mappingError("neither table has an event %q to hold", w.Event)
		case len(states) == 0:
			return nil, mappingError("neither table has a state %q in which to hold %q", w.State, w.Event)
		}
		for _, state := range states {
			for _, event := range events {
				held[Withheld{state, event}] = true
			}
		}
	}
	return held, nil
}

// drains are the states to keep empty, and the events that no caller may fire so that they
// stay empty. Callers can hold back an event out of a state of rest, which starts an
// operation. They cannot hold back how an operation continues or when a deadline passes.
// So a transitional state that leads into a drained one, and a state with a deadline that
// does, are drained too.
type drains struct {
	*pair
	base, held map[Withheld]bool // as in exploration
	empty      map[string]bool   // states
}

// add drains one more state and reports whether that is possible: no object starts in it.
func (d *drains) add(state string) bool {
	try := &drains{pair: d.pair, base: d.base, held: maps.Clone(d.held), empty: maps.Clone(d.empty)}
	try.empty[state] = true
	for work := []string{state}; len(work) > 0; work = work[1:] {
		for _, x := range d.versions {
			if !d.base[addObject] && slices.Contains(x.starts, work[0]) {
				return false
			}
			work = append(work, try.lead(x, work[0])...)
		}
	}
	d.held, d.empty = try.held, try.empty
	return true
}

// lead holds the events that lead into a drained state. It returns the states that are
// drained because an event out of them cannot be held.
func (d *drains) lead(x *version, to string) (more []string) {
	for from, rows := range x.leaving {
		for _, row := range rows {
			r := &x.Rows[row]
			at := Withheld{from, x.Events[r.Event]}
			swept := x.swept[at] && x.allows(r, sweeper)
			creates := from == x.absent && from == to && r.Then == fsm.ThenMove && x.States[r.To].Kind == fsm.Transitional
			switch {
			case creates: // the drained state would be the origin
				d.held[at] = true
			case r.Then != fsm.ThenMove || x.States[r.To].Name != to, !swept && d.base[at]:
			case !swept && x.kind(from).Resting():
				d.held[at] = true
			case !d.empty[from]:
				d.empty[from] = true
				more = append(more, from)
			}
		}
	}
	return more
}

// list names the states that objects have to leave, and the events that lead there from a
// state in which there are objects. States that only the new table has are empty at the start.
func (d *drains) list(e *exploration) (drain []string, hold []Withheld) {
	drain, hold = []string{}, []Withheld{}
	if len(d.empty) == 0 {
		return drain, hold
	}
	left := map[string]bool{d.versions[oldVersion].absent: true, d.versions[newVersion].absent: true}
	for _, v := range e.visits {
		left[v.at.state] = true
	}
	for _, state := range d.states.keys {
		if d.empty[state] && d.states.in(oldVersion, state) {
			drain = append(drain, d.states.of(oldVersion, state))
		}
		for _, event := range d.events.keys {
			if at := (Withheld{state, event}); left[state] && d.held[at] && !d.base[at] {
				hold = append(hold, Withheld{d.states.of(oldVersion, state), d.events.of(oldVersion, event)})
			}
		}
	}
	return drain, hold
}
