package fsm

import (
	"iter"
	"slices"
	"time"
)

// Table is a machine as plain data without type parameters. Pictures, checks, files
// and stores use it. [Machine.Table] returns the table of a machine. [ParseTable]
// reads one from a file, sound or not.
//
// A Table is shared and safe for concurrent use. After it is made, it must be
// neither modified nor copied. States, events, actors and rows refer to each other
// by index. Compare two tables by what [WriteTable] writes: their unexported fields may
// differ. Package encoding/json neither writes nor reads this document.
type Table struct {
	Name     string
	Title    string
	Initial  int   // index of the state of a new object, -1 if the table names none
	Initials []int // all entry states if there are several; else empty
	States   []TableState
	Events   []string
	Actors   []Actor
	Rows     []TableRow

	// Names that a document uses and does not declare. They are empty in a sound
	// table. Their indexes follow those of States and of Actors: an index
	// s >= len(States) is that of Undeclared[s-len(States)].
	Undeclared       []string
	UndeclaredActors []Actor

	Confidence string // how normative the source is: "exact-spec", ...

	compiled *compiled        // nil unless a machine was made of the table
	decides  func() *compiled // for other tables; nil for one that a caller has put together
}

// TableState is one state of a [Table].
type TableState struct {
	Name   string
	Kind   Kind
	Manual string // why a transitional state has no timeout
	Target int    // the resting state to which a transitional one leads; -1 for none
	Doc    string
}

// TableRow is one row of a [Table]. Wildcards are expanded: From holds every
// source.
type TableRow struct {
	From      []int // in order of declaration
	Any       bool  // the row was declared with FromAny; From has the result
	Except    []int
	Origin    []int // the object's origin must be one of these; empty: any
	Event     int
	Actors    []int  // empty: any declared actor
	Guard     string // name; empty: none
	To        int    // -1 unless Then is ThenMove
	Then      Then
	Forced    bool
	Supersede bool
	Timeout   time.Duration
	Doc       string
}

// StateIndex returns the index of the state with this name.
func (t *Table) StateIndex(name string) (int, bool) {
	if t.compiled != nil {
		i := t.compiled.stateNames.of(name)
		return i, i >= 0
	}
	i := slices.IndexFunc(t.States, func(s TableState) bool { return s.Name == name })
	return i, i >= 0
}

// EventIndex returns the index of the event with this name.
func (t *Table) EventIndex(name string) (int, bool) {
	if t.compiled != nil {
		i := t.compiled.eventNames.of(name)
		return i, i >= 0
	}
	i := slices.Index(t.Events, name)
	return i, i >= 0
}

// ActorIndex returns the index of the actor.
func (t *Table) ActorIndex(a Actor) (int, bool) {
	i := slices.Index(t.Actors, a)
	return i, i >= 0
}

// WithRows returns a copy of the table with other rows, sound or not.
func (t *Table) WithRows(rows []TableRow) *Table {
	other := *t
	other.Rows, other.compiled = rows, nil
	other.compileLater()
	return &other
}

// Entries returns the states in which an object may begin. In a table with faults, they
// may be undeclared.
func (t *Table) Entries() []int {
	if len(t.Initials) > 0 {
		return t.Initials
	}
	if t.Initial < 0 {
		return nil
	}
	return []int{t.Initial}
}

// Edge is one arrow of the table: a row, expanded to one source and one target.
type Edge struct{ From, Event, Row, To int }

// Edges expands every row to its sources, in order of the rows. It expands a return
// row also to the origins that an object may have there; see [Table.Origins]. An
// ignore row leads from its source to itself. An undeclared state has no edges. Edges looks
// at each row alone: an earlier row may take all objects of an origin.
func (t *Table) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		origins, rows := t.Origins(), t.declared().Rows
		for i := range rows {
			r := &rows[i]
			for _, from := range r.From {
				for to := range r.targets(from, origins[from]) {
					if !yield(Edge{From: from, Event: r.Event, Row: i, To: to}) {
						return
					}
				}
			}
		}
	}
}

// targets yields where the row leads from one source.
func (r *TableRow) targets(from int, origins []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		switch r.Then {
		case ThenMove:
			yield(r.To)
		case ThenIgnore:
			yield(from)
		case ThenReturn:
			for _, o := range origins {
				if r.fits(o) && !yield(o) {
					return
				}
			}
		}
	}
}

// Origins returns for every state the origins that an object may have there, in
// order of declaration. The origin of a resting state is that state. The origins of
// a transitional state are the resting states from which an object can reach it
// without resting in between. If an object may have begun in a transitional state
// and so has no origin, that state is listed too.
func (t *Table) Origins() [][]int {
	if t.compiled != nil {
		return t.compiled.origins
	}
	return possibleOrigins(t.declared())
}

// fits reports whether an object with this origin meets the row's condition.
func (r *TableRow) fits(origin int) bool {
	return len(r.Origin) == 0 || slices.Contains(r.Origin, origin)
}
