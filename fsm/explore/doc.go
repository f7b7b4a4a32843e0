// Package explore visits every state of a protocol of several actors.
//
// # Protocols
//
// A [System] composes actors, the bounded channels between them, and faults; or a
// [Model] is one state and its steps. [System.Explore] visits every state that can
// be reached and gives a [Verdict].
//
// A step is one send, one delivery, one local action or one fault. Steps of
// different actors come in any order; nothing happens at the same time. In a state
// these are possible:
//
//   - every local action that [Actor.Acts] lists
//   - every message that [Sends] lists, while its channel has room
//   - every delivery to an actor that [Receives]: of the oldest message of an
//     ordered channel, of any message of another. An actor cannot refuse one
//   - while there is a budget: the loss or duplication of any message, and every
//     [Fault] that can strike all its actors. What mends a fault, as a restart
//     does, is a local action and no fault
//
// Equal messages in an unordered channel, or beside each other in an ordered one,
// are not told apart: to take one of them is one step.
//
// What is checked of every reachable state:
//
//   - its invariants ([System.Always]), else the system is [Violated]
//   - that it can still come to rest ([System.Rests]) if no further fault happens,
//     else the system is [Stuck] or in a [Livelock]. This says that a way to rest
//     remains, and not that it is taken: no fairness is assumed of anybody, and a
//     system that may for ever put off what it owes passes. A fault after which
//     rest is out of reach is found, however many others are left in the budget
//
// What Explore guarantees:
//
//   - [Holds] means that every reachable state was visited. A bound reached or a
//     context ended is [Inconclusive], with the reason, if nothing wrong was found
//     until then; a faulty description, a panic included, is an error
//   - The trace of a violation or of a stuck state is a shortest one for that kind
//     of fault. States are visited in order of their distance, and the first of
//     them found ends the exploration. Livelocks are looked for when all states
//     are known; their trace leads to the nearest state from which the system goes
//     round for ever, and once round
//   - Verdict, counts and trace do not depend on the number of workers, nor on
//     chance
//   - It owns its goroutines, and they have ended when it returns
//
// States are compared in full: no two of them are taken for one because of their
// hash. What a real system does beyond its model, nobody checked.
package explore
