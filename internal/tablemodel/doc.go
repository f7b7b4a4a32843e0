// Package tablemodel makes a model for package fsm/check of one object of any
// table, decided about by the functions of internal/decide, which are those that
// lifecycle.Manager performs.
//
//	┌────────┐ ──────orders──────▶ ┌──────┐
//	│ object │  (state, operation) │ peer │
//	└────────┘ ◀─────reports────── └──────┘
//	users, sweeper   (event, operation)
//
// Whoever may fire a row at rest does so, a few times. In every state of
// transition the object asks the peer once, and the peer answers once, with any
// event that the table lets anybody but the sweeper say there. Orders and reports
// are lost, come twice and in any order; the process that owns the object dies; the
// sweeper finds that the deadline is over whenever it likes. Guards say what they
// like.
//
// It is shown, or not, that the object can come to rest from wherever it gets to,
// without any further fault, and that no report moves an operation that it is not
// about. A state of transition that the table leaves to a person counts as rest
// once the sweeper has nothing but a person to ask.
//
// What is left out: payloads, several objects, forced rows, overrides. After
// [Options].Operations of them all operations have the same number.
package tablemodel
