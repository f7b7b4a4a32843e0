// Package crashtest tests what happens to operations when a process dies, a store fails,
// an answer is lost or an owner stalls, at every single write of a scenario.
//
//	                    ┌ crash before ┐                       ┌ ends allowed?
//	scenario ─▶ writes ─┤ lost answer  ├─▶ others take over ─▶ ├ applied once?
//	            1 to n  └ pause ...    ┘   until all rests     └ a path of the table?
//
// A [Scenario] describes what a process consists of, what its clients request, and in
// which states objects may end. [Run] performs it once without a fault and numbers every
// durable write: commits of every verb, of work, heartbeats and sweeps. Then Run performs
// it again for every write and every [Kind] of fault at it. After the fault, other
// processes replace those that died, all processes send heartbeats and sweep, time
// passes, and clients continue, until nothing moves any more. A failure names the point:
//
//	crash after write 3 of 7 (alpha: vm "a" done by worker, to running from starting): ...
//
// # Guarantees
//
// Run checks at every point:
//   - Every object ends in a state that the scenario allows; by default, in a state that
//     is not transitional.
//   - No operation is applied twice, as far as work reports its effect on the outside
//     world by [Process.Effect]. No operation is recorded as done that was not applied.
//   - No commit is lost that was acknowledged to a process. The messages of every commit
//     are there once.
//   - The history of every object is a path of its table, see [Audit].
//   - Every client of a live process has its answer, and no work waits.
//   - If only one request or one answer was lost, the script returns no error, as without
//     a fault.
//   - The fault has happened: the points that are covered are those that were found.
//
// Nothing of a process that is gone reaches a client: its calls do not return before the
// point is over. Every point runs in a bubble of testing/synctest.
//
// # Limits
//
//   - There is one fault at a time. A scenario that kills a process ([Clients.Kill]) tests
//     faults in its successor too, because the successor's writes are then numbered.
//   - Run identifies a write by its content and expects the same writes every time up to
//     the fault: a script that is not deterministic fails.
//   - Writes after the end of the script are not counted.
//   - The simulated outside world compares operation ids. A real one that does not accepts
//     changes of an owner that is considered dead.
//   - The store needs history and messages, and no process discards messages.
package crashtest
