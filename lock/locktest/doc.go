// Package locktest is the conformance suite of [lock.Locker]: whoever writes a
// lock engine runs it, and what passes it keeps the guarantees of package lock.
//
//	func TestLocker(t *testing.T) {
//		locktest.Run(t, locktest.Harness{
//			New: func(t testing.TB, c lock.Config) lock.Locker {
//				engine, err := myengine.Open(t.Context(), t.Name(), c.FirstToken)
//				if err != nil {
//					t.Fatal(err)
//				}
//				t.Cleanup(engine.Close)
//				return engine
//			},
//			FirstToken: true,
//		})
//	}
//
// Every demand below is a subtest of its name, and so is every vector:
// -run 'TestLocker/G5' runs the demands of guarantee 5,
// -run 'TestLocker/Vectors' the vectors, and
// -run 'TestLocker/IDs/a_waiting_id' one demand.
//
// What it guarantees:
//   - Every demand can fail: for each of them a locker with one fault is kept in
//     the tests of this package, which that demand finds.
//   - The names of demands are stable; G1 to G12 are the guarantees of package
//     lock.
//   - Lockers are judged by a rule of its own, the marks of requests on nodes, and
//     not by what package lock says of modes and requests.
//   - A failure says what was demanded, what was asked and what came. A random
//     sequence that fails is made short first, and can be repeated by its seed.
//   - What is not tested, because the harness does not declare it, is skipped by a
//     line that says so, never in silence.
//   - Nothing is asserted about how long anything takes, except that a call which
//     has nothing to wait for returns: see [Harness.Patience].
//   - It needs the standard library only.
//
// What it does not guarantee:
//   - That a locker which passes is right. Races are found by trying; run it with
//     the race detector, often, and with more [Harness.Histories] and
//     [Harness.Attempts].
//   - Anything about servers that are killed, connections that are cut, sessions
//     that end and clocks that differ: no fault is brought in from outside, and
//     loss is what Break and Revoke do.
//   - Anything about two processes: all handles are of one Locker.
//   - Anything about the methods of [lock.Tree] that are not those of Locker.
//
// # Beyond the interface
//
// Some things the suite has to take for granted:
//   - Waiters that one release grants have tokens in the order of their arrival,
//     also where they do not conflict.
//   - An upgrade that raises a mode has a greater token than before; no two grants
//     have the same.
//   - All handles of one id, got from one Locker, say so when the first release
//     has ended it.
//   - A refusal is of one moment: it names exactly who was in the way then.
//   - A try that is refused leaves the snapshot as it was, except for the last
//     token.
//
// # Vectors
//
// A file of vectors has sequences of steps with their answers. The rules that it
// carries say what they mean; [RunVectors] runs other files of the same form.
//
// # Demands
//
//  1. G1_exclusion/pairs_follow_the_rule: Of two requests both are granted if no
//     node is marked by both in modes that do not go together, and one otherwise,
//     whichever comes first.
//  2. G1_exclusion/concurrent_callers_exclude_each_other: Where many goroutines
//     lock, try, wait, list and convert, no two of them hold what conflicts.
//  3. G2_no_trace/refused_tries_leave_nothing: After a refused try, of one
//     request or of a list, the locker holds what it held before, and what was free
//     is free.
//  4. G2_no_trace/cancelled_waits_leave_nothing: After a wait was cancelled,
//     what stood behind it is granted if nobody else is in the way, and nothing of
//     it is left.
//  5. G2_no_trace/panics_leave_nothing: A call that panics, because a method of
//     its context does, leaves nothing behind and blocks nobody.
//  6. G2_no_trace/refused_upgrades_leave_nothing: After a refused upgrade the
//     grant holds what it held before, under the same token, and no more.
//  7. G3_nothing_when_idle/many_paths: After hundreds of paths were locked and
//     unlocked, deep, beside and below each other, no node is kept.
//  8. G3_nothing_when_idle/waits_and_losses: Nor is one kept after waits,
//     cancelled and granted, lists, conversions and broken grants.
//  9. G4_release/twice_frees_nobody_else: A second Unlock is no error and does
//     nothing, also while somebody else holds the same by now: X, IX or a list.
//  10. G4_release/frees_exactly_what_it_took: Unlock frees its own grant and no
//     other, also if that is of the same owner, at the same node or below it.
//  11. G4_release/from_any_goroutine: Any goroutine may unlock, several may at
//     once, and it is released once.
//  12. G4_release/stale_handles_do_nothing: A handle whose grant was released
//     says ErrNotHeld, cannot be converted, and covers nothing; its token and
//     requests stay readable.
//  13. G5_order_of_arrival/waiters_are_granted_in_order: Waiters that conflict
//     are granted one after the other, in the order of their arrival.
//  14. G5_order_of_arrival/nobody_is_overtaken: A try, a wait and an upgrade
//     that conflict with somebody who waits do not go before him, though they
//     conflict with no holder.
//  15. G5_order_of_arrival/waiters_block_only_what_conflicts: What conflicts
//     with nobody is granted at once, however long the queue.
//  16. G5_order_of_arrival/one_release_grants_all_that_may: A release grants
//     every waiter that nobody earlier is in the way of, and no other.
//  17. G5_order_of_arrival/nobody_starves: Readers that come and overlap for
//     ever do not keep a writer waiting.
//  18. G6_conflicts_have_names/all_with_details: A refusal names everyone in the
//     way, in the order of arrival, with path, mode, id, owner, reason, token,
//     since when, and whether it waits; and nobody else.
//  19. G6_conflicts_have_names/mine: A holder in the way is marked as the
//     caller's own if both have the same owner, and one that is not empty.
//  20. G6_conflicts_have_names/waits_given_up: A wait that was given up names
//     who was in the way then: what came before it, not what came after.
//  21. G6_conflicts_have_names/upgrades: A refused upgrade names everyone in the
//     way, and not itself.
//  22. G6_conflicts_have_names/up_to_a_limit: Beyond MaxHolders, a refusal names
//     as many as that and says that there are more.
//  23. G6_conflicts_have_names/holders_and_snapshot: Holders tells who holds or
//     waits above, at and below a path, and Snapshot all of them, in the order of
//     arrival, without asking for anything.
//  24. G7_tokens_grow/from_grant_to_grant: Of two grants that conflict the later
//     has the greater token: after a release, a wait, a loss, and across nodes
//     above and below.
//  25. G7_tokens_grow/upgrades_are_new_grants: An upgrade has a new token, above
//     its own and those of all that was granted meanwhile; a downgrade keeps its
//     token.
//  26. G7_tokens_grow/among_concurrent_callers: Where many goroutines wait for
//     one node, each has a greater token than the one before.
//  27. G7_tokens_grow/from_the_first_token: No token is below FirstToken, so
//     that the tokens go on after a restart.
//  28. G8_loss_is_told_first/before_anybody_else_is_granted: When somebody gets
//     what was broken, its holder has been told: Check fails with ErrLost, Lost is
//     closed, and the context has ended.
//  29. G8_loss_is_told_first/among_concurrent_callers: So it is where waiters
//     and tries race with Break.
//  30. G8_loss_is_told_first/a_lost_grant_is_over: A broken grant says ErrLost
//     with token and reason from then on; Unlock says so too and frees nobody else;
//     it cannot be converted or taken away again.
//  31. G8_loss_is_told_first/revoked_is_not_broken: Revoke asks: Check says
//     ErrRevoked, Lost is closed and contexts end, but it is held until it is
//     unlocked, which is no error then.
//  32. G8_loss_is_told_first/only_what_is_held: Break and Revoke of a token that
//     nobody holds, or holds no more, is ErrNotHeld and takes nothing away.
//  33. G9_late_writes_are_refused/by_a_fence: What a holder writes after it lost
//     its grant is refused by a Fence that the next holder has passed, and what the
//     next writes is not, upgrades included.
//  34. G10_lists_are_atomic/all_or_none: A list is granted as a whole or not at
//     all, counts once, and is released at once; while it waits it holds nothing.
//  35. G10_lists_are_atomic/in_any_order: The order of a list and what it has
//     twice make no difference; members never conflict with each other, and those
//     for one node are joined.
//  36. G10_lists_are_atomic/lists_do_not_deadlock: Goroutines that wait for
//     overlapping lists in different orders all get them, one after the other.
//  37. G11_contexts_bound_waits/ended_is_refused: A call with a context that has
//     ended returns an error that matches its error and its cause, and has no
//     effect.
//  38. G11_contexts_bound_waits/cancelled_waits_return: A wait whose context is
//     cancelled returns a *ConflictError that matches context.Canceled and the
//     cause.
//  39. G11_contexts_bound_waits/deadlines_end_waits: A wait whose deadline
//     passes returns a *ConflictError that matches context.DeadlineExceeded.
//  40. G11_contexts_bound_waits/release_does_not_depend_on_them: Unlock with a
//     context that has ended releases.
//  41. G11_contexts_bound_waits/a_grant_outlives_its_context: The end of the
//     context of a call does not end the grant that it returned.
//  42. G11_contexts_bound_waits/many_waits_at_once: Hundreds of waits that are
//     cancelled at once all return, and the others keep their places.
//  43. G11_contexts_bound_waits/cancelled_as_it_is_granted: Where the grant and
//     the end of the context meet, the call returns one of the two, and after an
//     error nothing is held.
//  44. G12_bad_input/is_refused_before_any_effect: A path, mode, list, text or
//     scope that is not valid is ErrInvalid, also where the request would conflict,
//     and nothing happens.
//  45. G12_bad_input/a_bad_conversion_changes_nothing: A conversion to a mode
//     that there is not, or down to one that is not covered, is ErrInvalid, and the
//     grant is as it was.
//  46. G12_bad_input/a_full_queue: One waiter more than MaxWaiters is refused
//     with ErrQueueFull and names; tries and what need not wait are not counted;
//     who leaves makes room.
//  47. IDs/repeated_is_the_same_grant: The same id with the same requests is the
//     same grant with the same token, by a try, a wait or a list; the first release
//     ends it for all handles, and the id is free again.
//  48. IDs/other_requests_are_refused: The same id with other requests is
//     ErrIDInUse, with the names of what has it, and changes nothing, also where
//     the requests would be free.
//  49. IDs/a_waiting_id: An id that waits is refused to a try, with the names of
//     who is in its way; it has its place still.
//  50. IDs/one_call_of_several_is_cancelled: Where several calls wait under one
//     id, the end of the context of one does not end the wait, or the grant, of
//     another.
//  51. IDs/of_concurrent_callers: Of goroutines that repeat one id all get the
//     one grant.
//  52. Conversions/upgrades_never_wait: Of two holders that both upgrade neither
//     waits: both are refused until one of them unlocks.
//  53. Conversions/up_to_the_join: An upgrade raises every request to its join
//     with the mode, all or none; what is covered already is left as it is.
//  54. Conversions/down_lets_waiters_in: A downgrade grants who waited for it,
//     in the order of arrival, and nobody whom the lower mode, or somebody earlier,
//     is still in the way of.
//  55. Conversions/of_concurrent_holders: Of holders that upgrade at once, some
//     to S and some to IX, only those succeed whose new modes go together, and the
//     first does.
//  56. Model/random_sequences_agree: Random sequences of calls are answered like
//     a naive model answers them, names, tokens and grants of waits included; the
//     shortest sequence found that is not is told.
//  57. Histories/are_linearizable: Tries, lists, conversions and releases of
//     concurrent callers, answered with all names, agree on one order that
//     contradicts nobody's time.
//
// # Rejected
//
// A clock that the suite hands to the locker would be one more thing to implement;
// bubbles of testing/synctest need nothing. A wait that reports when it has joined
// the queue would be too: the suite asks for a snapshot. A checker of histories
// from elsewhere would be a dependency of everybody who runs the suite; its own is
// held against one in the tests.
package locktest
