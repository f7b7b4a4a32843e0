// Package ovc moves the objects of OpenvCloud: virtual machines, cloudspaces,
// accounts, disks, images and nodes, one action at a time for each. Its source is
// the document "Transition states for OpenvCloud objects".
//
//	user ──Do──────▶ ┌─────────┐  table? state?  ┌─ the object's queue ─┐
//	                 │ Service │ ──────────────▶ │ stop, delete, destroy│──▶ Method
//	node ──Migrate─▶ │         │  one commit     └──────────────────────┘
//	cron ──SelfHeal▶ └─────────┘  RUNNING -> DESTROYING -> DESTROYED
//
// An object rests in a static state. An action takes it through one transition
// state into the next static state. [Service.Do] sets the transition state and puts
// the action into the object's queue. When the methods of the action are done, the
// desired state is set. A request meanwhile is refused with "Cannot execute action
// at this time".
//
//	s, err := ovc.New(store, &ovc.Config{Method: hypervisor})
//	ticket, err := s.Do(ctx, ovc.KindVM, "m1", ovc.Pause, nil) // PAUSING
//	vm, err := ticket.Wait(ctx)                                // PAUSED
//
// A program keeps its own content of an object in [Model].Attributes: an action may
// replace it, and restores it if it does not succeed. [Options].Args are arguments for the
// methods of one action. The record has both. [Service.Add] takes objects that exist
// already in any static state.
//
// # The names of the document
//
//	TRANSITION_STATES          TransitionStates, IsTransition
//	validate_transition()      ValidateTransition
//	update_status()            Service.UpdateStatus
//	queuer                     Service.Queuer
//	queue()                    the first accepted action of an object creates its queue
//	stop(), terminate()        queue.Queuer.Stop, queue.Queuer.Terminate
//	migrate()                  Service.Migrate
//	destroy_vm()               Service.Do with Destroy: stop(), delete(), destroy()
//	selfhealing script         Service.SelfHeal, lifecycle.Run
//
// # Guarantees
//
//   - Every machine has all rows of the document. Its additions are listed below. A test
//     compares them arrow by arrow.
//   - In a transition state no other action can start.
//   - The status changes by a compare-and-set only. Of several requests at once, one
//     starts its action. The others are refused because of that action, and change
//     nothing.
//   - A refused request is in no queue. An accepted action is performed, or the object
//     returns to its origin.
//   - No status and no model shows a migration. It occupies the machine's queue. One action
//     of a user is accepted meanwhile, and performed after it.
//   - An action ends in the state that its own row names: a deleted disk that was
//     attached is TOBEDELETED, a halted machine that got a disk is halted. The status
//     keeps the origin for that.
//   - A machine and a disk that is attached to it or detached, and a machine and
//     the disks that are deleted with it, move in one commit, at the beginning and at
//     the end.
//   - Actions on one machine and on its disks run one at a time, in one process; with
//     [Config.Shared], in all processes.
//   - Every transition state has a deadline. An object that is stuck returns to its
//     origin, status and model. An action that waits for its turn is not stuck, unless
//     it waits for a method that has run for longer than StuckAfter.
//   - [TransitionStates] and [ValidateTransition] have the same source as the machines.
//
// # Limits
//
//   - An object that was moved back may differ from its record: a method that failed, or
//     whose process died, may have done half of its work. [Config.Observe] may look.
//   - Without [Config.Shared], queues do not keep actions of different processes apart: see
//     below.
//   - A method that ignores its context does not end. It keeps the queue of its objects,
//     and an action that is requested meanwhile is moved back after StuckAfter too. Its
//     ticket has the outcome when the method ends, or after [queue.Queuer.Abandon]. A
//     migration is never considered stuck: see [Options.Timeout].
//   - Self-healing does not start by itself: the program calls [Service.SelfHeal] or
//     [Service.Sweep].
//
// # Several processes
//
// Any number of processes may work on one store, each with a [Service] and queues of
// its own. The status keeps their actions apart:
//
//   - Of several requests at once one is accepted, in whichever process it was made.
//     The others get [ErrBusy] or [ErrOtherAction], and change nothing.
//   - The process that has accepted an action performs it, once, and writes its outcome.
//     If that process dies, the self-healing of another one moves the object back:
//     after StuckAfter, or with [Config.Owner] as soon as the process is considered
//     dead. A later result of the dead process is stale, and its ticket reports that.
//   - An action that waits in one process for longer than StuckAfter is moved back by
//     the others if its own process does not heal.
//   - An object whose retention is over is destroyed by the first process that finds
//     it.
//
// Other processes see only the status. Without [Config.Shared], a migration does not delay
// actions of another process, and an action on an attached disk does not delay those on
// its machine.
//
// # The machines alone
//
// [VM], [Cloudspace], [Account], [Disk], [Image] and [Node] are the bare machines,
// for services that keep the model of an object elsewhere.
//
// # Beyond the document
//
// DELETED and TOBEDELETED have no way out in the tables, except for cloudspaces. In
// the text, objects in the recycle bin are permanently deleted after a retention
// period. There is a row for that, by [Observer] after [Retention]. It begins a
// destruction, as every row into DESTROYED does.
//
// The notes ask for self-healing by time-out. Every transition state has a row
// back to the origin, by [fsm.Sweeper] after [StuckAfter]. The same row is taken
// at once for an action that fails: the document has no state for errors.
//
// The image row DISABLED, DISABLING, CREATED is kept as printed, although
// ENABLING is probably meant. A halted machine cannot be started, and a paused
// cloudspace can be resumed and not reset, although the text mentions that an
// administrator may reset its firewall: the tables have no such rows.
//
// The document has one lock for a collection; here a compare-and-set on the object
// does the same for every store. An id names one object, so the error "More than one
// object was updated" of the document's listing cannot occur. The listing returns a bad
// request for a refusal, and the text 409; here it is 409.
//
// "Actions on a disk are scheduled in the queue where the disk is attached to":
// they are in the disk's own queue as well, so that their order is kept when it is
// attached elsewhere. The tables have attachment twice, for the machine and for the
// disk. It is one action here, which may be requested for either. A request without
// the other object moves one object alone.
//
// TOBEDELETED "was deleted together with VM": therefore a machine is deleted or destroyed
// together with its attached disks. It is refused while one of them is
// busy. Such a disk is still attached: at the end of its retention it is destroyed in
// the queue of its machine.
//
// A queue exists while an action waits or runs there. The first accepted action creates
// it, not a refused one. Destroying a halted machine begins with stop() too. The state is
// checked before the queue: a request during another action is refused because of that
// action, even if the queue is being stopped.
//
// Pausing is "an administrative action": [Options.Administrator] is needed to
// pause, resume and reset cloudspaces.
//
// # Rejected
//
// Setting DESTROYED at the end of the retention period without DESTROYING: the
// record would be DESTROYED before the object was removed.
//
// An error state, or a row by the worker for an action that failed: the document
// has neither.
//
// Destroying as a chain of statuses, STOPPING, HALTED, DELETING and so on: the
// document has the machine DESTROYING all the time, and another action could begin
// between two of them.
//
// A status for migrations: users would see it.
//
// # Table of ovc-vm
//
// Generated from the machine; a test fails when it differs.
//
//	| State          | Kind            | Timeout      | Notes |
//	| -------------- | --------------- | ------------ | ----- |
//	| VIRTUAL        | stable, initial |              |       |
//	| RUNNING        | stable          |              |       |
//	| PAUSED         | stable          |              |       |
//	| HALTED         | stable          |              | [1]   |
//	| DELETED        | stable          | 168h, expire |       |
//	| DESTROYED      | final           |              |       |
//	| DEPLOYING      | transitional    | 30m, stuck   |       |
//	| PAUSING        | transitional    | 30m, stuck   |       |
//	| RESUMING       | transitional    | 30m, stuck   |       |
//	| STOPPING       | transitional    | 30m, stuck   |       |
//	| DELETING       | transitional    | 30m, stuck   |       |
//	| DESTROYING     | transitional    | 30m, stuck   |       |
//	| REBOOTING      | transitional    | 30m, stuck   |       |
//	| RESETTING      | transitional    | 30m, stuck   |       |
//	| ADDING_DISK    | transitional    | 30m, stuck   |       |
//	| ATTACHING_DISK | transitional    | 30m, stuck   |       |
//	| DETACHING_DISK | transitional    | 30m, stuck   |       |
//
//	| From                 | Event       | Actor             | To                 | Notes          |
//	| -------------------- | ----------- | ----------------- | ------------------ | -------------- |
//	| VIRTUAL              | deploy      | api               | DEPLOYING          |                |
//	| DEPLOYING            | done        | worker            | RUNNING            |                |
//	| RUNNING              | pause       | api               | PAUSING            |                |
//	| PAUSING              | done        | worker            | PAUSED             |                |
//	| PAUSED               | resume      | api               | RESUMING           |                |
//	| RESUMING             | done        | worker            | RUNNING            |                |
//	| RUNNING, PAUSED      | stop        | api               | STOPPING           |                |
//	| STOPPING             | done        | worker            | HALTED             |                |
//	| RUNNING, PAUSED,     | delete      | api               | DELETING           |                |
//	| HALTED               |             |                   |                    |                |
//	| DELETING             | done        | worker            | DELETED            |                |
//	| RUNNING, PAUSED,     | destroy     | api               | DESTROYING         |                |
//	| HALTED               |             |                   |                    |                |
//	| DESTROYING           | done        | worker            | DESTROYED          |                |
//	| RUNNING, PAUSED      | reboot      | api               | REBOOTING          |                |
//	| REBOOTING            | done        | worker            | RUNNING            |                |
//	| RUNNING              | reset       | api               | RESETTING          |                |
//	| RESETTING            | done        | worker            | RUNNING            |                |
//	| RUNNING, PAUSED,     | add_disk    | api               | ADDING_DISK        |                |
//	| HALTED               |             |                   |                    |                |
//	| ADDING_DISK          | done        | worker            | back to the origin |                |
//	| RUNNING, PAUSED,     | attach_disk | api               | ATTACHING_DISK     |                |
//	| HALTED               |             |                   |                    |                |
//	| ATTACHING_DISK       | done        | worker            | back to the origin |                |
//	| RUNNING, PAUSED,     | detach_disk | api               | DETACHING_DISK     |                |
//	| HALTED               |             |                   |                    |                |
//	| DETACHING_DISK       | done        | worker            | back to the origin |                |
//	| DELETED              | expire      | observer, sweeper | DESTROYING         | after 168h [2] |
//	| DEPLOYING, PAUSING,  | stuck       | observer, sweeper | back to the origin | after 30m [3]  |
//	| RESUMING, STOPPING,  |             |                   |                    |                |
//	| DELETING,            |             |                   |                    |                |
//	| DESTROYING,          |             |                   |                    |                |
//	| REBOOTING,           |             |                   |                    |                |
//	| RESETTING,           |             |                   |                    |                |
//	| ADDING_DISK,         |             |                   |                    |                |
//	| ATTACHING_DISK,      |             |                   |                    |                |
//	| DETACHING_DISK       |             |                   |                    |                |
//
//	[1] the document has no action that starts a halted machine
//	[2] beyond the document's rows, in its text: permanently deleted after the retention period
//	[3] beyond the document's rows, in its notes: self-healing recovers the previous state
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "VIRTUAL" as s0
//	    state "RUNNING" as s1
//	    state "PAUSED" as s2
//	    state "HALTED" as s3
//	    state "DELETED" as s4
//	    state "DESTROYED" as s5
//	    state "DEPLOYING" as s6
//	    state "PAUSING" as s7
//	    state "RESUMING" as s8
//	    state "STOPPING" as s9
//	    state "DELETING" as s10
//	    state "DESTROYING" as s11
//	    state "REBOOTING" as s12
//	    state "RESETTING" as s13
//	    state "ADDING_DISK" as s14
//	    state "ATTACHING_DISK" as s15
//	    state "DETACHING_DISK" as s16
//	    [*] --> s0
//	    s0 --> s6 : deploy by api
//	    s6 --> s1 : done by worker
//	    s1 --> s7 : pause by api
//	    s7 --> s2 : done by worker
//	    s2 --> s8 : resume by api
//	    s8 --> s1 : done by worker
//	    s1 --> s9 : stop by api
//	    s2 --> s9 : stop by api
//	    s9 --> s3 : done by worker
//	    s1 --> s10 : delete by api
//	    s2 --> s10 : delete by api
//	    s3 --> s10 : delete by api
//	    s10 --> s4 : done by worker
//	    s1 --> s11 : destroy by api
//	    s2 --> s11 : destroy by api
//	    s3 --> s11 : destroy by api
//	    s11 --> s5 : done by worker
//	    s1 --> s12 : reboot by api
//	    s2 --> s12 : reboot by api
//	    s12 --> s1 : done by worker<br/>stuck by observer, sweeper after 30m, return
//	    s1 --> s13 : reset by api
//	    s13 --> s1 : done by worker<br/>stuck by observer, sweeper after 30m, return
//	    s1 --> s14 : add_disk by api
//	    s2 --> s14 : add_disk by api
//	    s3 --> s14 : add_disk by api
//	    s14 --> s1 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s14 --> s2 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s14 --> s3 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s1 --> s15 : attach_disk by api
//	    s2 --> s15 : attach_disk by api
//	    s3 --> s15 : attach_disk by api
//	    s15 --> s1 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s15 --> s2 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s15 --> s3 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s1 --> s16 : detach_disk by api
//	    s2 --> s16 : detach_disk by api
//	    s3 --> s16 : detach_disk by api
//	    s16 --> s1 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s16 --> s2 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s16 --> s3 : done by worker, return<br/>stuck by observer, sweeper after 30m, return
//	    s4 --> s11 : expire by observer, sweeper after 168h
//	    s6 --> s0 : stuck by observer, sweeper after 30m, return
//	    s7 --> s1 : stuck by observer, sweeper after 30m, return
//	    s8 --> s2 : stuck by observer, sweeper after 30m, return
//	    s9 --> s1 : stuck by observer, sweeper after 30m, return
//	    s9 --> s2 : stuck by observer, sweeper after 30m, return
//	    s10 --> s1 : stuck by observer, sweeper after 30m, return
//	    s10 --> s2 : stuck by observer, sweeper after 30m, return
//	    s10 --> s3 : stuck by observer, sweeper after 30m, return
//	    s11 --> s1 : stuck by observer, sweeper after 30m, return
//	    s11 --> s2 : stuck by observer, sweeper after 30m, return
//	    s11 --> s3 : stuck by observer, sweeper after 30m, return
//	    s11 --> s4 : stuck by observer, sweeper after 30m, return
//	    s12 --> s2 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s6,s7,s8,s9,s10,s11,s12,s13,s14,s15,s16 transitional
//	    classDef final stroke-width:4px
//	    class s5 final
//
// # Table of ovc-cloudspace
//
// Generated from the machine; a test fails when it differs.
//
//	| State      | Kind            | Timeout      | Notes |
//	| ---------- | --------------- | ------------ | ----- |
//	| VIRTUAL    | stable, initial |              |       |
//	| DEPLOYED   | stable          |              |       |
//	| DISABLED   | stable          |              |       |
//	| DELETED    | stable          | 168h, expire |       |
//	| DESTROYED  | final           |              |       |
//	| PAUSED     | stable          |              | [1]   |
//	| DEPLOYING  | transitional    | 30m, stuck   |       |
//	| DISABLING  | transitional    | 30m, stuck   |       |
//	| ENABLING   | transitional    | 30m, stuck   |       |
//	| DELETING   | transitional    | 30m, stuck   |       |
//	| DESTROYING | transitional    | 30m, stuck   |       |
//	| RESTORING  | transitional    | 30m, stuck   |       |
//	| PAUSING    | transitional    | 30m, stuck   |       |
//	| RESUMING   | transitional    | 30m, stuck   |       |
//	| RESETTING  | transitional    | 30m, stuck   |       |
//
//	| From                     | Event   | Actor             | To                 | Notes          |
//	| ------------------------ | ------- | ----------------- | ------------------ | -------------- |
//	| VIRTUAL                  | deploy  | api               | DEPLOYING          |                |
//	| DEPLOYING                | done    | worker            | DEPLOYED           |                |
//	| DEPLOYED                 | disable | api               | DISABLING          |                |
//	| DISABLING                | done    | worker            | DISABLED           |                |
//	| DISABLED                 | enable  | api               | ENABLING           |                |
//	| ENABLING                 | done    | worker            | DEPLOYED           |                |
//	| DEPLOYED, DISABLED       | delete  | api               | DELETING           |                |
//	| DELETING                 | done    | worker            | DELETED            |                |
//	| DELETED                  | destroy | api               | DESTROYING         |                |
//	| DESTROYING               | done    | worker            | DESTROYED          |                |
//	| DELETED                  | restore | api               | RESTORING          |                |
//	| RESTORING                | done    | worker            | DEPLOYED           |                |
//	| DEPLOYED                 | pause   | api               | PAUSING            |                |
//	| PAUSING                  | done    | worker            | PAUSED             |                |
//	| PAUSED                   | resume  | api               | RESUMING           |                |
//	| RESUMING                 | done    | worker            | DEPLOYED           |                |
//	| DEPLOYED                 | reset   | api               | RESETTING          |                |
//	| RESETTING                | done    | worker            | DEPLOYED           |                |
//	| DELETED                  | expire  | observer, sweeper | DESTROYING         | after 168h [2] |
//	| DEPLOYING, DISABLING,    | stuck   | observer, sweeper | back to the origin | after 30m [3]  |
//	| ENABLING, DELETING,      |         |                   |                    |                |
//	| DESTROYING, RESTORING,   |         |                   |                    |                |
//	| PAUSING, RESUMING,       |         |                   |                    |                |
//	| RESETTING                |         |                   |                    |                |
//
//	[1] an administrator stopped the virtual firewall
//	[2] beyond the document's rows, in its text: permanently deleted after the retention period
//	[3] beyond the document's rows, in its notes: self-healing recovers the previous state
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "VIRTUAL" as s0
//	    state "DEPLOYED" as s1
//	    state "DISABLED" as s2
//	    state "DELETED" as s3
//	    state "DESTROYED" as s4
//	    state "PAUSED" as s5
//	    state "DEPLOYING" as s6
//	    state "DISABLING" as s7
//	    state "ENABLING" as s8
//	    state "DELETING" as s9
//	    state "DESTROYING" as s10
//	    state "RESTORING" as s11
//	    state "PAUSING" as s12
//	    state "RESUMING" as s13
//	    state "RESETTING" as s14
//	    [*] --> s0
//	    s0 --> s6 : deploy by api
//	    s6 --> s1 : done by worker
//	    s1 --> s7 : disable by api
//	    s7 --> s2 : done by worker
//	    s2 --> s8 : enable by api
//	    s8 --> s1 : done by worker
//	    s1 --> s9 : delete by api
//	    s2 --> s9 : delete by api
//	    s9 --> s3 : done by worker
//	    s3 --> s10 : destroy by api<br/>expire by observer, sweeper after 168h
//	    s10 --> s4 : done by worker
//	    s3 --> s11 : restore by api
//	    s11 --> s1 : done by worker
//	    s1 --> s12 : pause by api
//	    s12 --> s5 : done by worker
//	    s5 --> s13 : resume by api
//	    s13 --> s1 : done by worker
//	    s1 --> s14 : reset by api
//	    s14 --> s1 : done by worker<br/>stuck by observer, sweeper after 30m, return
//	    s6 --> s0 : stuck by observer, sweeper after 30m, return
//	    s7 --> s1 : stuck by observer, sweeper after 30m, return
//	    s8 --> s2 : stuck by observer, sweeper after 30m, return
//	    s9 --> s1 : stuck by observer, sweeper after 30m, return
//	    s9 --> s2 : stuck by observer, sweeper after 30m, return
//	    s10 --> s3 : stuck by observer, sweeper after 30m, return
//	    s11 --> s3 : stuck by observer, sweeper after 30m, return
//	    s12 --> s1 : stuck by observer, sweeper after 30m, return
//	    s13 --> s5 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s6,s7,s8,s9,s10,s11,s12,s13,s14 transitional
//	    classDef final stroke-width:4px
//	    class s4 final
//
// # Table of ovc-account
//
// Generated from the machine; a test fails when it differs.
//
//	| State      | Kind            | Timeout      |
//	| ---------- | --------------- | ------------ |
//	| CONFIRMED  | stable, initial |              |
//	| DISABLED   | stable          |              |
//	| DESTROYED  | final           |              |
//	| DELETED    | stable          | 168h, expire |
//	| DISABLING  | transitional    | 30m, stuck   |
//	| ENABLING   | transitional    | 30m, stuck   |
//	| DESTROYING | transitional    | 30m, stuck   |
//	| DELETING   | transitional    | 30m, stuck   |
//
//	| From                     | Event   | Actor             | To                 | Notes          |
//	| ------------------------ | ------- | ----------------- | ------------------ | -------------- |
//	| CONFIRMED                | disable | api               | DISABLING          |                |
//	| DISABLING                | done    | worker            | DISABLED           |                |
//	| DISABLED                 | enable  | api               | ENABLING           |                |
//	| ENABLING                 | done    | worker            | CONFIRMED          |                |
//	| CONFIRMED, DISABLED      | destroy | api               | DESTROYING         |                |
//	| DESTROYING               | done    | worker            | DESTROYED          |                |
//	| CONFIRMED, DISABLED      | delete  | api               | DELETING           |                |
//	| DELETING                 | done    | worker            | DELETED            |                |
//	| DELETED                  | expire  | observer, sweeper | DESTROYING         | after 168h [1] |
//	| DISABLING, ENABLING,     | stuck   | observer, sweeper | back to the origin | after 30m [2]  |
//	| DESTROYING, DELETING     |         |                   |                    |                |
//
//	[1] beyond the document's rows, in its text: permanently deleted after the retention period
//	[2] beyond the document's rows, in its notes: self-healing recovers the previous state
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "CONFIRMED" as s0
//	    state "DISABLED" as s1
//	    state "DESTROYED" as s2
//	    state "DELETED" as s3
//	    state "DISABLING" as s4
//	    state "ENABLING" as s5
//	    state "DESTROYING" as s6
//	    state "DELETING" as s7
//	    [*] --> s0
//	    s0 --> s4 : disable by api
//	    s4 --> s1 : done by worker
//	    s1 --> s5 : enable by api
//	    s5 --> s0 : done by worker
//	    s0 --> s6 : destroy by api
//	    s1 --> s6 : destroy by api
//	    s6 --> s2 : done by worker
//	    s0 --> s7 : delete by api
//	    s1 --> s7 : delete by api
//	    s7 --> s3 : done by worker
//	    s3 --> s6 : expire by observer, sweeper after 168h
//	    s4 --> s0 : stuck by observer, sweeper after 30m, return
//	    s5 --> s1 : stuck by observer, sweeper after 30m, return
//	    s6 --> s0 : stuck by observer, sweeper after 30m, return
//	    s6 --> s1 : stuck by observer, sweeper after 30m, return
//	    s6 --> s3 : stuck by observer, sweeper after 30m, return
//	    s7 --> s0 : stuck by observer, sweeper after 30m, return
//	    s7 --> s1 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s4,s5,s6,s7 transitional
//	    classDef final stroke-width:4px
//	    class s2 final
package ovc
