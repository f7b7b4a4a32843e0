// Package lock locks parts of a tree, so that work on disjoint parts runs side
// by side, work on the whole runs alone, and whoever is refused learns who is in
// the way.
//
//	        /              deploy A: X at /a/b        runs
//	      /   \            deploy B: X at /c          runs beside A
//	    /a     /c          deploy C: X at /a          refused: A is below
//	   /  \      \         teardown: X at /           waits for A and B
//	/a/b  /a/e   /c/d      deploy D: X at /a/e        refused: the teardown
//	                                                  waits, and is first
//
// A request is a path and a [Mode]. It marks its node with the mode and every
// ancestor with the mode's intention, and conflicts with another if some node is
// marked by both in modes that are not compatible:
//
//	      IS  IX  S   SIX X
//	IS    yes yes yes yes -
//	IX    yes yes -   -   -
//	S     yes -   yes -   -
//	SIX   yes -   -   -   -
//	X     -   -   -   -   -
//
// [Tree] is the lock in process; [Locker] is what it shares with engines for
// several processes. [Intention] is a lock of one node in one word. [Do] locks,
// works and unlocks.
//
// # Guarantees
//
//   - G1, exclusion: two grants that conflict never hold at once.
//   - G2, no trace: a request that was refused, cancelled, or whose call
//     panicked, leaves nothing behind and blocks nobody.
//   - G3, nothing when idle: without holders and waiters no node is kept.
//   - G4, release: unlocking is idempotent, frees exactly what the grant took,
//     and may be done from any goroutine; a stale handle does nothing.
//   - G5, order of arrival: a request is granted when no earlier one, held or
//     waiting, conflicts with it. Nobody is overtaken, nobody starves.
//   - G6, conflicts have names: a refusal names at least one holder in the way,
//     and all of them up to a limit, with path, mode, owner, reason, token, since
//     when, and whether it holds or waits.
//   - G7, tokens grow: of two grants that conflict, the later has the greater
//     token, also after an upgrade.
//   - G8, loss is told first: before anybody else is granted what was taken away,
//     [Held.Check] fails and [Held.Lost] is closed. (A [Hold] has nobody to tell.)
//   - G9, late writes are refused: a write that a [Fence] guards is refused once a
//     grant of a later token has passed it. No clock is involved.
//   - G10, lists are atomic: all requests of a list or none, whatever their order;
//     two lists cannot deadlock.
//   - G11, contexts bound waits: a call whose context ends returns, and a release
//     does not depend on the caller's context.
//   - G12, bad input has no effect: invalid paths, modes, lists and texts are
//     refused before anything else.
//
// # What it does not guarantee
//
//   - A grant is not re-entrant: goroutines have no identity. Hand the [Held] on
//     and ask [Held.Covers], or repeat the acquisition's id.
//   - Who locks twice, one after the other, can deadlock with somebody who does so
//     in the other order. Lock a list at once, or bound the wait.
//   - A Held that is never unlocked is never released. [Do] unlocks in every case.
//   - A Tree forgets everything with its process. Its tokens start again, unless
//     [Config].FirstToken says where.
//   - Between [Held.Check] and the effect that it permits, the grant can be lost.
//     That is what tokens are for.
//
// # Rejected
//
//   - A lock per node: a path then costs as many locks as it has segments, two
//     requests can refuse each other although only one of them is in the way, and
//     nobody can say who holds what at one moment.
//   - Marks stored on ancestors: the same answer comes from counters of what lies
//     below, and a failed attempt has nothing to roll back.
//   - Shards: all writers still meet at the root, and an answer from two shards is
//     not of one moment. Systems that are independent take a Tree each.
//   - Waking every waiter at every release: each counts who is in its way, and is
//     woken once.
//   - A grant that is a context: it hides that a lock can be lost while the context
//     lives. [Held.Context] derives one for those who want it.
//   - Waiting for an upgrade: two holders that wait for each other's release never
//     end.
//   - Order checks that follow contexts: lists make them needless.
package lock
