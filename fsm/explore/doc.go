// Package explore is an explicit-state checker for protocols of several actors. It
// visits every state that a protocol can reach, in every order of its steps and with a
// bounded number of faults, and returns a verdict with a shortest counterexample.
//
//	sys := explore.New("door")
//	user := explore.NewActor(sys, "user", "idle")
//	door := explore.NewActor(sys, "door", "closed")
//	orders := explore.NewChannel[string](sys, "orders", explore.ChannelSpec{Capacity: 2})
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
// A system has three kinds of checks. Take a door that is ordered to open:
//
//   - Nothing bad happens. Every reachable state satisfies the invariants
//     ([System.Always]), or the system is [Violated]: the door is open without an order.
//   - A good end remains possible. From every reachable state the system can come to rest
//     ([System.Rests]) without further faults, or it is [Stuck] or in a [Livelock]: the
//     order was lost, and no actor sends it again. A system without resting states must
//     have a step in every reachable state, or it is Stuck.
//   - The good end comes. Every fair run fulfils the properties of [System.LeadsTo], or
//     one is [Unreached]: the door can always open, but the user may send the order
//     again and again while the channel never delivers it.
//
// The third kind depends on fairness, which the model declares ([Action.Fair]): a fair
// action that stays possible is taken sooner or later. Without any fairness the system may
// stop at any time. With fair sends and fair deliveries, an operation that is repeated
// until an answer arrives comes to its end:
//
//	explore.Sends(user, orders, asks).Fair()
//	explore.Receives(door, orders, obeys).Fair()
//	sys.LeadsTo("the door opens", asked, opened)
//
// Explore ends at the first state that violates an invariant or is stuck, so that one fault
// may hide another one. After it has visited every state, it looks for a livelock, and then
// checks the properties of LeadsTo.
//
// # Guarantees
//
//   - [Holds] means that Explore visited every reachable state. If it reached a bound
//     or the context ended, and it had found no violation, the outcome is
//     [Inconclusive] with the reason. A faulty description and a panic are errors.
//   - The trace of a violated invariant or a stuck state is a shortest one. The trace
//     of a livelock leads to the nearest state from which the system can repeat steps for
//     ever, and shows the loop once.
//   - The trace of an unreached property ends in a fair loop, which it shows once, or in a
//     state without a possible fair action, where the run may stop. It need not be a
//     shortest one.
//   - Verdict, counts and trace do not depend on the number of workers.
//   - Explore compares states in full and not by their hash.
//   - It starts goroutines and returns after all of them have ended.
//
// # Limits
//
//   - The check of rest assumes no fairness. A system that may postpone its work for
//     ever passes it if a path to rest remains.
//   - Fairness is weak. An action that is possible again and again, and impossible in
//     between, need not be taken. Only a send that waits for room is taken if its
//     channel has room again and again.
//   - A verdict is about the model. It does not show that a program follows it.
//   - Memory limits the number of states: a protocol of a few actors takes 70 to 120
//     bytes a state. The properties of LeadsTo take 8 bytes for each step and 32 for each
//     state, and one goroutine checks them. [Config.SkipLeadsTo] leaves them out.
package explore
