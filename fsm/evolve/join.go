package evolve

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// pair has two versions of a table in a common numbering: a state, event or actor of
// both versions has one number, even if its names differ.
type pair struct {
	versions                       [2]version // old, new
	states, events, actors, guards numbering
	trial                          []int // actors in order of trial: the sweepers are the last
	sweepers                       []int // two if a version names its sweeper otherwise
}

const (
	oldVersion = 0
	newVersion = 1
)

var versionNames = [2]string{"old", "new"}

// numbering numbers the names of one kind in both tables.
type numbering struct {
	what  string
	names [2][]string // by index in the table
	in    [2][]int    // index in the table by number, -1 if it is not there
	of    [2][]int    // number by index in the table
}

// version is one of the tables in the common numbering.
type version struct {
	t      *fsm.Table
	kind   []fsm.Kind // by number of the state; meaningless if the table lacks it
	here   []bool     // the table has the state
	from   [][]arrow  // by number of the state, in order of trial
	absent int        // the absent state, -1: none
	starts []int      // the states in which nodes add objects
	first  int        // the one in which a manager adds them, -1: none
	actors bitset.Set // that a row without actors is open to
}

// arrow is a row for one source.
type arrow struct {
	row               int
	from, event, to   int // to is -1 where it is not a move
	then              fsm.Then
	actors            bitset.Set
	anyActor          bool  // the row names no actor
	origin            []int // sorted; nil: any
	guard             int   // -1: none
	forced, supersede bool
	within            time.Duration
}

// join numbers the names of two tables.
func join(old, new *fsm.Table, config *Config) (*pair, error) {
	p := &pair{}
	tables := [2]*fsm.Table{old, new}
	for h, t := range tables {
		for _, s := range t.States {
			p.states.names[h] = append(p.states.names[h], s.Name)
		}
		p.events.names[h] = t.Events
		for _, a := range t.Actors {
			p.actors.names[h] = append(p.actors.names[h], string(a))
		}
		for _, r := range t.Rows {
			if r.Guard != "" && !slices.Contains(p.guards.names[h], r.Guard) {
				p.guards.names[h] = append(p.guards.names[h], r.Guard)
			}
		}
	}
	if err := cmp.Or(
		p.states.match("state", config.States), p.events.match("event", config.Events),
		p.actors.match("actor", config.Actors), p.guards.match("guard", config.Guards),
	); err != nil {
		return nil, err
	}
	for h := range p.actors.in {
		p.actors.in[h] = append(p.actors.in[h], -1) // the anonymous actor, which has no name
	}
	for h, t := range tables {
		p.versions[h] = p.version(t, h)
	}
	for actor := range p.actors.in[oldVersion] {
		if p.sweeper(actor) {
			p.sweepers = append(p.sweepers, actor)
		} else {
			p.trial = append(p.trial, actor)
		}
	}
	p.trial = append(p.trial, p.sweepers...)
	return p, nil
}

// match gives one number to each old name and its new name.
func (l *numbering) match(what string, given map[string]string) error {
	l.what = what
	taken := make(map[string]string, len(given)) // old names by new name
	for _, from := range slices.Sorted(maps.Keys(given)) {
		to := given[from]
		if !slices.Contains(l.names[oldVersion], from) {
			return mappingError("the old table has no %s %q to rename", what, from)
		}
		if !slices.Contains(l.names[newVersion], to) {
			return mappingError("the new table has no %s %q, the new name of %q", what, to, from)
		}
		if other, twice := taken[to]; twice {
			return mappingError("%q and %q have one new name: %s %q", other, from, what, to)
		}
		taken[to] = from
	}
	// thing is what has one number.
	type thing struct {
		name   string // the new one
		gone   bool   // an old thing whose name another one has now
		before int    // things of this name before it, in a table with duplicate names
	}
	number, before := make(map[thing]int), [2]map[string]int{{}, {}}
	for h, names := range l.names {
		for i, name := range names {
			is := thing{name: name, before: before[h][name]}
			before[h][name]++
			if h == oldVersion {
				if to, renamed := given[name]; renamed {
					is.name = to
				} else {
					_, is.gone = taken[name]
				}
			}
			n, known := number[is]
			if !known {
				n = len(number)
				number[is] = n
				l.in[oldVersion], l.in[newVersion] = append(l.in[oldVersion], -1), append(l.in[newVersion], -1)
			}
			l.of[h] = append(l.of[h], n)
			l.in[h][n] = i
		}
	}
	return nil
}

