package check

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// Analyze computes the facts of a table, sound or not. It is safe for concurrent use.
// Its time grows with the edges, and its memory with a bit for every pair of states.
func Analyze(t *fsm.Table) *Report { return newAnalysis(t).report() }

func (a *analysis) report() *Report {
	t := a.t
	r := &Report{
		Name: t.Name, Confidence: t.Confidence, States: len(t.States),
		Actors: []string{}, Kinds: make(map[string]int), Initials: []string{},
		Distance: make(map[string]int), Nondeterministic: []Cell{},
		Problems: t.Problems(),
	}
	a.count(r)
	a.reach(r)
	a.leave(r)
	a.choices(r)
	return r
}

// analysis is the table as a graph, with the exits of each state and the targets of
// each cell.
type analysis struct {
	t     *fsm.Table
	graph *graph
	exits []exit
	cells map[[2]int]*cell // by state and event: those that have a row
	order [][2]int         // the cells with transitions, in order of rows
	may   []bitset.Set     // by row: the actors that may fire it
}

// exit describes the edges from a state to other states.
type exit struct {
	any    bool
	failed bool       // to a state of kind error
	actors bitset.Set // declared ones, by index
}

type cell struct {
	transitions, unguarded int        // without ignored events
	seen                   bitset.Set // nil for a single transition
	to                     []string
}

func newAnalysis(t *fsm.Table) *analysis {
	a := &analysis{
		t: t, graph: newGraph(len(t.States)), exits: make([]exit, len(t.States)),
		cells: make(map[[2]int]*cell), may: make([]bitset.Set, len(t.Rows)),
	}
	for s := range a.exits {
		a.exits[s].actors = bitset.New(len(t.Actors))
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		a.may[i] = bitset.New(len(t.Actors))
		for actor := range t.Actors {
			if len(row.Actors) == 0 || slices.Contains(row.Actors, actor) {
				a.may[i].Add(actor)
			}
		}
		if a.hasEvent(row) {
			a.countCells(row)
		}
	}
	// A return row may have very many edges. Those of one transition come together,
	// so one look-up of the cell is enough for them.
	var c *cell
	before := fsm.Edge{Row: -1}
	for e := range t.Edges() {
		row := &t.Rows[e.Row]
		if row.Then == fsm.ThenIgnore || row.Then == fsm.ThenReturn && !t.States[e.To].Kind.Resting() {
			continue // no object moves
		}
		a.graph.add(e.From, e.To)
		if e.Row != before.Row || e.From != before.From {
			c, before = a.cells[[2]int{e.From, e.Event}], e
		}
		if c != nil && c.transitions > 1 {
			c.add(e.To, t)
		}
		if e.From != e.To {
			x := &a.exits[e.From]
			x.any = true
			x.failed = x.failed || t.States[e.To].Kind == fsm.Failed
			x.actors.Union(a.may[e.Row])
		}
	}
	return a
}

// countCells counts the transitions of a row in their cells.
func (a *analysis) countCells(row *fsm.TableRow) {
	for _, from := range row.From {
		if !a.declared(from) {
			continue
		}
		at := [2]int{from, row.Event}
		c := a.cells[at]
		if c == nil {
			c = &cell{}
			a.cells[at] = c
		}
		if row.Then == fsm.ThenIgnore {
			continue
		}
		if c.transitions == 0 {
			a.order = append(a.order, at)
		}
		c.transitions++
		if row.Guard == "" && len(row.Origin) == 0 {
			c.unguarded++
		}
	}
}

// add notes a target of the cell.
func (c *cell) add(to int, t *fsm.Table) {
	if c.seen == nil {
		c.seen = bitset.New(len(t.States))
	}
	if c.seen.Add(to) {
		c.to = append(c.to, t.States[to].Name)
	}
}

func (a *analysis) declared(state int) bool { return state >= 0 && state < len(a.t.States) }

// hasEvent reports whether the table has the event of a row.
func (a *analysis) hasEvent(row *fsm.TableRow) bool {
	return row.Event >= 0 && row.Event < len(a.t.Events)
}

func (a *analysis) kind(state int) fsm.Kind { return a.t.States[state].Kind }

// states lists the states that pass, in order of declaration.
func (a *analysis) states(pass func(state int) bool) (list []int) {
	for s := range a.t.States {
		if pass(s) {
			list = append(list, s)
		}
	}
	return list
}

