package fsm

import (
	"slices"
	"time"
)

// Spec is the specification of a machine as plain data, from which [New]
// builds it. The zero Spec is refused. New keeps no reference to the slices.
type Spec[S, E comparable] struct {
	Name    string      // of the machine: what errors, pictures and stores call it
	Title   string      // optional: a line for people
	Initial S           // the state of a new object; must be declared
	Actors  []Actor     // who may fire; [Sweeper] is added where a row has a deadline
	States  []State[S]  // in the order in which everything lists them
	Rows    []Row[S, E] // in order of trial
}

// State declares one state.
type State[S comparable] struct {
	Name   S
	Kind   Kind
	Manual string // why a transitional state needs no deadline: who looks after it
	Target *S     // optional, for people: the resting state that a transitional one is heading for
	Doc    string // optional: a line for people
}

// Row is one line of the table: in which states, on which event, by whom,
// under which condition, and where to. [Move], [Return], [Ignore] and
// [FromAny] make rows, the methods refine copies of them.
type Row[S, E comparable] struct {
	From      []S           // sources; several make one row that is drawn and counted once
	Any       bool          // every state but Final, Absent, the target and Except; From is empty
	Except    []S           // with Any: states that are left out
	Origin    []S           // only if the object's origin is one of these; empty: any
	Event     E             //
	Actors    []Actor       // who may fire it; empty: every declared actor
	Guard     AnyGuard      // nil: no condition
	To        S             // target of a ThenMove row; ignored otherwise
	Then      Then          //
	Forced    bool          // only [Machine.NextForced] and FireForced take it
	Supersede bool          // begins a new operation although the source is transitional
	Within    time.Duration // > 0: a deadline, fired by [Sweeper] after this long in the source
	Doc       string        // optional: why the row is there
}

// Rows lets the compiler infer S and E of a list of rows.
func Rows[S, E comparable](rows ...Row[S, E]) []Row[S, E] { return rows }

// Move is the row from -> to on event e, by any declared actor.
func Move[S, E comparable](from S, e E, to S) Row[S, E] {
	return Row[S, E]{From: []S{from}, Event: e, To: to}
}

// Return is the row that leads from a transitional state back to the object's
// origin, whichever that is.
func Return[S, E comparable](from S, e E) Row[S, E] {
	return Row[S, E]{From: []S{from}, Event: e, Then: ThenReturn}
}

// Ignore is the row that accepts e in from and changes nothing.
func Ignore[S, E comparable](from S, e E) Row[S, E] {
	return Row[S, E]{From: []S{from}, Event: e, Then: ThenIgnore}
}

// FromAny is the row from every state but the Final ones, the Absent ones and
// the target itself.
func FromAny[S, E comparable](e E, to S) Row[S, E] {
	return Row[S, E]{Any: true, Event: e, To: to}
}

// By returns the row with these actors instead of any.
func (r Row[S, E]) By(actors ...Actor) Row[S, E] {
	r.Actors = slices.Clone(actors)
	return r
}

// AlsoFrom returns the row with further sources.
func (r Row[S, E]) AlsoFrom(states ...S) Row[S, E] {
	r.From = slices.Concat(r.From, states)
	return r
}

// Excluding returns a [FromAny] row without these sources.
func (r Row[S, E]) Excluding(states ...S) Row[S, E] {
	r.Except = slices.Concat(r.Except, states)
	return r
}

// Of returns the row for objects whose origin is one of these states.
func (r Row[S, E]) Of(origins ...S) Row[S, E] {
	r.Origin = slices.Concat(r.Origin, origins)
	return r
}

// If returns the row with a guard; see [When].
func (r Row[S, E]) If(g AnyGuard) Row[S, E] {
	r.Guard = g
	return r
}

// After returns the row as a deadline: [Sweeper] fires it once the object has
// been in the source for d. Actors named with [Row.By] may fire it earlier.
func (r Row[S, E]) After(d time.Duration) Row[S, E] {
	r.Within = d
	return r
}

// OnlyForced returns the row as one that only a forced request takes.
func (r Row[S, E]) OnlyForced() Row[S, E] {
	r.Forced = true
	return r
}

// Superseding returns the row as one that begins a new operation although its
// source is transitional, so that what the old operation reports is stale.
// A delete while starting is the usual case.
func (r Row[S, E]) Superseding() Row[S, E] {
	r.Supersede = true
	return r
}

// Note returns the row with a line for people.
func (r Row[S, E]) Note(doc string) Row[S, E] {
	r.Doc = doc
	return r
}
