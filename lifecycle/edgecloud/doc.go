// Package edgecloud is an edge cloud: clusters and apps that a user asks a
// controller for and a remote resource manager (CRM) makes, and the cloudlets on
// which that happens. It has the tables and the behaviour of the design document
// "State Transitions for ClusterInst/AppInst", with its chapters on the upgrade
// and the creation of cloudlets.
//
//	 user ──Create, Update, Delete──▶ ┌─────────────┐ ──Orders──▶ ┌─────────────────┐
//	      ◀──────────Wait──────────── │ Coordinator │             │ ResourceManager │
//	admin ──Upgrade, Repaired───────▶ │  (a store)  │ ◀──Answer── │   (a platform)  │
//	                                  └─────────────┘ ◀─Reconnect └─────────────────┘
//
// [ClusterInst] and [AppInst] have the same rows; [CloudletCreate] and
// [CloudletUpgrade] are the document's other tables. A [Coordinator] is the
// controller: [Instances] has what users and CRMs say about ClusterInsts and
// AppInsts, [Cloudlets] what is said about cloudlets. A [ResourceManager] is the
// side of the CRM. Each is of use without the other.
//
// # Guarantees
//
// Of the tables:
//   - Every row of the document is in the machine, with its actor. A test
//     compares them, and no row is there that neither the document has nor this
//     text names.
//   - While an instance is in transition, one actor owes the next move, and the
//     sweeper moves when that actor does not.
//   - The error state follows from the operation: what fails while an object is
//     updated ends in UpdateError, whoever says so and however late.
//   - Working may be lost: Done is accepted without it.
//
// Of the coordinator:
//   - A message of a CRM moves an object only in the operation that it is about.
//     What is late, repeated or wrong changes nothing, and is counted.
//   - Nothing that depends on each other is asked for at the same time. A change
//     of an AppInst needs its ClusterInst Ready, or at rest to be deleted; an
//     update of a ClusterInst needs its AppInsts at rest, a delete needs them
//     gone; changes of both need their cloudlet Ready, connected and not in an
//     upgrade or a failed one; and an upgrade needs all of them at rest. All of
//     it holds at the moment of the commit, whoever asks at the same time, in
//     however many processes.
//   - Error states keep the errors, every other state has none. Undo brings the
//     content back that the object had when it was last well. Whoever waits for
//     an operation undoes it if it fails; if he has died, a sweep does.
//   - Of two deletes one wins, and nothing that the other does later touches it.
//   - Which CRM speaks is known by its connection. What is said under one that
//     counts no more is refused.
//   - What a request is allowed is in its [Call], and in nothing that is shared.
//   - A crash of any side at any moment leaves nothing that the other side, the
//     sweeper or a new process does not put right: a test kills the controller at
//     every write.
//
// # No guarantees
//
//   - The tables cannot tell a late message from a new one, nor whether an object
//     that is deleted was ever made. The Coordinator does; who moves objects by a
//     manager of these machines alone has neither that nor any condition on other
//     objects.
//   - Somebody has to call [Coordinator.Sweep] now and then, and to send orders:
//     nothing here has a goroutine or a network.
//   - An override makes the records say what the cloudlet may not have.
//   - The CRM is not told that the sweeper has given up an operation, nor that it
//     was undone. If the CRM does it all the same, the cloudlet has what was undone.
//     Its answer is then [lifecycle.Refused], also in an account, where
//     [Reconnected] has it among what is settled; an update to the content that is
//     recorded, or a delete, makes the two the same again. The deadlines are there
//     to be longer than anything the CRM does.
//   - A CRM that has crashed knows no operations, and takes an order from before for
//     a new one. Unless they are kept in order, what was sent to a CRM has to be
//     dropped when its connection ends: [Coordinator.Orders] has what counts.
//   - Of what is gone a CRM that runs knows the last [RemembersGone] operations, and
//     an order older than those is taken for a new one.
//
// # Beyond the document
//
// The document names the target Deleted once, beside a row for the same outcome
// that leads to NotPresent. Here both lead to NotPresent, and a CRM may say either.
//
// A CRM's response has two names, by what it says: [Working] and [Done].
//
// [Replacing] is the note on the record of a CRM that an upgrade begins, which
// makes both one commit. Further rows, each marked in its Doc: deadlines ([CreateTimeout] and its
// neighbours, [StartTimeout], [UpgradeTimeout]); [PrepareFailed], for a delete
// of what is still needed; by force, a user's update from UpdateError and
// delete from every error state, and [Repaired] for the manual repair that the
// document leaves to an administrator; [Disconnected], which its text has and
// its table has not; [OldDisconnected], the same for the other CRM of an upgrade.
//
// The document lets only one actor move an object in each state, and then lets
// up to three in its upgrade table. Its rows are kept.
//
// The document takes a Ready that a crashed CRM says for the answer to whatever
// it was asked. Here messages carry operations, and what is merely there settles
// a creation or a delete, never an update: it is asked for again (see [Resolve]).
// It counts only before the CRM has gathered its data, because afterwards an
// account may be older than the operation. So does an error state that a crashed CRM
// finds, where it is that of what was asked for.
//
// An object that was never made and could not be deleted either is not undone to
// Ready ([ErrNeverMade]). The document undoes every DeleteError to Ready.
//
// A cloudlet has two records, because the document has two states of it: what the
// CRM says, and what the controller has decided. Notify ids grow: one that is
// merely different might be an old one. The document has no condition that the
// CRM be connected for an instance to be changed; without one nobody would answer.
//
// The document leaves a failed upgrade to a person, and does not say what becomes
// of a new CRM that has connected. Until the repair it cannot say that it has
// gathered its data, and the repair does not say so in its place: it says so once
// more, or starts up anew. No upgrade and no change begins before.
//
// Nor does the document say what becomes of an upgrade whose old CRM starts again
// after the new one has connected. By its rows the cloudlet has the old one's
// connection then, and the new one finishes all the same: it has ended the old CRM,
// for good, before it says so, and takes its place back. Whoever ends only a process,
// and has it started again by something else, has two CRMs. A CRM whose connection
// has dropped takes no place back, and what it said that comes after is refused: it
// starts up anew.
//
// # Rejected
//
//   - An AppInst that waits for its ClusterInst: who asks is told at once, and a
//     request that waits would be one more thing in transition.
//   - A mark on a ClusterInst while its AppInsts are looked at: a process that
//     dies leaves the mark. A small record of who depends on it, written with
//     every change, makes one of the two fail instead, and try again.
//   - A list of who is on a cloudlet, in its record: what a request costs would grow
//     with it. Each instance has a record of its own, under the name of what it is in.
//   - Undoing what failed in the commit that says so: nobody would see the errors,
//     and who wants to look at them ([Call].KeepError) could not.
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
//	| From                | Event           | Actor      | To      | Notes          |
//	| ------------------- | --------------- | ---------- | ------- | -------------- |
//	| Offline             | Launch          | user       | Init    |                |
//	| Offline             | StartUp         | crm        | Init    | [1]            |
//	| Ready, Init, InitOk | StartUp         | crm        | Init    | supersedes [2] |
//	| Init                | AckStart        | controller | InitOk  |                |
//	| InitOk              | Gathered        | crm        | Ready   |                |
//	| InitOk              | GatherFailed    | crm        | Offline |                |
//	| Ready               | Replacing       | controller | Ready   | forced [3]     |
//	| Ready, Init, InitOk | Disconnected    | controller | Offline | [4]            |
//	| Offline             | OldDisconnected | controller | Offline | forced [5]     |
//	| Init                | OldDisconnected | controller | Init    | forced [5]     |
//	| InitOk              | OldDisconnected | controller | InitOk  | forced [5]     |
//	| Ready               | OldDisconnected | controller | Ready   | forced [5]     |
//	| Init, InitOk        | NoAnswer        | sweeper    | Offline | after 10m [6]  |
//
//	[1] started by hand
//	[2] a new notify id: the CRM crashed, and what its predecessor still says is stale
//	[3] beyond the document: an upgrade begins in the same commit, of the CRM that runs at that
//	    moment
//	[4] beyond the document's rows, in its text: reported under the operation of the connection that
//	    dropped; a CRM that has reconnected has made it stale
//	[5] beyond the document: nothing is said any more, and no place taken back, under a connection
//	    that has dropped
//	[6] beyond the document: CRM or controller is silent
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
//	    s1 --> s1 : StartUp by crm, supersedes<br/>OldDisconnected by controller, forced
//	    s2 --> s1 : StartUp by crm, supersedes
//	    s1 --> s2 : AckStart by controller
//	    s2 --> s3 : Gathered by crm
//	    s2 --> s0 : GatherFailed by crm<br/>Disconnected by controller<br/>NoAnswer by sweeper after 10m
//	    s3 --> s3 : Replacing by controller, forced<br/>OldDisconnected by controller, forced
//	    s3 --> s0 : Disconnected by controller
//	    s1 --> s0 : Disconnected by controller<br/>NoAnswer by sweeper after 10m
//	    s0 --> s0 : OldDisconnected by controller, forced
//	    s2 --> s2 : OldDisconnected by controller, forced
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
