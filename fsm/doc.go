// Package fsm builds lifecycle tables: typed states, events, actors and guarded
// transitions, which are compiled and checked when they are built.
//
//	      Spec ──New──▶ Machine ──Instance──▶ one object in memory
//	                      │  ▲
//	                Table()  Bind
//	                      ▼  │
//	JSON ◀──write, read──▶ Table ──▶ pictures, checks, stores
//
// A service uses it for objects that have a lifecycle, and in which a wrong
// transition is expensive: VMs, disks, leases, deployments.
//
//	doors := fsm.Must[struct{}](fsm.Spec[string, string]{
//		Name: "door", Initial: "shut", Actors: []fsm.Actor{"user"},
//		States: []fsm.State[string]{{Name: "shut"}, {Name: "open"}},
//		Rows: fsm.Rows(
//			fsm.Move("shut", "push", "open").By("user"),
//			fsm.Move("open", "pull", "shut").By("user"),
//		),
//	})
//	door := doors.Instance()
//	step, err := door.Fire(ctx, "push", "user", nil) // step.State is "open"
//
// A [Spec] is plain data. [New] compiles it into a [Machine] or reports all its
// faults at once. A machine is immutable, and all objects of its kind share it.
// [Machine.Next] returns the step from a status and changes nothing; the caller
// keeps the [Status]. An [Instance] keeps the status in memory.
// [Machine.Table] is the machine as plain data without type parameters. The example
// FromLooplab is a guide for programs that use github.com/looplab/fsm.
//
// # Terms
//
// A [State] has a [Kind]: in a [Stable] state, the default, the object is at rest; in a
// [Transitional] one work is in flight; in a [Failed] one it is at rest after a failure; only
// forced rows leave a [Final] one; and in an [Absent] one the object does not exist. The origin
// of an object is its last state that was not transitional, and a [Return] row leads back to
// it. [Row.After] gives a row a timeout: [Sweeper] fires the row. A forced row,
// [Row.OnlyForced], is only for requests with force, such as those of [Machine.NextForced].
//
// # Guarantees
//
//   - A machine that New returns is sound. Every state can be reached. Every state
//     that is not Final or Absent can be left. Only forced rows leave a Final
//     state. Every transitional state has a timeout or documents in Manual why it
//     has none. A timeout does not only repeat itself. No row is hidden by another one.
//     Every return row has an origin to return to.
//   - The order of a transition is fixed: row, actor, origin, guard, compare-and-set,
//     observer. A step before the compare-and-set may refuse, and the object has then
//     not moved. The observer cannot refuse.
//   - If several goroutines fire one Instance at once, each move has exactly one
//     winner, self transitions included.
//   - Rows of one state and event are tried in order of declaration. All lists are
//     in order of declaration.
//   - A refusal carries a [TransitionError] with one sentinel. The reason of a guard
//     may match other sentinels, so a caller compares with [ErrGuard] first.
//   - Fire, Next and Can allocate nothing if they succeed and the guard does not
//     allocate. A refusal allocates its error.
//   - An Instance has no lock. Guards and observers may fire it again.
//   - A table that is written, read and written again gives the same bytes.
//     Reading any document is bounded in time and memory.
//
// # Limits
//
//   - A machine has at most [MaxStates] states, [MaxEvents] events, [MaxActors] actors
//     and [MaxRows] rows. A state has at most 256 rows for one event.
//   - A guard runs before the move. Data that it has read may have changed when the
//     object moves. A condition that must hold at the moment of the move belongs in the
//     same commit; see package lifecycle.
//   - A timeout is data of a row, not a clock. Package lifecycle has the sweeper that
//     fires it.
//   - A machine cannot distinguish a late report from a new one. Package lifecycle
//     compares operation ids.
//   - Rows with origin conditions may together take every origin that an object has in a
//     state. The row behind them is then never tried. New accepts it, because it is the
//     default for origins of later versions of the table.
//   - A caller can make any Status. [Machine.ParseStatus] refuses undeclared names.
//
// # Rejected
//
//   - Callbacks on entering and leaving states. They hide what a move costs and what
//     happens when they fail. The caller fires, looks at the error, and acts.
//   - States and events of type any, and callbacks found by name. A misspelt name
//     should not compile.
//   - Nested and parallel states. They make a table hard to read. An aggregate over
//     several machines expresses the same.
//   - A mutex per object. It would be held while guards run.
package fsm
