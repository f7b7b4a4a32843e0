// Package edgecloud coordinates clusters and apps on cloudlets: users request them from a
// controller, and a remote resource manager (CRM) creates them on its cloudlet. It has the
// tables and the behaviour of the design document "State Transitions for
// ClusterInst/AppInst", with its chapters on the upgrade and the creation of cloudlets.
//
//	 user ──Create, Update, Delete──▶ ┌─────────────┐ ──Orders──▶ ┌─────────────────┐
//	      ◀──────────Wait──────────── │ Coordinator │             │ ResourceManager │
//	admin ──Upgrade, Repaired───────▶ │  (a store)  │ ◀──Answer── │   (a platform)  │
//	                                  └─────────────┘ ◀─Reconnect └─────────────────┘
//
// The controller:
//
//	c, err := edgecloud.NewCoordinator(store, nil)
//	rec, err := c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 3}, nil)
//	orders, err := c.Orders(ctx, "berlin")               // send them to the CRM of berlin
//	verdict, err := c.Answer(ctx, notifyID, key, report) // for every report of the CRM
//	rec, err = c.Clusters.Wait(ctx, rec, 0)              // Ready, or undone after a failure
//	results, err := c.Sweep(ctx)                         // from time to time
//
// The CRM:
//
//	crm, err := edgecloud.NewResourceManager(platform, send)
//	err = crm.Gather(ctx, nil, uplink)              // when it is connected: its account, and Ready
//	err = crm.Handle(ctx, order)                    // for every order
//	err = crm.Upgrade(ctx, state, "v2", by, uplink) // for every upgrade
//
// [ClusterInst] and [AppInst] have the same rows; [CloudletCreate] and
// [CloudletUpgrade] are the document's other tables. [Instances] takes the requests and
// reports about ClusterInsts and AppInsts, [Cloudlets] those about cloudlets. Controller
// and CRM can be used without each other.
//
// A program keeps its own content of an instance in the Attributes of its spec: the
// record, the guards and the orders have them, and an undo restores them with the rest.
// [Instances.Add] takes over instances that exist already. [Cloudlets.Create] takes the
// attributes of a cloudlet. One that exists already is added when its CRM starts up.
//
// # Guarantees
//
// Of the tables:
//   - Every row of the document is in the machine, with its actor. Every further row is
//     named in this text.
//   - While an instance is in transition, one actor makes the next move, and the
//     sweeper moves the instance if that actor does not.
//   - The operation determines the error state: a failed update ends in UpdateError,
//     whichever actor reports it and however late.
//   - The report Working may be lost: Done is accepted without it.
//
// Of the coordinator:
//   - A report of a CRM moves an object only in the operation that it is about. A
//     late, repeated or wrong report changes nothing and is counted.
//   - Objects that depend on each other do not change at the same time. A change of
//     an AppInst needs its ClusterInst Ready, or at rest for a delete. An update of a
//     ClusterInst needs its AppInsts at rest, a delete needs them removed. Changes of
//     both need their cloudlet Ready, connected, and without an upgrade or a failed
//     one. An upgrade needs all of them at rest. All of this holds at the moment of
//     the commit, for concurrent requests of any number of processes.
//   - Error states keep the errors, every other state has none. Undo restores the
//     content from before the failed operation. A caller that waits for an operation
//     undoes it if it fails; if the caller has died, a sweep does.
//   - Of two concurrent deletes one wins, and no later step of the other affects it.
//   - The notify id of a connection identifies a CRM. Reports under a connection that is
//     not current are stale, also about the present operation.
//   - After a crash of any side at any moment, the other side, the sweeper or a new
//     process completes or undoes every operation.
//
// # Limits
//
//   - The tables cannot distinguish a late report from a new one, or an object that was
//     never created from an object that was created. The Coordinator can. A program that
//     moves objects by a manager of these machines cannot, and has no conditions on other
//     objects.
//   - The package has no goroutine and no network: a process calls [Coordinator.Sweep]
//     and sends orders and reports.
//   - After an override the record may differ from what the cloudlet has. A delete of a
//     ClusterInst does not find an AppInst that an override has moved to it.
//   - The CRM receives no message if the sweeper ends an operation or if it is undone.
//     If the CRM completes it nevertheless, the cloudlet has the undone content. The
//     CRM's answer is then [lifecycle.Refused], also in an account. An update to the
//     recorded content, or a delete, makes record and cloudlet equal again. The
//     deadlines have to be longer than any work of the CRM.
//   - A CRM that has crashed has no operations, and treats an earlier order as a new
//     one. Unless a connection keeps the order of messages, drop the orders that were
//     sent to a CRM when its connection ends: [Coordinator.Orders] has the valid ones.
//   - A CRM remembers the last 4096 removed objects. It treats an order from
//     before an earlier removal as a new one.
//
// # Beyond the document
//
// The document names the target Deleted once, beside a row for the same outcome that
// leads to NotPresent. Here both lead to NotPresent, and a CRM may report either. A CRM's
// response is one of two events: [Working] and [Done].
//
// Further rows, each marked in its Doc:
//   - deadlines: [CreateTimeout], [UpdateTimeout], [DeleteTimeout], [PrepareTimeout],
//     [StartTimeout], [UpgradeTimeout];
//   - DeletePrepare to Ready: by [PrepareFailed], forced, if other objects need the
//     object, and by the sweeper, if the controller has died;
//   - by force, a user's update from UpdateError, and delete from every error state, which
//     needs no preparation: the same commit requires that no object needs this one;
//   - [Repaired], for the manual repair that the document leaves to an administrator;
//   - [Replacing], so that both records of a cloudlet are in the commit of an upgrade;
//   - [Disconnected], which the document has in its text and not in its table, and
//     [OldDisconnected], the same for the other CRM of an upgrade.
//
// The document permits only one actor to move an object in each state, and permits up
// to three in its upgrade table. Its rows are kept.
//
// The document accepts Ready from a crashed CRM as the answer to any request. Here
// reports carry operations. The existence of an object completes a creation, its
// absence a delete, and neither an update: the order is sent again. It
// counts only before the CRM has gathered its data, because later an account may be
// older than the operation. An error state that a crashed CRM finds counts likewise, if
// it is that of the operation.
//
// The document undoes every DeleteError to Ready. Here an object that was never created,
// and whose delete failed, is not undone ([ErrNeverCreated]).
//
// A cloudlet has two records, because the document has two states of it: the CRM's
// state, and the controller's decision. Notify ids grow, because an id that is only
// different might be an earlier one ([Cloudlets.NewNotifyID]). The document does not require a
// connected CRM for the change of an instance; without one the request would have no answer.
//
// The document leaves a failed upgrade to an operator, and does not define what happens
// to a new CRM that has connected. Here its report that it has gathered its data is
// refused until the repair. After the repair it reports that again, or starts up again.
// No upgrade and no change starts before.
//
// The document does not define an upgrade whose old CRM starts again after the new one
// has connected. Here the new CRM completes the upgrade nevertheless: it has ended the
// old CRM for good before it reports that it has gathered its data, and it becomes the
// current one again. A CRM whose connection has dropped does not become the current one
// again, and its later reports are refused: it starts up again.
//
// # Rejected
//
//   - An AppInst that waits for its ClusterInst: the caller gets the refusal at once,
//     and a request that waits would be one more object in transition.
//   - A mark on a ClusterInst while its AppInsts are read: a process that dies leaves
//     the mark. A small record that every change writes makes one of two concurrent
//     requests fail instead, and that one is decided again.
//   - A list of the instances in the record of a cloudlet: the cost of a request would
//     grow with it. Each instance has a record of its own, under the id of its parent.
//   - An undo in the commit that reports the failure: the errors would be visible to no
//     caller, and [Call].KeepError would be impossible.
//
// # Table of clusterinst
//
// Generated from the machine; a test fails when it differs.
//
//	| State           | Kind            | Timeout       | Notes              |
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
//	| From                | Event         | Actor             | To                 | Notes         |
//	| ------------------- | ------------- | ----------------- | ------------------ | ------------- |
//	| NotPresent          | Create        | user              | CreateRequested    |               |
//	| CreateRequested     | Working       | crm               | Creating           |               |
//	| CreateRequested     | Done          | crm               | Ready              | [1]           |
//	| CreateRequested     | Fail          | crm               | CreateError        |               |
//	| Creating            | Done          | crm               | Ready              |               |
//	| Creating            | Fail          | crm               | CreateError        |               |
//	| CreateError         | Undo          | controller        | NotPresent         |               |
//	| Ready               | Update        | user              | UpdateRequested    |               |
//	| UpdateRequested     | Working       | crm               | Updating           |               |
//	| UpdateRequested     | Done          | crm               | Ready              | [2]           |
//	| UpdateRequested     | Fail          | crm               | UpdateError        |               |
//	| Updating            | Done          | crm               | Ready              |               |
//	| Updating            | Fail          | crm               | UpdateError        |               |
//	| UpdateError         | Undo          | controller        | Ready              | [3]           |
//	| Ready               | Delete        | user              | DeletePrepare      |               |
//	| DeletePrepare       | Prepared      | controller        | DeleteRequested    |               |
//	| DeleteRequested     | Working       | crm               | Deleting           |               |
//	| DeleteRequested     | Done          | crm               | NotPresent         | [4]           |
//	| DeleteRequested     | Fail          | crm               | DeleteError        |               |
//	| Deleting            | Done          | crm               | NotPresent         |               |
//	| Deleting            | Fail          | crm               | DeleteError        |               |
//	| DeleteError         | Undo          | controller        | Ready              |               |
//	| CreateRequested,    | TimedOut      | observer, sweeper | CreateError        | after 30m [5] |
//	| Creating            |               |                   |                    |               |
//	| UpdateRequested,    | TimedOut      | observer, sweeper | UpdateError        | after 20m [5] |
//	| Updating            |               |                   |                    |               |
//	| DeleteRequested,    | TimedOut      | observer, sweeper | DeleteError        | after 20m [5] |
//	| Deleting            |               |                   |                    |               |
//	| DeletePrepare       | PrepareFailed | controller        | back to the origin | forced [6]    |
//	| DeletePrepare       | TimedOut      | sweeper           | back to the origin | after 1m [7]  |
//	| UpdateError         | Update        | user              | UpdateRequested    | forced [8]    |
//	| CreateError,        | Delete        | user              | DeleteRequested    | forced [9]    |
//	| UpdateError,        |               |                   |                    |               |
//	| DeleteError         |               |                   |                    |               |
//
//	[1] the message Creating was missed
//	[2] the message Updating was missed
//	[3] restores the previous content
//	[4] the message Deleting was missed
//	[5] beyond the document: the CRM does not answer
//	[6] beyond the document: another object needs this one; the CRM has no order yet
//	[7] beyond the document: the controller died; the CRM has no order yet
//	[8] beyond the document: update again instead of an undo
//	[9] beyond the document: delete instead of an undo
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, red: failed, grey: absent"
//	---
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
//	    s1 --> s3 : Fail by crm<br/>TimedOut by observer, sweeper after 30m
//	    s2 --> s4 : Done by crm
//	    s2 --> s3 : Fail by crm<br/>TimedOut by observer, sweeper after 30m
//	    s3 --> s0 : Undo by controller
//	    s4 --> s5 : Update by user
//	    s5 --> s6 : Working by crm
//	    s5 --> s4 : Done by crm
//	    s5 --> s7 : Fail by crm<br/>TimedOut by observer, sweeper after 20m
//	    s6 --> s4 : Done by crm
//	    s6 --> s7 : Fail by crm<br/>TimedOut by observer, sweeper after 20m
//	    s7 --> s4 : Undo by controller
//	    s4 --> s8 : Delete by user
//	    s8 --> s9 : Prepared by controller
//	    s9 --> s10 : Working by crm
//	    s9 --> s0 : Done by crm
//	    s9 --> s11 : Fail by crm<br/>TimedOut by observer, sweeper after 20m
//	    s10 --> s0 : Done by crm
//	    s10 --> s11 : Fail by crm<br/>TimedOut by observer, sweeper after 20m
//	    s11 --> s4 : Undo by controller
//	    s8 --> s4 : PrepareFailed by controller, forced, return<br/>TimedOut by sweeper after 1m, return
//	    s7 --> s5 : Update by user, forced
//	    s3 --> s9 : Delete by user, forced
//	    s7 --> s9 : Delete by user, forced
//	    s11 --> s9 : Delete by user, forced
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
//	| State   | Kind            | Timeout       | Notes         |
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
//	[1] an operator started the CRM
//	[2] a new notify id: the CRM crashed, and later messages of the CRM before are stale
//	[3] beyond the document: the same commit starts an upgrade of the CRM that runs now
//	[4] beyond the document's rows, in its text: only if the dropped notify id is still the recorded
//	    one
//	[5] beyond the document: messages of a dropped connection are refused
//	[6] beyond the document: the CRM or the controller does not answer
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional"
//	---
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
//	    s3 --> s3 : Replacing, forced<br/>OldDisconnected, forced<br/>by controller
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
//	| State           | Kind            | Timeout       | Notes         |
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
//	[1] stays until an operator repairs the cloudlet
//	[2] the acknowledgement of the old CRM was missed
//	[3] the acknowledgement of the controller was missed; the CRM sends all data
//	[4] the CRM sends all data
//	[5] the old CRM continues; the error stays until an operator repairs the cloudlet
//	[6] beyond the document: neither CRM answers
//	[7] beyond the document's rows, in its text: the manual repair
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, red: failed"
//	---
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
