package fsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity is what a [Problem] means for who wants a machine.
type Severity uint8

const (
	SeverityError  Severity = iota // no machine can be made of the table
	SeverityDemand                 // the table is sound; [New] and [Bind] refuse it all the same
)

// String returns "error" or "demand".
func (s Severity) String() string {
	if s == SeverityDemand {
		return "demand"
	}
	return "error"
}

// Problem is one fault of a table. Code is stable and made for programs.
type Problem struct {
	Code     string
	Severity Severity
	Row      int    // index of the row, -1 if it is not about one
	State    string // name, empty if it is not about one
	Text     string // one line, names the row or state
}

// String returns the line.
func (p Problem) String() string { return p.Text }

// The codes of problems.
const (
	NoName             = "no-name"              // machine, state, event or actor without a name
	BadName            = "bad-name"             // not UTF-8, a control character, or over [MaxName] bytes
	DuplicateName      = "duplicate-name"       // of a state, event or actor
	TooLarge           = "too-large"            // over one of the Max limits
	NoInitial          = "no-initial"           // the initial state is not declared
	UnknownState       = "unknown-state"        // a row names a state that is not declared
	UnknownActor       = "unknown-actor"        // a row names an actor that is not declared
	NoActor            = "no-actor"             // no actor is declared at all
	NoSource           = "no-source"            // a row matches no state
	BadRow             = "bad-row"              // fields of a row contradict each other
	BadState           = "bad-state"            // an unknown kind
	BadGuard           = "bad-guard"            // nil, without name, or of another payload type
	DuplicateRow       = "duplicate-row"        // two rows say the same
	AmbiguousRow       = "ambiguous-row"        // a later row of the same cell can never be tried
	Unreachable        = "unreachable"          // no object gets into the state
	DeadEnd            = "dead-end"             // no way out, and neither Final nor Absent
	FinalExit          = "final-exit"           // a Final state is left without force
	NoOrigin           = "no-origin"            // a return row for objects that may have none
	NeverFits          = "never-fits"           // an origin condition that no object can meet
	NoDeadline         = "no-deadline"          // transitional, no deadline row, no Manual
	NeedlessManual     = "needless-manual"      // Manual on a state that has a deadline or rests
	DeadlineFromAbsent = "deadline-from-absent" // nobody can be late where nothing is
)

// MaxName is the longest name of a state, event, actor, guard or machine, in
// bytes.
const MaxName = 256

// Problems returns every fault of the table, errors first, in order of
// declaration. It is empty for the table of a machine.
func (t *Table) Problems() []Problem {
	if t.compiled != nil {
		return nil // nothing is compiled that has a problem
	}
	p := problems{t: t}
	p.names()
	if slices.ContainsFunc(p.list, func(x Problem) bool { return x.Code == TooLarge }) {
		return p.list // looking further would cost what the limit is there to save
	}
	if !p.shape() {
		return p.list // indexes out of range: nothing more can be said
	}
	p.cells()
	p.reach()
	slices.SortStableFunc(p.list, func(a, b Problem) int { return int(a.Severity) - int(b.Severity) })
	return p.list
}

type problems struct {
	t    *Table
	list []Problem
}

func (p *problems) add(code string, format string, args ...any) {
	p.list = append(p.list, Problem{Code: code, Row: -1, Text: fmt.Sprintf(format, args...)})
}

func (p *problems) state(code string, sev Severity, state int, format string, args ...any) {
	name := p.t.States[state].Name
	p.list = append(p.list, Problem{
		Code: code, Severity: sev, Row: -1, State: name,
		Text: fmt.Sprintf("state %s: ", name) + fmt.Sprintf(format, args...),
	})
}

func (p *problems) row(code string, row int, format string, args ...any) {
	p.list = append(p.list, Problem{
		Code: code, Row: row,
		Text: fmt.Sprintf("row %d (%s): ", row, p.t.describe(row)) + fmt.Sprintf(format, args...),
	})
}

