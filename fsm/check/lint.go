package check

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// LintConfig says what [Lint] looks for. The zero LintConfig is the default.
type LintConfig struct {
	// Words by which roles of events are recognised; nil: [DefaultVocabulary].
	Words *Vocabulary

	// Exclusive also looks for states that several actors can leave, in tables
	// that promise that at each state only one can. Forced rows, deadlines and
	// rows by [fsm.Sweeper] do not count.
	Exclusive bool

	// Skip are findings that are known and meant: "ID", or "ID:STATE" for those
	// about one state. A finding about several states is about the others then.
	Skip []string
}

// Lint returns what is to be said about a table: its faults, what is odd in its
// structure, and gaps that lifecycles of running systems turned out to have. Each
// finding has an id of the table in the package documentation.
//
// The order is fixed: graver findings first, then in the order of that table, then
// in the order in which the table declares states and rows. Like [Analyze], Lint
// takes every table, an empty or faulty one too, changes nothing, and is safe for
// concurrent use. A nil config is the default.
func Lint(t *fsm.Table, config *LintConfig) Findings {
	if config == nil {
		config = &LintConfig{}
	}
	l := newLinter(t, config)
	for _, rule := range rules {
		rule.find(l)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return l.found
}

// LintIDs returns the ids that findings of [Lint] may have, in the order of the
// table in the package documentation.
func LintIDs() (ids []string) {
	for _, rule := range rules {
		ids = append(ids, rule.ids...)
	}
	return ids
}

// rules are looked for in this order. The ids are those that find may give.
var rules = []struct {
	ids  []string
	find func(*linter)
}{
	{[]string{
		fsm.NoName, fsm.BadName, fsm.DuplicateName, fsm.TooLarge, fsm.NoInitial, fsm.UnknownState, fsm.UnknownActor,
		fsm.NoActor, fsm.NoSource, fsm.BadRow, fsm.BadState, fsm.BadGuard, fsm.DuplicateRow, fsm.AmbiguousRow,
		fsm.Unreachable, fsm.DeadEnd, fsm.FinalExit, fsm.NoOrigin, fsm.NeverFits, fsm.NoDeadline,
		fsm.NeedlessManual, fsm.DeadlineFromAbsent,
	}, (*linter).problems},
	{[]string{LintErrorNoExit}, (*linter).errorNoExit},
	{[]string{LintCannotRest, LintCannotEnd}, (*linter).cannot},
	{[]string{LintIllegalRow}, (*linter).illegalRows},
	{[]string{LintChoice}, (*linter).choice},
	{[]string{LintSiblings}, (*linter).siblings},
	{[]string{LintOddOne}, (*linter).oddOne},
	{[]string{LintOwnerDeath, LintOwnerUnsaid, LintOwnerNoRow}, (*linter).ownerDeath},
	{[]string{LintOneActor}, (*linter).oneActor},
	{[]string{LintLateEvent, LintLateUnsaid}, (*linter).late},
	{[]string{LintLateFailure}, (*linter).lateFailures},
	{[]string{LintTargetUnreached, LintTargetOutside, LintTargetElsewhere}, (*linter).targets},
	{[]string{LintManyActors}, (*linter).manyActors},
	{[]string{LintFinalForced}, (*linter).finalForced},
	{[]string{LintShortcut}, (*linter).shortcuts},
	{[]string{LintEmptyCells}, (*linter).emptyCells},
	{[]string{LintParts, LintDistance}, (*linter).shape},
}

// The ids of findings beside the codes of [fsm.Problem].
const (
	LintErrorNoExit     = "error-no-exit"
	LintCannotRest      = "cannot-rest"
	LintCannotEnd       = "cannot-end"
	LintIllegalRow      = "illegal-row"
	LintChoice          = "choice"
	LintSiblings        = "siblings"
	LintOddOne          = "odd-one"
	LintOwnerDeath      = "owner-death"
	LintOwnerUnsaid     = "owner-unsaid"
	LintOwnerNoRow      = "owner-no-row"
	LintOneActor        = "one-actor"
	LintLateEvent       = "late-event"
	LintLateUnsaid      = "late-unsaid"
	LintLateFailure     = "late-failure"
	LintTargetUnreached = "target-unreached"
	LintTargetOutside   = "target-outside"
	LintTargetElsewhere = "target-elsewhere"
	LintManyActors      = "many-actors"
	LintFinalForced     = "final-forced"
	LintShortcut        = "shortcut"
	LintEmptyCells      = "empty-cells"
	LintParts           = "parts"
	LintDistance        = "distance"
)

// linter is a table with what several rules ask about it. What is kept grows with
// the states and the rows, not with the edges.
type linter struct {
	t      *fsm.Table
	a      *analysis
	r      *Report
	words  *Vocabulary
	config *LintConfig
	skip   map[string]bool
	found  Findings

	events  []Role             // by event: by its name
	named   []Role             // by state: likewise
	moves   []step             // transitions that lead from one declared state to another
	rowBy   [][len(roles)]int  // by state and role: the first row that leads out, -1 for none
	stays   [][len(roles)]bool // by state and role: a row keeps the object where it is
	out     [][]int            // by state: the moves that leave it
	in      [][]int            // by state: the moves that enter it, return rows left out
	ending  []bool             // by state: part of a deletion, or where one ends, or of an abort
	failing []bool             // by state: what failed is dealt with
	missed  [][len(roles)]bool // by state: what it lacks, as was said
	looked  []bool             // by state: somebody looks after it, or a deadline does
}

// step is one transition of a row that moves an object. To is -1 for a return row.
type step struct {
	from, to, row int
	role          Role
}

func newLinter(t *fsm.Table, config *LintConfig) *linter {
	a := newAnalysis(t)
	l := &linter{
		t: t, a: a, r: a.report(), words: config.Words, config: config,
		skip: make(map[string]bool, len(config.Skip)), found: Findings{},
		events: make([]Role, len(t.Events)), named: make([]Role, len(t.States)),
		out: make([][]int, len(t.States)), in: make([][]int, len(t.States)),
		looked: make([]bool, len(t.States)), rowBy: make([][len(roles)]int, len(t.States)),
		stays: make([][len(roles)]bool, len(t.States)), missed: make([][len(roles)]bool, len(t.States)),
	}
	for s := range l.rowBy {
		l.rowBy[s] = [...]int{-1, -1, -1, -1}
	}
	if l.words == nil {
		l.words = DefaultVocabulary()
	}
	for _, id := range config.Skip {
		l.skip[id] = true
	}
	for e, name := range t.Events {
		l.events[e] = l.words.RoleOf(name)
	}
	for s := range t.States {
		l.named[s] = l.words.RoleOf(t.States[s].Name)
	}
	for i := range t.Rows {
		l.row(i)
	}
	l.wayOn()
	l.ending = l.deletions()
	l.failing = l.onlyBy(make([]bool, len(t.States)), RoleFail, RoleAbort)
	for s := range t.States {
		l.looked[s] = t.States[s].Manual != "" || slices.ContainsFunc(l.out[s], func(m int) bool {
			return l.isDeadline(&t.Rows[l.moves[m].row])
		})
	}
	return l
}

// row takes the moves of a row. What is not declared is the business of the
// problems.
func (l *linter) row(i int) {
	row := &l.t.Rows[i]
	move := row.Then == fsm.ThenMove && l.a.declared(row.To)
	if !l.a.hasEvent(row) || !move && row.Then != fsm.ThenReturn && row.Then != fsm.ThenIgnore {
		return
	}
	to := -1
	if move {
		to = row.To
	}
	for _, from := range row.From {
		if !l.a.declared(from) {
			continue
		}
		role := l.roleOf(row, from)
		if from == to || row.Then == fsm.ThenIgnore {
			l.stays[from][role] = true
			continue
		}
		l.out[from] = append(l.out[from], len(l.moves))
		if move {
			l.in[to] = append(l.in[to], len(l.moves))
		}
		l.moves = append(l.moves, step{from: from, to: to, row: i, role: role})
		l.firstOf(l.moves[len(l.moves)-1])
	}
}

// wayOn takes what is the only way on for neither a failure nor an abort: where
// nothing else leads on, a timer that runs out is the regular end, and so is the
// report that what was called off has stopped.
func (l *linter) wayOn() {
	for s := range l.out {
		if l.kind(s) != fsm.Transitional {
			continue
		}
		for _, role := range []Role{RoleFail, RoleAbort} {
			if l.has(s, RoleNone) {
				break
			}
			for _, m := range l.out[s] {
				move := &l.moves[m]
				if move.role == role && move.to >= 0 && l.kind(move.to) != fsm.Failed {
					move.role = RoleNone
				}
			}
			l.rowBy[s] = [...]int{-1, -1, -1, -1}
			for _, m := range l.out[s] {
				l.firstOf(l.moves[m])
			}
		}
	}
}

// firstOf notes the row of a move if it is the first of its role.
func (l *linter) firstOf(m step) {
	if first := &l.rowBy[m.from][m.role]; *first < 0 {
		*first = m.row
	}
}

// deletions finds the states in which an object is on its way out: those that a
// request to delete leads to, or nothing but requests to abort and delete, and the
// ones at work that are entered from such states only. Where a deletion comes to
// rest it is over.
func (l *linter) deletions() []bool {
	ending := make([]bool, len(l.t.States))
	for _, m := range l.moves {
		if m.role == RoleDelete && m.to >= 0 && l.kind(m.to) != fsm.Failed {
			ending[m.to] = true
		}
	}
	return l.onlyBy(ending, RoleAbort, RoleDelete)
}

// onlyBy adds to the states that are marked those at work that rows of a role lead
// to, and nothing else but rows of another one and rows from states at work that
// are marked. What nothing else leads to than the latter is marked likewise.
func (l *linter) onlyBy(marked []bool, role, or Role) []bool {
	others := make([]int, len(l.t.States)) // by state: moves into it of any other role
	asked := make([]bool, len(l.t.States)) // by state: a move of the role leads there
	var work []int
	for s := range others {
		for _, m := range l.in[s] {
			switch l.moves[m].role {
			case role:
				asked[s] = true
			case or:
			default:
				others[s]++
			}
		}
	}
	mark := func(s int) {
		marked[s] = true
		if l.kind(s) == fsm.Transitional { // at rest it is over
			work = append(work, s)
		}
	}
	for s := range marked {
		if marked[s] || asked[s] && others[s] == 0 && l.kind(s) == fsm.Transitional {
			mark(s)
		}
	}
	for ; len(work) > 0; work = work[1:] {
		for _, m := range l.out[work[0]] {
			to, by := l.moves[m].to, l.moves[m].role
			if to < 0 || by == role || by == or {
				continue
			}
			if others[to]--; others[to] == 0 && !marked[to] && l.kind(to) != fsm.Failed {
				mark(to)
			}
		}
	}
	return marked
}

// has reports whether a row of this role leads out of a state.
func (l *linter) has(state int, role Role) bool { return l.rowBy[state][role] >= 0 }

// rowsOf returns the rows that lead out of a state and pass, ascending.
func (l *linter) rowsOf(state int, pass func(step) bool) (rows []int) {
	for _, m := range l.out[state] {
		row := l.moves[m].row
		if pass(l.moves[m]) && (len(rows) == 0 || rows[len(rows)-1] != row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// every passes every row to [linter.rowsOf].
func every(step) bool { return true }

func (l *linter) kind(state int) fsm.Kind { return l.t.States[state].Kind }

func (l *linter) names(states []int) []string {
	list := make([]string, len(states))
	for i, s := range states {
		list[i] = l.t.States[s].Name
	}
	return list
}

// kept returns the states about which a finding of this id is not skipped.
func (l *linter) kept(id string, states []int) []int {
	if l.skip[id] {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(states), func(s int) bool { return l.skip[id+":"+l.t.States[s].Name] })
}

// add notes a finding, with lists in order and nothing null in its JSON.
func (l *linter) add(f Finding) {
	if l.skip[f.ID] {
		return
	}
	for _, list := range []*[]string{&f.States, &f.Events, &f.Actors} {
		if *list == nil {
			*list = []string{}
		}
	}
	slices.Sort(f.Rows)
	if f.Rows = slices.Compact(f.Rows); f.Rows == nil {
		f.Rows = []int{}
	}
	f.Rows, f.Events = f.Rows[:min(len(f.Rows), MaxNamed)], f.Events[:min(len(f.Events), MaxNamed)]
	l.found = append(l.found, f)
}
