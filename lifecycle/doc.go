// Package lifecycle moves objects through a table of package fsm and keeps them
// in a store, so that messages that come late or twice, processes that die, and
// users who ask at the same moment cannot move them wrongly.
//
//	user ──Create, Fire──▶ ┌─────────┐   read, decide, commit    ┌───────┐
//	user ───────Do───────▶ │         │ ◀───────────────────────▶ │ Store │
//	peer ─────Report─────▶ │ Manager │   one compare-and-set     └───────┘
//	sweeper ───Sweep─────▶ │         │   with its history row
//	                       └─────────┘
//	                         │     │ work, in the object's turn, with a context
//	                         ▼     ▼ that ends when the operation is taken away
//	                    Observer  Queue
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
// [Manager.Do] begins an operation and does its work: the state is set when it is
// admitted, before the work waits for its turn, and the outcome is written only
// if the operation is still this one and this process still owns it. Its six
// outcomes are [Succeeded], [Failed], [Panicked], [Canceled], [TimedOut] and
// [Lost]. [Manager.DoTogether] is Do for an operation in which other objects take
// part. What a process leaves behind when it dies, [Manager.Sweep] and
// [Manager.Recover] find by deadlines and by owners ([Join]) and treat as the
// table says: back to the origin, to a failed state, or the work once more, by
// its name. [Manager.Explain] tells who owes the next move, and
// [Manager.Override] is for the person who knows better.
//
// # Several objects
//
// An object that depends on others says so in the commit: [Change.Require] are
// preconditions on where they are, [Together] changes several objects at once, and
// [Config.Along] says of every change, whatever verb makes it, what goes along and
// on which conditions.
//
// A [Relation] is a table of which states of objects go with which of their parent.
// When it is made, it finds rows that no objects can satisfy, and later it makes the
// preconditions of a commit. An [Aggregate] says which state a parent has because of
// its children: the first in order of priority, or that of most of them. They are
// counted in the parent's payload ([Counts]), right at every moment, or in memory
// ([Roster]), right in the end; the change of one child costs the same whatever
// their number.
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
//   - The outcome of work is written by who owns the operation, or not at all: a
//     process that was declared dead and comes back is refused.
//   - Clocks decide when a sweep looks, never who is right: every move is a
//     compare-and-set on what was seen.
//   - No lock is held across user code or a call of the store. The package starts
//     no goroutine but those of the queue, one for each work that runs.
//
// # No guarantees
//
//   - A guard looks at the payload that was read; another object's state at the
//     moment of the commit is what [Change.Require] is for.
//   - History lasts as long as the store keeps it. A report that repeats one from
//     before that is Refused instead of Repeated; it changes nothing either way.
//   - Deadlines are kept in the records; somebody has to call [Manager.Sweep], or
//     run [Manager.Run].
//   - Work that ignores its context cannot be ended. Its outcome then counts for
//     nothing, but it holds the object's turn in this process until it returns.
//   - The effects of work on the world are the work's: a process that is declared
//     dead while it works may still act there. [Task] has what a fence needs.
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
