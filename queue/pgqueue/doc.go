// Package pgqueue runs actions on objects in several processes, over PostgreSQL: the actions
// of one object one at a time in the order of their commits, those of different objects in
// parallel, under limits that all processes share. It is package queue for actions that
// survive the process.
//
// An [Action] is data: a name, arguments, and one key or several. [Enqueue] adds it in the
// caller's transaction, together with the change of the object's state. A [Worker] in each
// process claims actions and calls the handler of the name.
//
//	err := pgqueue.Migrate(ctx, db) // once
//
//	tx, err := db.BeginTx(ctx, nil)
//	_, err = tx.ExecContext(ctx, "UPDATE vm SET state = 'starting' WHERE id = $1 AND state = 'stopped'", id)
//	_, err = pgqueue.Enqueue(ctx, tx, &pgqueue.Action{Keys: []string{id}, Name: "start"})
//	err = tx.Commit()
//
//	worker, err := pgqueue.New(db, map[string]pgqueue.Handler{"start": {Run: start, Settle: record}}, nil)
//	err = worker.Run(ctx) // in each process
//
// An object that is kept by sqlstore changes in the same transaction through
// sqlstore.Store.WithTx.
//
// The view interlock_queue shows the actions to an operator, with their states. Those of an object,
// in their order, delayed ones last:
//
//	SELECT * FROM interlock_queue WHERE 'vm1' = ANY (keys) ORDER BY seq, at, id
//
// # Guarantees
//
//  1. Order. Actions of one key run in the order in which their transactions got the lock
//     of its lane, which is the order of their commits. An action with a Delay takes its
//     place when the delay is over. An action with several keys starts when it is first for
//     all of them. A retry is never overtaken by later actions of its keys.
//  2. Exclusion. At most one worker has the lease of an action, and no action of the same
//     key has one. Each start has a fencing token, higher than those before of its keys. The
//     handler's context ends before its lease can be given to another worker.
//  3. No loss. An action whose transaction has committed ends exactly once, also if its
//     worker, its connection or the server dies. An end by a worker is refused if another
//     worker has claimed the action since. Settle is committed exactly once, with the end. If
//     a worker dies, other workers claim its actions when their leases are over. They start
//     those that have an attempt left ([Retries].Attempts), and end the others as
//     [queue.Failed] with [ErrInterrupted].
//  4. Nothing of a transaction that is rolled back is left.
//  5. Limits hold over all workers together: see [Config].Classes.
//  6. Progress. Transactions of workers never deadlock with each other, except through what
//     Settle locks, an Enqueue in it included. PostgreSQL resolves such a deadlock, and one
//     with a transaction of the caller, and the worker tries again.
//
// # Limits
//
//   - A handler may run more than once: after the death of its worker, and after the loss
//     of a lease. With one attempt ([Retries].Attempts is 1) it runs at most once. Two runs
//     may overlap in real time if a process is stopped in between. Only the target can
//     refuse the late run, by the token. The limits do not count such a run either.
//   - Leases and delays follow the clock of the server. If that clock jumps forward, leases
//     end early. If it jumps backward, they end late. A worker uses its own clock, which
//     stands still while its machine is suspended. No action is lost or ends twice.
//   - The server may lose commits: by asynchronous commit, by a failover to a replica that
//     was behind, or by a restore. If an Enqueue is lost, the action is lost. If an end is
//     lost, with what Settle wrote, the action runs again. If a lease is lost, another run
//     overlaps until the first worker's lease is over. Claims commit synchronously, but after
//     a failover or a restore tokens may repeat: the target then cannot refuse the late run,
//     whose lease does not end. Stop the workers, raise the sequence
//     interlock_queue_tokens by setval above all tokens that were given, and start them.
//   - A transaction holds the lanes that it has enqueued to. A slow one holds up the end of a
//     running action of these keys, and other transactions that enqueue to them. If its process
//     is cut off, they wait until the server notices: set idle_in_transaction_session_timeout
//     for producers.
//   - PostgreSQL executes commits that notify one after the other. An Enqueue notifies only
//     if the action can start at once; the end of an action does not.
//   - A worker notices events without a notification after up to [Config].Poll. These are
//     the ends of delays, pauses and leases, and an action that could start in another
//     worker than the one that ended the action before it. Behind a pooler that shares
//     connections between transactions, no event has a notification.
//   - Claims of workers with Classes wait for each other, and read past the ready actions of
//     full classes.
//   - The server sends Args with a claim, before its commit. If a worker is stopped or cut off
//     meanwhile, and the Args of its claim exceed what the connection can hold, other claims with
//     Classes wait, for the time of a lease. On a server that is not on Linux, or behind a Unix
//     socket, they wait until the server notices: keep Args there to a few kilobytes.
//   - Unlike package queue it has no Preempt, Guard, Coalesce, QueueTimeout,
//     HaltOnFailure, MaxPerKey, MaxChildren, Fair and pauses of classes. An action has no id
//     of the caller: the change of the object's state in the same transaction decides whether
//     a request is a repetition.
//   - The statements are tested with PostgreSQL 15 and driver pgx.
//
// # Rejected
//
//   - Order by a sequence alone: a transaction that has drawn a lower number may commit
//     later.
//   - Advisory locks for the lanes: they need no rows, but a transaction above READ COMMITTED
//     would continue with what it read before it had the lock. A row lock makes it fail.
//   - A process that ends expired leases: they are claimed like ready actions.
//   - Counters of running actions by class: a process that dies leaves them too high. Running
//     actions are counted under a lock.
//   - Claims that skip actions without a handler: such an action would wait and no error
//     would show it.
//   - Ends that wait for lanes together: one slow producer would hold up all of them. A worker
//     ends several actions in one transaction if no other transaction is in the way, and otherwise
//     each in its own. Settle has a transaction of its own.
//   - A table of actions that have ended: Settle keeps what the caller needs.
package pgqueue
