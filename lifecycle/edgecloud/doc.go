// Package edgecloud has the tables of an edge cloud: clusters and apps that a
// user asks a controller for and a remote resource manager (CRM) makes, and the
// cloudlets on which that happens.
//
// The tables are those of the design document "State Transitions for
// ClusterInst/AppInst", with its chapters on the upgrade and the creation of
// cloudlets. [ClusterInst] and [AppInst] have the same rows.
//
// # Guarantees
//
//   - Every row of the document is in the machine, with its actor. A test
//     compares them, and no row is there that neither the document has nor this
//     text names.
//   - While an instance is in transition, one actor owes the next move, and the
//     sweeper moves when that actor does not.
//   - The error state follows from the operation: what fails while an object is
//     updated ends in UpdateError, whoever says so and however late.
//   - Working may be lost: Done is accepted without it.
//
// # No guarantees
//
//   - The table cannot tell a late message from a new one. It accepts Done in
//     UpdateRequested although Working was lost, and so it would accept a Done
//     that an earlier operation sent. Reports carry the id of their operation,
//     and package lifecycle compares it.
//   - Undo says that the previous content is back; the table does not look
//     whether it is. An object that failed to be created and then failed to be
//     deleted must not be undone to Ready: the controller knows which, the
//     table does not.
//   - An AppInst needs its ClusterInst, and nothing may change on a cloudlet
//     that is upgraded: such conditions are about two objects, and belong to
//     the commit and not to the table.
//
// # Beyond the document
//
// The document names the target Deleted once, beside a row for the same outcome
// that leads to NotPresent. Here both lead to NotPresent.
//
// A CRM's response has two names, by what it says: [Working] and [Done].
//
// Further rows, each marked in its Doc: deadlines ([CreateTimeout] and its
// neighbours, [StartTimeout], [UpgradeTimeout]); [PrepareFailed], for a delete
// of what is still needed; by force, a user's update from UpdateError and
// delete from every error state, and [Repaired] for the manual repair that the
// document leaves to an administrator; [Disconnected], which its text has and
// its table has not.
//
// The document lets only one actor move an object in each state, and then lets
// up to three in its upgrade table. Its rows are kept.
//
// # Table of clusterinst
//
// Generated from the machine; a test fails when it differs.
//
//	| State           | Kind            | Deadline      | Notes              |
//	| --------------- | --------------- | ------------- | ------------------ |
//	| NotPresent      | absent, initial |               |                    |
//	| CreateRequested | transitional    | 30m, TimedOut | towards Ready      |
//	| Creating        | transitional    | 30m, TimedOut | towards Ready      |
//	| CreateError     | failed          |               |                    |
//	| Ready           | stable          |               |                    |
//	| UpdateRequested | transitional    | 20m, TimedOut | towards Ready      |
//	| Updating        | transitional    | 20m, TimedOut | towards Ready      |
//	| UpdateError     | failed          |               |                    |
//	| DeletePrepare   | transitional    | 1m, TimedOut  | towards NotPresent |
//	| DeleteRequested | transitional    | 20m, TimedOut | towards NotPresent |
//	| Deleting        | transitional    | 20m, TimedOut | towards NotPresent |
//	| DeleteError     | failed          |               |                    |
//
//	| From                       | Event         | Actor      | To                 | Notes         |
//	| -------------------------- | ------------- | ---------- | ------------------ | ------------- |
//	| NotPresent                 | Create        | user       | CreateRequested    |               |
//	| CreateRequested            | Working       | crm        | Creating           |               |
//	| CreateRequested            | Done          | crm        | Ready              | [1]           |
//	| CreateRequested            | Fail          | crm        | CreateError        |               |
//	| Creating                   | Done          | crm        | Ready              |               |
//	| Creating                   | Fail          | crm        | CreateError        |               |
//	| CreateError                | Undo          | controller | NotPresent         |               |
//	| Ready                      | Update        | user       | UpdateRequested    |               |
//	| UpdateRequested            | Working       | crm        | Updating           |               |
//	| UpdateRequested            | Done          | crm        | Ready              | [2]           |
//	| UpdateRequested            | Fail          | crm        | UpdateError        |               |
//	| Updating                   | Done          | crm        | Ready              |               |
//	| Updating                   | Fail          | crm        | UpdateError        |               |
//	| UpdateError                | Undo          | controller | Ready              | [3]           |
//	| Ready                      | Delete        | user       | DeletePrepare      |               |
//	| DeletePrepare              | Prepared      | controller | DeleteRequested    |               |
//	| DeleteRequested            | Working       | crm        | Deleting           |               |
//	| DeleteRequested            | Done          | crm        | NotPresent         | [4]           |
//	| DeleteRequested            | Fail          | crm        | DeleteError        |               |
//	| Deleting                   | Done          | crm        | NotPresent         |               |
//	| Deleting                   | Fail          | crm        | DeleteError        |               |
//	| DeleteError                | Undo          | controller | Ready              |               |
//	| CreateRequested, Creating  | TimedOut      | sweeper    | CreateError        | after 30m [5] |
//	| UpdateRequested, Updating  | TimedOut      | sweeper    | UpdateError        | after 20m [5] |
//	| DeleteRequested, Deleting  | TimedOut      | sweeper    | DeleteError        | after 20m [5] |
//	| DeletePrepare              | PrepareFailed | controller | back to the origin | [6]           |
//	| DeletePrepare              | TimedOut      | sweeper    | back to the origin | after 1m [7]  |
//	| UpdateError                | Update        | user       | UpdateRequested    | forced [8]    |
//	| CreateError, UpdateError,  | Delete        | user       | DeletePrepare      | forced [9]    |
//	| DeleteError                |               |            |                    |               |
//
//	[1] the message Creating was missed
//	[2] the message Updating was missed
//	[3] the previous content comes back
//	[4] the message Deleting was missed
//	[5] beyond the document: the CRM is silent
//	[6] beyond the document: something still needs the object, and nothing was asked of the CRM
//	[7] beyond the document: the controller died; nothing was asked of the CRM
//	[8] beyond the document: try again instead of undoing
//	[9] beyond the document: give the object up instead of undoing
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "NotPresent" as s0
//	    state "CreateRequested" as s1
//	    state "Creating" as s2
//	    state "CreateError" as s3
//	    state "Ready" as s4
//	    state "UpdateRequested" as s5
//	    state "Updating" as s6
//	    state "UpdateError" as s7
//	    state "DeletePrepare" as s8
//	    state "DeleteRequested" as s9
//	    state "Deleting" as s10
//	    state "DeleteError" as s11
//	    [*] --> s0
//	    s0 --> s1 : Create by user
//	    s1 --> s2 : Working by crm
//	    s1 --> s4 : Done by crm
//	    s1 --> s3 : Fail by crm<br/>TimedOut by sweeper after 30m
//	    s2 --> s4 : Done by crm
//	    s2 --> s3 : Fail by crm<br/>TimedOut by sweeper after 30m
//	    s3 --> s0 : Undo by controller
//	    s4 --> s5 : Update by user
//	    s5 --> s6 : Working by crm
//	    s5 --> s4 : Done by crm
//	    s5 --> s7 : Fail by crm<br/>TimedOut by sweeper after 20m
//	    s6 --> s4 : Done by crm
//	    s6 --> s7 : Fail by crm<br/>TimedOut by sweeper after 20m
//	    s7 --> s4 : Undo by controller
//	    s4 --> s8 : Delete by user
//	    s8 --> s9 : Prepared by controller
//	    s9 --> s10 : Working by crm
//	    s9 --> s0 : Done by crm
//	    s9 --> s11 : Fail by crm<br/>TimedOut by sweeper after 20m
//	    s10 --> s0 : Done by crm
//	    s10 --> s11 : Fail by crm<br/>TimedOut by sweeper after 20m
//	    s11 --> s4 : Undo by controller
//	    s8 --> s3 : PrepareFailed by controller, return<br/>TimedOut by sweeper after 1m, return
//	    s8 --> s4 : PrepareFailed by controller, return<br/>TimedOut by sweeper after 1m, return
//	    s8 --> s7 : PrepareFailed by controller, return<br/>TimedOut by sweeper after 1m, return
//	    s8 --> s11 : PrepareFailed by controller, return<br/>TimedOut by sweeper after 1m, return
//	    s7 --> s5 : Update by user, forced
//	    s3 --> s8 : Delete by user, forced
//	    s7 --> s8 : Delete by user, forced
//	    s11 --> s8 : Delete by user, forced
//	    classDef transitional stroke-dasharray:5 4
//	    class s1,s2,s5,s6,s8,s9,s10 transitional
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s3,s7,s11 failed
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s0 absent
//
// # Table of cloudlet-create
//
// Generated from the machine; a test fails when it differs.
//
//	| State   | Kind            | Deadline      | Notes         |
//	| ------- | --------------- | ------------- | ------------- |
//	| Offline | stable, initial |               |               |
//	| Init    | transitional    | 10m, NoAnswer | towards Ready |
//	| InitOk  | transitional    | 10m, NoAnswer | towards Ready |
//	| Ready   | stable          |               |               |
//
//	| From                | Event        | Actor      | To      | Notes          |
//	| ------------------- | ------------ | ---------- | ------- | -------------- |
//	| Offline             | Launch       | user       | Init    |                |
//	| Offline             | StartUp      | crm        | Init    | [1]            |
//	| Ready, Init, InitOk | StartUp      | crm        | Init    | supersedes [2] |
//	| Init                | AckStart     | controller | InitOk  |                |
//	| InitOk              | Gathered     | crm        | Ready   |                |
//	| InitOk              | GatherFailed | crm        | Offline |                |
//	| Ready, Init, InitOk | Disconnected | controller | Offline | [3]            |
//	| Init, InitOk        | NoAnswer     | sweeper    | Offline | after 10m [4]  |
//
//	[1] started by hand
//	[2] a new notify id: the CRM crashed, and what its predecessor still says is stale
//	[3] beyond the document's rows, in its text: reported under the operation of the connection that
//	    dropped; a CRM that has reconnected has made it stale
//	[4] beyond the document: CRM or controller is silent
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "Offline" as s0
//	    state "Init" as s1
//	    state "InitOk" as s2
//	    state "Ready" as s3
//	    [*] --> s0
//	    s0 --> s1 : Launch by user<br/>StartUp by crm
//	    s3 --> s1 : StartUp by crm, supersedes
//	    s1 --> s1 : StartUp by crm, supersedes
//	    s2 --> s1 : StartUp by crm, supersedes
//	    s1 --> s2 : AckStart by controller
//	    s2 --> s3 : Gathered by crm
//	    s2 --> s0 : GatherFailed by crm<br/>Disconnected by controller<br/>NoAnswer by sweeper after 10m
//	    s3 --> s0 : Disconnected by controller
//	    s1 --> s0 : Disconnected by controller<br/>NoAnswer by sweeper after 10m
//	    classDef transitional stroke-dasharray:5 4
//	    class s1,s2 transitional
//
// # Table of cloudlet-upgrade
//
// Generated from the machine; a test fails when it differs.
//
//	| State           | Kind            | Deadline      | Notes         |
//	| --------------- | --------------- | ------------- | ------------- |
//	| Ready           | stable, initial |               |               |
//	| UpdateRequested | transitional    | 20m, NoAnswer | towards Ready |
//	| Updating        | transitional    | 20m, NoAnswer | towards Ready |
//	| InitOk          | transitional    | 20m, NoAnswer | towards Ready |
//	| UpdateError     | failed          |               | [1]           |
//
//	| From                          | Event         | Actor      | To              | Notes         |
//	| ----------------------------- | ------------- | ---------- | --------------- | ------------- |
//	| Ready                         | Upgrade       | user       | UpdateRequested |               |
//	| UpdateRequested               | AckUpgrade    | crm-v1     | Updating        |               |
//	| UpdateRequested               | Connected     | controller | InitOk          | [2]           |
//	| UpdateRequested               | BringUpFailed | crm-v1     | UpdateError     |               |
//	| Updating                      | Connected     | controller | InitOk          |               |
//	| Updating                      | Gathered      | crm-v2     | Ready           | [3]           |
//	| Updating                      | BringUpFailed | crm-v1     | UpdateError     |               |
//	| InitOk                        | Gathered      | crm-v2     | Ready           | [4]           |
//	| InitOk                        | BringUpFailed | crm-v1     | UpdateError     |               |
//	| UpdateError                   | KeepOld       | crm-v1     | UpdateError     | [5]           |
//	| UpdateRequested, Updating,    | NoAnswer      | sweeper    | UpdateError     | after 20m [6] |
//	| InitOk                        |               |            |                 |               |
//	| UpdateError                   | Repaired      | user       | Ready           | forced [7]    |
//
//	[1] left as it is for a person to look at
//	[2] the old CRM's acknowledgement was missed
//	[3] the controller's acknowledgement was missed; all data is sent
//	[4] all data is sent
//	[5] the old CRM serves on; the error stays until a person has looked
//	[6] beyond the document: both CRMs are silent
//	[7] the document's manual repair, which has no row there
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "Ready" as s0
//	    state "UpdateRequested" as s1
//	    state "Updating" as s2
//	    state "InitOk" as s3
//	    state "UpdateError" as s4
//	    [*] --> s0
//	    s0 --> s1 : Upgrade by user
//	    s1 --> s2 : AckUpgrade by crm-v1
//	    s1 --> s3 : Connected by controller
//	    s1 --> s4 : BringUpFailed by crm-v1<br/>NoAnswer by sweeper after 20m
//	    s2 --> s3 : Connected by controller
//	    s2 --> s0 : Gathered by crm-v2
//	    s2 --> s4 : BringUpFailed by crm-v1<br/>NoAnswer by sweeper after 20m
//	    s3 --> s0 : Gathered by crm-v2
//	    s3 --> s4 : BringUpFailed by crm-v1<br/>NoAnswer by sweeper after 20m
//	    s4 --> s4 : KeepOld by crm-v1
//	    s4 --> s0 : Repaired by user, forced
//	    classDef transitional stroke-dasharray:5 4
//	    class s1,s2,s3 transitional
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s4 failed
package edgecloud
