package evolve

import (
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// joint is two tables with one numbering: a state, event or actor of both has one
// number, whatever its names.
type joint struct {
	halves                 [2]half // old, new
	states, events, actors ids
	guards                 map[string]string // new names by old names that differ
	machine                bool              // its name changed
}

const (
	oldHalf = 0
	newHalf = 1
)

var halfNames = [2]string{"old", "new"}

// ids numbers the names of both tables.
type ids struct {
	what string
	in   [2][]int // index in the table by number, -1 if it is not there
	of   [2][]int // number by index in the table
}

// half is one of the tables in the common numbering.
type half struct {
	t      *fsm.Table
	kind   []fsm.Kind // by number of the state; meaningless if the table lacks it
	here   []bool     // the table has the state
	from   [][]arrow  // by number of the state, in order of trial
	absent int        // the absent state, -1: none
	starts []int      // the states in which nodes add objects
	first  int        // the one in which a manager adds them, -1: none
	actors bitset.Set // declared
}

// arrow is a row for one source.
type arrow struct {
	row               int
	from, event, to   int // to is -1 where it is not a move
	then              fsm.Then
	actors            bitset.Set
	anybody           bool  // the row names no actor
	origin            []int // sorted; nil: any
	guard             string
	forced, supersede bool
	within            time.Duration
}

// join numbers the names of two tables.
func join(old, new *fsm.Table, config *Config) (*joint, error) {
	j := &joint{guards: config.Guards, machine: old.Name != new.Name}
	tables := [2]*fsm.Table{old, new}
	var names [3][2][]string // states, events, actors
	for h, t := range tables {
		for _, s := range t.States {
			names[0][h] = append(names[0][h], s.Name)
		}
		names[1][h] = t.Events
		for _, a := range t.Actors {
			names[2][h] = append(names[2][h], string(a))
		}
	}
	given := [3]map[string]string{config.States, config.Events, config.Actors}
	for i, list := range []*ids{&j.states, &j.events, &j.actors} {
		list.what = [...]string{"state", "event", "actor"}[i]
		if err := list.pair(names[i][oldHalf], names[i][newHalf], given[i]); err != nil {
			return nil, err
		}
	}
	if err := checkGuards(config.Guards, tables); err != nil {
		return nil, err
	}
	for h, t := range tables {
		j.halves[h] = j.half(t, h)
	}
	return j, nil
}

// pair gives one number to each old name and its new name.
func (l *ids) pair(old, new []string, given map[string]string) error {
	at := [2]map[string]int{firstIndex(old), firstIndex(new)}
	counterpart := make(map[string]string, len(given)) // old name by new name
	for _, from := range slices.Sorted(maps.Keys(given)) {
		to := given[from]
		if _, ok := at[oldHalf][from]; !ok {
			return mappingError("the old table has no %s %q to rename", l.what, from)
		}
		if _, ok := at[newHalf][to]; !ok {
			return mappingError("the new table has no %s %q, the new name of %q", l.what, to, from)
		}
		if other, ok := counterpart[to]; ok {
			return mappingError("%q and %q have one new name: %s %q", other, from, l.what, to)
		}
		counterpart[to] = from
	}
	l.of[oldHalf], l.of[newHalf] = make([]int, len(old)), make([]int, len(new))
	for i, name := range old {
		l.of[oldHalf][i] = i
		l.in[oldHalf], l.in[newHalf] = append(l.in[oldHalf], i), append(l.in[newHalf], -1)
		to, renamed := given[name]
		if !renamed {
			to = name
			if _, taken := counterpart[to]; taken {
				continue // another thing has this name now
			}
		}
		if k, ok := at[newHalf][to]; ok && at[oldHalf][name] == i {
			l.in[newHalf][i] = k
		}
	}
	taken := make([]bool, len(new))
	for number, i := range l.in[newHalf] {
		if i >= 0 {
			taken[i], l.of[newHalf][i] = true, number
		}
	}
	for i := range new {
		if !taken[i] {
			l.of[newHalf][i] = len(l.in[newHalf])
			l.in[oldHalf], l.in[newHalf] = append(l.in[oldHalf], -1), append(l.in[newHalf], i)
		}
	}
	return nil
}

func firstIndex(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		if _, ok := at[name]; !ok {
			at[name] = i
		}
	}
	return at
}

