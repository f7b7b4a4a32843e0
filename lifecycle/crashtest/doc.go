// Package crashtest tests what happens to operations when a process dies, a store
// fails, an answer is lost or an owner stalls, at every single write. Users of
// package lifecycle run it on the requests of a service; authors of a
// [lifecycle.Store] run it on their store.
//
//	                    ┌ crash before ┐                       ┌ ends allowed?
//	scenario ─▶ writes ─┤ lost answer  ├─▶ others take over ─▶ ├ applied once?
//	            1 to n  └ pause ...    ┘   until all rests     └ a path of the table?
//
// A [Scenario] describes what a process consists of, what its clients request, and
// in which states objects may end. [Run] performs it once without a fault and
// numbers every durable write: commits of every verb, of work, heartbeats and
// sweeps alike. Then it performs it again for every write and every [Kind] of fault
// at it. After the fault, the harness replaces the processes that died, all
// processes send heartbeats and sweep, time passes, and clients continue, until
// nothing moves any more. A failure names the point:
//
//	crash after write 3 of 7 (alpha: vm "a" done by worker, to running from starting): ...
//
// # Guarantees
//
// Run checks at every point:
//   - Every object ends in a state that the scenario allows; by default, in one
//     that is not transitional.
//   - No operation is applied twice, as far as work reports its effect on the
//     outside world by [Process.Effect]. No operation is recorded as done that was
//     not applied.
//   - No commit is lost that was acknowledged to a process. The messages of every
//     commit are there once, as long as none is discarded.
//   - The history of every object is a path of its table from row to row, with the
//     operation ids that the table requires, overrides excepted. Sequence numbers
//     have no gap, no commit is there twice, and the record equals the last row.
//   - Every client of a live process has its answer, and no work waits.
//   - If only one request or one answer was lost, the script returns no error, as
//     without a fault.
//   - The fault has happened: the points that are covered are those that were
//     found. Run logs their number.
//
// And about the kit itself:
//   - Every check can fail: the tests of this package plant a fault for each.
//   - Nothing of a process that is gone reaches a client: its calls do not return
//     before the point is over.
//   - Time is that of a bubble of testing/synctest if the store allows it. No check
//     depends on a duration.
//   - It needs the standard library only.
//
// # No guarantees
//
//   - There is one fault at a time, or two with [Harness].Twice. Scenarios that
//     kill a process ([World.Kill]) test faults in its successor too, because the
//     successor's writes are then numbered.
//   - The order of events after a fault may differ from run to run. A second fault
//     whose write is not reached is no failure; Run counts it as missed.
//   - Run identifies a write by its content and expects the same writes every time
//     up to the fault: a script that is not deterministic fails. Processes send
//     heartbeats and sweep one after the other until the script has ended, and
//     then all at once.
//   - Writes after the end of the script are not counted: a script waits for what
//     it has started.
//   - The simulated outside world compares operation ids. A real one that does not
//     accepts changes of an owner that is considered dead, and no library prevents
//     that.
//   - Discarding messages is no commit, and gets no fault.
//   - For a store without history, Run checks neither paths nor lost commits, nor
//     whether work was done.
//
// # Rejected
//
// Numbers without names: the fifth write of a run with a fault may differ from the
// fifth write of another run if two operations proceed at the same time. Ending a
// goroutine at the fault: its deferred calls would do what no dead process does.
// All combinations of several faults as the default: their number is the square.
package crashtest
