// Package lifecycle moves objects through a table of package fsm and keeps them
// in a store, so that messages that come late or twice, processes that die, and
// users who ask at the same moment cannot move them wrongly.
//
//	user ──Create, Fire──▶ ┌─────────┐   read, decide, commit    ┌───────┐
//	                       │ Manager │ ◀───────────────────────▶ │ Store │
//	peer ─────Report─────▶ └─────────┘   one compare-and-set     └───────┘
//	                            │        with its history row
//	                            ▼
//	                        Observer
//
// A [Manager] has the operations: [Manager.Create] and [Manager.Add] make a
// [Record], [Manager.Fire] moves it, [Manager.Report] takes what a peer says
// about an operation. What they do is decided by pure functions from the table
// and the record, and committed as one compare-and-set on state and revision.
//
// # Operations
//
// Without an id a call begins an operation, with one it goes on with it. Entering
// a transitional state from a resting one begins an operation and gives it the
// next number; going on in transition keeps the number, unless the row supersedes
// what is under way. A report names the operation that it is about, and is told
// apart: Applied, Repeated, Stale or Refused. Only an applied one changes
// anything. Who needs no ids never sees them.
//
// # Guarantees
//
//   - An object moves only by a row of its table, or not at all; every move is
//     one commit with one row of history.
//   - Of several calls that were decided on the same revision, one is committed;
//     the others get [ErrConflict] with the record that won.
//   - A report about an operation that is over changes nothing, even if the table
//     would allow it.
//   - Operation ids, sequence numbers and revisions never repeat for a key, also
//     after the object was removed and made again.
//   - Payload and state change in the same commit. A payload shares no memory
//     with the store: what anybody does with it afterwards changes nothing.
//   - Every error says machine, object, state, event and actor, matches one
//     sentinel, and means that nothing was written, [ErrUnknownOutcome] excepted.
//   - A commit whose answer is lost is sent again with the same token, never with
//     another one.
//   - No lock is held across user code or a call of the store; the package starts
//     no goroutine.
//
// # No guarantees
//
//   - A guard looks at the payload that was read; another object's state at the
//     moment of the commit is what [Change.Require] is for.
//   - History lasts as long as the store keeps it. A report that repeats one from
//     before that is Refused instead of Repeated; it changes nothing either way.
//   - Deadlines are kept in the records; nothing here looks at the clock by itself.
//   - Observers are told after the commit, and not at all if the process dies in
//     between. What must not be lost goes into [Change.Messages].
//
// # Rejected
//
//   - Trying again after a conflict: a request may be wrong for the state that
//     the object is in now, and only the caller knows.
//   - The time of the last change as revision: clocks repeat themselves.
//   - Comparing the state alone: an object that went away and came back is not
//     the one that was read.
package lifecycle
