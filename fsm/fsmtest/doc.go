// Package fsmtest tests machines of package fsm, and systems that are made of them,
// in the repositories of their users.
//
//	                 ┌─▶ Tour    every row in every status, and every refusal
//	                 ├─▶ Walk    random requests, against a model
//	a Driver ────────┤
//	of the system    └─▶ Race    many at once, and one winner
//
//	                 ┌─▶ Run, Matrix, MatrixFunc, Diagram    what it should do, written down
//	a Machine ───────┼─▶ Cover, Watch, Main                  what tests have seen of it
//	                 └─▶ Mutate                              what tests would notice
//
// The test of a machine is ten lines long:
//
//	func TestDoors(t *testing.T) {
//		fsmtest.Run(t, Doors, []fsmtest.Case[State, Event, Door]{
//			{From: Open, Event: Close, Actor: User, To: Closed},
//			{From: Open, Event: Lock, Actor: User, Err: fsm.ErrNotAllowed},
//			{From: Closed, Event: Lock, Actor: Guest, Err: fsm.ErrWrongActor},
//		})
//		fsmtest.Matrix(t, Doors, "testdata/doors.txt")
//		fsmtest.Diagram(t, Doors.Table(), "testdata/doors.mmd", nil)
//	}
//
// The files are written, and written anew after a change, by
//
//	UPDATE_DOCS=1 go test -run TestDoors .
//
// A system of one's own is tested through a [Driver], two methods that make an
// object and fire an event at it:
//
//	fsmtest.Tour(t, Doors.Table(), driver, nil)
//	fsmtest.Walk(t, Doors.Table(), driver, nil)
//	fsmtest.Race(t, Doors.Table(), driver, nil)
//
// [Drive] is the driver over instances of a machine; [Puppets] lets drivers over
// other things tell the guards what to say.
//
// # How good are the tests?
//
// [Cover] counts the states, transitions and outcomes of guards that a test has
// seen, [Watch] and [Main] those of all tests of a package, and both fail below what
// is demanded. [Mutate] runs a test with tables that have one small fault each, and
// names those that it does not notice:
//
//	fsmtest.Mutate(t, Doors, func(t testing.TB, m *fsm.Machine[State, Event, Door]) {
//		fsmtest.Run(t, m, cases)
//	}, &fsmtest.MutateConfig{Least: 90})
//
// # Guarantees
//
//   - A tour takes every row in every status in which an object can take it, and is
//     shortest; a row that no object can take is an error unless it is excepted with
//     a reason. With it, everything is asked that the table refuses.
//   - Everything random tells its seed and can be repeated; what fails is made
//     short.
//   - What need not be covered or noticed is named, with a reason. An exception that
//     does not apply any more is an error.
//   - A mutant that is not counted because no test can notice it is proven to behave
//     as the table: [tour.Mutants].
//   - All functions take a [testing.TB], so that Mutate can run them.
//   - It needs the standard library and packages of this module, no test framework.
//
// # No guarantees
//
//   - A driver tells where an object is, and not where it came from: that an origin
//     is kept wrongly is seen when a return row leads elsewhere, and that an event
//     was ignored instead of moving an object to where it is, not at all.
//   - What returns an error is taken as a refusal: a driver fails the test itself
//     where its system breaks down.
//   - Guards that share a payload may not be able to say everything that is asked of
//     them. What a driver cannot do is counted and told; if it is a row, it is an
//     error.
//   - Which row a move took that was only told by names may be ambiguous; such moves
//     cover no row, and are counted.
//   - The score of Mutate speaks of small faults of the table alone.
//
// # Rejected
//
// Mutants in processes of their own, with the user's test as it stands: a minute of
// compiling for each, and no way to hand a table to it. Guards that are told by
// payloads which the kit makes up: it cannot know what they mean. A test that writes
// the cases for the user: it would say what the table says.
package fsmtest
