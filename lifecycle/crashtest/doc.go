// Package crashtest finds what happens to operations when a process dies, a
// store fails, an answer is lost or an owner stands still, at every single write:
// whoever uses package lifecycle runs it on the requests of a service, and
// whoever writes a [lifecycle.Store] on that.
//
//	                    ┌ crash before ┐                       ┌ ends allowed?
//	scenario ─▶ writes ─┤ lost answer  ├─▶ others take over ─▶ ├ applied once?
//	            1 to n  └ pause ...    ┘   until all rests     └ a path of the table?
//
// A [Scenario] says what a process is made of, what its clients ask for, and where
// objects may end. [Run] performs it once without a fault and numbers every
// durable write: commits of every verb, of work, heart-beats and sweeps alike.
// Then it performs it again for every write and every [Kind] of fault at it. After
// the fault, processes that died are replaced, all of them beat and sweep, time
// passes, and clients go on, until everything rests. A failure names the point:
//
//	crash after write 3 of 7 (alpha: vm "a" done by worker, to running from starting): ...
//
// # Guarantees
//
// What is demanded at every point:
//   - Every object ends in a state that the scenario allows, or else in one that
//     is not transitional, with no steps of a chain left undone.
//   - No operation is applied twice, as far as work says by [Process.Effect] what
//     it does to the world outside; none is said to be done that was not.
//   - No commit that a process was told of is lost, and the messages of every
//     commit are there once, as long as none is discarded.
//   - The history of every object is a path of its table from row to row, under
//     the operation numbers that the table asks for, overrides excepted; sequence
//     numbers have no gap, no commit is there twice, and the record is what the
//     last row says.
//   - Every client of a process that lives has its answer, and no work waits.
//   - Where only one request or answer was lost, the script has no error, as without a fault.
//   - The fault has happened: the points that are covered are those that were
//     found, and their number is logged.
//
// And of the kit itself:
//   - Everything that is demanded can fail: for each there is a fault planted in
//     the tests of this package.
//   - What a process that is gone still had to say is heard by nobody: its calls
//     do not return before the point is over.
//   - Time is that of a bubble of testing/synctest where the store allows it, and
//     no duration is asserted anywhere.
//   - It needs the standard library only.
//
// # No guarantees
//
//   - There is one fault at a time, or two with [Harness].Twice. What happens to who
//     takes over is else found by scenarios that kill somebody ([World.Kill]), so that
//     taking over has numbered writes too.
//   - After a fault, not everything happens in the same order every time. A second
//     fault whose write is not reached is no failure, and told as missed.
//   - Writes are found by what they write, and the same writes are expected every
//     time up to the fault: a script that is not deterministic fails. Processes
//     beat and sweep one after the other until the script has ended, and only then
//     all at once.
//   - Writes after the end of the script are not counted: a script waits for what
//     it has begun.
//   - The world outside of this package compares operation numbers. One that does
//     not is changed by an owner that was taken for dead, and no library can help
//     that.
//   - Discarding messages is no commit, and gets no fault.
//   - A store without history is not asked for paths, for lost commits, or whether
//     work was done.
//
// # Rejected
//
// Numbering alone, without names: the fifth write of a run with a fault need not
// be the fifth of another where two operations go on at the same time. Ending a
// goroutine at the fault: its deferred calls would do things that no dead process
// does. One fault after another in all combinations, as the default: their number is
// the square.
package crashtest
