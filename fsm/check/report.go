package check

import "github.com/interlock-go/interlock/fsm"

// Report has the facts of one table. States are named and listed in order of
// declaration, unless a field says otherwise.
//
// An edge is one transition from a declared state to a declared one: a row for
// one of its sources. Ignored events are no edges, because nothing moves, and a
// return row has an edge to each resting origin that an object may have there.
// An edge from a state to itself moves nothing either: it is no exit. Guards and
// origin conditions do not matter to edges, forced rows count like others.
//
// A Report is a plain value that nobody else uses; the zero Report is that of no
// table.
type Report struct {
	Name       string `json:"-"`          // of the table
	Confidence string `json:"confidence"` // as the table says

	States      int            `json:"states"`      // declared
	Events      int            `json:"events"`      // named by at least one row
	Actors      []string       `json:"actors"`      // declared, or else named by rows; sorted
	Transitions int            `json:"transitions"` // rows, counted once for each source, ignored events included
	Ignored     int            `json:"ignored"`     // those of Transitions that ignore their event
	Guarded     int            `json:"guarded"`     // those of Transitions that have a guard
	SelfLoops   int            `json:"self_loops"`  // those of Transitions that move an object to the state in which it is
	Kinds       map[string]int `json:"kinds"`       // states of each kind that occurs: stable (absent ones too), transitional, error, final

	// Cells are pairs of a state and an event. A cell is defined if a row, an
	// ignoring one included, says what happens; in all others the event is illegal.
	CellsDefined int `json:"cells_defined"`
	CellsTotal   int `json:"cells_total"` // States x Events

	Initial  string   `json:"initial"`  // empty if the table has none or does not declare it
	Initials []string `json:"initials"` // all entry states, in the order of the table; Initial alone if the table lists none

	// Distance is the number of edges on a shortest way from Initial, for every
	// state that is reached from there; Eccentricity is the greatest distance.
	Distance     map[string]int `json:"distance_from_initial"`
	Eccentricity int            `json:"eccentricity"`

	UnreachableFromInitial  []string `json:"unreachable_from_initial"`  // no way from Initial
	UnreachableFromInitials []string `json:"unreachable_from_initials"` // no way from any of Initials

	// Strongly connected components: two states are in one if there is a way from
	// each to the other. A state without such a partner is one of its own.
	Components       int `json:"sccs"`
	LargestComponent int `json:"largest_scc"` // number of its states

	Traps            []string `json:"traps"`               // neither final nor absent, and without exit
	ErrorWithoutExit []string `json:"error_without_exit"`  // those of Traps that are of kind error
	FinalWithExit    []string `json:"final_with_outgoing"` // final, with an exit

	// CannotRest: no way leads to a state that rests, which is every one that is
	// not transitional. A resting state is where it should be already.
	CannotRest []string `json:"cannot_reach_rest"`
	// CannotEnd: no way leads to the end of an object's life, which is a final or
	// an absent state. Empty if the table has no such state.
	CannotEnd []string `json:"cannot_reach_final"`

	// OneActorCanLeave: transitional, and every exit belongs to the same single
	// actor. If that one dies, the object stays. A row without actors belongs to
	// every declared one.
	OneActorCanLeave []string `json:"transitional_only_one_actor_can_leave"`
	// NoErrorExit: transitional, and no exit leads to a state of kind error in one
	// step. Empty if the table has no such state.
	NoErrorExit []string `json:"transitional_without_error_exit"`

	// Nondeterministic are the cells in which state and event alone do not say
	// where an object goes, in the order in which the rows come to them.
	Nondeterministic []Cell `json:"nondeterministic"`

	Problems []fsm.Problem `json:"-"` // those of [fsm.Table.Problems]
}

// Cell is a pair of a state and an event with two or more transitions that lead
// to two or more states. Actor, guard, origin or order decide among them.
type Cell struct {
	From       string   `json:"from"`
	Event      string   `json:"event"`
	To         []string `json:"to"`          // sorted
	Unguarded  int      `json:"unguarded"`   // transitions without a condition: neither guard nor origin
	AllGuarded bool     `json:"all_guarded"` // Unguarded is 0
}

// Errors returns the problems for which no machine can be made of the table,
// without what [fsm.New] and [fsm.Bind] demand beyond that.
func (r *Report) Errors() []fsm.Problem {
	var errors []fsm.Problem
	for _, p := range r.Problems {
		if p.Severity == fsm.SeverityError {
			errors = append(errors, p)
		}
	}
	return errors
}
