package check

import (
	"cmp"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// LintConfig refines [Lint]. The zero LintConfig has the defaults.
type LintConfig struct {
	// Skip removes findings that are known and intended: "ID", or "ID:STATE" for
	// one state. A finding about several states keeps the others. An entry that removes
	// nothing, such as a misspelt one, is no error; [LintIDs] has the ids.
	Skip []string
}

// Lint returns the findings about a table: its faults, and gaps in its structure.
// Graver findings come first, then the order of the package documentation, then
// that of [fsm.Table.Problems] or of declaration. It accepts every table, sound or
// not. A nil config is the default. It is safe for concurrent use.
func Lint(t *fsm.Table, config *LintConfig) Findings {
	l := newLinter(t)
	for _, id := range cmp.Or(config, &LintConfig{}).Skip {
		l.skip[id] = true
	}
	for _, rule := range rules {
		rule.find(l)
	}
	order := LintIDs()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(slices.Index(order, a.ID), slices.Index(order, b.ID)))
	})
	return l.found
}

// LintIDs returns the ids of findings in the order of the package documentation.
func LintIDs() (ids []string) {
	for _, rule := range rules {
		ids = append(ids, rule.ids...)
	}
	return ids
}

// rules are the checks with the ids of their findings, in the order in which Lint
// makes them.
var rules = []struct {
	ids  []string
	find func(*linter)
}{
	{[]string{
		fsm.NoName, fsm.BadName, fsm.DuplicateName, fsm.TooLarge, fsm.NoInitial, fsm.UnknownState, fsm.UnknownActor,
		fsm.NoActor, fsm.NoSource, fsm.BadRow, fsm.BadState, fsm.BadGuard, fsm.DuplicateRow, fsm.AmbiguousRow,
		fsm.Unreachable, fsm.DeadEnd, fsm.FinalExit, fsm.NoOrigin, fsm.NeverFits, fsm.NoDeadline,
		fsm.NeedlessManual, fsm.DeadlineFromAbsent, fsm.EndlessTimeout,
	}, (*linter).problems},
	{[]string{errorNoExitID}, (*linter).errorNoExit},
	{[]string{errorNoRemovalID}, (*linter).errorNoRemoval},
	{[]string{cannotRestID, cannotEndID}, (*linter).cannot},
	{[]string{onlyFailureID}, (*linter).onlyFailure},
	{[]string{choiceID}, (*linter).choice},
	{[]string{ownerDeathID}, (*linter).ownerDeath},
	{[]string{lateEventID}, (*linter).late},
	{[]string{targetUnreachedID}, (*linter).targets},
	{[]string{partsID}, (*linter).parts},
}

// The ids of findings, beside the codes of [fsm.Problem].
const (
	errorNoExitID     = "error-no-exit"
	errorNoRemovalID  = "error-no-removal"
	cannotRestID      = "cannot-rest"
	cannotEndID       = "cannot-end"
	onlyFailureID     = "only-failure"
	choiceID          = "choice"
	ownerDeathID      = "owner-death"
	lateEventID       = "late-event"
	targetUnreachedID = "target-unreached"
	partsID           = "parts"
)

// linter is a table with what several rules need.
type linter struct {
	*analysis
	facts *Report
	skip  map[string]bool
	found Findings

	moves   []move  // the transitions that lead to another state
	out, in [][]int // by state: the moves that leave and enter it, return rows only in out
	origins [][]int // by state, see [fsm.Table.Origins]
	redone  []bool  // by state: the sweeper starts its work again
}

// move is one transition of a row. to is -1 for a return row.
type move struct{ from, to, row int }

func newLinter(t *fsm.Table) *linter {
	a := newAnalysis(t)
	l := &linter{
		analysis: a, facts: a.report(), skip: make(map[string]bool), found: Findings{},
		out: make([][]int, len(t.States)), in: make([][]int, len(t.States)), origins: t.Origins(),
		redone: make([]bool, len(t.States)),
	}
	for i := range t.Rows {
		l.addMoves(i)
	}
	return l
}

// addMoves adds the moves of a row. The rule about problems reports undeclared names.
func (l *linter) addMoves(i int) {
	row := &l.t.Rows[i]
	moves := row.Then == fsm.ThenMove && l.declared(row.To)
	if !l.hasEvent(row) || !moves && row.Then != fsm.ThenReturn {
		return
	}
	to := -1
	if moves {
		to = row.To
	}
	for _, from := range row.From {
		switch {
		case !l.declared(from):
			continue
		case from == to:
			l.redone[from] = l.redone[from] || row.Supersede && l.isDeadline(row)
			continue
		}
		l.out[from] = append(l.out[from], len(l.moves))
		if moves {
			l.in[to] = append(l.in[to], len(l.moves))
		}
		l.moves = append(l.moves, move{from: from, to: to, row: i})
	}
}

// isDeadline reports whether the sweeper fires the row.
func (l *linter) isDeadline(row *fsm.TableRow) bool {
	sweeper, ok := l.t.ActorIndex(fsm.Sweeper)
	return row.Timeout > 0 || ok && len(row.Actors) == 1 && row.Actors[0] == sweeper
}

// kept returns the states for which the caller does not skip findings of this id.
func (l *linter) kept(id string, states []int) []int {
	if l.skip[id] {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(states), func(s int) bool { return l.skip[id+":"+l.t.States[s].Name] })
}

// exitRows returns the rows that lead out of the states.
func (l *linter) exitRows(states []int) (rows []int) {
	for _, s := range states {
		for _, m := range l.out[s] {
			rows = append(rows, l.moves[m].row)
		}
	}
	return rows
}

// each adds a finding for each of the states that are kept.
func (l *linter) each(id string, severity Severity, states []int, advice string, message func(*fsm.TableState) string) {
	for _, s := range l.kept(id, states) {
		state := &l.t.States[s]
		l.add(Finding{
			ID: id, Severity: severity, States: []string{state.Name}, Rows: l.exitRows([]int{s}),
			Message: message(state), Advice: advice,
		})
	}
}

// add adds a finding with sorted lists, none of them nil.
func (l *linter) add(f Finding) {
	if l.skip[f.ID] {
		return
	}
	for _, list := range []*[]string{&f.States, &f.Events} {
		if *list == nil {
			*list = []string{}
		}
	}
	slices.Sort(f.Rows)
	if f.Rows = slices.Compact(f.Rows); f.Rows == nil {
		f.Rows = []int{}
	}
	f.Rows, f.Events = f.Rows[:min(len(f.Rows), maxNamed)], f.Events[:min(len(f.Events), maxNamed)]
	l.found = append(l.found, f)
}
