// Package queue runs actions on objects: one at a time for each object, in the
// order they were accepted, and side by side for different ones, under limits.
//
//	Submit ──▶ reserve ──▶ Admit ──▶ ┌─ vm1  ▶ a1 a2 a3 ─┐   ready,      ┌ root ────── MaxRunning
//	             │           │       ├─ vm2  ▶ b1 ───────┤   in turns    ├─ aws ────── MaxChildren
//	             ▼           ▼       └─ disk ▶ b1 c1 ────┘ ────────────▶ └── aws/seoul MaxRunning ──▶ Run ──▶ Settle
//	        ErrStopping  ErrConflict    a lane for each key                 all at once, or none
//	        ErrFull      (no trace)
//
// A [Queuer] has a lane for every key that has something to do. An [Action] takes
// one key or several: it is ready when it is first in all its lanes, waits its
// turn under the limits of its class, and keeps its lanes until it has ended. A
// [Ticket] is what the submitter gets: to wait, to cancel, to look. [Do] and [Go]
// are for actions that have a result.
//
// # Guarantees
//
//  1. Order. Submits to one key that happen one after another run in that order;
//     those that happen at once get one order, [Ticket.Seq].
//  2. Exclusion. The end of an action happens before the start of the next one of
//     the same key, also in the sense of the memory model: actions of a key need
//     no lock for what belongs to it. Retries and back-offs do not let go of it.
//  3. No loss. An accepted action ends exactly once, with exactly one [Outcome],
//     and its Settle is called exactly once.
//  4. No silence. What is not accepted returns an error that says why, and what
//     is in the way; nothing was changed.
//  5. Nothing when idle. A queue without actions has no goroutine, and keys that
//     were used and are idle cost no memory.
//  6. Isolation. A panic or runtime.Goexit ends its action and nothing else; an
//     action that hangs holds up its own keys and its share of the limits.
//  7. Fairness. Under a limit keys take turns in the order in which they became
//     ready, one action each. Nobody who may start waits behind somebody who may
//     not, and nobody is overtaken by one that became ready later and needs the
//     same limits.
//  8. Progress. No set of submits can deadlock: places are taken in all lanes at
//     once, limits too, and waiting inside an action for something that waits for
//     it is refused with [ErrWouldDeadlock].
//
// Drained means drained: when [Queuer.Stop] or [Queuer.Terminate] returns nil,
// every action has ended, was settled, and was told to the [Observer].
//
// # No guarantees
//
//   - Actions are lost with the process. The states that they admitted are not:
//     whoever keeps these must look for what is stuck.
//   - An action that ignores its context cannot be ended. It is waited for, shown
//     by [Queuer.Stats], and can be given up by [Queuer.Abandon]: only then two may
//     be at one object at once.
//   - A deadlock that goes through another queue, through a channel, or through
//     waiting for [Ticket.Done] is not seen, nor is one that begins in Admit, Settle
//     or an observer, which are not inside the action: to stop the own key there
//     waits until the context ends.
//   - An ID is known until its action has ended, no longer.
//   - Actions that end by one cause while they wait (superseded, aborted, or after
//     a failed parent) are settled one after the other: a Settle that hangs holds
//     up the ends of the others.
//   - A chain of futures holds its ancestors: whoever keeps the last one keeps all.
//   - A lane that stands still after a failure does so until somebody resumes it:
//     pre-empting actions wait, too, and so do Stop and Terminate.
//
// # Rejected
//
//   - A goroutine and a channel for each key: they have to be given back when the
//     key is idle, and a submit that comes at that moment is lost or runs twice.
//   - A hash of the key to a fixed worker: one stuck action holds up the keys that
//     share its worker.
//   - Several locks, by hash of the key: it made nothing faster, and actions of
//     several keys, limits and drains would have to take all of them.
//   - Workers that wait: they need a number, tie up goroutines in calls that take
//     minutes, and are never zero. A goroutine that has nothing to do gives way
//     once, to whoever waited for its action, and ends if that was all.
//   - Moving what waits from one lane to another when a disk is attached elsewhere:
//     that is where order gets lost. An action takes several keys instead.
//   - The submitter's context for the action: a request that has ended must not end
//     what was accepted.
//   - Putting a pre-empting action in front of what waits: all that waits in front
//     of it is ended, so the end of the lane is the front.
package queue
