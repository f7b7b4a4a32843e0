package check

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// problems passes on what package fsm has found. What fsm.New merely demands is
// said once for all states. A failed state that nothing leaves has a finding of
// its own.
func (l *linter) problems() {
	demands := make(map[string]int) // by code: index of the finding
	never := -1                     // index of the finding about the cell whose rows are never tried
	for _, p := range l.r.Problems {
		if never >= 0 && p.Code == fsm.AmbiguousRow && l.sameCells(l.found[never].Rows[0], p.Row) {
			l.more(&l.found[never], p.Row)
			continue
		}
		f := Finding{ID: p.Code, Severity: Error, Message: p.Text, Advice: advice[p.Code]}
		if p.Row >= 0 {
			f.Rows = []int{p.Row}
		}
		if p.State != "" {
			f.States = []string{p.State}
			if l.skip[p.Code+":"+p.State] {
				continue
			}
		}
		if p.Code == fsm.DeadEnd && slices.Contains(l.r.ErrorWithoutExit, p.State) {
			continue
		}
		if p.Severity != fsm.SeverityDemand || l.skip[p.Code] {
			if never = -1; p.Code == fsm.AmbiguousRow && !l.skip[p.Code] {
				never = len(l.found)
			}
			l.add(f)
			continue
		}
		at, ok := demands[p.Code]
		if !ok {
			at = len(l.found)
			demands[p.Code] = at
			f.Severity = Info
			l.add(f)
			continue
		}
		all := &l.found[at]
		all.States = append(all.States, p.State)
		all.Message = fmt.Sprintf("%s, and %d more: %s", all.States[0], len(all.States)-1, demanded[p.Code])
	}
}

// sameCells reports whether two rows are for the same event in the same states.
func (l *linter) sameCells(a, b int) bool {
	return l.t.Rows[a].Event == l.t.Rows[b].Event && slices.Equal(l.t.Rows[a].From, l.t.Rows[b].From)
}

// more adds a row to a finding about a row that is never tried: what leads to one
// of many states is one fault.
func (l *linter) more(f *Finding, row int) {
	if len(f.Rows) == 1 {
		f.Message += "; and so for other rows of the event"
	}
	if len(f.Rows) < MaxNamed {
		f.Rows = append(f.Rows, row)
	}
}

// demanded are the demands of fsm.New, for several states.
var demanded = map[string]string{
	fsm.NoDeadline:     "transitional, with neither a timeout nor Manual",
	fsm.NeedlessManual: "Manual where nothing is manual",
}

// advice says what to do about the problems of package fsm.
var advice = map[string]string{
	fsm.NoName:             "Give it a name.",
	fsm.BadName:            "Take a shorter name of printable UTF-8.",
	fsm.DuplicateName:      "Rename one of the two.",
	fsm.TooLarge:           "Split the table: no machine is made of one that large.",
	fsm.NoInitial:          "Name a declared state in which objects begin.",
	fsm.UnknownState:       "Declare the state, or correct its name.",
	fsm.UnknownActor:       "Declare the actor, or correct its name.",
	fsm.NoActor:            "Declare who fires the rows.",
	fsm.NoSource:           "Name a source, or remove the row.",
	fsm.BadRow:             "Correct the row.",
	fsm.BadState:           "Take one of the five kinds.",
	fsm.BadGuard:           "Give the guard a name and the payload type of the machine.",
	fsm.DuplicateRow:       "Remove one of the two rows.",
	fsm.AmbiguousRow:       "Give the earlier row a guard or an origin condition, or split the event in two.",
	fsm.Unreachable:        "Add the row that leads there, or remove the state.",
	fsm.DeadEnd:            "Add a row that leads out, or declare the state final or absent.",
	fsm.FinalExit:          "Make the row forced, or the state stable.",
	fsm.NoOrigin:           "Let the row name a target, or let objects begin in a state that rests.",
	fsm.NeverFits:          "Correct the origin condition, or remove the row.",
	fsm.NoDeadline:         "Say after how long somebody looks after the object, or in Manual who does.",
	fsm.NeedlessManual:     "Remove Manual.",
	fsm.DeadlineFromAbsent: "Remove the deadline: nothing is there that could be late.",
}

func (l *linter) errorNoExit() {
	for s := range l.t.States {
		if name := l.t.States[s].Name; l.kind(s) == fsm.Failed && !l.a.exits[s].any && len(l.kept(LintErrorNoExit, []int{s})) > 0 {
			l.add(Finding{
				ID: LintErrorNoExit, Severity: Error, States: []string{name},
				Message: "nothing leads out of the error state " + name,
				Advice:  "Add what people do about it: a retry, a repair or a deletion, forced if need be.",
			})
		}
	}
}

