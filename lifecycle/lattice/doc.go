// Package lattice has the lifecycle tables of a Lattice system, of its deploys
// and of its teardowns, as machines of package fsm. Their source is the document
// "System Lifecycle".
//
//	system := lattice.System.Instance()
//	_, err := system.Fire(ctx, lattice.Create, lattice.User, nil) // pending
//
// It guarantees:
//
//   - [System] has every state and every arrow of the document's diagram, and
//     what it has beyond them is listed below. A test compares it with the
//     diagram, arrow by arrow.
//   - The backend never moves a system by what its services do, and the
//     services never move it otherwise: stable, updating, scaling and degraded
//     are entered by [Aggregator] only, the first stable excepted.
//   - [Aggregate] is a pure function of the services and does not depend on
//     their order.
//   - Every state in which the backend owes a move has a deadline.
//
// It does not guarantee:
//
//   - That only one action at a time touches a part of a system. That is the
//     work of locks; the tables know nothing of them.
//   - That a system is as its services are now. Its state is what was last seen.
//
// [SystemTable], [DeployTable] and [TeardownTable] give the tables as data, for
// machines with a payload or deadlines of your own. [System] has no payload;
// [Deploy] and [Teardown] have an [Action].
//
// # Beyond the document
//
// The diagram has no arrow from pending to deleting, but the text lets a system
// be deleted at any point: there is such a row. A delete supersedes what is under
// way: where operations are numbered, late reports about that are stale.
//
// The document has no deadlines. A backend that does not answer in pending or
// deleting has failed, and the system can be deleted again. Updating and scaling
// have no deadline: the services say when they end.
//
// The document names deploys and teardowns without their states. A deploy is
// pending, accepted, in progress, and succeeds or fails; a teardown is not
// accepted in between. Both may fail from every state in which they have not
// ended, and do so by themselves when the backend does not answer.
//
// # Rejected
//
// Leaving the derived states out of the table and computing them on every look:
// a store could not list the degraded systems, and a delete could not be checked
// against the state in the same commit.
//
// # Table of lattice-system
//
// Generated from the machine; a test fails when it differs.
//
//	| State          | Kind            | Deadline                         | Notes                  |
//	| -------------- | --------------- | -------------------------------- | ---------------------- |
//	| does-not-exist | absent, initial |                                  |                        |
//	| pending        | transitional    | 10m, timed out                   | towards stable         |
//	| failed         | failed          |                                  |                        |
//	| stable         | stable          |                                  |                        |
//	| updating       | transitional    | manual: left when the services   |                        |
//	|                |                 | say so                           |                        |
//	| scaling        | transitional    | manual: left when the services   |                        |
//	|                |                 | say so                           |                        |
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
//	| State       | Kind                  | Deadline       | Notes             |
//	| ----------- | --------------------- | -------------- | ----------------- |
//	| pending     | transitional, initial | 5m, timed out  | towards succeeded |
//	| accepted    | transitional          | 30m, timed out | towards succeeded |
//	| in progress | transitional          | 1h, timed out  | towards succeeded |
//	| succeeded   | final                 |                |                   |
//	| failed      | final                 |                |                   |
//
//	| From                           | Event     | Actor   | To          | Notes         |
//	| ------------------------------ | --------- | ------- | ----------- | ------------- |
//	| pending                        | accept    | backend | accepted    |               |
//	| accepted                       | begin     | backend | in progress |               |
//	| in progress                    | succeed   | backend | succeeded   |               |
//	| pending, accepted, in progress | fail      | backend | failed      |               |
//	| pending                        | timed out | sweeper | failed      | after 5m [1]  |
//	| accepted                       | timed out | sweeper | failed      | after 30m [1] |
//	| in progress                    | timed out | sweeper | failed      | after 1h [1]  |
//
//	[1] beyond the document: a backend that does not answer has failed
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "pending" as s0
//	    state "accepted" as s1
//	    state "in progress" as s2
//	    state "succeeded" as s3
//	    state "failed" as s4
//	    [*] --> s0
//	    s0 --> s1 : accept by backend
//	    s1 --> s2 : begin by backend
//	    s2 --> s3 : succeed by backend
//	    s0 --> s4 : fail by backend<br/>timed out by sweeper after 5m
//	    s1 --> s4 : fail by backend<br/>timed out by sweeper after 30m
//	    s2 --> s4 : fail by backend<br/>timed out by sweeper after 1h
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1,s2 transitional
//	    classDef final stroke-width:4px
//	    class s3,s4 final
//
// # Table of lattice-teardown
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind                  | Deadline      | Notes             |
//	| ----------- | --------------------- | ------------- | ----------------- |
//	| pending     | transitional, initial | 5m, timed out | towards succeeded |
//	| in progress | transitional          | 1h, timed out | towards succeeded |
//	| succeeded   | final                 |               |                   |
//	| failed      | final                 |               |                   |
//
//	| From                 | Event     | Actor   | To          | Notes        |
//	| -------------------- | --------- | ------- | ----------- | ------------ |
//	| pending              | begin     | backend | in progress |              |
//	| in progress          | succeed   | backend | succeeded   |              |
//	| pending, in progress | fail      | backend | failed      |              |
//	| pending              | timed out | sweeper | failed      | after 5m [1] |
//	| in progress          | timed out | sweeper | failed      | after 1h [1] |
//
//	[1] beyond the document: a backend that does not answer has failed
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "pending" as s0
//	    state "in progress" as s1
//	    state "succeeded" as s2
//	    state "failed" as s3
//	    [*] --> s0
//	    s0 --> s1 : begin by backend
//	    s1 --> s2 : succeed by backend
//	    s0 --> s3 : fail by backend<br/>timed out by sweeper after 5m
//	    s1 --> s3 : fail by backend<br/>timed out by sweeper after 1h
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1 transitional
//	    classDef final stroke-width:4px
//	    class s2,s3 final
package lattice
