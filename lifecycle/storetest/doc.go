// Package storetest is the conformance suite of [lifecycle.Store]: whoever writes
// a store runs it, and what passes it keeps the records of a [lifecycle.Manager].
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New: func(t testing.TB) lifecycle.Store {
//				store, err := mystore.Open(t.TempDir())
//				if err != nil {
//					t.Fatal(err)
//				}
//				return store
//			},
//		})
//	}
//
// With more in its [Harness] the same run cuts connections at every request and
// loses answers (Through, by a [Proxy]), kills the engine (Restart), opens what is
// left (Reopen), moves the store's clock (Age), and lets the clock of the process
// be wrong (WrongClock):
//
//	storetest.Run(t, storetest.Harness{
//		New: func(t testing.TB) lifecycle.Store { return open(t, server.Addr()) },
//		Through: func(t testing.TB, proxy *storetest.Proxy) lifecycle.Store {
//			proxy.To("tcp", server.Addr())
//			return open(t, proxy.Addr())
//		},
//		Restart: func(t testing.TB, _ lifecycle.Store) { server.Kill(); server.Start() },
//	})
//
// [Differential] makes the same random calls, of stores and of managers, to two
// stores, most often this one and [lifecycle.MemoryStore], and compares the
// answers.
//
// Every demand below is a subtest of its name: -run 'TestStore/Numbers' runs a
// group, -run 'TestStore/Get/absent_is_no_error' one of them.
//
// What it guarantees:
//   - Every demand can fail: for each of them a store with one fault is kept in
//     the tests of this package, which that demand finds.
//   - The names of demands are stable.
//   - A failure says what was demanded, what was asked and what came. A random
//     sequence that fails is made short first, and can be repeated by its seed.
//   - What is not tested for want of a capability or of a function of the harness
//     is skipped by a line that says so, never in silence.
//   - Connections are cut at places that are counted, not timed: before, in and
//     behind every request of a commit, and in its answer.
//   - Nothing is asserted about how long anything takes, but that it ends: what
//     must come is waited for, for a minute.
//   - It needs the standard library only.
//
// What it does not guarantee:
//   - That a store which passes is right. Races are found by trying; run it with
//     the race detector, often, and with more [Harness.Attempts].
//   - Anything about answers that are lost and engines that are killed, without
//     [Harness.Through] and [Harness.Restart].
//   - That what was acknowledged survives more than Reopen and Restart do: a process
//     that is killed leaves to the operating system what it has written, a machine
//     without power does not.
//   - That every request of a protocol that sends several at once is cut: a request
//     is what comes from the store between two answers.
//
// # Beyond the interface
//
// Some things the suite has to take for granted:
//   - A store with History still has the last eight rows of an object, and knows
//     history and numbers of the objects of the last eight removals.
//   - A store without History knows the token of a commit at least until the next
//     commit.
//   - A payload of no bytes may come back as nil, and nil as no bytes; for Saved
//     the two are different.
//   - Where a conflict and a failed precondition meet, either may be told.
//   - The numbers of an object that does not exist may grow while it does not
//     exist, and its revision then changes.
//   - Names of machines and states follow the rule of ids: up to 255 bytes of
//     UTF-8 without NUL.
//
// # Demands
//
//  1. Capabilities/are_honest: What is declared is there: at least one change in
//     a commit, Historian with History, Outbox with Messages.
//  2. Capabilities/never_change: The declaration is the same before and after
//     calls.
//  3. Capabilities/undeclared_changes_are_refused: A commit with more changes
//     and preconditions than declared is refused with errors.ErrUnsupported, and
//     nothing of it is written.
//  4. Capabilities/undeclared_messages_are_refused: Without Messages, a commit
//     that carries one is refused with errors.ErrUnsupported, and nothing of it
//     is written.
//  5. Get/absent_is_no_error: An object that does not exist is no error but a
//     record with its key and without a state, and the same record every time.
//  6. Get/returns_what_was_written: Every field of a record comes back as it was
//     committed, also after other objects were written.
//  7. Get/keeps_payloads: Payloads come back byte by byte. An empty Saved
//     payload comes back as empty, a nil one as nil.
//  8. Get/payloads_are_not_overwritten: The bytes of a payload that was returned
//     stay what they are, whatever is called later.
//  9. Get/absent_again_after_removal: A removed object is absent: without state,
//     origin, target, owner, work, deadline and payloads; its event and actor
//     are those that removed it, or unknown.
//  10. Get/sees_every_acknowledged_commit: A read that begins after a commit was
//     acknowledged sees it.
//  11. Commit/creates_moves_removes: A commit creates what does not exist, moves
//     what does, removes it, and creates it again.
//  12. Commit/fills_the_record: Revision, ChangedAt and Deadline of the change's
//     record are the store's: they are filled, whatever the caller had there;
//     the other fields stay the caller's.
//  13. Commit/deadline_counts_from_the_change: The deadline is Timeout after
//     ChangedAt, counted anew with every change.
//  14. Commit/deadline_is_cleared: A change with Timeout 0 clears the deadline.
//  15. Commit/wrong_revision_conflicts: A change that expects an outdated
//     revision is a conflict, even if the state is right.
//  16. Commit/wrong_state_conflicts: A change that expects another state is a
//     conflict, even if the revision is right.
//  17. Commit/existence_is_part_of_the_condition: Creating what exists, moving
//     or removing what does not, is a conflict.
//  18. Commit/conflict_carries_the_winner: A conflict says what was expected and
//     carries the whole record that is there, also where nothing is.
//  19. Commit/refused_writes_nothing: After a conflict every record is as it
//     was.
//  20. Commit/same_content_is_a_change: A commit that changes no field is a
//     commit like any other: a new revision, one winner.
//  21. Commit/malformed_is_refused: A commit without changes or without a token,
//     with two changes of one key, with a change without a state or with an
//     epoch without an owner, and a query without limit, are refused with
//     ErrInvalid; nothing is written.
//  22. Metadata/changes_owner_work_and_deadline: A MetadataOnly change writes
//     owner, epoch, work, its arguments and options, and the deadline, under a
//     new revision. It leaves everything else, ChangedAt and the sequence number
//     included.
//  23. Metadata/keeps_the_deadline: A MetadataOnly change with Timeout 0 leaves
//     the deadline.
//  24. Metadata/writes_no_history: A MetadataOnly change has no row in the
//     history, and the row of the next change follows the one before without a
//     gap.
//  25. Metadata/is_compared: A MetadataOnly change is a conflict if the revision
//     has moved on. A change that was decided on the record before a
//     MetadataOnly change is a conflict.
//  26. Metadata/sent_again_conflicts: A MetadataOnly change that is sent again
//     under its token is a conflict, and changes nothing.
//  27. Metadata/moves_nothing: A MetadataOnly change that would move or remove
//     its object is refused with ErrInvalid.
//  28. Numbers/sequence_has_no_gap: The sequence number of an object grows by
//     one with every commit.
//  29. Numbers/revisions_never_repeat: No revision of an object is like one that
//     it had before.
//  30. Numbers/revisions_never_repeat_after_removal: Nor is one from before the
//     object was removed, the revisions of its absence included.
//  31. Numbers/go_on_after_removal: The sequence and operation numbers of an
//     object that is made again are above those that it had.
//  32. Numbers/go_on_after_many_removals: So they are, and so are the revisions
//     new, after many other objects were removed.
//  33. Numbers/outdated_creation_conflicts: A creation that was decided before
//     the object was made and removed is a conflict.
//  34. Numbers/leaving_and_returning_conflicts: A change that was decided before
//     the object left its state is a conflict, even if it has come back to the
//     state and content that it had.
//  35. Token/same_commit_again_is_written_once: A commit that is sent again is
//     no error, is filled as the first time, and is not written again.
//  36. Token/holds_after_the_object_moved_on: So it is while the history has it,
//     also after the object moved on.
//  37. Token/holds_after_removal: So it is for the removal of an object, and
//     after it.
//  38. Token/covers_all_changes: A commit of several changes that is sent again
//     is filled in all of them, and none is written again.
//  39. Token/precedes_preconditions: A commit that was written is not asked for
//     its preconditions again.
//  40. Token/another_token_is_another_commit: The same changes under another
//     token are a conflict.
//  41. Batch/changes_all: One commit creates, moves and removes several objects,
//     also of different machines.
//  42. Batch/all_or_nothing: If one change is a conflict, none is written,
//     wherever it stands.
//  43. Batch/conflict_names_the_change: A conflict has the index of the first
//     change whose expectation fails, and the record of that object.
//  44. Batch/precondition_holds_or_nothing: A change is written only if every
//     object that it requires is in one of the states; otherwise it is a
//     *PreconditionError with that condition and the record that is there.
//  45. Batch/absence_can_be_required: The empty state in a precondition means
//     that the object does not exist, never or no more.
//  46. Batch/precondition_is_of_the_moment_before: A precondition on an object
//     that the same commit changes is of its state before.
//  47. History/one_row_per_change: Every change has a row as soon as it is
//     acknowledged, with its token and what it changed; creations and removals
//     too.
//  48. History/rows_of_all_changes: A commit of several changes writes a row for
//     each of them.
//  49. History/has_no_gap: What is kept ends with the newest row and has no gap;
//     it is at least the last eight rows.
//  50. History/survives_removal: The history of a removed object can be read,
//     and goes on when it is made again.
//  51. History/nothing_of_refused_commits: A commit that was refused leaves no
//     row, and one that was sent again no second row.
//  52. History/pages: Rows come ascending from above a sequence number, at most
//     as many as asked for; an unknown object has none.
//  53. Messages/come_with_the_commit: The messages of a commit are there when it
//     is acknowledged, unchanged, in the order of the commits and within one as
//     given, each under a number of its own.
//  54. Messages/are_copied: The bytes of a message are those at the commit,
//     whatever the caller writes over them afterwards.
//  55. Messages/not_with_a_refused_commit: A commit that was refused leaves no
//     message.
//  56. Messages/come_once: A commit that is sent again appends nothing.
//  57. Messages/pages: The oldest messages are read, at most as many as asked
//     for; reading removes none.
//  58. Messages/are_discarded_by_number: Discard removes the messages of the
//     numbers it is given, wherever they stand, and no other; numbers of none
//     are no error, and none is given again.
//  59. Messages/a_reader_misses_none: A reader that discards what it has read
//     gets every message once, and those of one object in order, while many
//     goroutines commit.
//  60. List/returns_what_get_returns: A listed record is the present one, with
//     all fields and payloads.
//  61. List/of_one_machine: Only objects of the machine are listed, whatever
//     their ids; of an unknown machine there are none.
//  62. List/by_state: With states, only objects that are in one of them now; a
//     state may be named twice, and need not be anybody's.
//  63. List/not_owned_by: With NotOwnedBy, objects are listed that have an owner
//     which is none of these, by name and epoch. An empty list selects all
//     objects with an owner.
//  64. List/not_owned_by_in_pages: The pages of a query by NotOwnedBy, also with
//     states, have every selected object once and in order of id.
//  65. List/unowned: With Unowned, only objects without an owner are listed.
//  66. List/no_deadline: With NoDeadline, only objects without a deadline are
//     listed.
//  67. List/without_payload: With WithoutPayload, Payload, Saved and Args of the
//     records are nil, and all other fields are those of the object.
//  68. List/in_order_of_id: Records come in order of id, byte by byte, whatever
//     the order of their creation.
//  69. List/after_an_id: After excludes the id itself and what is below, also if
//     no object has that id.
//  70. List/pages_are_full: A page has Limit records while there are more, also
//     behind others that are not selected.
//  71. List/every_object_once: The pages of any size have every selected object
//     exactly once.
//  72. List/every_object_once_while_others_change: So they do for objects that
//     do not change while others come, move and go.
//  73. Time/list_by_age: With UnchangedFor, objects are listed whose last change
//     is at least this long ago; any change counts.
//  74. Time/list_overdue: With Overdue, objects are listed that have a deadline
//     which is over, and no other.
//  75. Time/filters_combine: An object is listed only if every filter of the
//     query selects it, and pages are full nevertheless.
//  76. Time/by_the_clock_of_the_store: With OwnClock, ages, deadlines and
//     ChangedAt are by the clock of the store, also where the clock of this
//     process is wrong by years.
//  77. Names/hostile_ids: Any id of 1 to 255 bytes of UTF-8 without NUL names an
//     object of its own: blanks, slashes, wildcards, quotes, other scripts; ids
//     that differ in case, in a trailing blank, in the last of 255 bytes or in
//     composition are different.
//  78. Names/hostile_states: The same goes for the names of states, in records,
//     conditions and queries.
//  79. Names/hostile_machines: The same goes for the names of machines; machine
//     and id together never name another object's machine and id.
//  80. Names/machines_do_not_see_each_other: Objects of two machines with one id
//     are two objects: with records, numbers and history of their own.
//  81. Names/big_payload: A payload of 1 MiB is kept, by itself, and read and
//     listed.
//  82. Names/big_fields: Payloads, saved payloads, arguments, steps and messages
//     are kept at the sizes where columns end: 255 bytes and 64 KiB, one byte
//     less and one more; and so is a reason of 8 KiB.
//  83. Context/ended_is_refused: A call with a context that has ended returns
//     its cause, and nothing is written or discarded.
//  84. Context/ending_meanwhile_is_all_or_nothing: A commit whose context ends
//     meanwhile is written if it returns nil, and not if it returns an error
//     other than ErrUnknownOutcome.
//  85. Context/ending_at_any_look: So it is wherever the store looks at the
//     context, from the first time to the last; an error then matches the
//     context's and its cause, or is ErrUnknownOutcome, and a read is right or
//     fails.
//  86. Close/refuses_every_call: After Close every call returns ErrClosed; Close
//     may be called twice.
//  87. Close/during_calls: Calls that Close meets are done, or refused with
//     ErrClosed.
//  88. Reopen/keeps_everything: What was acknowledged is there after the store
//     was opened again: records, numbers, tokens, history and messages.
//  89. Network/cut_before_a_request: Where the connection is cut before any one
//     of the requests of a commit, the store says truly whether it was written,
//     or ErrUnknownOutcome; it is never a conflict, and the next call finds
//     another connection.
//  90. Network/cut_in_a_request: So it is where the engine gets only a part of
//     the request.
//  91. Network/lost_answers: So it is where the engine has done what it was
//     asked, and its answer is lost.
//  92. Network/cut_in_an_answer: So it is where half of the answer arrives; what
//     is acknowledged is filled as it was written.
//  93. Network/reads_are_right_or_fail: A read whose connection is cut at any
//     place returns what is there, or an error; never less, nor an object that
//     is absent for want of an answer.
//  94. Network/contexts_end_at_every_request: A commit whose context ends while
//     any one of its requests, or the answer, is held up returns before that
//     goes on. What it says stays true when the request arrives late.
//  95. Network/comes_back: While there is no connection every call fails,
//     without ErrClosed; when there is one again the same store goes on.
//  96. Network/cuts_under_load_are_exact: Where connections of many goroutines
//     are cut at random, what they were told agrees on one order, and every
//     commit in the history is one of theirs: none lost, none twice, no conflict
//     with oneself.
//  97. Restart/keeps_what_was_acknowledged: What was acknowledged is there after
//     the engine was killed and started again, and the same store goes on:
//     records, numbers, tokens, history and messages.
//  98. Restart/during_commits_is_exact: Where the engine is killed and started
//     again while many goroutines commit, what they were told agrees on one
//     order, and every commit in the history is one of theirs. What was read
//     before its writer was told of it may be lost, but its revision is then
//     never that of anything else.
//  99. Concurrent/one_winner_per_revision: Where 64 goroutines move one object,
//     every revision has one winner, the sequence is dense, every loser gets a
//     record that is newer than the one it expected.
//  100. Concurrent/one_creation_wins: Of goroutines that create one object, one
//     does; and of those that remove it, one does.
//  101. Concurrent/right_revision_never_conflicts: Who alone writes an object,
//     knowing its revision, meets no conflict, whatever others do to other
//     objects.
//  102. Concurrent/reads_and_writes_are_linearizable: Reads, commits and the
//     records in conflicts agree on one order that contradicts nobody's time.
//  103. Concurrent/who_came_back_is_not_taken: Who moves what was listed in a
//     state does not move an object that has left it and come back meanwhile,
//     however often many do so at once.
//  104. Concurrent/changes_in_any_order: Commits of two objects, named in either
//     order, do not block each other; the objects always move together.
//  105. Concurrent/preconditions_hold_at_the_commit: Of two commits each of
//     which requires that the other has not happened, one happens.
//  106. Concurrent/absence_holds_at_the_commit: So it is where each creates an
//     object and requires that the other's does not exist: never, or no more.
//     What was only required is listed by nobody.
//  107. Model/random_sequences_agree: Random sequences of calls are answered
//     like a naive model answers them; the shortest sequence found that is not
//     is told.
//
// # Rejected
//
// A checker that searches for a linearization is not needed where every commit
// has its place by number: one pass decides, and tests hold it against a search.
// A clock that the suite hands to the store would be one more thing to
// implement; moving what is stored into the past is one statement.
package storetest
