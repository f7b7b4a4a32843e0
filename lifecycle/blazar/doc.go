// Package blazar is a reservation service: users reserve resources by leases, and the
// service starts and ends the leases in time. It has the tables of the specification
// "Define state machines" of OpenStack Blazar, for leases, their reservations and the
// events that start and end them.
//
//	user ──CreateLease, UpdateLease, DeleteLease──▶ ┌─────────┐      ┌ lease       ┐
//	clock ──Process: start, end───────────────────▶ │ Service │ ───▶ │ reservation │ one commit
//	monitor ──Flag────────────────────────────────▶ │  Guard  │      └ event       ┘
//	                                                └─────────┘ ───▶ Plugin: the resources
//
// A service of hosts:
//
//	service, err := blazar.New(store, &blazar.Config{
//		Plugins: map[string]blazar.Plugin{"host": {OnStart: start, OnEnd: release}},
//	})
//	go service.Run(ctx, 0, nil) // starts and ends leases, and sweeps
//	lease, err := service.CreateLease(ctx, "demo", blazar.LeaseSpec{
//		Start: tomorrow, End: tomorrow.Add(time.Hour),
//		Reservations: []blazar.Request{{Resource: "host", Amount: 2}},
//	})
//
// A program keeps its own content of a lease in [LeaseSpec].Attributes. The records and the
// guards have it. An update replaces it together with the rest of the content, or not at
// all. [Service.AddLease] takes over leases that exist already.
//
// The figures of the specification are given here in rows; [Combinations] is its table of
// relationships between the three. [Service] is its manager. [Service.Guard] is its
// decorator, and every method runs under it.
//
// # Guarantees
//
//   - The rows of the machines are those of the specification, and those that this text
//     names.
//   - Statuses of a lease, its reservations and its events that belong together
//     change in one commit, and the table of relationships is checked in it. A
//     reader sees only combinations of the table, except of a lease in ERROR.
//   - A lease can be deleted in every status but DELETING, whatever its events are. After
//     a delete has failed, or its deadline has passed, the lease is in ERROR and can be
//     deleted again. A delete cancels the method that it
//     interrupts. The report of that method is stale, because the delete is an
//     operation of its own.
//   - An update leads back to the status in which it began, or fails. The
//     content changes in the commit that leads back.
//   - A request that is refused, by the table, by the combination or as bad input,
//     has written nothing and called no plugin.
//   - If leases follow each other on resources of one type, one ends before the next
//     starts, even if the events are processed late or by several processes.
//   - Every transitional status of a lease ends: after [MethodTimeout], or the time of
//     [Config].Timeouts, the sweeper ends it.
//     An event that can never be executed goes to ERROR.
//
// # Limits
//
//   - The tables do not depend on each other. [Combination.Allows] decides about the
//     statuses that it is given; the [Service] reads the present ones.
//   - A lease that is short of resources stays in its status, and has flags.
//   - A Service starts no goroutine of its own: the program calls [Service.Run], or
//     [Service.Process] and [Service.Sweep] at an interval. Process reads all events that
//     are not over.
//   - An event that cannot be read is not executed. The start of a lease does not wait for
//     the end of another one that cannot be read.
//   - The plugins decide which resources exist and which reservation has them. A failed
//     end is not tried again; its resources may still be in use.
//   - Only a process with the plugins of a lease's reservations can start, end and delete
//     the lease and update its reservations. Another process refuses these methods and
//     changes nothing.
//   - A plugin that ignores its context continues after its method was cancelled.
//
// # Beyond the document
//
// A lease that does not exist has the state [LeaseAbsent]: the creation is a row like any
// other, and the id of a deleted lease is free again. Its reservations and events are
// removed with it: the tables of both have a state for that, and rows that change content
// and no status.
//
// The specification does not name the callers of methods. Here users create, update and
// delete leases, and the manager does the rest: no user can start a lease before its time.
//
// ERROR, which the specification calls stable, has the kind failed. The table of
// relationships has no line for it; [Combinations] has one, for [DeriveStatus]. A failure
// is written even if it does not match that line, for example when one of two reservations
// was started: the alternative is a lease that hangs.
//
// The table requires "any status" of reservations and events for UPDATING and
// DELETING. Here a lease without reservations or events can be UPDATING and DELETING
// too.
//
// TERMINATING requires a start_lease that is DONE, and an event whose start has failed
// stays in ERROR. So a lease whose start has failed cannot end, although the figure leads
// from ERROR to TERMINATING; it can be deleted. A lease that failed before its start can
// never start.
//
// Further rows, each marked in its Doc: a creation or update that fails ends in ERROR, as
// in the text of the specification but not in its figure; a creation or update that is
// refused leads back; deadlines; flags, by the [Observer]; and the end of an event that can
// never be executed, from UNDONE to ERROR, by force. [LeaseState.IsValidTransition] does
// not count them.
//
// # Rejected
//
//   - Deriving the status of a lease at every read: a method that failed halfway
//     would appear as another status.
//   - Moving the event first and the lease after it, as the original does: a process
//     that dies in between leaves a combination that no line has.
//   - Trying a failed start again: the resources that it has started stay in use.
//   - Finding due events by deadlines of records: deadlines are of the store's
//     clock, and events are due by [Config].Now.
//
// # Table of lease
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind            | Timeout        | Notes              |
//	| ----------- | --------------- | -------------- | ------------------ |
//	| ABSENT      | absent, initial |                |                    |
//	| CREATING    | transitional    | 30m, timed-out | towards PENDING    |
//	| PENDING     | stable          |                | [1]                |
//	| STARTING    | transitional    | 30m, timed-out | towards ACTIVE     |
//	| ACTIVE      | stable          |                |                    |
//	| UPDATING    | transitional    | 30m, timed-out | [2]                |
//	| TERMINATING | transitional    | 30m, timed-out | towards TERMINATED |
//	| TERMINATED  | stable          |                |                    |
//	| DELETING    | transitional    | 30m, timed-out | towards ABSENT     |
//	| ERROR       | failed          |                | [3]                |
//
//	| From                             | Event     | Actor   | To                 | Notes          |
//	| -------------------------------- | --------- | ------- | ------------------ | -------------- |
//	| ABSENT                           | create    | user    | CREATING           |                |
//	| CREATING                         | done      | manager | PENDING            |                |
//	| PENDING                          | start     | manager | STARTING           |                |
//	| STARTING                         | done      | manager | ACTIVE             |                |
//	| STARTING                         | fail      | manager | ERROR              |                |
//	| ACTIVE, ERROR                    | terminate | manager | TERMINATING        |                |
//	| TERMINATING                      | done      | manager | TERMINATED         |                |
//	| TERMINATING                      | fail      | manager | ERROR              |                |
//	| PENDING, ACTIVE, TERMINATED,     | update    | user    | UPDATING           |                |
//	| ERROR                            |           |         |                    |                |
//	| UPDATING                         | done      | manager | back to the origin |                |
//	| any state                        | delete    | user    | DELETING           | supersedes [4] |
//	| DELETING                         | done      | manager | ABSENT             |                |
//	| DELETING                         | fail      | manager | ERROR              |                |
//	| CREATING, UPDATING               | fail      | manager | ERROR              | [5]            |
//	| CREATING, UPDATING               | refuse    | manager | back to the origin | [6]            |
//	| CREATING, STARTING, TERMINATING, | timed-out | sweeper | ERROR              | after 30m [7]  |
//	| DELETING                         |           |         |                    |                |
//	| UPDATING                         | timed-out | sweeper | back to the origin | after 30m [8]  |
//
//	[1] created, waits for its start
//	[2] leads back to the origin
//	[3] an unrecoverable failure happened to the lease
//	[4] delete has the highest priority: a report of the interrupted method is stale
//	[5] beyond the document's figure, in its text: every unrecoverable failure is an ERROR
//	[6] beyond the document: a refused request changes nothing
//	[7] beyond the document: the manager died
//	[8] beyond the document: the manager died; an update leads back to the origin
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, red: failed, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "ABSENT" as s0
//	    state "CREATING" as s1
//	    state "PENDING" as s2
//	    state "STARTING" as s3
//	    state "ACTIVE" as s4
//	    state "UPDATING" as s5
//	    state "TERMINATING" as s6
//	    state "TERMINATED" as s7
//	    state "DELETING" as s8
//	    state "ERROR" as s9
//	    [*] --> s0
//	    s0 --> s1 : create by user
//	    s1 --> s2 : done by manager
//	    s2 --> s3 : start by manager
//	    s3 --> s4 : done by manager
//	    s3 --> s9 : fail by manager<br/>timed-out by sweeper after 30m
//	    s4 --> s6 : terminate by manager
//	    s9 --> s6 : terminate by manager
//	    s6 --> s7 : done by manager
//	    s6 --> s9 : fail by manager<br/>timed-out by sweeper after 30m
//	    s2 --> s5 : update by user
//	    s4 --> s5 : update by user
//	    s7 --> s5 : update by user
//	    s9 --> s5 : update by user
//	    s5 --> s2 : done by manager, return<br/>refuse by manager, return<br/>timed-out by sweeper after 30m, return
//	    s5 --> s4 : done by manager, return<br/>refuse by manager, return<br/>timed-out by sweeper after 30m, return
//	    s5 --> s7 : done by manager, return<br/>refuse by manager, return<br/>timed-out by sweeper after 30m, return
//	    s5 --> s9 : done by manager, return<br/>fail by manager<br/>refuse by manager, return<br/>timed-out by sweeper after 30m, return
//	    s1 --> s8 : delete by user, supersedes
//	    s2 --> s8 : delete by user, supersedes
//	    s3 --> s8 : delete by user, supersedes
//	    s4 --> s8 : delete by user, supersedes
//	    s5 --> s8 : delete by user, supersedes
//	    s6 --> s8 : delete by user, supersedes
//	    s7 --> s8 : delete by user, supersedes
//	    s9 --> s8 : delete by user, supersedes
//	    s8 --> s0 : done by manager
//	    s8 --> s9 : fail by manager<br/>timed-out by sweeper after 30m
//	    s1 --> s9 : fail by manager<br/>timed-out by sweeper after 30m
//	    s1 --> s0 : refuse by manager, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s1,s3,s5,s6,s8 transitional
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s9 failed
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s0 absent
//
// # Table of reservation
//
// Generated from the machine; a test fails when it differs.
//
//	| State   | Kind            | Notes |
//	| ------- | --------------- | ----- |
//	| pending | stable, initial | [1]   |
//	| active  | stable          |       |
//	| deleted | final           | [2]   |
//	| error   | failed          | [3]   |
//	| absent  | absent          |       |
//
//	| From                            | Event   | Actor    | To      | Notes      |
//	| ------------------------------- | ------- | -------- | ------- | ---------- |
//	| pending                         | start   | manager  | active  |            |
//	| pending, active, error          | delete  | manager  | deleted |            |
//	| pending, active                 | fail    | manager  | error   |            |
//	| pending                         | observe | observer | pending | [4]        |
//	| pending                         | update  | manager  | pending | forced [5] |
//	| active                          | observe | observer | active  | [4]        |
//	| active                          | update  | manager  | active  | forced [5] |
//	| error                           | observe | observer | error   | [4]        |
//	| error                           | update  | manager  | error   | forced [5] |
//	| pending, active, deleted, error | remove  | manager  | absent  | forced [6] |
//
//	[1] created, waits for the start of its lease
//	[2] the resources are released
//	[3] an unrecoverable failure happened to the resources
//	[4] beyond the document: the flags change, the status does not
//	[5] beyond the document: the content changes with that of the lease, the status does not
//	[6] beyond the document: removed with the lease
//
// As a picture, in Mermaid:
//
//	---
//	title: "red: failed, thick border: final, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "pending" as s0
//	    state "active" as s1
//	    state "deleted" as s2
//	    state "error" as s3
//	    state "absent" as s4
//	    [*] --> s0
//	    s0 --> s1 : start by manager
//	    s0 --> s2 : delete by manager
//	    s1 --> s2 : delete by manager
//	    s3 --> s2 : delete by manager
//	    s0 --> s3 : fail by manager
//	    s1 --> s3 : fail by manager
//	    s0 --> s0 : observe by observer<br/>update by manager, forced
//	    s1 --> s1 : observe by observer<br/>update by manager, forced
//	    s3 --> s3 : observe by observer<br/>update by manager, forced
//	    s0 --> s4 : remove by manager, forced
//	    s1 --> s4 : remove by manager, forced
//	    s2 --> s4 : remove by manager, forced
//	    s3 --> s4 : remove by manager, forced
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s3 failed
//	    classDef final stroke-width:4px
//	    class s2 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s4 absent
//
// # Table of event
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind            | Timeout        | Notes        |
//	| ----------- | --------------- | -------------- | ------------ |
//	| UNDONE      | stable, initial |                | [1]          |
//	| IN_PROGRESS | transitional    | 30m, timed-out | towards DONE |
//	| DONE        | final           |                |              |
//	| ERROR       | final           |                | [2]          |
//	| ABSENT      | absent          |                |              |
//
//	| From                             | Event     | Actor   | To          | Notes         |
//	| -------------------------------- | --------- | ------- | ----------- | ------------- |
//	| UNDONE                           | start     | manager | IN_PROGRESS |               |
//	| IN_PROGRESS                      | done      | manager | DONE        |               |
//	| IN_PROGRESS                      | fail      | manager | ERROR       |               |
//	| IN_PROGRESS                      | timed-out | sweeper | ERROR       | after 30m [3] |
//	| UNDONE                           | update    | manager | UNDONE      | forced [4]    |
//	| UNDONE                           | fail      | manager | ERROR       | forced [5]    |
//	| UNDONE, IN_PROGRESS, DONE, ERROR | remove    | manager | ABSENT      | forced [6]    |
//
//	[1] waits until it is due
//	[2] failed; it is not tried again
//	[3] beyond the document: the manager died
//	[4] beyond the document: the content changes with that of the lease, the status does not
//	[5] beyond the document: it can never be executed, so it is never IN_PROGRESS
//	[6] beyond the document: removed with the lease
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "UNDONE" as s0
//	    state "IN_PROGRESS" as s1
//	    state "DONE" as s2
//	    state "ERROR" as s3
//	    state "ABSENT" as s4
//	    [*] --> s0
//	    s0 --> s1 : start by manager
//	    s1 --> s2 : done by manager
//	    s1 --> s3 : fail by manager<br/>timed-out by sweeper after 30m
//	    s0 --> s0 : update by manager, forced
//	    s0 --> s3 : fail by manager, forced
//	    s0 --> s4 : remove by manager, forced
//	    s1 --> s4 : remove by manager, forced
//	    s2 --> s4 : remove by manager, forced
//	    s3 --> s4 : remove by manager, forced
//	    classDef transitional stroke-dasharray:5 4
//	    class s1 transitional
//	    classDef final stroke-width:4px
//	    class s2,s3 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s4 absent
package blazar