// ofKind lists the states of one of these kinds.
func (a *analysis) ofKind(is func(fsm.Kind) bool) []int {
	return a.states(func(s int) bool { return is(a.kind(s)) })
}

// names returns the names of states. It is never nil.
func (a *analysis) names(states []int) []string {
	list := make([]string, len(states))
	for i, s := range states {
		list[i] = a.t.States[s].Name
	}
	return list
}

// named lists the names of the states that pass.
func (a *analysis) named(pass func(state int) bool) []string { return a.names(a.states(pass)) }

func (a *analysis) count(r *Report) {
	t := a.t
	for _, actor := range t.Actors {
		r.Actors = append(r.Actors, string(actor))
	}
	slices.Sort(r.Actors)
	for _, s := range t.States {
		r.Kinds[kindName(s.Kind)]++
	}
	events := make(map[int]bool)
	for i := range t.Rows {
		row := &t.Rows[i]
		if a.hasEvent(row) {
			events[row.Event] = true
		}
		for _, from := range row.From {
			r.Transitions++
			if row.Guard != "" {
				r.Guarded++
			}
			switch {
			case row.Then == fsm.ThenIgnore:
				r.Ignored++
			case row.Then == fsm.ThenMove && row.To == from:
				r.SelfLoops++
			}
		}
	}
	r.Events, r.CellsDefined, r.CellsTotal = len(events), len(a.cells), len(t.States)*len(events)
}

// kindName returns the name of a kind in a lifecycle-table/1 document.
func kindName(k fsm.Kind) string {
	switch k {
	case fsm.Failed:
		return "error"
	case fsm.Absent:
		return fsm.Stable.String()
	}
	return k.String()
}

func (a *analysis) reach(r *Report) {
	t := a.t
	first := []int{}
	if a.declared(t.Initial) {
		first = append(first, t.Initial)
		r.Initial = t.States[t.Initial].Name
	}
	entries := slices.DeleteFunc(slices.Clone(t.Entries()), func(s int) bool { return !a.declared(s) })
	for _, s := range entries {
		r.Initials = append(r.Initials, t.States[s].Name)
	}

	far := distances(a.graph.to, first)
	for s, d := range far {
		if d >= 0 {
			r.Distance[t.States[s].Name] = d
			r.Eccentricity = max(r.Eccentricity, d)
		}
	}
	unreached := func(d []int) []string { return a.named(func(s int) bool { return d[s] < 0 }) }
	r.UnreachableFromInitial = unreached(far)
	r.UnreachableFromInitials = unreached(distances(a.graph.to, entries))
	r.CannotRest = unreached(distances(a.graph.from, a.ofKind(fsm.Kind.Resting)))
	r.CannotEnd = []string{}
	if ends := a.ofKind(isEnd); len(ends) > 0 {
		r.CannotEnd = unreached(distances(a.graph.from, ends))
	}
	for _, size := range a.graph.components() {
		r.Components++
		r.LargestComponent = max(r.LargestComponent, size)
	}
}

// isEnd reports whether an object's life is over in a state of this kind.
func isEnd(k fsm.Kind) bool { return k == fsm.Final || k == fsm.Absent }

func (a *analysis) leave(r *Report) {
	stuck := func(s int) bool { return !a.exits[s].any }
	failures := len(a.ofKind(func(k fsm.Kind) bool { return k == fsm.Failed })) > 0

	r.Traps = a.named(func(s int) bool { return stuck(s) && !isEnd(a.kind(s)) })
	r.ErrorWithoutExit = a.named(func(s int) bool { return stuck(s) && a.kind(s) == fsm.Failed })
	r.FinalWithExit = a.named(func(s int) bool { return !stuck(s) && a.kind(s) == fsm.Final })
	r.OneActorCanLeave = a.named(func(s int) bool {
		return a.kind(s) == fsm.Transitional && a.exits[s].actors.Len() == 1
	})
	r.NoErrorExit = a.named(func(s int) bool {
		return a.kind(s) == fsm.Transitional && failures && !a.exits[s].failed
	})
}

// choices lists the cells with several targets.
func (a *analysis) choices(r *Report) {
	for _, at := range a.order {
		c := a.cells[at]
		if len(c.to) < 2 {
			continue
		}
		slices.Sort(c.to)
		r.Nondeterministic = append(r.Nondeterministic, Cell{
			From: a.t.States[at[0]].Name, Event: a.t.Events[at[1]], To: c.to,
			Unguarded: c.unguarded, AllGuarded: c.unguarded == 0,
		})
	}
}
