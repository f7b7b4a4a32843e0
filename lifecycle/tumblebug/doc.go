// Package tumblebug is a multi-cloud infrastructure manager: VMs at many
// providers, and the infrastructures (MCIs) that they make up.
//
// Tables and behaviour are those of "MCI and VM Lifecycle Management" of
// CB-Tumblebug.
//
//	CreateMci ─────────▶ ┌────────┐   brings MCIs forward    ┌──────────┐
//	HandleMciAction ───▶ │        │ ── Prepare, Release ───▶ │          │
//	HandleMciVmAction ─▶ │ System │ ── Create, Control ────▶ │ Provider │
//	GetMciStatus ──────▶ │        │ ── Status ─────────────▶ │          │
//	                     └────────┘   VMs, under the limits  └──────────┘
//
// A [System] does what users ask for over a [Provider]. [MCI] and [VM] are the
// machines alone. [Allowed], [Summarize], [Correct], [Cached] and [Doing] are the
// rules of the document as functions.
//
// # Guarantees
//
//   - Every row of the document's two diagrams is in the machines, with its
//     actor, and every cell of its matrix of allowed actions: a test compares
//     them one by one.
//   - Force skips the matrix, and nothing else: a forced action is a row, with
//     an actor and an operation of its own, and what it interrupts reports in
//     vain. In Terminated, no action moves anything, by force either.
//   - What a process that stood still asks of a provider late is about the life of
//     the MCI that it was asked for, and spares a later MCI of the same name.
//   - An action on an MCI asks each of its VMs once, whoever dies meanwhile, and
//     waits for a VM that is at something of its own. While it is under way, no
//     action of a VM is admitted without force: that is a condition of the commit.
//   - One look that could mean something else ends no action: neither a rebooted
//     VM that looks Running, nor a terminated one that nobody can see, nor one
//     that is shown as Failed. Such looks are confirmed by others.
//   - What is not answered is not taken for a failure: only what a provider
//     rejects fails at once.
//   - The limits of providers and regions hold for all requests of the process
//     together, and the time of a VM begins when its turn comes.
//   - Target action and target status follow from the status, and are None when
//     an action is complete.
//   - No action lasts for ever: the sweeper ends it, and because nobody knows
//     how, it ends in Undefined.
//
// # No guarantees
//
//   - Force can make a mess, as the document says: a VM that is suspended by
//     force while it is created may be left behind at the provider.
//   - The state of an MCI follows actions of single VMs when somebody asks for its
//     status or for an action, not before.
//   - What is Suspended is answered from the cache, as in the document: that
//     somebody has resumed it at the provider is not seen.
//   - Deadlines are the business of whoever calls [System.Sweep]. Where several
//     processes share a store, one takes a VM that waits for its turn in another
//     one for longer than its deadline for lost.
//
// # Beyond the document
//
// The document's action Create is the addition of the object: an MCI begins in
// Preparing, a VM in Creating, and [Create] is its event for the same.
//
// Failed is final, as in the document, and so only force leads out: Terminate,
// as drawn there, and every other action. [Refine] is an action of the document
// that its diagrams lack. It removes a VM that is Failed or Undefined, after a
// look at those of which nobody knew. [Withdraw] removes an MCI on hold; the
// document lists it and continue without a word, and here they answer a creation
// that was asked to hold when it is Prepared, however long that takes. What was
// prepared is released first, and [Release] is the note that it is to be, for
// whoever takes over; so it is for an MCI that cannot be prepared. [Remove] and [System.DelMci] make a name free again.
//
// Undefined is declared in the document, and nothing leads there. Here the
// observer does, who looked at a VM that rests and could not tell, and the
// sweeper; and the observer leads out, as soon as it can tell. What it sees
// otherwise, it writes down: somebody has stopped the VM behind our back. Failed
// and Terminated are confirmed first, because nobody asks about them again.
//
// The document's aggregation names one dominant status, and its diagram lets an
// MCI run of which some VMs do. Where they differ, the text has the first, and the
// matrix is asked about the second, which [Conclude] gives: VMs that are Failed or Terminated decide what
// an MCI is only if there are no others. While most VMs are in transition by
// actions of their own, the MCI is refused an action of its own.
//
// An MCI of which all VMs fail in an action ends in Failed, and one of which a VM
// could not be terminated too; the diagram has that for the creation only. Networks,
// security groups and keys are made for each MCI and region, and released when
// it is terminated or deleted, or its creation fails without any VM, is rolled back
// or withdrawn. A provider that is not in the document's table has no limits.
//
// Refine forgets a VM of which nobody knows, as the document says, and so one that
// runs may be left at a provider that has not answered. It is one that was Failed or
// Undefined already when refine was asked for, and is so after another look.
//
// # Table of mci
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind                  | Deadline      | Notes              |
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
//	| From                     | Event         | Actor     | To          | Notes                   |
//	| ------------------------ | ------------- | --------- | ----------- | ----------------------- |
//	| Preparing                | Succeed       | tumblebug | Prepared    |                         |
//	| Preparing                | Fail          | tumblebug | Failed      |                         |
//	| Prepared                 | Provision     | tumblebug | Creating    |                         |
//	| Prepared                 | Fail          | tumblebug | Failed      |                         |
//	| Prepared                 | Withdraw      | user      | Removed     | [5]                     |
//	| Prepared                 | Release       | user      | Prepared    | forced [6]              |
//	| Preparing                | Release       | tumblebug | Preparing   | forced [7]              |
//	| Creating                 | Succeed       | aggregate | Running     | [8]                     |
//	| Creating                 | Fail          | aggregate | Failed      | [9]                     |
//	| Running                  | Suspend       | user      | Suspending  |                         |
//	| Suspended                | Resume        | user      | Resuming    |                         |
//	| Running                  | Reboot        | user      | Rebooting   |                         |
//	| Running, Suspended       | Terminate     | user      | Terminating |                         |
//	| Failed                   | Terminate     | user      | Terminating | forced                  |
//	| Suspending               | Succeed       | aggregate | Suspended   | [10]                    |
//	| Resuming                 | Succeed       | aggregate | Running     | [8]                     |
//	| Rebooting                | Succeed       | aggregate | Running     |                         |
//	| Terminating              | Succeed       | aggregate | Terminated  | [11]                    |
//	| Suspending, Resuming,    | Fail          | aggregate | Failed      | [12]                    |
//	| Rebooting, Terminating   |               |           |             |                         |
//	| Preparing, Prepared,     | Suspend       | user      | Suspending  | forced, supersedes [13] |
//	| Creating, Suspending,    |               |           |             |                         |
//	| Suspended, Resuming,     |               |           |             |                         |
//	| Rebooting, Terminating,  |               |           |             |                         |
//	| Failed, Undefined        |               |           |             |                         |
//	| Preparing, Prepared,     | Resume        | user      | Resuming    | forced, supersedes [13] |
//	| Creating, Running,       |               |           |             |                         |
//	| Suspending, Resuming,    |               |           |             |                         |
//	| Rebooting, Terminating,  |               |           |             |                         |
//	| Failed, Undefined        |               |           |             |                         |
//	| Preparing, Prepared,     | Reboot        | user      | Rebooting   | forced, supersedes [13] |
//	| Creating, Suspending,    |               |           |             |                         |
//	| Suspended, Resuming,     |               |           |             |                         |
//	| Rebooting, Terminating,  |               |           |             |                         |
//	| Failed, Undefined        |               |           |             |                         |
//	| Preparing, Prepared,     | Terminate     | user      | Terminating | forced, supersedes [13] |
//	| Creating, Suspending,    |               |           |             |                         |
//	| Resuming, Rebooting,     |               |           |             |                         |
//	| Terminating, Undefined   |               |           |             |                         |
//	| Suspended, Undefined     | SeeRunning    | observer  | Running     | [14]                    |
//	| Running, Undefined       | SeeSuspended  | observer  | Suspended   | [15]                    |
//	| Running, Suspended,      | SeeTerminated | observer  | Terminated  | [16]                    |
//	| Undefined                |               |           |             |                         |
//	| Running, Suspended,      | SeeFailed     | observer  | Failed      | [17]                    |
//	| Undefined                |               |           |             |                         |
//	| Running, Suspended       | SeeNothing    | observer  | Undefined   | [18]                    |
//	| Failed                   | SeeRunning    | observer  | Running     | forced [19]             |
//	| Failed                   | SeeSuspended  | observer  | Suspended   | forced [20]             |
//	| Failed                   | SeeTerminated | observer  | Terminated  | forced [21]             |
//	| Failed                   | SeeNothing    | observer  | Undefined   | forced [22]             |
//	| Terminated, Failed       | Remove        | user      | Removed     | forced [23]             |
//	| Preparing, Prepared      | TimedOut      | sweeper   | Failed      | after 30m [24]          |
//	| Creating                 | TimedOut      | sweeper   | Undefined   | after 2h [25]           |
//	| Suspending, Resuming,    | TimedOut      | sweeper   | Undefined   | after 1h [25]           |
//	| Rebooting, Terminating   |               |           |             |                         |
//
//	[1] networks, security groups and keys are made
//	[2] its VMs can be started
//	[3] only force leads out
//	[4] nobody knows what it is
//	[5] the document's action outside its diagram; the answer to a creation that was asked to hold
//	[6] beyond the document: withdraw was said; whoever takes over releases what was prepared, and
//	    withdraws
//	[7] beyond the document: it cannot be prepared; whoever takes over releases what was, and says
//	    that it failed
//	[8] all or some VMs run
//	[9] all VMs failed
//	[10] all or some VMs are suspended
//	[11] all VMs are terminated
//	[12] beyond the document's diagram, in its text: the status follows the VMs, and all of them
//	     failed
//	[13] the force flag; what it interrupts reports in vain
//	[14] beyond the document: somebody else resumed it
//	[15] beyond the document: somebody else suspended it
//	[16] beyond the document: somebody else terminated it
//	[17] beyond the document: it broke by itself
//	[18] beyond the document, which declares Undefined and enters it nowhere
//	[19] beyond the document: what had failed is refined away or was forced, and some VMs run
//	[20] beyond the document: as above, and some VMs are suspended
//	[21] beyond the document: as above, and all VMs that are left are terminated
//	[22] beyond the document: as above, and nobody knows what the VMs are
//	[23] beyond the document: its name is free again
//	[24] beyond the document: nobody works on it, and no VM was asked for
//	[25] beyond the document: nobody says what became of the VMs
//
// As a picture, in Mermaid:
//
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
//	    s1 --> s10 : Fail by tumblebug<br/>TimedOut by sweeper after 30m
//	    s1 --> s12 : Withdraw by user
//	    s1 --> s1 : Release by user, forced
//	    s0 --> s0 : Release by tumblebug, forced
//	    s2 --> s3 : Succeed by aggregate
//	    s2 --> s10 : Fail by aggregate
//	    s3 --> s4 : Suspend by user
//	    s5 --> s6 : Resume by user
//	    s3 --> s7 : Reboot by user
//	    s3 --> s8 : Terminate by user
//	    s5 --> s8 : Terminate by user
//	    s10 --> s8 : Terminate by user, forced
//	    s4 --> s5 : Succeed by aggregate
//	    s6 --> s3 : Succeed by aggregate
//	    s7 --> s3 : Succeed by aggregate
//	    s8 --> s9 : Succeed by aggregate
//	    s4 --> s10 : Fail by aggregate
//	    s6 --> s10 : Fail by aggregate
//	    s7 --> s10 : Fail by aggregate
//	    s8 --> s10 : Fail by aggregate
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
//	    s2 --> s11 : TimedOut by sweeper after 2h
//	    s4 --> s11 : TimedOut by sweeper after 1h
//	    s6 --> s11 : TimedOut by sweeper after 1h
//	    s7 --> s11 : TimedOut by sweeper after 1h
//	    s8 --> s11 : TimedOut by sweeper after 1h
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s1,s2,s4,s6,s7,s8 transitional
//	    classDef final stroke-width:4px
//	    class s9,s10 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s12 absent
//
// # Table of vm
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind                  | Deadline      | Notes              |
//	| ----------- | --------------------- | ------------- | ------------------ |
//	| Creating    | transitional, initial | 30m, TimedOut | towards Running    |
//	| Running     | stable                |               |                    |
//	| Suspending  | transitional          | 15m, TimedOut | towards Suspended  |
//	| Suspended   | stable                |               |                    |
//	| Resuming    | transitional          | 15m, TimedOut | towards Running    |
//	| Rebooting   | transitional          | 15m, TimedOut | towards Running    |
//	| Terminating | transitional          | 15m, TimedOut | towards Terminated |
//	| Terminated  | final                 |               |                    |
//	| Failed      | final                 |               | [1]                |
//	| Undefined   | stable                |               | [2]                |
//	| Removed     | absent                |               |                    |
//
//	| From                       | Event         | Actor    | To          | Notes                  |
//	| -------------------------- | ------------- | -------- | ----------- | ---------------------- |
//	| Removed                    | Create        | user     | Creating    | [3]                    |
//	| Creating                   | Succeed       | csp      | Running     |                        |
//	| Creating                   | Fail          | csp      | Failed      |                        |
//	| Running                    | Suspend       | user     | Suspending  |                        |
//	| Suspended                  | Resume        | user     | Resuming    |                        |
//	| Running                    | Reboot        | user     | Rebooting   |                        |
//	| Running, Suspended         | Terminate     | user     | Terminating |                        |
//	| Failed                     | Terminate     | user     | Terminating | forced                 |
//	| Suspending                 | Succeed       | csp      | Suspended   |                        |
//	| Suspending                 | Fail          | csp      | Failed      |                        |
//	| Resuming                   | Succeed       | csp      | Running     |                        |
//	| Resuming                   | Fail          | csp      | Failed      |                        |
//	| Rebooting                  | Succeed       | csp      | Running     |                        |
//	| Rebooting                  | Fail          | csp      | Failed      |                        |
//	| Terminating                | Succeed       | csp      | Terminated  |                        |
//	| Terminating                | Fail          | csp      | Failed      |                        |
//	| Creating, Suspending,      | Suspend       | user     | Suspending  | forced, supersedes [4] |
//	| Suspended, Resuming,       |               |          |             |                        |
//	| Rebooting, Terminating,    |               |          |             |                        |
//	| Failed, Undefined          |               |          |             |                        |
//	| Creating, Running,         | Resume        | user     | Resuming    | forced, supersedes [4] |
//	| Suspending, Resuming,      |               |          |             |                        |
//	| Rebooting, Terminating,    |               |          |             |                        |
//	| Failed, Undefined          |               |          |             |                        |
//	| Creating, Suspending,      | Reboot        | user     | Rebooting   | forced, supersedes [4] |
//	| Suspended, Resuming,       |               |          |             |                        |
//	| Rebooting, Terminating,    |               |          |             |                        |
//	| Failed, Undefined          |               |          |             |                        |
//	| Creating, Suspending,      | Terminate     | user     | Terminating | forced, supersedes [4] |
//	| Resuming, Rebooting,       |               |          |             |                        |
//	| Terminating, Undefined     |               |          |             |                        |
//	| Failed, Undefined          | Refine        | user     | Removed     | forced [5]             |
//	| Terminated, Failed,        | Remove        | user     | Removed     | forced [6]             |
//	| Undefined                  |               |          |             |                        |
//	| Suspended, Undefined       | SeeRunning    | observer | Running     | [7]                    |
//	| Running, Undefined         | SeeSuspended  | observer | Suspended   | [8]                    |
//	| Running, Suspended,        | SeeTerminated | observer | Terminated  | [9]                    |
//	| Undefined                  |               |          |             |                        |
//	| Running, Suspended,        | SeeFailed     | observer | Failed      | [10]                   |
//	| Undefined                  |               |          |             |                        |
//	| Running, Suspended         | SeeNothing    | observer | Undefined   | [11]                   |
//	| Creating                   | TimedOut      | sweeper  | Undefined   | after 30m [12]         |
//	| Suspending, Resuming,      | TimedOut      | sweeper  | Undefined   | after 15m [13]         |
//	| Rebooting, Terminating     |               |          |             |                        |
//
//	[1] only force leads out
//	[2] nobody knows what it is
//	[3] the document's Create Action, for the one who starts the VM as he adds it
//	[4] the force flag; what it interrupts reports in vain
//	[5] the document's action outside its diagram; the provider is not asked
//	[6] beyond the document: with its MCI, or rolled back
//	[7] beyond the document: somebody else resumed it
//	[8] beyond the document: somebody else suspended it
//	[9] beyond the document: somebody else terminated it
//	[10] beyond the document: it broke by itself
//	[11] beyond the document, which declares Undefined and enters it nowhere
//	[12] beyond the document: the provider is silent, and there may be a VM
//	[13] beyond the document: the provider is silent
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "Creating" as s0
//	    state "Running" as s1
//	    state "Suspending" as s2
//	    state "Suspended" as s3
//	    state "Resuming" as s4
//	    state "Rebooting" as s5
//	    state "Terminating" as s6
//	    state "Terminated" as s7
//	    state "Failed" as s8
//	    state "Undefined" as s9
//	    state "Removed" as s10
//	    [*] --> s0
//	    s10 --> s0 : Create by user
//	    s0 --> s1 : Succeed by csp
//	    s0 --> s8 : Fail by csp
//	    s1 --> s2 : Suspend by user
//	    s3 --> s4 : Resume by user
//	    s1 --> s5 : Reboot by user
//	    s1 --> s6 : Terminate by user
//	    s3 --> s6 : Terminate by user
//	    s8 --> s6 : Terminate by user, forced
//	    s2 --> s3 : Succeed by csp
//	    s2 --> s8 : Fail by csp
//	    s4 --> s1 : Succeed by csp
//	    s4 --> s8 : Fail by csp
//	    s5 --> s1 : Succeed by csp
//	    s5 --> s8 : Fail by csp
//	    s6 --> s7 : Succeed by csp
//	    s6 --> s8 : Fail by csp
//	    s0 --> s2 : Suspend by user, forced, supersedes
//	    s2 --> s2 : Suspend by user, forced, supersedes
//	    s3 --> s2 : Suspend by user, forced, supersedes
//	    s4 --> s2 : Suspend by user, forced, supersedes
//	    s5 --> s2 : Suspend by user, forced, supersedes
//	    s6 --> s2 : Suspend by user, forced, supersedes
//	    s8 --> s2 : Suspend by user, forced, supersedes
//	    s9 --> s2 : Suspend by user, forced, supersedes
//	    s0 --> s4 : Resume by user, forced, supersedes
//	    s1 --> s4 : Resume by user, forced, supersedes
//	    s2 --> s4 : Resume by user, forced, supersedes
//	    s4 --> s4 : Resume by user, forced, supersedes
//	    s5 --> s4 : Resume by user, forced, supersedes
//	    s6 --> s4 : Resume by user, forced, supersedes
//	    s8 --> s4 : Resume by user, forced, supersedes
//	    s9 --> s4 : Resume by user, forced, supersedes
//	    s0 --> s5 : Reboot by user, forced, supersedes
//	    s2 --> s5 : Reboot by user, forced, supersedes
//	    s3 --> s5 : Reboot by user, forced, supersedes
//	    s4 --> s5 : Reboot by user, forced, supersedes
//	    s5 --> s5 : Reboot by user, forced, supersedes
//	    s6 --> s5 : Reboot by user, forced, supersedes
//	    s8 --> s5 : Reboot by user, forced, supersedes
//	    s9 --> s5 : Reboot by user, forced, supersedes
//	    s0 --> s6 : Terminate by user, forced, supersedes
//	    s2 --> s6 : Terminate by user, forced, supersedes
//	    s4 --> s6 : Terminate by user, forced, supersedes
//	    s5 --> s6 : Terminate by user, forced, supersedes
//	    s6 --> s6 : Terminate by user, forced, supersedes
//	    s9 --> s6 : Terminate by user, forced, supersedes
//	    s8 --> s10 : Refine by user, forced<br/>Remove by user, forced
//	    s9 --> s10 : Refine by user, forced<br/>Remove by user, forced
//	    s7 --> s10 : Remove by user, forced
//	    s3 --> s1 : SeeRunning by observer
//	    s9 --> s1 : SeeRunning by observer
//	    s1 --> s3 : SeeSuspended by observer
//	    s9 --> s3 : SeeSuspended by observer
//	    s1 --> s7 : SeeTerminated by observer
//	    s3 --> s7 : SeeTerminated by observer
//	    s9 --> s7 : SeeTerminated by observer
//	    s1 --> s8 : SeeFailed by observer
//	    s3 --> s8 : SeeFailed by observer
//	    s9 --> s8 : SeeFailed by observer
//	    s1 --> s9 : SeeNothing by observer
//	    s3 --> s9 : SeeNothing by observer
//	    s0 --> s9 : TimedOut by sweeper after 30m
//	    s2 --> s9 : TimedOut by sweeper after 15m
//	    s4 --> s9 : TimedOut by sweeper after 15m
//	    s5 --> s9 : TimedOut by sweeper after 15m
//	    s6 --> s9 : TimedOut by sweeper after 15m
//	    classDef transitional stroke-dasharray:5 4
//	    class s0,s2,s4,s5,s6 transitional
//	    classDef final stroke-width:4px
//	    class s7,s8 final
//	    classDef absent fill:#eeeeee,stroke:#999999,color:#666666
//	    class s10 absent
package tumblebug
