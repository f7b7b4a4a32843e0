// Package lattice runs the systems of Lattice: their lifecycle, their state as it
// follows from their services, and their deploys and teardowns with the locks that
// exclude each other. Its source is the document "System Lifecycle".
//
//	c, err := lattice.Start(ctx, lifecycle.NewMemoryStore(), infrastructure, nil)
//	_, err = c.CreateSystem(ctx, "shop", nil)
//	_, err = c.Deploy(ctx, "shop", "d1", lock.MustParse("/web/cart"), definition)
//
//	pending ── locked by others ──────────▶ failed
//	   │ takes its lock                       ▲ ▲
//	   ▼                                      │ │
//	accepted ── Build fails ──────────────────┘ │
//	   │                                        │
//	   ▼                                        │
//	in progress ── Deploy fails ────────────────┘
//	   │
//	   ▼
//	succeeded         stored before the lock is released
//
// A [Controller] keeps systems, services, deploys and teardowns in a
// [lifecycle.Store] and changes the outside world through an [Infrastructure].
// [LifecycleActionManager] is the locks alone. [System], [Deploy] and [Teardown] are
// the tables alone, as machines of package fsm.
//
// A program keeps its own content in the Attributes of systems, deploys and teardowns. The
// Attributes of a system are set when it is created. A deploy keeps its changes in its own
// Attributes. Services have no Attributes, because this package only observes them.
// [Controller.AddSystem] takes over systems that exist already.
//
// # Guarantees
//
//   - [System] has every state and every arrow of the document's diagram. The
//     additions are listed below. A test compares the table with the diagram, arrow
//     by arrow.
//   - The backend never moves a system because of its services, and services never
//     move it in any other way: only [Aggregator] enters stable, updating, scaling
//     and degraded, the first stable excepted.
//   - The state of a live system is the first of degraded, updating, scaling and stable
//     that any of its services has. When all concurrent calls of [Controller.SetService] for
//     a system have returned nil, its state follows from its services.
//   - No two deploys of a system run at once if their paths are equal or one is
//     above the other. Nothing runs beside a teardown. A deploy or teardown that is
//     refused fails at once, and its reason names the holders of the locks.
//   - A deploy or teardown has its lock before the store has it as accepted or in
//     progress, and until the store has it as succeeded or failed. Acquiring and
//     releasing are idempotent for both.
//   - Of several controllers on a store, the one that was started last is in charge.
//     An earlier one moves no deploy and no teardown any more.
//   - A controller that starts first takes the locks of everything that is accepted
//     or in progress, and then continues it.
//   - When [Infrastructure].Remove is called, no deploy and no teardown of the
//     system runs, and none starts.
//   - Every state in which the backend owes a move has a deadline.
//   - A process may die at every write, and a write may fail or its answer be lost:
//     everything ends, and every lock is released. A test covers all writes.
//
// # Limits
//
//   - Only the controller that was started last works on a store, because the locks are in
//     its memory. The outside world refuses late changes of an earlier controller by
//     [Running].Token.
//   - The state of a system follows from its services as they were last seen, not as they
//     are now.
//   - Deploys and teardowns that conflict have no order: none of them waits. A teardown of a
//     busy system is refused as long as a deploy runs.
//   - [Infrastructure] may be called more than once for an operation: a controller that
//     takes over calls it again, and so does one whose store has refused to write the next
//     state of the action. During an outage of the store the controller writes it again, and
//     calls nothing again.
//
// # What is stored, and what is derived
//
// The store has a service as it was last seen. The states stable, updating, scaling
// and degraded of a system are derived from its services and stored too: every report of
// a service counts the services of its system in the store, and every change of the
// result is an event of the system. After a crash between the two, the next
// [Controller.Sweep] moves the system. Locks are derived from the deploys and
// teardowns that are stored as accepted or in progress.
//
// # Beyond the document
//
// The diagram has no arrow from pending to deleting, but the text allows the
// deletion of a system at any point: there is such a row. A delete supersedes the
// present operation: late reports about that are stale. The text also states that
// the services determine the state of every system that is neither pending nor
// deleting; a failed system stays failed, as in the diagram.
//
// The document lists the modes that are compatible with intention-exclusive, and
// writes exclusive there by mistake. It lists only ancestors as conflicts of a
// deploy. By its own locks, equal paths and descendants conflict as well, and so they
// do here.
//
// Services have four states in the document's pseudocode. Here a failed one counts
// as degraded, a pending and a deleting one as updating. The table of services
// permits every state to follow every other one, because services move elsewhere and
// are only observed here.
//
// The document has no deadlines. A backend that does not answer in pending or
// deleting has failed, and the system can be deleted again; so can a system whose
// deletion has failed. Updating and scaling have no deadline: the services determine
// when they end.
//
// The document names deploys and teardowns without their states. A deploy is
// pending, accepted, in progress, and succeeds or fails; a teardown is never
// accepted. Both may fail from every state in which they have not ended, and fail at
// a deadline if the backend does not answer. The commit of each of their steps
// requires a system that is neither pending, failed nor deleting. The deletion of a
// system ends its deploys and teardowns, which fail. Their records remain until they are
// removed, see [Controller.RemoveDeploy], or another system of that name is created.
//
// The document does not define what happens to deploys when a process dies: the next
// controller continues them. The initialization or deletion of a system fails.
//
// # Rejected
//
// Leaving the derived states out of the table and computing them on every read:
// a store could not list the degraded systems, and a delete could not be checked
// against the state in the same commit.
//
// Recognizing an earlier controller by the heartbeat of its process only: one that
// stalled would accept a deploy before its next heartbeat.
//
// One tree of locks for all systems, with each as a first segment: the paths of
// refusals are then not those that users wrote, and one level of depth is lost.
//
// Releasing a lock where the work returns, as code with defer would: its end may
// not be stored by then, and the next holder finds a system that two deploys claim
// to change.
//
// Waiting for a lock: a deploy that starts long after its request surprises its
// user, and the document requires that it fails.
//
// # Table of lattice-system
//
// Generated from the machine; a test fails when it differs.
//
//	| State          | Kind            | Timeout                          | Notes                  |
//	| -------------- | --------------- | -------------------------------- | ---------------------- |
//	| does-not-exist | absent, initial |                                  |                        |
//	| pending        | transitional    | 10m, timed out                   | towards stable         |
//	| failed         | failed          |                                  |                        |
//	| stable         | stable          |                                  |                        |
//	| updating       | transitional    | manual: the services determine   |                        |
//	|                |                 | when it ends                     |                        |
//	| scaling        | transitional    | manual: the services determine   |                        |
//	|                |                 | when it ends                     |                        |
//	| degraded       | failed          |                                  |                        |
//	| deleting       | transitional    | 30m, timed out                   | towards does-not-exist |
//
//	| From                   | Event                 | Actor     | To             | Notes          |
//	| ---------------------- | --------------------- | --------- | -------------- | -------------- |
//	| does-not-exist         | create                | user      | pending        |                |
//	| pending                | initialized           | backend   | stable         |                |
//	| pending                | init failed           | backend   | failed         |                |
//	| updating, scaling,     | services now stable   | aggregate | stable         |                |
//	| degraded               |                       |           |                |                |
//	| stable, scaling,       | services now updating | aggregate | updating       |                |
//	| degraded               |                       |           |                |                |
//	| stable, updating,      | services now scaling  | aggregate | scaling        |                |
//	| degraded               |                       |           |                |                |
//	| stable, updating,      | services now degraded | aggregate | degraded       |                |
//	| scaling                |                       |           |                |                |
//	| failed, stable,        | delete                | user      | deleting       |                |
//	| degraded               |                       |           |                |                |
//	| updating, scaling      | delete                | user      | deleting       | supersedes     |
//	| pending                | delete                | user      | deleting       | supersedes [1] |
//	| deleting               | torn down             | backend   | does-not-exist |                |
//	| pending                | timed out             | sweeper   | failed         | after 10m [2]  |
//	| deleting               | timed out             | sweeper   | failed         | after 30m [3]  |
//
//	[1] not in the document's diagram, but in its text: a system may be deleted at any point
//	[2] beyond the document: a backend that does not answer has failed to initialize
//	[3] beyond the document: a backend that does not answer; the system can be deleted again
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, red: failed, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "does-not-exist" as s0
//	    state "pending" as s1
//	    state "failed" as s2
//	    state "stable" as s3
//	    state "updating" as s4
//	    state "scaling" as s5
//	    state "degraded" as s6
//	    state "deleting" as s7
//	    [*] --> s0
//	    s0 --> s1 : create by user
//	    s1 --> s3 : initialized by backend
//	    s1 --> s2 : init failed by backend<br/>timed out by sweeper after 10m
//	    s4 --> s3 : services now stable by aggregate
//	    s5 --> s3 : services now stable by aggregate
//	    s6 --> s3 : services now stable by aggregate
//	    s3 --> s4 : services now updating by aggregate
//	    s5 --> s4 : services now updating by aggregate
//	    s6 --> s4 : services now updating by aggregate
//	    s3 --> s5 : services now scaling by aggregate
//	    s4 --> s5 : services now scaling by aggregate
//	    s6 --> s5 : services now scaling by aggregate
//	    s3 --> s6 : services now degraded by aggregate
//	    s4 --> s6 : services now degraded by aggregate
//	    s5 --> s6 : services now degraded by aggregate
//	    s2 --> s7 : delete by user
//	    s3 --> s7 : delete by user
//	    s6 --> s7 : delete by user
//	    s4 --> s7 : delete by user, supersedes
//	    s5 --> s7 : delete by user, supersedes
//	    s1 --> s7 : delete by user, supersedes
//	    s7 --> s0 : torn down by backend
//	    s7 --> s2 : timed out by sweeper after 30m
//	    classDef transitional stroke-dasharray:5 4
//	    class s1,s4,s5,s7 transitional
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s2,s6 failed
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s0 absent
//
// # Table of lattice-deploy
//
// Generated from the machine; a test fails when it differs.
//
//	| State          | Kind                  | Timeout        | Notes             |
//	| -------------- | --------------------- | -------------- | ----------------- |
//	| pending        | transitional, initial | 5m, timed out  | towards succeeded |
//	| accepted       | transitional          | 30m, timed out | towards succeeded |
//	| in progress    | transitional          | 1h, timed out  | towards succeeded |
//	| succeeded      | final                 |                |                   |
//	| failed         | final                 |                |                   |
//	| does-not-exist | absent                |                |                   |
//
//	| From                           | Event     | Actor   | To             | Notes         |
//	| ------------------------------ | --------- | ------- | -------------- | ------------- |
//	| pending                        | accept    | backend | accepted       |               |
//	| accepted                       | begin     | backend | in progress    |               |
//	| in progress                    | succeed   | backend | succeeded      |               |
//	| pending, accepted, in progress | fail      | backend | failed         |               |
//	| pending                        | timed out | sweeper | failed         | after 5m [1]  |
//	| accepted                       | timed out | sweeper | failed         | after 30m [1] |
//	| in progress                    | timed out | sweeper | failed         | after 1h [1]  |
//	| succeeded, failed              | forget    | user    | does-not-exist | forced [2]    |
//
//	[1] beyond the document: a backend that does not answer has failed
//	[2] beyond the document: removes the record
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "pending" as s0
//	    state "accepted" as s1
//	    state "in progress" as s2
//	    state "succeeded" as s3
//	    state "failed" as s4
//	    state "does-not-exist" as s5
//	    [*] --> s0
//	    s0 --> s1 : accept by backend
//	    s1 --> s2 : begin by backend
//	    s2 --> s3 : succeed by backend
//	    s0 --> s4 : fail by backend<br/>timed out by sweeper after 5m
//	    s1 --> s4 : fail by backend<br/>timed out by sweeper after 30m
//	    s2 --> s4 : fail by backend<br/>timed out by sweeper after 1h
//	    s3 --> s5 : forget by user, forced
//	    s4 --> s5 : forget by user, forced
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1,s2 transitional
//	    classDef final stroke-width:4px
//	    class s3,s4 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s5 absent
//
// # Table of lattice-teardown
//
// Generated from the machine; a test fails when it differs.
//
//	| State          | Kind                  | Timeout       | Notes             |
//	| -------------- | --------------------- | ------------- | ----------------- |
//	| pending        | transitional, initial | 5m, timed out | towards succeeded |
//	| in progress    | transitional          | 1h, timed out | towards succeeded |
//	| succeeded      | final                 |               |                   |
//	| failed         | final                 |               |                   |
//	| does-not-exist | absent                |               |                   |
//
//	| From                 | Event     | Actor   | To             | Notes        |
//	| -------------------- | --------- | ------- | -------------- | ------------ |
//	| pending              | begin     | backend | in progress    |              |
//	| in progress          | succeed   | backend | succeeded      |              |
//	| pending, in progress | fail      | backend | failed         |              |
//	| pending              | timed out | sweeper | failed         | after 5m [1] |
//	| in progress          | timed out | sweeper | failed         | after 1h [1] |
//	| succeeded, failed    | forget    | user    | does-not-exist | forced [2]   |
//
//	[1] beyond the document: a backend that does not answer has failed
//	[2] beyond the document: removes the record
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "pending" as s0
//	    state "in progress" as s1
//	    state "succeeded" as s2
//	    state "failed" as s3
//	    state "does-not-exist" as s4
//	    [*] --> s0
//	    s0 --> s1 : begin by backend
//	    s1 --> s2 : succeed by backend
//	    s0 --> s3 : fail by backend<br/>timed out by sweeper after 5m
//	    s1 --> s3 : fail by backend<br/>timed out by sweeper after 1h
//	    s2 --> s4 : forget by user, forced
//	    s3 --> s4 : forget by user, forced
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1 transitional
//	    classDef final stroke-width:4px
//	    class s2,s3 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s4 absent
package lattice