// cannot says where an object neither comes to rest nor to an end. What has no
// exit at all, and what leads there, is said elsewhere.
func (l *linter) cannot() {
	stuck := distances(l.a.graph.from, l.states(func(s int) bool { return !l.a.exits[s].any && !isEnd(l.kind(s)) }))
	about := func(id string, severity Severity, names []string, what, advice string) {
		cannot := make(map[string]bool, len(names))
		for _, name := range names {
			cannot[name] = true
		}
		states := l.kept(id, l.states(func(s int) bool { return stuck[s] < 0 && cannot[l.t.States[s].Name] }))
		if len(states) > 0 {
			l.add(Finding{
				ID: id, Severity: severity, States: l.names(states),
				Message: fmt.Sprintf("no way leads from %s to %s", some(l.names(states), "or"), what), Advice: advice,
			})
		}
	}
	about(LintCannotRest, Error, l.r.CannotRest, "a state that rests",
		"Add the row that ends the work: as it is, an object is busy for ever.")
	about(LintCannotEnd, Warning, l.r.CannotEnd, "a final or absent state",
		"Add the row by which such an object is got rid of.")
}

// states lists the states that pass, by index.
func (l *linter) states(pass func(state int) bool) (list []int) {
	for s := range l.t.States {
		if pass(s) {
			list = append(list, s)
		}
	}
	return list
}

// illegalRows finds rows in cells that the table itself calls illegal.
func (l *linter) illegalRows() {
	illegal := make(map[[2]int]bool, len(l.t.Illegal))
	for _, cell := range l.t.Illegal {
		illegal[cell] = true
	}
	if len(illegal) == 0 {
		return
	}
	for i := range l.t.Rows {
		row := &l.t.Rows[i]
		for _, from := range row.From {
			if at := [2]int{from, row.Event}; illegal[at] && l.a.declared(from) && l.a.hasEvent(row) {
				illegal[at] = false // said once
				state, event := l.t.States[from].Name, l.t.Events[row.Event]
				l.add(Finding{
					ID: LintIllegalRow, Severity: Error, States: []string{state}, Events: []string{event}, Rows: []int{i},
					Message: fmt.Sprintf("%s in %s is declared illegal, and a row allows it", event, state),
					Advice:  "Remove the row, or the cell from the illegal ones.",
				})
			}
		}
	}
}

// choice finds cells in which state and event leave a choice. It weighs more where
// work ends well in one of several states of rest and a guard alone says in which: who
// finds the object after a crash knows no more than its state and origin.
func (l *linter) choice() {
	for _, at := range l.a.order {
		c := l.a.cells[at]
		if len(c.to) < 2 || len(l.kept(LintChoice, at[:1])) == 0 {
			continue
		}
		state, event := l.t.States[at[0]].Name, l.t.Events[at[1]]
		var rows, ends []int
		guarded := false
		for _, m := range l.out[at[0]] {
			row := &l.t.Rows[l.moves[m].row]
			if row.Event != at[1] {
				continue
			}
			rows = append(rows, l.moves[m].row)
			guarded = guarded || row.Guard != ""
			well := l.moves[m].role != RoleFail && l.moves[m].role != RoleAbort || l.events[row.Event] != RoleNone
			if to := l.moves[m].to; to >= 0 && len(row.Origin) == 0 && l.kind(to).Resting() &&
				l.kind(to) != fsm.Failed && well && !slices.Contains(ends, to) {
				ends = append(ends, to)
			}
		}
		f := Finding{
			ID: LintChoice, Severity: Info, States: []string{state}, Events: []string{event}, Rows: rows,
			Message: fmt.Sprintf("%s in %s leads to %s", event, state, some(c.to, "or")),
			Advice:  "Nothing, if guard, actor, origin and order are meant to decide.",
		}
		if l.kind(at[0]) == fsm.Transitional && guarded && len(ends) > 1 {
			f.Severity = Warning
			f.Message += ", and guards alone say where: after a crash nobody knows"
			f.Advice = "Split the event or the state, or let the origin decide, so that the record says where the object is heading."
		}
		l.add(f)
	}
}

func (l *linter) finalForced() {
	for s := range l.t.States {
		if l.kind(s) != fsm.Final || len(l.kept(LintFinalForced, []int{s})) == 0 {
			continue
		}
		forced := l.rowsOf(s, func(m step) bool { return l.t.Rows[m.row].Forced })
		if len(forced) > 0 {
			name := l.t.States[s].Name
			l.add(Finding{
				ID: LintFinalForced, Severity: Info, States: []string{name}, Rows: forced,
				Message: "the final state " + name + " is left by force",
				Advice:  "Nothing, if that is how people bring objects back.",
			})
		}
	}
}

