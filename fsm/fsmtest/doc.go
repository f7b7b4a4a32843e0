// Package fsmtest tests machines of package fsm, and systems that are made of them,
// in the repositories of their users.
//
//	func TestDoors(t *testing.T) {
//		rules := func(t testing.TB, m *fsm.Machine[State, Event, Door]) {
//			fsmtest.Run(t, m, []fsmtest.Case[State, Event, Door]{
//				{From: Open, Event: Close, Actor: User, To: Closed},
//				{From: Closed, Event: Lock, Actor: Guest, Err: fsm.ErrWrongActor},
//			})
//		}
//		rules(t, Doors)
//		fsmtest.Mutate(t, Doors, rules, nil)
//		fsmtest.Tour(t, Doors.Table(), fsmtest.Drive(Doors, nil), nil)
//	}
//
// [Run] is a table test of a machine. [Mutate] runs a test with tables that have one
// small fault each, and names the faults that the test does not detect. [Watch]
// measures which states, transitions and guard results a test has covered.
//
// [Tour] and [Race] test a system through a [Driver], which creates an object and
// fires events at it. Tour takes every row in every status and makes every request
// that the system has to refuse. Race fires every step of the tour from several
// goroutines at once and expects one winner. [Drive] is the driver for instances of
// a machine. [ScriptedGuards] helps to write a driver for another system.
//
// # Guarantees
//
//   - Tour takes every row in every status in which an object can take it. A row that
//     no object can take is an error unless the config names it with a reason.
//   - Every exception has a reason. An exception that no longer applies is an error.
//   - Mutate excludes a mutant from the score only if it behaves like the table, or if
//     fsm.New refuses it for more than a missing timeout.
//   - All functions that report faults take a [testing.TB], so that Mutate can run them.
//   - The package needs the standard library and packages of this module only.
//
// # Limits
//
//   - A driver reports the state of an object and not its origin. Tour detects a
//     wrong origin when a return row leads to another state. It does not detect that
//     an event was ignored instead of moving the object to its own state.
//   - Tour and Race treat every error of a driver as a refusal. The driver itself
//     fails the test if its system breaks down.
//   - Guards that share a payload may be unable to return every combination of
//     results. Tour counts the requests that a driver cannot make. It is an error if
//     such a request takes a row.
//   - The score of Mutate measures small faults of the table only. A mutant changes its
//     row for all sources of the row: [Watch] finds a source that no case has.
//   - Run, Tour and Mutate do not compare timeouts, [fsm.Row.Superseding] and the kinds of
//     states. A golden file of diagram.Text shows a change of these, and so does package
//     diagramtest.
//
// # Rejected
//
// Mutants in processes of their own would compile the test again for each mutant.
// Payloads that the package generates for guards would depend on what each guard checks.
package fsmtest
