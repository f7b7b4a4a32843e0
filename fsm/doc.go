// Package fsm builds lifecycle tables: typed states, events, actors and guarded
// transitions, compiled and checked when they are built.
//
//	      Spec ──New──▶ Machine ──Instance──▶ one object in memory
//	                      │  ▲
//	                Table()  Bind
//	                      ▼  │
//	JSON ◀──write, read──▶ Table ──▶ pictures, checks, stores
//
// A [Spec] is plain data. [New] compiles it into a [Machine], which is immutable
// and shared by all objects of its kind, or lists every fault of it at once.
// [Machine.Next] answers what an event by an actor does to an object in a status,
// and changes nothing; whoever owns the object keeps its [Status]. An [Instance]
// keeps it in memory. [Machine.Table] is the same machine without types.
//
// # Guarantees
//
//   - A machine that New returns is sound: every state can be reached, every
//     state that is not Final or Absent can be left, a Final state is left by
//     force only, every transitional state has a deadline or names who looks
//     after it, no row is shadowed by an earlier one, and every return row has
//     somewhere to return to.
//   - The order of a transition is fixed: row, actor, origin, guard, the caller's
//     own effect, compare-and-set, observer. Everything before the
//     compare-and-set may refuse, and then nothing has moved; nothing after it can.
//   - Of several goroutines that fire an event of one Instance at once, each move
//     has exactly one winner, self transitions included.
//   - Rows of one state and event are tried in order of declaration; everything is
//     listed in order of declaration.
//   - A refusal carries a [TransitionError] with one sentinel; a guard's reason may
//     match others, so ask for [ErrGuard] first. Fire, Next and Can allocate
//     nothing when they succeed, nor when they refuse a declared actor for want of
//     a row or of the right (in tables of up to 2^20 states x events x actors).
//   - No lock is held anywhere, and no user code runs inside a compare-and-set.
//   - A table that is written, read and written again gives the same bytes.
//     Reading is bounded in time and memory, whatever the document.
//
// # No guarantees
//
//   - A guard is asked before the move and not during it: what it has seen may
//     have changed by then. A condition that must hold at the moment of the move
//     belongs into the same commit; see package lifecycle.
//   - A deadline is a row, not a clock: package lifecycle has the sweeper that
//     fires it.
//   - A machine does not know late messages from new ones. Package lifecycle
//     compares operation ids.
//   - A Status is a value that anybody can make. [Machine.ParseStatus] refuses
//     what the machine does not know.
//
// # Rejected
//
//   - Callbacks on entering and leaving states: they hide what a move costs and
//     what happens when they fail. Fire, look at the error, act.
//   - States and events as any, and callbacks found by name: a typo should not
//     compile.
//   - Nested and parallel states: nobody can read the table any more. An
//     aggregate over several machines says the same.
//   - A mutex per object: it is held across user code sooner or later.
package fsm