// describe names a row for people: from -event-> to. It bears indexes that are
// out of range.
func (t *Table) describe(row int) string {
	r := &t.Rows[row]
	name := func(i int) string {
		if name, ok := t.stateName(i); ok {
			return name
		}
		return "?"
	}
	from := make([]string, 0, 3)
	switch {
	case r.Any:
		from = append(from, "any")
	default:
		for i, f := range r.From {
			if i == 2 && len(r.From) > 3 {
				from = append(from, "...")
				break
			}
			from = append(from, name(f))
		}
	}
	event := "?"
	if r.Event >= 0 && r.Event < len(t.Events) {
		event = t.Events[r.Event]
	}
	to := name(r.To)
	switch r.Then {
	case ThenReturn:
		to = "origin"
	case ThenIgnore:
		to = "ignored"
	}
	return strings.Join(from, "|") + " -" + event + "-> " + to
}

func (p *problems) names() {
	t := p.t
	check := func(what string, name string) {
		switch {
		case name == "":
			p.add(NoName, "%s: empty name", what)
		case len(name) > MaxName:
			p.add(BadName, "%s: name of %d bytes, more than %d", what, len(name), MaxName)
		case !utf8.ValidString(name):
			p.add(BadName, "%s: name %q is not UTF-8", what, name)
		case strings.ContainsFunc(name, unicode.IsControl):
			p.add(BadName, "%s: control character in name %q", what, name)
		}
	}
	unique := func(what string, n int, name func(int) string) {
		seen := make(map[string]bool, n)
		for i := range n {
			check(fmt.Sprintf("%s %d", what, i), name(i))
			if seen[name(i)] {
				p.add(DuplicateName, "%s %d: name %q is taken", what, i, name(i))
			}
			seen[name(i)] = true
		}
	}
	check("machine", t.Name)
	unique("state", len(t.States), func(i int) string { return t.States[i].Name })
	unique("event", len(t.Events), func(i int) string { return t.Events[i] })
	unique("actor", len(t.Actors), func(i int) string { return string(t.Actors[i]) })
	limit := func(what string, n, limit int) {
		if n > limit {
			p.add(TooLarge, "%d %s, more than %d", n, what, limit)
		}
	}
	limit("states", len(t.States), MaxStates)
	limit("events", len(t.Events), MaxEvents)
	limit("actors", len(t.Actors), MaxActors)
	limit("rows", len(t.Rows), MaxRows)
	if len(t.Actors) == 0 && len(t.Rows) > 0 {
		p.add(NoActor, "no actor is declared: nobody can fire a row")
	}
}

