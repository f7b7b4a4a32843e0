package fsm

import (
	"slices"
	"time"
)

// Spec is the specification of a machine as plain data; see [New]. The zero Spec is
// refused. New keeps no reference to the slices.
type Spec[S, E comparable] struct {
	Name    string      // of the machine, in errors, files and stores
	Title   string      // optional documentation in one line
	Initial S           // the state of a new object; must be declared
	Actors  []Actor     // all actors; New adds [Sweeper] if a row has a timeout
	States  []State[S]  // in the order of all lists
	Rows    []Row[S, E] // in order of trial
}

// State declares one state.
type State[S comparable] struct {
	Name   S
	Kind   Kind
	Manual string // why a transitional state has no timeout
	Target *S     // optional documentation: the resting state to which a transitional one leads
	Doc    string // optional documentation in one line
}

// Row is one line of the table: the sources, the event, its actors, the conditions
// and the target. [Move], [Return], [Ignore], [FromAny] and [Redo] make rows. The
// methods return changed copies.
type Row[S, E comparable] struct {
	From      []S  // sources
	Any       bool // every state but Final, Absent, the target and Except; From is empty
	Except    []S  // with Any: states that are left out
	Origin    []S  // only if the object's origin is one of these; empty: any
	Event     E
	Actors    []Actor  // empty: every declared actor; with a Timeout, the sweeper alone
	Guard     AnyGuard // nil: no condition
	To        S        // target of a ThenMove row; ignored otherwise
	Then      Then
	Forced    bool          // only [Machine.NextForced] and [Instance.FireForced] take it
	Supersede bool          // starts a new operation although the source is transitional
	Timeout   time.Duration // if > 0, [Sweeper] fires the row after this time in the source
	Doc       string        // optional documentation
}

// Rows lets the compiler infer S and E of a list of rows.
func Rows[S, E comparable](rows ...Row[S, E]) []Row[S, E] { return rows }

// Move is the row from -> to on event e, by any declared actor.
func Move[S, E comparable](from S, e E, to S) Row[S, E] {
	return Row[S, E]{From: []S{from}, Event: e, To: to}
}

// Return is the row from a transitional state back to the object's origin.
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

// Redo is the row with which [Sweeper] starts the operation of a transitional state
// again: after timeout in the state, or when the owner of the operation is dead. It is
// a superseding row from state to itself, so that reports of the earlier attempt are
// stale. The timeout must be positive: with 0 the row has no timeout, and no sweep fires it.
// [New] refuses a self row with a timeout that neither supersedes nor has a guard, because
// it would only repeat for ever.
func Redo[S, E comparable](state S, e E, timeout time.Duration) Row[S, E] {
	return Move(state, e, state).By(Sweeper).After(timeout).Superseding()
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

// Of returns the row with an origin condition: the origin is one of these states.
func (r Row[S, E]) Of(origins ...S) Row[S, E] {
	r.Origin = slices.Concat(r.Origin, origins)
	return r
}

// If returns the row with a guard; see [When].
func (r Row[S, E]) If(g AnyGuard) Row[S, E] {
	r.Guard = g
	return r
}

// After returns the row with a timeout: [Sweeper] fires it when the object has been
// in the source for d. Actors of [Row.By] may fire it earlier. With a d of 0 the row has
// no timeout, and without By it is for every declared actor. New refuses a negative d.
func (r Row[S, E]) After(d time.Duration) Row[S, E] {
	r.Timeout = d
	return r
}

// OnlyForced returns the row as a forced row. Only a forced request takes it.
func (r Row[S, E]) OnlyForced() Row[S, E] {
	r.Forced = true
	return r
}

// Superseding returns the row as one that starts a new operation although its
// source is transitional. Reports of the old operation are stale then. The usual
// example is a delete during a start.
func (r Row[S, E]) Superseding() Row[S, E] {
	r.Supersede = true
	return r
}

// Note returns the row with documentation in one line.
func (r Row[S, E]) Note(doc string) Row[S, E] {
	r.Doc = doc
	return r
}