// version returns a table in the common numbering, without undeclared names.
func (p *pair) version(t *fsm.Table, h int) version {
	n := len(p.states.in[h])
	x := version{t: t, kind: make([]fsm.Kind, n), here: make([]bool, n), from: make([][]arrow, n), absent: -1, first: -1}
	for i, s := range t.States {
		number := p.states.of[h][i]
		x.kind[number], x.here[number] = s.Kind, true
		if s.Kind == fsm.Absent && (x.absent < 0 || i == t.Initial) {
			x.absent = number
		}
	}
	x.actors = bitset.New(len(p.actors.in[h]))
	for number, i := range p.actors.in[h] {
		anonymous := number == len(p.actors.in[h])-1
		if i >= 0 || len(t.Actors) == 0 || anonymous && !distinguishes(t) {
			x.actors.Add(number)
		}
	}
	x.begin(t, p.states.of[h])
	for i := range t.Rows {
		for _, a := range p.arrows(&x, h, i) {
			x.from[a.from] = append(x.from[a.from], a)
		}
	}
	return x
}

// distinguishes reports whether a table names an actor that is not the sweeper, which
// fires deadlines only.
func distinguishes(t *fsm.Table) bool {
	return slices.ContainsFunc(t.Actors, func(a fsm.Actor) bool { return a != fsm.Sweeper })
}

// begin finds the states in which nodes add objects: any state of rest in a table
// without an initial state.
func (x *version) begin(t *fsm.Table, of []int) {
	exists := func(i int) bool { return i >= 0 && i < len(t.States) && t.States[i].Kind != fsm.Absent }
	if t.Initial >= 0 && t.Initial < len(t.States) {
		if exists(t.Initial) {
			x.first = of[t.Initial]
			x.starts = append(x.starts, x.first)
		}
		for _, i := range t.Initials {
			if exists(i) && !slices.Contains(x.starts, of[i]) {
				x.starts = append(x.starts, of[i])
			}
		}
		return
	}
	for _, resting := range []bool{true, false} {
		for i, s := range t.States {
			if exists(i) && s.Kind.Resting() == resting {
				x.starts = append(x.starts, of[i])
			}
		}
		if len(x.starts) > 0 {
			return
		}
	}
}

// arrows expands a row to its sources.
func (p *pair) arrows(x *version, h, row int) (list []arrow) {
	t, r := x.t, &x.t.Rows[row]
	declared := func(i int) bool { return i >= 0 && i < len(t.States) }
	if r.Event < 0 || r.Event >= len(t.Events) || r.Then == fsm.ThenMove && !declared(r.To) || r.Then > fsm.ThenIgnore {
		return nil
	}
	a := arrow{
		row: row, event: p.events.of[h][r.Event], to: -1, then: r.Then, actors: x.actors,
		anyActor: len(r.Actors) == 0, guard: -1, forced: r.Forced, supersede: r.Supersede, within: r.Timeout,
	}
	if r.Guard != "" {
		a.guard = p.guards.of[h][slices.Index(p.guards.names[h], r.Guard)]
	}
	if r.Then == fsm.ThenMove {
		a.to = p.states.of[h][r.To]
	}
	if !a.anyActor {
		a.actors = bitset.New(len(p.actors.in[h]))
		for i := range t.Actors {
			if slices.Contains(r.Actors, i) {
				a.actors.Add(p.actors.of[h][i])
			}
		}
	}
	if len(r.Origin) > 0 {
		a.origin = []int{}
		for _, o := range r.Origin {
			if declared(o) {
				a.origin = append(a.origin, p.states.of[h][o])
			}
		}
		slices.Sort(a.origin)
		a.origin = slices.Compact(a.origin)
	}
	seen := bitset.New(len(t.States))
	for _, from := range r.From {
		if declared(from) && seen.Add(from) {
			a.from = p.states.of[h][from]
			list = append(list, a)
		}
	}
	return list
}

// name returns the name of a number in its table, or in the other one. The name of the
// anonymous actor and of no number is empty.
func (l *numbering) name(h, number int) string {
	if number < 0 {
		return ""
	}
	for range 2 {
		if i := l.in[h][number]; i >= 0 {
			return l.names[h][i]
		}
		h = 1 - h
	}
	return ""
}

func (p *pair) sweeper(actor int) bool {
	return p.actors.name(oldVersion, actor) == string(fsm.Sweeper)
}

// renamings lists the things with two names.
func (p *pair) renamings() []Renaming {
	list := []Renaming{}
	if old, new := p.versions[oldVersion].t.Name, p.versions[newVersion].t.Name; old != new {
		list = append(list, Renaming{Subject: "machine", Old: old, New: new})
	}
	for _, l := range []*numbering{&p.states, &p.events, &p.actors} {
		list = append(list, l.renamings()...)
	}
	return list
}

func (l *numbering) renamings() (list []Renaming) {
	for number := range l.in[oldVersion] {
		o, n := l.name(oldVersion, number), l.name(newVersion, number)
		if o != n && min(l.in[oldVersion][number], l.in[newVersion][number]) >= 0 {
			list = append(list, Renaming{Subject: l.what, Old: o, New: n})
		}
	}
	return list
}