// shape checks that every index means something, and reports whether it does.
func (p *problems) shape() bool {
	t, ok := p.t, true
	state := func(i int) bool { return i >= 0 && i < len(t.States) }
	if !state(t.Initial) {
		p.add(NoInitial, "the initial state is not declared")
		ok = false
	}
	for _, s := range t.Initials {
		if !state(s) {
			p.add(NoInitial, "an entry state is not declared")
			ok = false
		}
	}
	for i, s := range t.States {
		if int(s.Kind) >= len(kindNames) {
			p.state(BadState, SeverityError, i, "unknown kind %d", s.Kind)
		}
		if s.Target != -1 && !state(s.Target) { // for people only: the rest can be checked
			p.state(UnknownState, SeverityError, i, "the target is not declared%s", t.called(s.Target))
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		before := len(p.list)
		for _, list := range [][]int{r.From, r.Except, r.Origin} {
			if k := slices.IndexFunc(list, func(s int) bool { return !state(s) }); k >= 0 {
				p.row(UnknownState, i, "names a state that is not declared%s", t.called(list[k]))
			}
		}
		if r.Then == ThenMove && !state(r.To) {
			p.row(UnknownState, i, "the target is not declared%s", t.called(r.To))
		}
		if r.Event < 0 || r.Event >= len(t.Events) {
			p.row(BadRow, i, "the event is not declared")
		}
		if k := slices.IndexFunc(r.Actors, func(a int) bool { return a < 0 || a >= len(t.Actors) }); k >= 0 {
			text := "names an actor that is not declared"
			if name, ok := t.actorName(r.Actors[k]); ok {
				text += ": " + strconv.Quote(name)
			}
			p.row(UnknownActor, i, "%s", text)
		}
		if len(r.From) == 0 {
			p.row(NoSource, i, "matches no state")
		}
		if r.Within < 0 {
			p.row(BadRow, i, "negative deadline %s", r.Within)
		}
		if r.Then > ThenIgnore {
			p.row(BadRow, i, "unknown Then %d", r.Then)
		}
		if r.Guard != "" && (len(r.Guard) > MaxName || !utf8.ValidString(r.Guard)) {
			p.row(BadName, i, "guard name is not UTF-8 or over %d bytes", MaxName)
		}
		ok = ok && len(p.list) == before
	}
	return ok
}

// called names a state that is not declared, where a document named it.
func (t *Table) called(state int) string {
	if name, ok := t.stateName(state); ok {
		return ": " + strconv.Quote(name)
	}
	return ""
}

// cells checks the rows of every (state, event) against each other.
func (p *problems) cells() {
	t := p.t
	byCell := make(map[[2]int][]int)
	for i := range t.Rows {
		r := &t.Rows[i]
		seen := newBitset(len(t.States))
		for _, from := range r.From {
			if seen.has(from) {
				p.row(BadRow, i, "names %s twice as a source", t.States[from].Name)
				continue
			}
			seen.add(from)
			cell := [2]int{from, r.Event}
			if len(byCell[cell]) == MaxCell {
				p.row(TooLarge, i, "%s has more than %d rows for the event", t.States[from].Name, MaxCell)
				continue
			}
			// One row in the way is enough: a thousand would not say more.
			for _, before := range byCell[cell] {
				if p.pair(before, i, from) {
					break
				}
			}
			byCell[cell] = append(byCell[cell], i)
			if t.States[from].Kind == Final && !r.Forced && r.Then != ThenIgnore && !(r.Then == ThenMove && r.To == from) {
				p.row(FinalExit, i, "leaves the final state %s without force", t.States[from].Name)
			}
			if t.States[from].Kind == Absent && r.Within > 0 {
				p.row(DeadlineFromAbsent, i, "a deadline in the absent state %s", t.States[from].Name)
			}
			if r.Then == ThenReturn && t.States[from].Kind.Resting() {
				p.row(BadRow, i, "returns from %s, which rests and is its own origin", t.States[from].Name)
			}
		}
		if r.Then == ThenIgnore && r.Within > 0 {
			p.row(BadRow, i, "a deadline that is ignored")
		}
		if r.Supersede && (r.Then != ThenMove || t.States[r.To].Kind.Resting()) {
			p.row(BadRow, i, "supersedes, but begins no operation: the target is not transitional")
		}
	}
}

// pair checks two rows of one cell, b declared after a, and reports whether a is
// in the way of b.
func (p *problems) pair(a, b, from int) bool {
	t := p.t
	x, y := &t.Rows[a], &t.Rows[b]
	if !overlap(x.Actors, y.Actors) || x.Forced && !y.Forced {
		return false
	}
	covers := len(x.Origin) == 0 || len(y.Origin) > 0 && subset(y.Origin, x.Origin)
	same := covers && x.Guard == y.Guard && x.Forced == y.Forced && (len(y.Origin) == 0) == (len(x.Origin) == 0) && subset(x.Origin, y.Origin)
	switch {
	case same && x.Then == y.Then && x.To == y.To:
		p.row(DuplicateRow, b, "says in %s the same as row %d", t.States[from].Name, a)
	case covers && (x.Guard == "" || x.Guard == y.Guard):
		p.row(AmbiguousRow, b, "is never tried in %s: row %d (%s) takes the same actors first",
			t.States[from].Name, a, t.describe(a))
	default:
		return false
	}
	return true
}

func subset(a, b []int) bool {
	return !slices.ContainsFunc(a, func(x int) bool { return !slices.Contains(b, x) })
}

// overlap reports whether two lists of actors share one; an empty list is
// everybody.
func overlap(a, b []int) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// reach checks what an object can get into and out of.
func (p *problems) reach() {
	t := p.t
	origins := possibleOrigins(t)
	leaves := make([]bitset, len(t.States)) // by state: the origins of which a row leads out
	for s := range leaves {
		leaves[s] = newBitset(len(t.States))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		fits := len(r.Origin) == 0
		for _, from := range r.From {
			moves := r.Then == ThenReturn || r.Then == ThenMove && r.To != from
			for _, o := range origins[from] {
				if !r.fits(o) {
					continue
				}
				fits = true
				if moves {
					leaves[from].add(o)
				}
				if r.Then == ThenReturn && !t.States[o].Kind.Resting() {
					p.row(NoOrigin, i, "an object in %s may have begun in %s and have no origin to return to",
						t.States[from].Name, t.States[o].Name)
				}
			}
		}
		if !fits {
			p.row(NeverFits, i, "no object has one of these origins there")
		}
	}
	for s := range t.States {
		st := &t.States[s]
		if len(origins[s]) == 0 {
			p.state(Unreachable, SeverityError, s, "no object gets there")
		}
		if st.Kind == Final || st.Kind == Absent {
			continue
		}
		stuck := slices.IndexFunc(origins[s], func(o int) bool { return !leaves[s].has(o) })
		switch {
		case len(origins[s]) == 0 && !slices.ContainsFunc(t.Rows, func(r TableRow) bool {
			return slices.Contains(r.From, s) && (r.Then == ThenReturn || r.Then == ThenMove && r.To != s)
		}), stuck >= 0 && len(leaves[s].members()) == 0:
			p.state(DeadEnd, SeverityError, s, "no row leads out, and it is neither final nor absent")
		case stuck >= 0:
			p.state(DeadEnd, SeverityError, s, "no row leads out for an object that came from %s", t.States[origins[s][stuck]].Name)
		}
	}
	p.deadlines(origins)
}

// deadlines checks that somebody looks after every transitional state, wherever
// the object came from.
func (p *problems) deadlines(origins [][]int) {
	t := p.t
	sweeper, _ := t.ActorIndex(Sweeper)
	due := make([]bitset, len(t.States)) // by state: the origins with a deadline
	for s := range due {
		due[s] = newBitset(len(t.States))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Within <= 0 {
			continue
		}
		if r.Forced {
			p.row(BadRow, i, "a deadline that only force takes")
		}
		if len(r.Actors) > 0 && !slices.Contains(r.Actors, sweeper) {
			p.row(BadRow, i, "a deadline that the sweeper may not fire")
		}
		for _, from := range r.From {
			for _, o := range origins[from] {
				if r.fits(o) {
					due[from].add(o)
				}
			}
		}
	}
	for s := range t.States {
		st := &t.States[s]
		late := slices.IndexFunc(origins[s], func(o int) bool { return !due[s].has(o) })
		some := len(due[s].members()) > 0
		switch {
		case st.Manual != "" && st.Kind != Transitional:
			p.state(NeedlessManual, SeverityDemand, s, "Manual on a state that rests")
		case st.Manual != "" && some && late < 0:
			p.state(NeedlessManual, SeverityDemand, s, "Manual beside a deadline row")
		case st.Manual != "" || st.Kind != Transitional:
		case !some && (late >= 0 || len(origins[s]) == 0):
			p.state(NoDeadline, SeverityDemand, s, "transitional, with neither a deadline row nor Manual")
		case late >= 0:
			p.state(NoDeadline, SeverityDemand, s, "no deadline row for an object that came from %s, and no Manual",
				t.States[origins[s][late]].Name)
		}
	}
}
