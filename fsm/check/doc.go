// Package check computes facts of a lifecycle table: what can be reached and
// what cannot, where an object gets stuck, which cells leave a choice, how the
// states hang together.
//
// # Guarantees
//
//   - [Analyze] takes every [fsm.Table], sound or not, an empty one included, and
//     changes nothing. It does not recurse: tables at the limits of package fsm
//     are analysed like small ones.
//   - Every fact has one definition, which stands on its field of [Report]. The
//     same table gives the same report, lists in the same order.
//   - The JSON of a report has one field for each fact, by the names that the
//     collections of lifecycle-table/1 tables use, and no null.
//   - [fsm.New] refuses every table that has a problem here; [Report.Errors] are
//     those that are more than a demand of New.
//
// # What it does not do
//
// It looks at states, not at runs: guards are taken as conditions that may or may
// not hold, and an actor as somebody who may act. That a state is reachable says
// that the table leads there, not that an object will ever get there. What a
// finding means for the objects is for people to say: a final state with an exit
// may be a fault or the way in which operators force a retry.
package check
