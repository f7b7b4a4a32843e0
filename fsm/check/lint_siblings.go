package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// siblings finds states that the same event enters and that cannot be left as
// their siblings can. Objects in them wait for the same sort of thing, so that
// what people once had to add to one is mostly missing in the other.
//
// At work, a state is odd if at least half of them all have what it lacks. At
// rest, where states differ for good reasons, only what every one of at least two
// siblings has is missed, and only deletion.
func (l *linter) siblings() {
	lacks := make([]lack, len(l.t.States))
	for event, states := range l.entered() {
		if atWork := l.ofKind(states, fsm.Transitional); len(atWork) > 1 {
			l.compare(lacks, event, atWork, atHalf)
		}
		if atRest := l.ofKind(states, fsm.Stable); len(atRest) > 2 {
			l.compare(lacks, event, atRest, byAllButOne)
		}
	}
	for _, s := range l.kept(LintSiblings, l.states(func(s int) bool { return lacks[s].any() })) {
		lack := &lacks[s]
		name := l.t.States[s].Name
		l.add(Finding{
			ID: LintSiblings, Severity: Warning, States: []string{name}, Events: l.eventNames(lack.events), Rows: lack.rows,
			Message: fmt.Sprintf("%s has no edge to %s; %s, which %s enters too, can be left like that",
				name, lack.what(), some(l.names(lack.like), "and"), some(l.eventNames(lack.events), "or")),
			Advice: "Add the edge, or skip the finding with the reason why objects there need none.",
		})
	}
}

// oddOne finds the one state at work that lacks what all others have, and the one
// at rest that cannot be deleted.
func (l *linter) oddOne() {
	lacks := make([]lack, len(l.t.States))
	if all := l.ofKind(upTo(len(l.t.States)), fsm.Transitional); len(all) > 2 {
		l.compare(lacks, -1, all, byAllButOne)
	}
	// Where objects begin and nothing leads back to, there may be nothing to delete.
	entered := l.states(func(s int) bool { return l.kind(s) == fsm.Stable && len(l.in[s]) > 0 })
	if len(entered) > 2 {
		l.compare(lacks, -1, entered, byAllButOne)
	}
	for _, s := range l.kept(LintOddOne, l.states(func(s int) bool { return lacks[s].any() })) {
		name := l.t.States[s].Name
		l.add(Finding{
			ID: LintOddOne, Severity: Warning, States: []string{name}, Rows: lacks[s].rows,
			Message: fmt.Sprintf("%s has no edge to %s, unlike every other %s state that might need one", name, lacks[s].what(), l.kind(s)),
			Advice:  "Add the edge, or skip the finding with the reason why objects there need none.",
		})
	}
}

// entered lists for every event the states that it enters, each once.
func (l *linter) entered() [][]int {
	states, seen := make([][]int, len(l.t.Events)), make([]bitset.Set, len(l.t.Events))
	for _, m := range l.moves {
		event := l.t.Rows[m.row].Event
		if m.to < 0 || m.role == RoleFail || m.role == RoleAbort { // what went wrong or was called off has nothing else in common
			continue
		}
		if seen[event] == nil {
			seen[event] = bitset.New(len(l.t.States))
		}
		if seen[event].Add(m.to) {
			states[event] = append(states[event], m.to)
		}
	}
	for _, list := range states {
		slices.Sort(list)
	}
	return states
}

func (l *linter) ofKind(states []int, kind fsm.Kind) []int {
	return slices.DeleteFunc(slices.Clone(states), func(s int) bool { return l.kind(s) != kind })
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (l *linter) eventNames(events []int) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = l.t.Events[e]
	}
	return list
}

// lack is what a state lacks, and who has it.
type lack struct {
	role   [len(roles)]bool
	like   []int // states that have it, ascending; a few
	events []int // that enter both, ascending
	rows   []int // that lead out of those states
}

func (k *lack) any() bool { return k.role != [len(roles)]bool{} }

// what names the roles.
func (k *lack) what() string {
	var list []string
	for r, lacks := range k.role {
		if lacks {
			list = append(list, Role(r).String())
		}
	}
	return strings.Join(list, " or ")
}

// How many of them all must have what one lacks.
func atHalf(have, all int) bool      { return have > 0 && 2*have >= all }
func byAllButOne(have, all int) bool { return have > 1 && have == all-1 }

// compare notes what each of the states lacks that enough of the others have.
//
// Who is on the way out needs neither abort nor delete, and is no example for
// them; the same is true of failures where what failed is dealt with. A row that
// keeps an object where it is says that somebody thought of it. Who can be aborted
// comes to rest and can be deleted there, so that only an abort makes up for a
// delete, not the other way round: a delete leaves no object.
func (l *linter) compare(lacks []lack, event int, states []int, enough func(have, all int) bool) {
	atWork := l.kind(states[0]) == fsm.Transitional
	for _, role := range []Role{RoleAbort, RoleDelete, RoleFail} {
		if !atWork && role != RoleDelete {
			continue
		}
		counts := func(s int) bool {
			if role == RoleFail && l.failing[s] || role != RoleFail && l.ending[s] {
				return false
			}
			return l.a.exits[s].any
		}
		var have []int
		all := 0
		for _, s := range states {
			if counts(s) {
				all++
				if l.has(s, role) {
					have = append(have, s)
				}
			}
		}
		if !enough(len(have), all) {
			continue
		}
		for _, s := range states {
			if l.missed[s][role] && event < 0 {
				continue // said of siblings
			}
			missed := counts(s) && !l.has(s, role) && !l.stays[s][role]
			if !missed || role == RoleDelete && atWork && l.has(s, RoleAbort) {
				continue
			}
			k := &lacks[s]
			k.role[role], l.missed[s][role] = true, true
			if role == RoleDelete && atWork {
				k.role[RoleAbort] = true // it would do as well
			}
			for _, o := range have[:min(len(have), few+1)] {
				if at, found := slices.BinarySearch(k.like, o); !found && len(k.like) <= few {
					k.like = slices.Insert(k.like, at, o)
				}
				if len(k.rows) < MaxNamed {
					k.rows = append(k.rows, l.rowBy[o][role])
				}
			}
			if event >= 0 && len(k.events) < MaxNamed && !slices.Contains(k.events, event) {
				k.events = append(k.events, event) // they come in order
			}
		}
	}
}
