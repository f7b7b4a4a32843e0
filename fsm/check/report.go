package check

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/visible"
)

// Report has the facts of one table. Lists of states are in order of declaration. A
// Report is a plain value. The zero Report is that of no table.
//
// A transition is a row for one of its sources. An edge is a transition from one
// declared state to another or the same one. An ignored event has no edge. A return
// row has an edge to each resting origin that an object may have there. An exit is
// an edge to another state. Guards do not change the edges. Origin conditions change only
// those of return rows. Forced rows count like others.
type Report struct {
	Name       string `json:"-"`          // of the table
	Confidence string `json:"confidence"` // from the table

	States      int            `json:"states"`      // declared
	Events      int            `json:"events"`      // named by at least one row
	Actors      []string       `json:"actors"`      // declared; sorted
	Transitions int            `json:"transitions"` // ignored events included
	Ignored     int            `json:"ignored"`     // those of Transitions that ignore their event
	Guarded     int            `json:"guarded"`     // those of Transitions that have a guard
	SelfLoops   int            `json:"self_loops"`  // those of Transitions that lead back to their source
	Kinds       map[string]int `json:"kinds"`       // states of each kind that occurs: stable (absent ones too), transitional, error, final

	// Cells are pairs of a state and an event. A cell is defined if it has a row,
	// ignored events included. In all other cells the event is illegal.
	CellsDefined int `json:"cells_defined"`
	CellsTotal   int `json:"cells_total"` // States x Events

	Initial  string   `json:"initial"`  // empty if the table has none or does not declare it
	Initials []string `json:"initials"` // all entry states, in the order of the table; Initial alone if the table lists none

	// Distance is the number of edges on a shortest path from Initial, for every
	// state that has one. Eccentricity is the greatest distance.
	Distance     map[string]int `json:"distance_from_initial"`
	Eccentricity int            `json:"eccentricity"`

	UnreachableFromInitial  []string `json:"unreachable_from_initial"`  // no path from Initial
	UnreachableFromInitials []string `json:"unreachable_from_initials"` // no path from any of Initials

	// Strongly connected components: two states are in one if paths lead from each
	// to the other. A state without such a partner is a component.
	Components       int `json:"sccs"`
	LargestComponent int `json:"largest_scc"` // number of its states

	Traps            []string `json:"traps"`               // neither final nor absent, and without exit
	ErrorWithoutExit []string `json:"error_without_exit"`  // those of Traps that are of kind error
	FinalWithExit    []string `json:"final_with_outgoing"` // final, with an exit

	// CannotRest: no path leads to a state of rest, which is every state that is
	// not transitional.
	CannotRest []string `json:"cannot_reach_rest"`
	// CannotEnd: no path leads to a final or an absent state. Empty if the table has
	// none.
	CannotEnd []string `json:"cannot_reach_final"`

	// OneActorCanLeave: transitional, and one actor has every exit. If it dies, the
	// object stays. A row without actors belongs to every declared actor.
	OneActorCanLeave []string `json:"transitional_only_one_actor_can_leave"`
	// NoErrorExit: transitional, and no exit leads to a state of kind error in one
	// step. Empty if the table has no such state.
	NoErrorExit []string `json:"transitional_without_error_exit"`

	// Nondeterministic are the cells with several targets of several transitions, in order
	// of rows. Ignored events do not count.
	Nondeterministic []Cell `json:"nondeterministic"`

	Problems []fsm.Problem `json:"-"` // those of [fsm.Table.Problems]
}

// Cell is a pair of a state and an event with transitions to several states. Actor,
// guard, origin or order decide among them.
type Cell struct {
	From       string   `json:"from"`
	Event      string   `json:"event"`
	To         []string `json:"to"`          // sorted
	Unguarded  int      `json:"unguarded"`   // transitions with neither guard nor origin condition
	AllGuarded bool     `json:"all_guarded"` // Unguarded is 0
}

// String returns the size of the table as one line. Programs must not depend on the text.
func (r *Report) String() string {
	return fmt.Sprintf("%s: %d states, %d events, %d actors, %d transitions in %d of %d cells",
		visible.Text(r.Name), r.States, r.Events, len(r.Actors), r.Transitions, r.CellsDefined, r.CellsTotal)
}