// shortcuts finds events that lead to a state of rest at once here and by way of
// work that ends there elsewhere.
func (l *linter) shortcuts() {
	byEvent := make([][]int, len(l.t.Events)) // moves to a fixed target
	for m, move := range l.moves {
		if move.to >= 0 {
			event := l.t.Rows[move.row].Event
			byEvent[event] = append(byEvent[event], m)
		}
	}
	for event, moves := range byEvent {
		by := make(map[int]int) // by state of rest: a state of work that the event begins, and that ends there
		seen := bitset.New(len(l.t.States))
		for _, m := range moves {
			work := l.moves[m].to
			if l.kind(work) != fsm.Transitional || !seen.Add(work) {
				continue
			}
			for _, m := range l.out[work] {
				if end := l.moves[m]; end.role == RoleNone && end.to >= 0 && l.kind(end.to).Resting() {
					if _, ok := by[end.to]; !ok {
						by[end.to] = work
					}
				}
			}
		}
		at := make(map[int][]int) // by state of rest: moves that lead there at once
		for _, m := range moves {
			if _, ok := by[l.moves[m].to]; ok {
				at[l.moves[m].to] = append(at[l.moves[m].to], m)
			}
		}
		for _, end := range l.kept(LintShortcut, l.states(func(s int) bool { return len(at[s]) > 0 })) {
			var from, rows []int
			for _, m := range at[end] {
				from, rows = append(from, l.moves[m].from), append(rows, l.moves[m].row)
			}
			slices.Sort(from)
			name, names := l.t.States[end].Name, l.names(slices.Compact(from))
			l.add(Finding{
				ID: LintShortcut, Severity: Info, States: []string{name}, Events: []string{l.t.Events[event]}, Rows: rows,
				Message: fmt.Sprintf("%s leads from %s to %s at once, elsewhere by way of %s",
					l.t.Events[event], some(names, "and"), name, l.t.States[by[end]].Name),
				Advice: "Nothing, if there is no work to do there.",
			})
		}
	}
}

// UndefinedCells returns the pairs of a state and an event for which no row says
// what happens, so that the event is illegal there, in order of states and events.
// Events are those that a row has.
func UndefinedCells(t *fsm.Table) iter.Seq2[string, string] {
	return func(yield func(state, event string) bool) {
		used, defined := bitset.New(len(t.Events)), make([]bitset.Set, len(t.States))
		for i := range t.Rows {
			row := &t.Rows[i]
			if row.Event < 0 || row.Event >= len(t.Events) {
				continue
			}
			used.Add(row.Event)
			for _, from := range row.From {
				if from < 0 || from >= len(t.States) {
					continue
				}
				if defined[from] == nil {
					defined[from] = bitset.New(len(t.Events))
				}
				defined[from].Add(row.Event)
			}
		}
		for s := range t.States {
			for e := range t.Events {
				if used.Has(e) && !(defined[s] != nil && defined[s].Has(e)) && !yield(t.States[s].Name, t.Events[e]) {
					return
				}
			}
		}
	}
}

func (l *linter) emptyCells() {
	if l.r.CellsTotal == l.r.CellsDefined {
		return
	}
	var f Finding
	empty := 0
	end := func() {
		if empty > 0 && !l.skip[LintEmptyCells+":"+f.States[0]] {
			f.Message = fmt.Sprintf("%s has no row for %s", f.States[0], some(f.Events, "or"))
			if empty > few {
				f.Message = fmt.Sprintf("%s has no row for %d of %d events: %s", f.States[0], empty, l.r.Events, some(f.Events[:few], "and"))
			}
			l.add(f)
		}
	}
	for state, event := range UndefinedCells(l.t) {
		if empty == 0 || f.States[0] != state {
			end()
			empty = 0
			f = Finding{
				ID: LintEmptyCells, Severity: Info, States: []string{state},
				Advice: "Nothing, if the event is to be refused there; else add a row, or one that ignores it.",
			}
		}
		if empty++; len(f.Events) < MaxNamed {
			f.Events = append(f.Events, event)
		}
	}
	end()
}

// shape says into how many parts the table falls, and how far it is to the
// farthest state.
func (l *linter) shape() {
	t := l.t
	if parts := l.parts(); parts > 1 {
		l.add(Finding{
			ID: LintParts, Severity: Info,
			Message: fmt.Sprintf("the table falls into %d parts that no row connects", parts),
			Advice:  "Connect them, or make a table of each.",
		})
	}
	if l.r.Initial == "" || l.r.Eccentricity == 0 {
		return
	}
	far := l.kept(LintDistance, l.states(func(s int) bool {
		d, ok := l.r.Distance[t.States[s].Name]
		return ok && d == l.r.Eccentricity
	}))
	if len(far) == 0 {
		return
	}
	l.add(Finding{
		ID: LintDistance, Severity: Info, States: l.names(far),
		Message: fmt.Sprintf("the farthest from %s, at %d, is %s; strongly connected components: %d, the largest of %d",
			l.r.Initial, l.r.Eccentricity, some(l.names(far), "and"), l.r.Components, l.r.LargestComponent),
		Advice: "Nothing: a report has every distance.",
	})
}

// parts counts the parts of the table that no edge connects, in either direction.
func (l *linter) parts() (n int) {
	near := make([][]int, len(l.t.States))
	for s := range near {
		near[s] = append(slices.Clip(l.a.graph.to[s]), l.a.graph.from[s]...)
	}
	seen := bitset.New(len(near))
	for s := range near {
		if seen.Has(s) {
			continue
		}
		n++
		seen.Add(s)
		for work := []int{s}; len(work) > 0; work = work[1:] {
			for _, next := range near[work[0]] {
				if seen.Add(next) {
					work = append(work, next)
				}
			}
		}
	}
	return n
}
