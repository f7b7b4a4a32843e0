// Package lock locks parts of a tree. Work on disjoint parts runs side by side,
// work on a whole subtree runs alone, and a refused request gets the list of the
// holders that it conflicts with.
//
//	var tree lock.Tree // ready to use
//	web := lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X}
//	grant, err := tree.TryLock(ctx, web, &lock.Options{Owner: "deploy-7", Reason: "version 12"})
//	if err != nil {
//		return err // lock: X at /shop/web: conflict; X at /shop held by teardown-1 since ...
//	}
//	defer grant.Unlock(ctx)
//	if err := grant.Check(); err != nil {
//		return err // the grant is lost: stop
//	}
//	return store.Write(ctx, grant.Token(), data) // the store refuses an older token
//
// A request is a path and a [Mode]. It marks its node with the mode and every
// ancestor with the mode's intention. It conflicts with another request if some
// node is marked by both in modes that are not compatible:
//
//	        /              deploy A: X at /a/b        granted
//	      /   \            deploy B: X at /c          granted beside A
//	    /a     /c          deploy C: X at /a          refused: A holds below
//	   /  \      \         teardown: X at /           waits for A and B
//	/a/b  /a/e   /c/d      deploy D: X at /a/e        refused: the teardown
//	                                                  waits and is first
//
//	      IS  IX  S   SIX X
//	IS    yes yes yes yes -
//	IX    yes yes -   -   -
//	S     yes -   yes -   -
//	SIX   yes -   -   -   -
//	X     -   -   -   -   -
//
// [Tree] is the lock of one process. [Locker] is the interface that it shares with
// lock drivers for several processes. A driver implements [Locker] and
// [GrantDriver]; package locktest is its conformance suite. [Intention] is a lock
// of a single node in one word. [Do] locks, calls a function, and unlocks.
//
// # Guarantees
//
//   - G1, exclusion: two grants that conflict never hold at once.
//   - G2, no trace: a request that was refused or cancelled, or whose call
//     panicked, leaves nothing behind and blocks no other request.
//   - G3, nothing when idle: without holders and waiters the locker keeps no node.
//   - G4, release: Unlock is idempotent, releases exactly its own grant, and works
//     from any goroutine. A stale grant does nothing.
//   - G5, order of arrival: a request is granted when no earlier request, held or
//     waiting, conflicts with it. No request is overtaken, none starves.
//   - G6, conflicts have names: a refusal lists at least one conflicting holder, and
//     all of them up to a limit, with path, mode, owner, reason, token, time, and
//     whether it holds or waits.
//   - G7, tokens grow: of two grants that conflict, the later has the greater
//     token, also after an upgrade.
//   - G8, loss is announced first: before a conflicting request is granted, the
//     Check of a broken grant fails and its Lost channel is closed. (A [Handle]
//     announces nothing.)
//   - G9, late writes are refused: a write that a [Fence] guards is refused once a
//     grant with a later token has passed the fence. No clock is involved.
//   - G10, lists are atomic: all requests of a list are granted, or none. The order
//     of the list does not matter. Two lists cannot deadlock.
//   - G11, contexts bound waits: a call whose context ends returns. A release does
//     not depend on the caller's context.
//   - G12, bad input has no effect: invalid paths, modes, lists and texts are
//     refused before anything else happens.
//
// # Limits
//
//   - A grant is not re-entrant: goroutines have no identity. Pass the [Grant] on,
//     or repeat the id of the acquisition.
//   - Two callers that each lock two paths in two calls, in opposite order, can
//     deadlock. Lock a list at once, or bound the wait.
//   - A Grant that is never unlocked is never released. [Do] always unlocks.
//   - A Tree is lost with its process. A new Tree starts its tokens at 1, unless
//     [Config].FirstToken sets another start.
//   - A release visits the nodes below its own that have waiting requests. If a node and
//     another node far below it both have long queues, the cost is the product of their
//     lengths.
//   - The grant can be lost between [Grant.Check] and the effect that follows. The
//     token protects that effect. Package lifecycle compares it: see its Change.Fence.
//
// # Rejected
//
//   - A lock per node: a path costs as many locks as it has segments. Two requests can
//     refuse each other although only one of them conflicts. No call can list all holders
//     of one moment.
//   - Marks stored on ancestors: counters of what lies below give the same answer,
//     and a failed attempt has nothing to roll back.
//   - Shards: all writers still meet at the root, and an answer from two shards is
//     not of one moment. Independent systems take a Tree each.
//   - Waking every waiter at every release: a waiter wakes once. A release looks only
//     at the first blocked request of each mode at each node that it concerns.
//   - A count of blockers in every waiter: each of n releases for one node visits all other
//     waiters, which costs n*n in total.
//   - A grant that is a context: it hides that a lock can be lost while the context
//     lives. [Grant.Context] derives a context.
//   - Waiting for an upgrade: two holders that wait for each other's release wait
//     forever.
package lock
