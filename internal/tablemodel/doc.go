// Package tablemodel makes a model for package fsm/explore of one object of any table.
// The functions of internal/decide make its decisions: those that lifecycle.Manager
// performs.
//
//	┌────────┐ ──────orders──────▶ ┌──────┐
//	│ object │  (state, operation) │ peer │
//	└────────┘ ◀─────reports────── └──────┘
//	users, sweeper   (event, operation)
//
// Every actor that may fire a row at rest does so, a few times. In every transitional
// state the object asks the peer once. The peer answers once, with any event that the
// table permits there to any actor but the sweeper, and does not ignore. Orders and reports
// are lost, duplicated and reordered. The process that owns the object dies. The sweeper finds
// the deadline passed at any time. Guards return any result.
//
// The exploration shows whether the object can come to rest from every state without a
// further fault, and whether no report moves an operation that it is not about. A
// transitional state that the table names Manual counts as rest once the sweeper
// reports that the object needs an operator.
//
// The model leaves out payloads, several objects, forced rows, overrides and
// heartbeats. After [Options].Operations all operations have the same number.
package tablemodel