func checkGuards(given map[string]string, tables [2]*fsm.Table) error {
	has := func(t *fsm.Table, guard string) bool {
		return slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Guard == guard })
	}
	counterpart := make(map[string]string, len(given))
	for _, from := range slices.Sorted(maps.Keys(given)) {
		to := given[from]
		switch other, twice := counterpart[to]; {
		case from == "" || !has(tables[oldHalf], from):
			return mappingError("the old table has no guard %q to rename", from)
		case to == "" || !has(tables[newHalf], to):
			return mappingError("the new table has no guard %q, the new name of %q", to, from)
		case twice:
			return mappingError("%q and %q have one new name: guard %q", other, from, to)
		}
		counterpart[to] = from
	}
	return nil
}

// half returns a table in the common numbering, without undeclared names.
func (j *joint) half(t *fsm.Table, h int) half {
	n := len(j.states.in[h])
	x := half{t: t, kind: make([]fsm.Kind, n), here: make([]bool, n), from: make([][]arrow, n), absent: -1, first: -1}
	for i, s := range t.States {
		number := j.states.of[h][i]
		x.kind[number], x.here[number] = s.Kind, true
		if s.Kind == fsm.Absent && (x.absent < 0 || i == t.Initial) {
			x.absent = number
		}
	}
	x.actors = bitset.New(len(j.actors.in[h]))
	for i := range t.Actors {
		x.actors.Add(j.actors.of[h][i])
	}
	x.begin(t, j.states.of[h])
	for i := range t.Rows {
		for _, a := range j.arrows(t, h, i) {
			x.from[a.from] = append(x.from[a.from], a)
		}
	}
	return x
}

// begin finds the states in which nodes add objects: any state of rest in a table
// without an initial state.
func (x *half) begin(t *fsm.Table, of []int) {
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
func (j *joint) arrows(t *fsm.Table, h, row int) (list []arrow) {
	r := &t.Rows[row]
	declared := func(i int) bool { return i >= 0 && i < len(t.States) }
	if r.Event < 0 || r.Event >= len(t.Events) || r.Then == fsm.ThenMove && !declared(r.To) || r.Then > fsm.ThenIgnore {
		return nil
	}
	a := arrow{
		row: row, event: j.events.of[h][r.Event], to: -1, then: r.Then, actors: bitset.New(len(j.actors.in[h])),
		anybody: len(r.Actors) == 0, guard: r.Guard, forced: r.Forced, supersede: r.Supersede, within: r.Timeout,
	}
	if to, ok := j.guards[a.guard]; ok && h == oldHalf {
		a.guard = to
	} else if h == oldHalf && a.guard != "" && j.renamedTo(a.guard) {
		a.guard = "old " + a.guard // another guard has this name now
	}
	if r.Then == fsm.ThenMove {
		a.to = j.states.of[h][r.To]
	}
	for i := range t.Actors {
		if len(r.Actors) == 0 || slices.Contains(r.Actors, i) {
			a.actors.Add(j.actors.of[h][i])
		}
	}
	if len(r.Origin) > 0 {
		a.origin = []int{}
		for _, o := range r.Origin {
			if declared(o) {
				a.origin = append(a.origin, j.states.of[h][o])
			}
		}
		slices.Sort(a.origin)
		a.origin = slices.Compact(a.origin)
	}
	seen := bitset.New(len(t.States))
	for _, from := range r.From {
		if declared(from) && seen.Add(from) {
			a.from = j.states.of[h][from]
			list = append(list, a)
		}
	}
	return list
}

// renamedTo reports whether another guard got this name.
func (j *joint) renamedTo(guard string) bool {
	for _, to := range j.guards {
		if to == guard {
			return true
		}
	}
	return false
}

// name returns the name of a number in its table, or in the other one.
func (j *joint) name(l *ids, h, number int) string {
	for range 2 {
		if i := l.in[h][number]; i >= 0 {
			t := j.halves[h].t
			switch l {
			case &j.states:
				return t.States[i].Name
			case &j.events:
				return t.Events[i]
			}
			return string(t.Actors[i])
		}
		h = 1 - h
	}
	return "?"
}

func (j *joint) state(h, number int) string {
	if number < 0 {
		return ""
	}
	return j.name(&j.states, h, number)
}

// renamings lists the things with two names.
func (j *joint) renamings() []Renaming {
	list := []Renaming{}
	if j.machine {
		list = append(list, Renaming{Subject: "machine", Old: j.halves[oldHalf].t.Name, New: j.halves[newHalf].t.Name})
	}
	for _, l := range []*ids{&j.states, &j.events, &j.actors} {
		for number := range l.in[oldHalf] {
			if l.in[oldHalf][number] < 0 || l.in[newHalf][number] < 0 {
				continue
			}
			if o, n := j.name(l, oldHalf, number), j.name(l, newHalf, number); o != n {
				list = append(list, Renaming{Subject: l.what, Old: o, New: n})
			}
		}
	}
	return list
}
