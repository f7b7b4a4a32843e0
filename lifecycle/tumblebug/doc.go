// Package tumblebug is a multi-cloud infrastructure manager: VMs at many providers, and
// the infrastructures (MCIs) that consist of them. Its source is the document "MCI and VM
// Lifecycle Management" of CB-Tumblebug.
//
//	s, err := tumblebug.New(store, provider, nil)
//	go lifecycle.Run(ctx, 0, nil, s)
//	_, err = s.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "shop", SubGroups: []tumblebug.SubGroup{
//		{Name: "web", Size: 3, Provider: "aws", Region: "ap-northeast-2"},
//	}})
//	status, err := s.Wait(ctx, "ns", "shop")                         // Running:3 (R:3/3)
//	_, err = s.HandleMciAction(ctx, "ns", "shop", "suspend", false)  // Suspending the MCI
//	status, err = s.GetMciStatus(ctx, "ns", "shop")                  // Suspending:3 (R:0/3)
//
// A [System] performs requests over a [Provider]:
//
//	CreateMci, AddMci ─▶ ┌────────┐   continues MCIs         ┌──────────┐
//	HandleMciAction ───▶ │        │ ── Prepare, Release ───▶ │          │
//	HandleMciVmAction ─▶ │ System │ ── Create, Control ────▶ │ Provider │
//	GetMciStatus ──────▶ │        │ ── Status ─────────────▶ │          │
//	                     └────────┘   VMs, under the limits  └──────────┘
//
// [Handler] serves the REST API of the document. A program keeps its own content of an MCI
// in [MciReq].Attributes, and of its VMs in [SubGroup].Attributes: the records and the
// guards have it, and the provider has that of the VMs. [System.AddMci] takes over an MCI
// that exists already.
//
// [MCI] and [VM] are the machines alone. [Allowed], [Summarize], [Correct], [Cached] and
// [Doing] are the rules of the document as functions.
//
// # Life of an action
//
//  1. control.go: HandleMciAction decides on the MCI and its VMs, and commits the start of
//     an operation of the MCI. create.go: CreateMci adds the MCI.
//  2. operate.go: advance prepares an MCI that is new. Then it requests the action of each
//     VM that is due, as an operation of the VM, and waits until the VMs are at rest.
//  3. turn.go: perform is the work of a VM, in its turn under the limits. It sends the
//     request to the provider, and looks at the VM until the action has ended (look.go).
//  4. operate.go: follow moves the MCI to the state that follows from its VMs. Every
//     request about an MCI calls it, so an operation ends with its last VM.
//  5. sweep.go: a sweep takes over the VMs of a process that has died, and calls advance
//     for MCIs that have not moved.
//
// # Guarantees
//
//   - The machines have every row of the document's two diagrams, with its actor, and
//     every cell of its matrix of allowed actions. A test compares them one by one.
//   - Force skips the matrix and nothing else. A forced action is a row, with an actor and
//     an operation of its own; reports of the superseded operation are stale. No action
//     leads out of Terminated; a forced terminate is complete there.
//   - An action of an MCI requests each of its VMs once, also if processes die. It waits
//     for a VM that is in an action of its own. During the action of an MCI, an action of
//     a VM is admitted by force only; the commit checks that.
//   - A late request of a stalled process carries the life of its MCI. So a provider can
//     distinguish it from a request for a later MCI of the same name.
//   - An ambiguous status ends no action: neither Running during a reboot, nor a missing
//     VM during a termination, nor Failed. Three equal answers, one in each interval,
//     confirm it. Three requests without an answer make a VM at rest Undefined.
//   - Silence is not a failure. Only a rejection by the provider fails at once.
//   - The limits of providers and regions hold for all requests of the process together,
//     also for the VMs that it takes over from a process that has died. With
//     [Config].Shared they hold for the requests of all processes together. The deadline of
//     a VM begins when its turn comes. It is committed before the first request to the
//     provider.
//   - The action of a VM whose process has died is a new operation, with a new deadline. Its
//     request to the provider has the number of the first one.
//   - A request that is refused, also after [System.Close], starts nothing.
//   - Target action and target status follow from the status. Both are None when an action
//     is complete.
//   - Every action ends. After the deadline the sweeper moves the VM to Undefined, because
//     the outcome is unknown.
//
// # Limits
//
//   - Force can lead to inconsistent states, as the document states: a VM that is suspended
//     by force during its creation may be left at the provider.
//   - The state of an MCI follows actions of single VMs at the next request for its status
//     or for an action.
//   - An override that removes an MCI leaves its VMs and its resources. A new MCI of its name
//     has these VMs; the package does not release the resources of the earlier one.
//   - A Suspended VM is cached, as in the document: a resume at the provider is not noticed.
//   - Deadlines need [System.Sweep]. If several processes without
//     [Config].Owner share a store, a sweep of one of them moves a VM to Undefined that
//     waits for its turn in another one for longer than its deadline. Use owners then.
//   - A resource that cannot be released, or whose process dies before the release, exists
//     until [System.DelMci] removes the MCI. A process that stalls in [Provider].Prepare
//     until its MCI is removed releases what it has created, once: if that fails, the
//     resource is left behind.
//
// # Beyond the document
//
// The document's action Create adds the object: an MCI begins in Preparing, a VM in
// Creating. For a VM, [Create] is also an event. An MCI that exists already is added
// with the states of its VMs, which are any at rest.
//
// Failed is final, as in the document. Forced rows lead out of it: Terminate, which the
// diagram has, and every other action. [Refine] is an action of the document outside its
// diagrams. It removes a VM that is Failed or Undefined, both before the request and
// after another look. So it may leave a running VM at a provider that does not answer.
//
// The document lists continue and withdraw without a definition. Here they answer a
// creation on hold, which stops in Prepared without a deadline. [Withdraw] moves the MCI
// to Failed, releases its resources and removes it. [Remove] and [System.DelMci] make a
// name available again.
//
// The document declares Undefined and has no row into it. Here two actors lead there: the
// sweeper, and the observer, if a VM at rest has no usable status. The observer also
// leads out, and records other changes at the provider.
//
// The document's aggregation has one dominant status, and by its diagram an MCI is Running
// if some of its VMs are. Where these differ, the rendered status has the first, and the
// matrix uses the second, see [Conclude]: Failed and Terminated VMs decide about an MCI
// only if there are no others. An action of an MCI is refused while most of its VMs are
// in transition by actions of their own.
//
// An MCI is Failed if all VMs fail in an action, or if a VM cannot be terminated; the
// diagram has that for the creation only. Each MCI has networks, security groups and keys
// of its own in every region. They are released when all VMs are terminated, also one by
// one, when the MCI cannot be prepared, and when it is withdrawn or deleted. If that fails
// for a Terminated MCI, its system message has the reason. A provider that is not in the
// document's table has no limits.
//
// # Table of mci
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind                  | Timeout       | Notes              |
//	| ----------- | --------------------- | ------------- | ------------------ |
//	| Preparing   | transitional, initial | 30m, TimedOut | [1]                |
//	| Prepared    | transitional          | 30m, TimedOut | [2]                |
//	| Creating    | transitional          | 2h, TimedOut  | towards Running    |
//	| Running     | stable                |               |                    |
//	| Suspending  | transitional          | 1h, TimedOut  | towards Suspended  |
//	| Suspended   | stable                |               |                    |
//	| Resuming    | transitional          | 1h, TimedOut  | towards Running    |
//	| Rebooting   | transitional          | 1h, TimedOut  | towards Running    |
//	| Terminating | transitional          | 1h, TimedOut  | towards Terminated |
//	| Terminated  | final                 |               |                    |
//	| Failed      | final                 |               | [3]                |
//	| Undefined   | stable                |               | [4]                |
//	| Removed     | absent                |               |                    |
//
//	| From                | Event         | Actor              | To          | Notes               |
//	| ------------------- | ------------- | ------------------ | ----------- | ------------------- |
//	| Preparing           | Succeed       | tumblebug          | Prepared    |                     |
//	| Preparing           | Fail          | tumblebug          | Failed      |                     |
//	| Prepared            | Provision     | tumblebug          | Creating    |                     |
//	| Prepared            | Fail          | tumblebug          | Failed      |                     |
//	| Prepared            | Withdraw      | user               | Failed      | [5]                 |
//	| Creating            | Fail          | aggregate          | Failed      | [6]                 |
//	| Suspending,         | Fail          | aggregate          | Failed      | [7]                 |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating         |               |                    |             |                     |
//	| Creating, Resuming, | Succeed       | aggregate          | Running     |                     |
//	| Rebooting           |               |                    |             |                     |
//	| Suspending          | Succeed       | aggregate          | Suspended   |                     |
//	| Terminating         | Succeed       | aggregate          | Terminated  |                     |
//	| Running             | Suspend       | user               | Suspending  |                     |
//	| Suspended           | Resume        | user               | Resuming    |                     |
//	| Running             | Reboot        | user               | Rebooting   |                     |
//	| Running, Suspended  | Terminate     | user               | Terminating |                     |
//	| Failed              | Terminate     | user               | Terminating | forced              |
//	| Preparing,          | Suspend       | user               | Suspending  | forced, supersedes  |
//	| Prepared, Creating, |               |                    |             | [8]                 |
//	| Suspending,         |               |                    |             |                     |
//	| Suspended,          |               |                    |             |                     |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating,        |               |                    |             |                     |
//	| Failed, Undefined   |               |                    |             |                     |
//	| Preparing,          | Resume        | user               | Resuming    | forced, supersedes  |
//	| Prepared, Creating, |               |                    |             | [8]                 |
//	| Running,            |               |                    |             |                     |
//	| Suspending,         |               |                    |             |                     |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating,        |               |                    |             |                     |
//	| Failed, Undefined   |               |                    |             |                     |
//	| Preparing,          | Reboot        | user               | Rebooting   | forced, supersedes  |
//	| Prepared, Creating, |               |                    |             | [8]                 |
//	| Suspending,         |               |                    |             |                     |
//	| Suspended,          |               |                    |             |                     |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating,        |               |                    |             |                     |
//	| Failed, Undefined   |               |                    |             |                     |
//	| Preparing,          | Terminate     | user               | Terminating | forced, supersedes  |
//	| Prepared, Creating, |               |                    |             | [8]                 |
//	| Suspending,         |               |                    |             |                     |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating,        |               |                    |             |                     |
//	| Undefined           |               |                    |             |                     |
//	| Suspended,          | SeeRunning    | observer           | Running     | [9]                 |
//	| Undefined           |               |                    |             |                     |
//	| Running, Undefined  | SeeSuspended  | observer           | Suspended   | [10]                |
//	| Running, Suspended, | SeeTerminated | observer           | Terminated  | [11]                |
//	| Undefined           |               |                    |             |                     |
//	| Running, Suspended, | SeeFailed     | observer           | Failed      | [12]                |
//	| Undefined           |               |                    |             |                     |
//	| Running, Suspended  | SeeNothing    | observer           | Undefined   | [13]                |
//	| Failed              | SeeRunning    | observer           | Running     | forced [14]         |
//	| Failed              | SeeSuspended  | observer           | Suspended   | forced [14]         |
//	| Failed              | SeeTerminated | observer           | Terminated  | forced [14]         |
//	| Failed              | SeeNothing    | observer           | Undefined   | forced [14]         |
//	| Terminated, Failed  | Remove        | user               | Removed     | forced [15]         |
//	| Preparing, Prepared | TimedOut      | sweeper            | Failed      | after 30m [16]      |
//	| Creating            | TimedOut      | aggregate, sweeper | Undefined   | after 2h [17]       |
//	| Suspending,         | TimedOut      | aggregate, sweeper | Undefined   | after 1h [17]       |
//	| Resuming,           |               |                    |             |                     |
//	| Rebooting,          |               |                    |             |                     |
//	| Terminating         |               |                    |             |                     |
//
//	[1] networks, security groups and keys are created
//	[2] its VMs can be started
//	[3] only forced rows lead out
//	[4] the provider's state is unknown
//	[5] the document's action outside its diagram: ends a creation on hold, before its resources are
//	    released
//	[6] all VMs failed
//	[7] beyond the document's diagram, in its text: the status follows the VMs, and all of them
//	    failed
//	[8] the force flag; reports of the superseded operation are stale
//	[9] beyond the document: resumed at the provider
//	[10] beyond the document: suspended at the provider
//	[11] beyond the document: terminated at the provider
//	[12] beyond the document: failed without an action
//	[13] beyond the document, which declares Undefined and has no row into it
//	[14] beyond the document: failed VMs were refined or forced, and the MCI follows the others
//	[15] beyond the document: the name can be used again
//	[16] beyond the document: no process continues it, and no VM was requested
//	[17] beyond the document: the outcome of its VMs is unknown
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final, grey: absent"
//	---
//	stateDiagram-v2
//	    direction TB
//	    state "Preparing" as s0
//	    state "Prepared" as s1
//	    state "Creating" as s2
//	    state "Running" as s3
//	    state "Suspending" as s4
//	    state "Suspended" as s5
//	    state "Resuming" as s6
//	    state "Rebooting" as s7
//	    state "Terminating" as s8
//	    state "Terminated" as s9
//	    state "Failed" as s10
//	    state "Undefined" as s11
//	    state "Removed" as s12
//	    [*] --> s0
//	    s0 --> s1 : Succeed by tumblebug
//	    s0 --> s10 : Fail by tumblebug<br/>TimedOut by sweeper after 30m
//	    s1 --> s2 : Provision by tumblebug
//	    s1 --> s10 : Fail by tumblebug<br/>Withdraw by user<br/>TimedOut by sweeper after 30m
//	    s2 --> s10 : Fail by aggregate
//	    s4 --> s10 : Fail by aggregate
//	    s6 --> s10 : Fail by aggregate
//	    s7 --> s10 : Fail by aggregate
//	    s8 --> s10 : Fail by aggregate
//	    s2 --> s3 : Succeed by aggregate
//	    s6 --> s3 : Succeed by aggregate
//	    s7 --> s3 : Succeed by aggregate
//	    s4 --> s5 : Succeed by aggregate
//	    s8 --> s9 : Succeed by aggregate
//	    s3 --> s4 : Suspend by user
//	    s5 --> s6 : Resume by user
//	    s3 --> s7 : Reboot by user
//	    s3 --> s8 : Terminate by user
//	    s5 --> s8 : Terminate by user
//	    s10 --> s8 : Terminate by user, forced
//	    s0 --> s4 : Suspend by user, forced, supersedes
//	    s1 --> s4 : Suspend by user, forced, supersedes
//	    s2 --> s4 : Suspend by user, forced, supersedes
//	    s4 --> s4 : Suspend by user, forced, supersedes
//	    s5 --> s4 : Suspend by user, forced, supersedes
//	    s6 --> s4 : Suspend by user, forced, supersedes
//	    s7 --> s4 : Suspend by user, forced, supersedes
//	    s8 --> s4 : Suspend by user, forced, supersedes
//	    s10 --> s4 : Suspend by user, forced, supersedes
//	    s11 --> s4 : Suspend by user, forced, supersedes
//	    s0 --> s6 : Resume by user, forced, supersedes
//	    s1 --> s6 : Resume by user, forced, supersedes
//	    s2 --> s6 : Resume by user, forced, supersedes
//	    s3 --> s6 : Resume by user, forced, supersedes
//	    s4 --> s6 : Resume by user, forced, supersedes
//	    s6 --> s6 : Resume by user, forced, supersedes
//	    s7 --> s6 : Resume by user, forced, supersedes
//	    s8 --> s6 : Resume by user, forced, supersedes
//	    s10 --> s6 : Resume by user, forced, supersedes
//	    s11 --> s6 : Resume by user, forced, supersedes
//	    s0 --> s7 : Reboot by user, forced, supersedes
//	    s1 --> s7 : Reboot by user, forced, supersedes
//	    s2 --> s7 : Reboot by user, forced, supersedes
//	    s4 --> s7 : Reboot by user, forced, supersedes
//	    s5 --> s7 : Reboot by user, forced, supersedes
//	    s6 --> s7 : Reboot by user, forced, supersedes
//	    s7 --> s7 : Reboot by user, forced, supersedes
//	    s8 --> s7 : Reboot by user, forced, supersedes
//	    s10 --> s7 : Reboot by user, forced, supersedes
//	    s11 --> s7 : Reboot by user, forced, supersedes
//	    s0 --> s8 : Terminate by user, forced, supersedes
//	    s1 --> s8 : Terminate by user, forced, supersedes
//	    s2 --> s8 : Terminate by user, forced, supersedes
//	    s4 --> s8 : Terminate by user, forced, supersedes
//	    s6 --> s8 : Terminate by user, forced, supersedes
//	    s7 --> s8 : Terminate by user, forced, supersedes
//	    s8 --> s8 : Terminate by user, forced, supersedes
//	    s11 --> s8 : Terminate by user, forced, supersedes
//	    s5 --> s3 : SeeRunning by observer
//	    s11 --> s3 : SeeRunning by observer
//	    s3 --> s5 : SeeSuspended by observer
//	    s11 --> s5 : SeeSuspended by observer
//	    s3 --> s9 : SeeTerminated by observer
//	    s5 --> s9 : SeeTerminated by observer
//	    s11 --> s9 : SeeTerminated by observer
//	    s3 --> s10 : SeeFailed by observer
//	    s5 --> s10 : SeeFailed by observer
//	    s11 --> s10 : SeeFailed by observer
//	    s3 --> s11 : SeeNothing by observer
//	    s5 --> s11 : SeeNothing by observer
//	    s10 --> s3 : SeeRunning by observer, forced
//	    s10 --> s5 : SeeSuspended by observer, forced
//	    s10 --> s9 : SeeTerminated by observer, forced
//	    s10 --> s11 : SeeNothing by observer, forced
//	    s9 --> s12 : Remove by user, forced
//	    s10 --> s12 : Remove by user, forced
//	    s2 --> s11 : TimedOut by aggregate, sweeper after 2h
//	    s4 --> s11 : TimedOut by aggregate, sweeper after 1h
//	    s6 --> s11 : TimedOut by aggregate, sweeper after 1h
//	    s7 --> s11 : TimedOut by aggregate, sweeper after 1h
//	    s8 --> s11 : TimedOut by aggregate, sweeper after 1h
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1,s2,s4,s6,s7,s8 transitional
//	    classDef final stroke-width:4px
//	    class s9,s10 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s12 absent
package tumblebug
