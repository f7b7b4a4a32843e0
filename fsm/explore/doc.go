// Package explore is an explicit-state checker for protocols of several actors. It
// visits every state that a protocol can reach, in every order of its steps and with a
// bounded number of faults, and returns a verdict with a shortest counterexample.
//
//	sys := explore.New("door")
//	user := explore.NewActor(sys, "user", "idle")
//	door := explore.NewActor(sys, "door", "closed")
//	orders := explore.NewChannel[string](sys, "orders", explore.Channel{Capacity: 2})
//	explore.Sends(user, orders, func(l string, send func(label, m, next string)) {
//		if l == "idle" {
//			send("asks", "open", "waits")
//		}
//	})
//	explore.Receives(door, orders, func(l, m string, next func(label, l string)) { next("obeys", m) })
//	sys.Rests(func(v *explore.View) bool { return door.In(v) == "open" })
//	verdict, err := sys.Explore(ctx, nil)
//
// A [Model] is the form for other state machines: one state and its steps.
//
// # Steps
//
// A step is one send, one delivery, one local action or one fault. Steps of several
// actors come in any order, one at a time. The steps of a state are:
//
//   - every local action that [Actor.Acts] lists
//   - every message that [Sends] lists while its channel has room
//   - every delivery to an actor that [Receives]: of the oldest message of an ordered
//     channel, of any message of another. An actor cannot refuse a delivery
//   - while the budget lasts: the loss or duplication of any message, and every
//     [Fault] that can strike all its actors. A recovery, such as a restart, is a
//     local action and no fault
//
// Equal messages in an unordered channel, or next to each other in an ordered one,
// are one: to take either is the same step.
//
// # Checks
//
//   - Every reachable state satisfies the invariants ([System.Always]), or the system
//     is [Violated].
//   - Every reachable state can come to rest ([System.Rests]) without further faults,
//     or the system is [Stuck] or in a [Livelock].
//
// # Guarantees
//
//   - [Holds] means that Explore visited every reachable state. If it reached a bound
//     or the context ended, and it had found no violation, the outcome is
//     [Inconclusive] with the reason. A faulty description and a panic are errors.
//   - The trace of a violated invariant or a stuck state is a shortest one. The trace
//     of a livelock leads to the nearest state from which the system can repeat steps for
//     ever, and shows the loop once.
//   - Verdict, counts and trace do not depend on the number of workers.
//   - Explore compares states in full and not by their hash.
//   - It starts goroutines and returns after all of them have ended.
//
// # Limits
//
//   - The check of rest assumes no fairness. A system that may postpone its work for
//     ever passes if a path to rest remains.
//   - A verdict is about the model. It does not show that a program follows it.
//   - Memory limits the number of states: a protocol of a few actors takes 60 to 90
//     bytes a state.
package explore
