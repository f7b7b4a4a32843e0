// Package queue runs actions on objects: the actions of one object one at a time in
// the order of their acceptance, those of different objects in parallel, under limits.
//
//	Submit ──▶ reserve ──▶ Admit ──▶ ┌─ vm1  ▶ a1 a2 a3 ─┐   ready,      ┌ root ────── MaxRunning
//	             │           │       ├─ vm2  ▶ b1 ───────┤   in turns    ├─ aws ────── MaxChildren
//	             ▼           ▼       └─ disk ▶ b1 c1 ────┘ ────────────▶ └── aws/seoul MaxRunning ──▶ Run ──▶ Settle
//	        ErrStopping  ErrConflict    a lane for each key                 all at once, or none
//	        ErrFull
//
// A [Queuer] has a lane for every key that has actions. An [Action] takes one key or
// several. It is ready when it is first in all its lanes. It then waits for its turn
// under the limits of its class, and keeps its lanes until it has ended. The submitter
// gets a [Ticket] to wait for the action, to cancel it, and to inspect it.
//
//	var q queue.Queuer[string]
//	ticket, err := q.Submit(ctx, "vm1", &queue.Action{
//		Name:   "start",
//		Admit:  func(ctx context.Context) error { return store.CompareAndSet(ctx, "vm1", stopped, starting) },
//		Run:    func(ctx context.Context) error { return provider.Start(ctx, "vm1") },
//		Settle: func(ctx context.Context, outcome queue.Outcome, err error) { record(ctx, "vm1", outcome, err) },
//	})
//	if err != nil {
//		return err // refused: nothing has changed
//	}
//	return ticket.Wait(ctx)
//
// # Guarantees
//
//  1. Order. Submits to one key that happen one after another run in that order.
//     Concurrent submits get one order, [Ticket.Seq]. An action with a Delay takes its
//     place when the delay is over.
//  2. Exclusion. The end of an action happens before the start of the next action of
//     the same key, also in the sense of the memory model. The action keeps its keys
//     during retries and back-offs.
//  3. No loss. An accepted action ends exactly once, with exactly one [Outcome], and
//     its Settle is called exactly once.
//  4. No silence. A refused submit returns an error with the reason and with what is
//     in the way. It has changed nothing.
//  5. No cost when idle. A queue without actions has no goroutine. Keys that are idle
//     cost no memory.
//  6. Isolation. A panic or runtime.Goexit ends its own action only. An action that
//     hangs holds up its own keys and keeps its share of the limits.
//  7. Fairness. Under a limit keys take turns in the order in which they became ready, one
//     action each. An action that may start never waits behind an action that may not. An
//     action that became ready later and needs the same limits never overtakes it. Under
//     [Limit].Fair, classes take turns first, and keys within their class.
//  8. Progress. No set of submits can deadlock: an action gets its places in all lanes at
//     once, and its shares of all limits at once. If an action waits for another action
//     that may need the end of the first one, the wait is refused with [ErrWouldDeadlock].
//
// When [Queuer.Stop] or [Queuer.Terminate] returns nil, every action has ended, was
// settled, and was reported to the [Observer].
//
// # Limits
//
//   - Actions are lost when the process ends. The states that their Admit committed
//     are not: a sweeper must find the stuck objects.
//   - An action that ignores its context cannot be ended. [Queuer.Stats] shows it, and
//     [Queuer.Abandon] frees its keys. Only after that may two actions work on one object.
//   - The queue does not see a deadlock through another queue, through a channel, or
//     through [Ticket.Done]. Admit, Settle and observers are not inside the action: a
//     Stop of the own key there waits until its context ends, and so does a submit with
//     the same ID in Admit or [Observer].Accepted.
//   - The context of an action that took more than a millisecond or two ends when the
//     action has ended. A shorter action may share it with the next actions of the same
//     worker. A goroutine that a short action leaves behind may see its context end
//     late, and with the cause of a later action.
//   - An [Action].ID joins submits until its action has ended, with Coalesce until it has
//     started. A later submit with this ID is a new action.
//   - Actions that end together, because they were superseded or aborted, are settled
//     one after another. A Settle that hangs holds up the others.
//   - A halted lane and a paused class also hold up pre-empting actions, Stop and
//     Terminate.
//   - An action may wait inside its Run for another action of its class. If
//     [Queuer.SetLimit] then lowers the limit so that the two cannot run at once, the wait
//     lasts until the limit is raised again.
//   - MaxPerKey and MaxWaiting do not change at run time.
//   - Every start visits all classes in use, and all actions in a back-off with
//     [Retry].Keep. Every acceptance and every end visits all blocked submitters. The cost
//     of cancelling an action grows with its distance from the nearer end of its lane and
//     with the number of actions of its class that could start. For a delayed action it
//     grows with the number of delayed actions of its keys. The cost of a submit does not
//     grow with the number of actions.
//
// # Rejected
//
//   - A goroutine and a channel for each key: they have to end when the key is idle, and a
//     submit at that moment is lost or runs twice.
//   - A hash of the key to a fixed worker: one stuck action holds up all keys of its
//     worker.
//   - Several locks, by hash of the key: this was not faster, and actions of several
//     keys, limits and drains have to take all of them.
//   - Workers that wait for actions: there is always at least one, and a fixed number of
//     them is one more limit. Here a worker exits when no started action is left.
//   - Moving the waiting actions to another lane, for example when a disk is attached
//     elsewhere: this loses the order. An action takes several keys instead.
//   - The context of the submitter for the action: the end of a request must not end an
//     accepted action.
//   - A place at the front of the lane for a pre-empting action: such an action ends
//     everything that waits in front of it, so no other place is needed.
//   - Actions with results, and actions that start after another action: one action that
//     runs a list of steps, and keeps their results itself, needs less.
//   - Rates as limits: a limiter in the caller's hands, such as golang.org/x/time/rate,
//     does this in Run, in front of each call of the provider; see examples/ratelimit.
//   - An exact search for deadlocks under limits: all running actions of a full class count
//     as obstacles, although the end of one of them is enough. So the queue may refuse a
//     wait that would end, and never permits a wait that would not.
package queue
