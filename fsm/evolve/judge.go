package evolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// judge finds the hazards, and the states that have to be drained.
func (j *joint) judge(e *Report, config *Config) error {
	base, err := j.withheld(config.Hold)
	if err != nil {
		return err
	}
	field, err := j.inField()
	if err != nil {
		return err
	}
	d := &drains{j: j, field: field, base: base, held: maps.Clone(base), states: map[int]bool{}, never: map[int]bool{}}
	if err := d.settle(); err != nil {
		return err
	}
	e.Drain, e.Hold = d.list()
	e.Hazards = append(d.hazards(), renamed(e.Mapping)...)
	slices.SortStableFunc(e.Hazards, func(a, b Hazard) int { return cmp.Compare(b.Level, a.Level) })
	e.Level = worst(e.Hazards)
	return nil
}

func worst(list []Hazard) (level Compatibility) {
	for _, h := range list {
		level = max(level, h.Level)
	}
	return level
}

// settle compares the versions until draining removes no further hazard.
func (d *drains) settle() error {
	for {
		m := &mix{j: d.j, plays: [2]bool{true, true}, held: d.held, drained: d.states, field: d.field}
		if !m.explore() {
			return ErrTooLarge
		}
		c := &comparison{mix: m, seen: map[[3]string]bool{}}
		c.all()
		if err := c.strand(); err != nil {
			return err
		}
		before := len(d.states)
		for _, f := range c.found {
			if f.drain >= 0 && f.Level == NeedsDrain && (d.states[f.drain] || d.add(f.drain)) {
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

// hazards returns the remaining hazards and those that the drained states removed.
func (d *drains) hazards() []Hazard { return append(slices.Clone(d.left), distinct(d.gone)...) }

// distinct removes hazards that appear twice.
func distinct(list []Hazard) (out []Hazard) {
	seen := map[[3]string]bool{}
	for _, h := range list {
		if key := [3]string{h.ID, h.State, h.Event}; !seen[key] {
			seen[key] = true
			out = append(out, h)
		}
	}
	return out
}

// renamed returns the hazards of a mapping.
func renamed(mapping []Renaming) (list []Hazard) {
	for _, r := range mapping {
		h := Hazard{ID: Renamed, Level: NeedsMapping}
		switch r.Subject {
		case "machine":
			h.Message = fmt.Sprintf("the machine %q is called %q now: stores keep records under the name, and each node finds only its own", r.Old, r.New)
		case "state":
			h.State = r.Old
			h.Message = fmt.Sprintf("the state %q is called %q now: neither node reads the other's records without translation", r.Old, r.New)
		case "event":
			h.Event = r.Old
			h.Message = fmt.Sprintf("the event %q is called %q now: each node refuses requests and reports with the other name", r.Old, r.New)
		default:
			h.Message = fmt.Sprintf("the %s %q is called %q now: each node refuses the other name", r.Subject, r.Old, r.New)
		}
		list = append(list, h)
	}
	return list
}

// withheld resolves names. State -1 is no object, event -1 adds one.
func (j *joint) withheld(list []Withheld) (map[[2]int]bool, error) {
	held := make(map[[2]int]bool)
	for _, w := range list {
		events := j.find(&j.events, w.Event)
		if w.Event == "" {
			held[[2]int{-1, -1}] = true
			continue
		}
		if len(events) == 0 {
			return nil, mappingError("neither table has an event %q to hold", w.Event)
		}
		states := j.find(&j.states, w.State)
		if w.State == "" {
			states = []int{-1}
			for s := range j.states.in[oldHalf] {
				states = append(states, s)
			}
		}
		if len(states) == 0 {
			return nil, mappingError("neither table has a state %q in which to hold %q", w.State, w.Event)
		}
		for _, e := range events {
			for _, s := range states {
				held[[2]int{s, e}] = true
				if j.halves[oldHalf].absent == s || j.halves[newHalf].absent == s {
					held[[2]int{-1, e}] = true
				}
			}
		}
	}
	return held, nil
}

// find returns the numbers of a name in either table.
func (j *joint) find(l *ids, name string) (numbers []int) {
	for number := range l.in[oldHalf] {
		for h := range j.halves {
			if l.in[h][number] >= 0 && j.name(l, h, number) == name && !slices.Contains(numbers, number) {
				numbers = append(numbers, number)
			}
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
	j          *joint
	field      []mixStatus
	base, held map[[2]int]bool // as in mix
	states     map[int]bool
	never      map[int]bool // cannot be drained, because objects start there
	gone       []Hazard     // removed by the drained states
	left       []Hazard
	last       *mix
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
		for h := range d.j.halves {
			x := &d.j.halves[h]
			if slices.Contains(x.starts, to) {
				d.never[state] = true
				return false
			}
			for from, arrows := range x.from {
				for i := range arrows {
					a := &arrows[i]
					cell := [2]int{from, a.event}
					asked := !d.j.swept(arrows, a)
					switch {
					case a.then != fsm.ThenMove || a.to != to || states[from]:
					case asked && d.base[cell]:
					case asked && x.kind[from].Resting():
						held[cell] = true
						if from == x.absent {
							held[[2]int{-1, a.event}] = true
						}
					default:
						states[from] = true
						work = append(work, from)
					}
				}
			}
		}
	}
	for h := range d.j.halves {
		d.j.halves[h].holdOrigins(states, held)
	}
	d.states, d.held = states, held
	return true
}

// swept reports whether the sweeper may take a row: the row has a deadline, or a
// row of the same cell has one and the sweeper may fire this row.
func (j *joint) swept(arrows []arrow, a *arrow) bool {
	if a.within > 0 {
		return true
	}
	for actor := range j.actors.in[oldHalf] {
		if a.actors.Has(actor) && j.name(&j.actors, oldHalf, actor) == string(fsm.Sweeper) {
			return slices.ContainsFunc(arrows, func(b arrow) bool { return b.within > 0 && b.event == a.event })
		}
	}
	return false
}

// holdOrigins holds the events that create objects with a drained state as their
// origin: an absent state of this version.
func (x *half) holdOrigins(drained map[int]bool, held map[[2]int]bool) {
	if x.absent < 0 || !drained[x.absent] {
		return
	}
	for i := range x.from[x.absent] {
		if a := &x.from[x.absent][i]; a.then == fsm.ThenMove && x.kind[a.to] == fsm.Transitional {
			held[[2]int{-1, a.event}] = true
			held[[2]int{x.absent, a.event}] = true
		}
	}
}

// list names the states that objects have to leave, and the events that lead there.
// States that only the new table has are empty at the start.
func (d *drains) list() (drain []string, hold []Withheld) {
	j, reached := d.j, map[int]bool{}
	for at := range d.last.index {
		reached[at.state] = true
	}
	drain, hold = []string{}, []Withheld{}
	for state := range j.states.in[oldHalf] {
		if d.states[state] && j.halves[oldHalf].here[state] {
			drain = append(drain, j.state(oldHalf, state))
		}
	}
	added := make([][2]int, 0, len(d.held))
	for cell := range d.held {
		if d.base[cell] {
			continue
		}
		for h := range j.halves {
			if cell[0] < 0 { // an event that creates objects
				cell[0] = j.halves[h].absent
			}
		}
		absent := cell[0] == j.halves[oldHalf].absent || cell[0] == j.halves[newHalf].absent
		if reached[cell[0]] || absent {
			added = append(added, cell)
		}
	}
	slices.SortFunc(added, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, cell := range slices.Compact(added) {
		hold = append(hold, Withheld{j.state(oldHalf, cell[0]), j.name(&j.events, oldHalf, cell[1])})
	}
	return drain, hold
}

// strand finds objects that one version alone cannot bring to rest. If a version
// gets there by itself, the fault is in its table and not in the change.
func (c *comparison) strand() error {
	var alone [2]*mix
	for h := range alone {
		alone[h] = &mix{j: c.j}
		if alone[h].plays[h] = true; h == oldHalf {
			alone[h].field = c.field
		}
		if !alone[h].explore() {
			return ErrTooLarge
		}
	}
	stuck := func(h int, at mixStatus) bool {
		x := &c.j.halves[h]
		return at != noObject && x.knows(at) && !x.kind[at.state].Resting() && !alone[h].rests(h, at)
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
			hz := Hazard{
				ID: Stranded, Level: Unsafe, State: c.j.state(h, v.at.state), Witness: c.way(v.at),
				Message: fmt.Sprintf("no %s node can bring an object in %q to rest that has the origin %q", halfNames[h],
					c.j.state(h, v.at.state), c.j.state(h, v.at.origin)),
			}
			c.add(hz, -1)
		}
	}
	return nil
}

// rests reports whether the rows of one version lead to rest from a status.
func (m *mix) rests(h int, from mixStatus) bool {
	x := &m.j.halves[h]
	seen := map[mixStatus]bool{from: true}
	for work := []mixStatus{from}; len(work) > 0; {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if at == noObject || x.kind[at.state].Resting() {
			return true
		}
		m.steps(h, at, func(s mixStep) {
			if !seen[s.to] {
				seen[s.to] = true
				work = append(work, s.to)
			}
		})
	}
	return false
}
