// Package lifecycle moves objects through a table of package fsm and keeps them in a
// store. A message that comes late or twice, a process that dies, and simultaneous
// requests cannot move an object wrongly.
//
//	user ──Create, Fire──▶ ┌─────────┐   load, decide, commit    ┌───────┐
//	user ───────Do───────▶ │         │ ◀───────────────────────▶ │ Store │
//	peer ─────Report─────▶ │ Manager │   one compare-and-set     └───────┘
//	sweeper ───Sweep─────▶ │         │   with its history row
//	                       └─────────┘
//	                         │     │ work, in the object's turn, with a context
//	                         ▼     ▼ that ends when the operation is taken away
//	                    Observer  Queue
//
// # Start here
//
// A first service needs five methods. VM is the machine:
//
//	vms := lifecycle.Must(VM, lifecycle.NewMemoryStore(), &lifecycle.Config[Event]{
//		WorkerActor: Worker, Done: []Event{Done}, Failed: []Event{Fail},
//	})
//	rec, err := vms.Create(ctx, "vm1", Order, User, Spec{Disk: 10}, nil)  // a record
//	rec, err = vms.Fire(ctx, "vm1", Rename, User, nil)                    // one move
//	op, err := vms.Do(ctx, "vm1", Start, User, lifecycle.Func(boot), nil) // an operation with work
//	rec, err = vms.Get(ctx, "vm1")
//	stuck, err := vms.Sweep(ctx)                                          // function Run repeats it
//
// If other processes take over the work of a process that dies, each process runs this
// code. The contexts alive and soon end later than ctx:
//
//	owner, err := lifecycle.Join(ctx, store, "host-1", 0)
//	vms, err := lifecycle.New(VM, store, &lifecycle.Config[Event]{Owner: owner, Handlers: handlers, ...})
//	go owner.Run(alive)                // heartbeats, until the work has ended
//	go lifecycle.Run(ctx, 0, nil, vms) // sweeps
//	...                                // requests, until ctx ends
//	err = lifecycle.Drain(soon, vms)   // waits for work and its outcomes
//	stop()                             // ends alive
//	err = owner.Leave(soon)            // other processes take over at once what is left
//
// The record keeps work that is [Named], so that another process can do it. Work that is a
// [Func] is lost with its process.
//
// # Operations
//
// A call without an operation id starts an operation; a call with one continues it.
// Entering a transitional state from another kind of state starts an operation and
// gives it the next number. Moving from one transitional state to another continues
// it, unless the row supersedes it. [Manager.Report] names the operation that a
// report is about, and its [Verdict] is Applied, Repeated, Stale or Refused. Only an
// applied report changes anything. Programs that need no ids can ignore them.
//
// [Manager.Do] starts an operation and does its work. The state is set when the operation
// is admitted, before the work waits for its turn. The outcome is written only if the
// object is still in this operation and this process still owns it. The six outcomes are
// [Succeeded], [Failed], [Panicked], [Canceled], [TimedOut] and [Lost]. [Work].Retries
// repeats work that fails, with back-off. The record counts the attempts, across processes.
// [Manager.Sweep] finds operations whose deadline has passed or whose owner ([Join]) is
// dead. It fires the row of the table that has a timeout, which is called the deadline row.
// The row returns the object to its origin, moves it to a failed state, or starts the work
// again by the name of its handler. [Manager.Explain] describes the next move of an object,
// and [Stuck] lists the objects that a sweep would act upon. [Manager.Override] is for
// operators.
//
// # Requests of clients
//
// A client whose answer was lost sends its request again. [Change].Request is its request
// id. For a repeated request, Create, Add, Fire, Do and Override change nothing and return
// a [*RepeatedError] with what the first request has done. [Record].ETag and
// [Change].IfMatch are the headers ETag and If-Match: the change is refused if the object
// has changed since the client read it. [Problem] turns an error into an HTTP answer. A
// guard may return an error with its own code and status. [Manager.Add] adds an object that
// exists already in the outside world, in any state at rest.
//
// # Several objects
//
// [Change].Require has preconditions on other objects. The commit checks them. A [Tx]
// commits changes of several objects together. [Work].With makes other objects a part of an
// operation. [Config].BeforeCommit adds changes and preconditions to every commit of a
// manager's objects, for every verb. Package relation checks combinations of states.
// Package aggregate derives the state of a parent from the states of its children.
//
// # Objects under a lock
//
// A process that is paused, or cut off, may write after it has lost its lock. A commit
// refuses such a write in one of two ways. [Precondition].Grant compares the grant in the
// commit. It is exact, and needs the lock and the records in one database. [Change].Fence
// works with every lock, if the store can keep the token. The record keeps the highest
// fencing token, and a change with a lower one is refused.
//
//	err := lock.Do(ctx, locker, request, nil, func(ctx context.Context, g *lock.Grant) error {
//		_, err := vms.Fire(ctx, "vm1", Resize, User, &lifecycle.Change[Spec]{
//			Fence: g.Token(),
//			// In one database: Require: []lifecycle.Precondition{{Grant: g}},
//		})
//		return err
//	})
//
// The outcome of work is under neither. It is written only if the object is still in the
// operation of the work. So the next holder of the lock first starts an operation of its own.
// If the object may be in transition then, the table needs a row that supersedes
// ([fsm.Row.Superseding]). The work of the former holder is then lost.
//
// # Tests of a service
//
// A test may run in a bubble of testing/synctest, with a [MemoryStore]: everything in this
// package waits by the clock of the bubble. Work that still runs keeps the bubble from
// ending. Work that heeds its context ends with the test if the context of the queue does:
//
//	work := queue.Must(&queue.Config[lifecycle.Key]{Base: t.Context()})
//	vms := lifecycle.Must(VM, lifecycle.NewMemoryStore(), &lifecycle.Config[Event]{Queue: work, ...})
//
// A deadline has passed only after its time, not at it. The interval of [Run] and the pauses
// of [Retries] are random. So a test waits longer than the timeout, or for a state ([Await]).
// With a negative KeepHistory the store keeps all history rows for package history.
//
// A store with faults is a type that embeds the *MemoryStore and has a Commit, Get and List
// of its own. A type that embeds the interface [Store] instead hides the methods of
// [Historian], [Outbox] and [Follower]: the manager then finds no history. To simulate a
// process that is killed, give it such a store of its own, which returns [ErrClosed] from
// then on.
//
// # Metrics, traces and logs
//
// [Config].Observer receives changes, refusals, reports, failed attempts, the end of
// operations, sweeps and calls of the store, each with the context of its call. [Log] is an
// observer that logs. The modules lifecycle/prometheus and lifecycle/otel have observers
// for metrics and traces. [Tee] combines several observers:
//
//	Observer: lifecycle.Tee(lifecycle.Log(nil), collector.Observer(VM.Table()))
//
// [Stuck] lists the objects that are stuck, for a gauge. Functions that are nil cost
// nothing.
//
// # A new version of a table
//
// A record carries the [Config].Version of the table that wrote it. A manager refuses a
// version that it does not have. A new version may rename states or change the form of the
// payload. A fleet goes from version 1 to version 2 in four steps:
//
//  1. Start binaries of version 2 beside those of version 1. Their [Config].Older has
//     version 1, which "fsm diff -format go" prints. They read and write version 1.
//  2. End the binaries of version 1. Every step up to this one can be undone.
//  3. Start the binaries of version 2 again, with [Config].Switch. New objects are of
//     version 2. Old ones stay in version 1, also when they change.
//  4. Call [Migrate] page by page, and again after the last binary without Switch
//     has ended, until it migrates nothing. The next release needs no Older.
//
// Names of events, actors and handlers have no versions: a new table keeps them as long as
// binaries, reports and stored work of the old one exist. Command fsm diff judges the rest.
// It does not know Config.Older. So pass it the new names of states (-map), and the events
// that lead to states which the old version lacks (-hold): until a record is migrated, a
// binary of version 2 refuses them.
//
// # Life of a request
//
// Every request that changes an object goes through one core (core.go) without type
// parameters. Its steps are those of transaction (transaction.go): load reads the
// record; decide runs the pure functions of internal/decide,
// the change's Edit and the guards; plan makes the [StoredChange]; BeforeCommit adds
// further requests, which take the same steps; commit sends everything to the store;
// publish notifies work that has lost its operation, waiting callers and observers.
// check.go has what is refused in every state of an object, and resolve.go what follows
// a failure: it resolves an unknown outcome, and one retry policy decides what is tried
// again after a conflict.
//
// [Manager.Fire] on PostgreSQL:
//
//  1. manager.go: the event becomes an index, the Edit an edit of bytes. check.go:
//     request.check.
//  2. transaction.go: transaction.gather calls request.prepare (request.go), which has the
//     steps up to the plan. request.load calls Store.Get, one SELECT. Before it,
//     request.requestedBefore (repeated.go) looks in the history for the request id of a client.
//     After it, core.recognize brings a record of an older version into the form of the
//     manager's version (version.go).
//  3. request.go: request.decide gets the candidate rows from package decide. If one has a
//     guard, it runs the Edit on a copy and the guards on further copies. Package decide
//     makes the decision, and request.refusal the error if it permits no change.
//  4. plan.go: request.plan makes the [StoredChange] with the new record. It runs the Edit
//     if no guard has needed it.
//  5. transaction.go: transaction.attempt calls Store.Commit: sqlstore updates the row
//     under the condition on revision and state, and inserts the history row, in one
//     statement.
//  6. transaction.go: transaction.publish; Manager.result makes the typed [Record].
//
// [Manager.Do]:
//
//  1. do.go: core.do checks the request and the work; operation.submit takes a place in the
//     queue, which calls operation.admit: the steps of Fire, with owner and handler
//     in the record. operation.noteAdmitted makes the [Task], by which the work learns that
//     its operation was taken away (task.go). Do returns.
//  2. The queue calls operation.run. turn.go: operation.startTurn commits the
//     deadline, or reads whether the object is still in the operation. Then
//     operation.runWork calls the handler. attempts.go: if it fails and [Work].Retries
//     allows another attempt, operation.failAttempt commits the number of failed attempts
//     and the time of the next one, and the queue calls operation.run again.
//  3. outcome.go: the queue calls operation.settle. operation.conclude makes the
//     report of the outcome, by WorkerActor, and applies it: the steps of Report.
//     retry.go: while the store fails, operation.retry tries it again. At the end
//     operation.finish calls the observer and ends Ticket.Wait.
//
// [Manager.Report]:
//
//  1. report.go: the report becomes a request that names its operation.
//  2. request.go: load. report.go: request.decideReport compares the operation. Before it
//     refuses, and at once if the object is at rest, request.reportedBefore looks in the
//     record and the history for the same report.
//  3. Applied: plan, commit, publish as in Fire. After a conflict the request starts
//     again with load, because it is about an operation and not about a state.
//
// A sweep that finds a dead owner:
//
//  1. heartbeats.go: sweep.readOwners lists the owners that are alive. It fires the
//     deadline row of those whose record has not changed for their TTL, as measured over
//     several sweeps: they are dead. sweep.orphaned lists the records of all owners that
//     are not alive, without payloads. sweep.ownerDead reads the owner's record again.
//  2. sweep.go: sweep.care calls decide.Sweep for the table's deadline row.
//  3. sweep.fire applies the row under the revision that was listed: the steps of
//     Fire. If the row starts the operation again, sweep.redo submits an operation
//     with the recorded work: the steps of Do.
//
// # Guarantees
//
//   - An object moves only by a row of its table. Every move is one commit with one history
//     row. The exceptions are [Manager.Override], and [Manager.Add] for objects that exist
//     already.
//   - If several calls were decided on the same revision, one of them is committed. The
//     others return [ErrConflict] with the present record. These requests are decided again
//     instead: reports, outcomes of work, those of [Migrate], changes with IfMatch while the
//     object has the ETag, and creations of an object that still does not exist.
//   - A machine commits at most one request with a given request id, in all processes
//     together, as long as the history has its row.
//   - A report about an operation changes nothing after the next operation has started, even
//     if the table permits it.
//   - Operation ids, sequence numbers and revisions never repeat for a key, also after the
//     object was removed and created again. If the store loses its newest commits (a
//     restore from a backup, a failover that lags), operation ids repeat and
//     [Record].Admission does not. Outcomes of work compare it, and so do reports and calls
//     that carry it.
//   - Payload and state change in the same commit. A payload shares no memory with
//     the store.
//   - The error of a request is an [*Error], with machine, object, event and actor. It
//     matches a sentinel, or is the store's own error. Nothing was written, except perhaps
//     after [ErrUnknownOutcome]. [Problem] is its form for clients. An [*OutcomeError] is
//     about the end of work, whose outcome may be in the record.
//   - A commit whose answer is lost is sent again with the same token.
//   - Only the owner of an operation writes the outcome of its work. The store refuses the
//     commits of a process that was declared dead, even before that process has noticed it.
//     These commits are the admissions, outcomes and heartbeats of its operations.
//   - An outage of the store loses no success whose deadline has not passed: an
//     outcome is written again when the store is back. It takes effect once if the store
//     keeps the history.
//   - Clocks decide when a sweep acts; compare-and-set decides which writer wins. No
//     outage of the store ends an ownership, see [Owner].
//   - A panic of a guard, an Edit, a codec, an observer or a hook reaches the caller. While
//     the outcome of work is written or reported there is no caller: Unwritten of the
//     [OutcomeError] has the panic. A panic of work or of its [EditOutcome] becomes the
//     outcome of the work.
//   - No lock is held across user code or a call of the store. The package starts no
//     goroutine except those of the queue, in which work runs, one for each EditOutcome
//     while it runs, and one for each outcome that is written again.
//     [Drain] waits for them.
//
// # Limits
//
//   - A guard sees the payload that was read, and the change. [Change].Require is for the
//     state of another object at the moment of the commit. If a guard meets an outage, the
//     next row of the event is tried. If no row is left, the outcome of work is tried
//     again. [Manager.Report] then returns an error, so that the peer reports again. Every
//     other request is refused.
//   - History lasts as long as the store keeps it. A report that repeats an older one is
//     Refused instead of Repeated; it changes nothing either way. A request whose row is
//     gone counts as a new request. A [MemoryStore] keeps KeepHistory rows of an object.
//     The documentation of a [Store] driver describes which rows it keeps.
//   - The caller names the actor. The package compares the actor with the table and
//     authenticates nothing.
//   - The preconditions of package relation do not find a record in a state with a new name
//     until the record is migrated. Those of [Manager.Require] find it.
//   - Deadlines are kept in the records. The program calls [Manager.Sweep] or [Run].
//   - [Watch] finds changes by their time. It may miss a commit that becomes
//     visible more than ten seconds after its time, until the next change of the object.
//   - Work that ignores its context cannot be ended. Its result then has no effect,
//     but it holds the object's turn in this process until it returns.
//   - The library does not control the effects of work outside the store. A process that is
//     considered dead may still act there. [Task] has the numbers that a fence needs.
//   - Observers run after the commit, and not at all if the process dies in between.
//     Use [Change].Messages for what must not be lost.
//
// # Rejected
//
//   - A position in the order of all changes for [Watch]: numbers of a database
//     sequence are visible in another order than they are drawn. Each object has a
//     sequence number of its own.
//   - A selection by state for Watch: an object that leaves the selected states has to be
//     reported too. The reader compares the record.
//   - Trying again after every conflict: the request may be wrong for the state that
//     the object is in now, and only the caller can decide that.
//   - The time of the last change as revision: clocks repeat themselves.
//   - Comparing the state alone: an object that was removed and created again is not
//     the one that was read.
//   - A time-out for all attempts together: the attempts, their time-outs and the pauses
//     bound it.
//   - A cache of records: it saved 5 to 18 % and made guards run twice.
package lifecycle
