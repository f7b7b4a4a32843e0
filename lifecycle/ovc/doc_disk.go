// # Table of ovc-disk
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind            | Timeout      | Notes |
//	| ----------- | --------------- | ------------ | ----- |
//	| MODELED     | stable, initial |              |       |
//	| CREATED     | stable          |              | [1]   |
//	| ASSIGNED    | stable          |              | [2]   |
//	| DELETED     | stable          | 168h, expire |       |
//	| DESTROYED   | final           |              |       |
//	| TOBEDELETED | stable          | 168h, expire | [3]   |
//	| CREATING    | transitional    | 30m, stuck   |       |
//	| ASSIGNING   | transitional    | 30m, stuck   |       |
//	| ATTACHING   | transitional    | 30m, stuck   |       |
//	| DETACHING   | transitional    | 30m, stuck   |       |
//	| DELETING    | transitional    | 30m, stuck   |       |
//	| DESTROYING  | transitional    | 30m, stuck   |       |
//
//	| From                    | Event   | Actor             | To                 | Notes           |
//	| ----------------------- | ------- | ----------------- | ------------------ | --------------- |
//	| MODELED                 | create  | api               | CREATING           |                 |
//	| CREATING                | done    | worker            | CREATED            |                 |
//	| MODELED                 | assign  | api               | ASSIGNING          |                 |
//	| ASSIGNING               | done    | worker            | ASSIGNED           |                 |
//	| CREATED                 | attach  | api               | ATTACHING          |                 |
//	| ATTACHING               | done    | worker            | ASSIGNED           |                 |
//	| ASSIGNED                | detach  | api               | DETACHING          |                 |
//	| DETACHING               | done    | worker            | CREATED            |                 |
//	| CREATED                 | delete  | api               | DELETING           |                 |
//	| DELETING                | done    | worker            | DELETED            | origin CREATED  |
//	| ASSIGNED                | delete  | api               | DELETING           |                 |
//	| DELETING                | done    | worker            | TOBEDELETED        | origin ASSIGNED |
//	| CREATED, ASSIGNED       | destroy | api               | DESTROYING         |                 |
//	| DESTROYING              | done    | worker            | DESTROYED          |                 |
//	| DELETED, TOBEDELETED    | expire  | observer, sweeper | DESTROYING         | after 168h [4]  |
//	| CREATING, ASSIGNING,    | stuck   | observer, sweeper | back to the origin | after 30m [5]   |
//	| ATTACHING, DETACHING,   |         |                   |                    |                 |
//	| DELETING, DESTROYING    |         |                   |                    |                 |
//
//	[1] detached
//	[2] attached to a machine
//	[3] deleted together with its machine
//	[4] beyond the document's rows, in its text: permanently deleted after the retention period
//	[5] beyond the document's rows, in its notes: self-healing recovers the previous state
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "MODELED" as s0
//	    state "CREATED" as s1
//	    state "ASSIGNED" as s2
//	    state "DELETED" as s3
//	    state "DESTROYED" as s4
//	    state "TOBEDELETED" as s5
//	    state "CREATING" as s6
//	    state "ASSIGNING" as s7
//	    state "ATTACHING" as s8
//	    state "DETACHING" as s9
//	    state "DELETING" as s10
//	    state "DESTROYING" as s11
//	    [*] --> s0
//	    s0 --> s6 : create by api
//	    s6 --> s1 : done by worker
//	    s0 --> s7 : assign by api
//	    s7 --> s2 : done by worker
//	    s1 --> s8 : attach by api
//	    s8 --> s2 : done by worker
//	    s2 --> s9 : detach by api
//	    s9 --> s1 : done by worker
//	    s1 --> s10 : delete by api
//	    s10 --> s3 : done by worker, origin CREATED
//	    s2 --> s10 : delete by api
//	    s10 --> s5 : done by worker, origin ASSIGNED
//	    s1 --> s11 : destroy by api
//	    s2 --> s11 : destroy by api
//	    s11 --> s4 : done by worker
//	    s3 --> s11 : expire by observer, sweeper after 168h
//	    s5 --> s11 : expire by observer, sweeper after 168h
//	    s6 --> s0 : stuck by observer, sweeper after 30m, return
//	    s7 --> s0 : stuck by observer, sweeper after 30m, return
//	    s8 --> s1 : stuck by observer, sweeper after 30m, return
//	    s9 --> s2 : stuck by observer, sweeper after 30m, return
//	    s10 --> s1 : stuck by observer, sweeper after 30m, return
//	    s10 --> s2 : stuck by observer, sweeper after 30m, return
//	    s11 --> s1 : stuck by observer, sweeper after 30m, return
//	    s11 --> s2 : stuck by observer, sweeper after 30m, return
//	    s11 --> s3 : stuck by observer, sweeper after 30m, return
//	    s11 --> s5 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s6,s7,s8,s9,s10,s11 transitional
//	    classDef final stroke-width:4px
//	    class s4 final
//
// # Table of ovc-image
//
// Generated from the machine; a test fails when it differs.
//
//	| State      | Kind            | Timeout      |
//	| ---------- | --------------- | ------------ |
//	| VIRTUAL    | stable, initial |              |
//	| CREATED    | stable          |              |
//	| DISABLED   | stable          |              |
//	| DELETED    | stable          | 168h, expire |
//	| DESTROYED  | final           |              |
//	| CREATING   | transitional    | 30m, stuck   |
//	| DISABLING  | transitional    | 30m, stuck   |
//	| DELETING   | transitional    | 30m, stuck   |
//	| DESTROYING | transitional    | 30m, stuck   |
//
//	| From                | Event   | Actor             | To                 | Notes               |
//	| ------------------- | ------- | ----------------- | ------------------ | ------------------- |
//	| VIRTUAL             | create  | api               | CREATING           |                     |
//	| CREATING            | done    | worker            | CREATED            |                     |
//	| CREATED             | disable | api               | DISABLING          |                     |
//	| DISABLING           | done    | worker            | DISABLED           | origin CREATED      |
//	| DISABLED            | disable | api               | DISABLING          | [1]                 |
//	| DISABLING           | done    | worker            | CREATED            | origin DISABLED [1] |
//	| CREATED, DISABLED   | delete  | api               | DELETING           |                     |
//	| DELETING            | done    | worker            | DELETED            |                     |
//	| CREATED, DISABLED   | destroy | api               | DESTROYING         |                     |
//	| DESTROYING          | done    | worker            | DESTROYED          |                     |
//	| DELETED             | expire  | observer, sweeper | DESTROYING         | after 168h [2]      |
//	| CREATING,           | stuck   | observer, sweeper | back to the origin | after 30m [3]       |
//	| DISABLING,          |         |                   |                    |                     |
//	| DELETING,           |         |                   |                    |                     |
//	| DESTROYING          |         |                   |                    |                     |
//
//	[1] kept as the document prints it; ENABLING is probably meant
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
//	    state "CREATED" as s1
//	    state "DISABLED" as s2
//	    state "DELETED" as s3
//	    state "DESTROYED" as s4
//	    state "CREATING" as s5
//	    state "DISABLING" as s6
//	    state "DELETING" as s7
//	    state "DESTROYING" as s8
//	    [*] --> s0
//	    s0 --> s5 : create by api
//	    s5 --> s1 : done by worker
//	    s1 --> s6 : disable by api
//	    s6 --> s2 : done by worker, origin CREATED<br/>stuck by observer, sweeper after 30m, return
//	    s2 --> s6 : disable by api
//	    s6 --> s1 : done by worker, origin DISABLED<br/>stuck by observer, sweeper after 30m, return
//	    s1 --> s7 : delete by api
//	    s2 --> s7 : delete by api
//	    s7 --> s3 : done by worker
//	    s1 --> s8 : destroy by api
//	    s2 --> s8 : destroy by api
//	    s8 --> s4 : done by worker
//	    s3 --> s8 : expire by observer, sweeper after 168h
//	    s5 --> s0 : stuck by observer, sweeper after 30m, return
//	    s7 --> s1 : stuck by observer, sweeper after 30m, return
//	    s7 --> s2 : stuck by observer, sweeper after 30m, return
//	    s8 --> s1 : stuck by observer, sweeper after 30m, return
//	    s8 --> s2 : stuck by observer, sweeper after 30m, return
//	    s8 --> s3 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s5,s6,s7,s8 transitional
//	    classDef final stroke-width:4px
//	    class s4 final
//
// # Table of ovc-node
//
// Generated from the machine; a test fails when it differs.
//
//	| State                  | Kind            | Timeout    |
//	| ---------------------- | --------------- | ---------- |
//	| ENABLED                | stable, initial |            |
//	| MAINTENANCE            | stable          |            |
//	| DECOMMISSIONED         | final           |            |
//	| PUTTING_IN_MAINTENANCE | transitional    | 30m, stuck |
//	| ENABLING               | transitional    | 30m, stuck |
//	| DECOMMISSIONING        | transitional    | 30m, stuck |
//
//	| From                    | Event              | Actor     | To                     | Notes    |
//	| ----------------------- | ------------------ | --------- | ---------------------- | -------- |
//	| ENABLED                 | put_in_maintenance | api       | PUTTING_IN_MAINTENANCE |          |
//	| PUTTING_IN_MAINTENANCE  | done               | worker    | MAINTENANCE            |          |
//	| MAINTENANCE             | enable             | api       | ENABLING               |          |
//	| ENABLING                | done               | worker    | ENABLED                |          |
//	| ENABLED, MAINTENANCE    | decommission       | api       | DECOMMISSIONING        |          |
//	| DECOMMISSIONING         | done               | worker    | DECOMMISSIONED         |          |
//	| PUTTING_IN_MAINTENANCE, | stuck              | observer, | back to the origin     | after    |
//	| ENABLING,               |                    | sweeper   |                        | 30m [1]  |
//	| DECOMMISSIONING         |                    |           |                        |          |
//
//	[1] beyond the document's rows, in its notes: self-healing recovers the previous state
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "ENABLED" as s0
//	    state "MAINTENANCE" as s1
//	    state "DECOMMISSIONED" as s2
//	    state "PUTTING_IN_MAINTENANCE" as s3
//	    state "ENABLING" as s4
//	    state "DECOMMISSIONING" as s5
//	    [*] --> s0
//	    s0 --> s3 : put_in_maintenance by api
//	    s3 --> s1 : done by worker
//	    s1 --> s4 : enable by api
//	    s4 --> s0 : done by worker
//	    s0 --> s5 : decommission by api
//	    s1 --> s5 : decommission by api
//	    s5 --> s2 : done by worker
//	    s3 --> s0 : stuck by observer, sweeper after 30m, return
//	    s4 --> s1 : stuck by observer, sweeper after 30m, return
//	    s5 --> s0 : stuck by observer, sweeper after 30m, return
//	    s5 --> s1 : stuck by observer, sweeper after 30m, return
//	    classDef transitional stroke-dasharray:5 4
//	    class s3,s4,s5 transitional
//	    classDef final stroke-width:4px
//	    class s2 final
package ovc
