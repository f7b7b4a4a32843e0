package evolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/fsm"
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
	given  *fsm.Table
	t      *fsm.Table // the rows of given, for the states, events, actors and guards of both tables
	here   []bool     // given has the state
	from   [][]*arrow // by state, in order of trial
	absent int        // the absent state, -1: none
	starts []int      // the states in which nodes add objects
	first  int        // the one in which a manager adds them, -1: none
	actors []int      // that a row without actors is open to
}

// arrow is a row of [version.t] for one source. Its lists are sorted. The name of its guard
// is a number.
type arrow struct {
	*fsm.TableRow
	row, from int
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
		if !distinguishes(old) || !distinguishes(new) {
			p.actors.in[h] = append(p.actors.in[h], -1) // the anonymous actor, which has no name
		}
	}
	if len(p.states.in[oldVersion]) > fsm.MaxStates || len(p.actors.in[oldVersion]) > fsm.MaxActors {
		return nil, fmt.Errorf("%w: more than %d states or %d actors in both tables", ErrTooLarge, fsm.MaxStates, fsm.MaxActors)
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

// version returns a table in the common numbering. A name that it does not declare has the
// number after the last one.
func (p *pair) version(t *fsm.Table, h int) version {
	n, rows := len(p.states.in[h]), slices.Clone(t.Rows)
	x := version{given: t, t: t.WithRows(rows), here: make([]bool, n), from: make([][]*arrow, n), absent: -1, first: -1}
	x.t.States, x.t.Events = make([]fsm.TableState, n), make([]string, len(p.events.in[h]))
	x.t.Actors = make([]fsm.Actor, len(p.actors.in[h]))
	x.t.Initial, x.t.Initials = -1, nil
	for i, s := range t.States {
		number := p.states.of[h][i]
		x.t.States[number].Kind, x.here[number] = s.Kind, true
		if s.Kind == fsm.Absent && (x.absent < 0 || i == t.Initial) {
			x.absent = number
		}
	}
	for number, i := range p.actors.in[h] {
		x.t.Actors[number] = fsm.Actor(strconv.Itoa(number))
		anonymous := number == len(p.actors.in[h])-1
		if i >= 0 || len(t.Actors) == 0 || anonymous && !distinguishes(t) {
			x.actors = append(x.actors, number)
		}
	}
	x.begin(t, p.states.of[h])
	for i := range rows {
		r := &rows[i]
		p.number(r, h)
		if len(r.Actors) == 0 {
			r.Actors = x.actors
		}
		for _, from := range r.From {
			if from < n {
				x.from[from] = append(x.from[from], &arrow{r, i, from})
			}
		}
	}
	return x
}

// number gives a row the numbers of the states, events, actors and guards. It removes the
// sources of a row that fires for no object.
func (p *pair) number(r *fsm.TableRow, h int) {
	r.From, r.Origin, r.Actors = p.states.list(h, r.From), p.states.list(h, r.Origin), p.actors.list(h, r.Actors)
	r.Event, r.To = p.events.number(h, r.Event), p.states.number(h, r.To)
	if r.Guard != "" {
		r.Guard = strconv.Itoa(p.guards.of[h][slices.Index(p.guards.names[h], r.Guard)])
	}
	if r.Then != fsm.ThenMove {
		r.To = -1
	}
	if r.Event == len(p.events.in[h]) || r.To == len(p.states.in[h]) || r.Then > fsm.ThenIgnore {
		r.From = nil
	}
}

// distinguishes reports whether a table names an actor that is not the sweeper, which
// fires deadlines only.
func distinguishes(t *fsm.Table) bool {
	return slices.ContainsFunc(t.Actors, func(a fsm.Actor) bool { return a != fsm.Sweeper })
}

// begin finds the states in which nodes add objects: any state of rest in a table
// without an entry state.
func (x *version) begin(t *fsm.Table, of []int) {
	declared := func(i int) bool { return i >= 0 && i < len(t.States) }
	add := func(i int) {
		if declared(i) && t.States[i].Kind != fsm.Absent && !slices.Contains(x.starts, of[i]) {
			x.starts = append(x.starts, of[i])
		}
	}
	if declared(t.Initial) && t.States[t.Initial].Kind != fsm.Absent {
		x.first = of[t.Initial]
	}
	if entries := t.Entries(); slices.ContainsFunc(entries, declared) {
		for _, i := range entries {
			add(i)
		}
		return
	}
	for _, resting := range []bool{true, false} {
		for i, s := range t.States {
			if s.Kind.Resting() == resting {
				add(i)
			}
		}
		if len(x.starts) > 0 {
			return
		}
	}
}

// number returns the number of an index in the table, and the number after the last one for
// an index out of range.
func (l *numbering) number(h, i int) int {
	if i < 0 || i >= len(l.of[h]) {
		return len(l.in[h])
	}
	return l.of[h][i]
}

// list returns the numbers of indexes, sorted, each once.
func (l *numbering) list(h int, indexes []int) (numbers []int) {
	for _, i := range indexes {
		numbers = append(numbers, l.number(h, i))
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// name returns the name of a number in its table, or in the other one. The name of the
// anonymous actor and of no number is empty.
func (l *numbering) name(h, number int) string {
	if number < 0 || number >= len(l.in[h]) {
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
	if old, new := p.versions[oldVersion].given.Name, p.versions[newVersion].given.Name; old != new {
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
