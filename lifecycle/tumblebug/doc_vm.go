// # Table of vm
//
// Generated from the machine; a test fails when it differs.
//
//	| State       | Kind                  | Timeout       | Notes              |
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
//	| Creating, Suspending,      | Fail          | csp      | Failed      |                        |
//	| Resuming, Rebooting,       |               |          |             |                        |
//	| Terminating                |               |          |             |                        |
//	| Creating, Resuming,        | Succeed       | csp      | Running     |                        |
//	| Rebooting                  |               |          |             |                        |
//	| Suspending                 | Succeed       | csp      | Suspended   |                        |
//	| Terminating                | Succeed       | csp      | Terminated  |                        |
//	| Running                    | Suspend       | user     | Suspending  |                        |
//	| Suspended                  | Resume        | user     | Resuming    |                        |
//	| Running                    | Reboot        | user     | Rebooting   |                        |
//	| Running, Suspended         | Terminate     | user     | Terminating |                        |
//	| Failed                     | Terminate     | user     | Terminating | forced                 |
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
//	| Terminated                 | Remove        | user     | Removed     | forced [6]             |
//	| Suspended, Undefined       | SeeRunning    | observer | Running     | [7]                    |
//	| Running, Undefined         | SeeSuspended  | observer | Suspended   | [8]                    |
//	| Running, Suspended,        | SeeTerminated | observer | Terminated  | [9]                    |
//	| Undefined                  |               |          |             |                        |
//	| Running, Suspended,        | SeeFailed     | observer | Failed      | [10]                   |
//	| Undefined                  |               |          |             |                        |
//	| Running, Suspended         | SeeNothing    | observer | Undefined   | [11]                   |
//	| Creating                   | TakeOver      | observer | Creating    | supersedes [12]        |
//	| Suspending                 | TakeOver      | observer | Suspending  | supersedes [12]        |
//	| Resuming                   | TakeOver      | observer | Resuming    | supersedes [12]        |
//	| Rebooting                  | TakeOver      | observer | Rebooting   | supersedes [12]        |
//	| Terminating                | TakeOver      | observer | Terminating | supersedes [12]        |
//	| Creating                   | TimedOut      | sweeper  | Undefined   | after 30m [13]         |
//	| Suspending, Resuming,      | TimedOut      | sweeper  | Undefined   | after 15m [14]         |
//	| Rebooting, Terminating     |               |          |             |                        |
//
//	[1] only forced rows lead out
//	[2] the provider's state is unknown
//	[3] the document's Create Action: adds and starts the VM in one step
//	[4] the force flag; reports of the superseded operation are stale
//	[5] the document's action outside its diagram; sends no request to the provider
//	[6] beyond the document: removed with its MCI
//	[7] beyond the document: resumed at the provider
//	[8] beyond the document: suspended at the provider
//	[9] beyond the document: terminated at the provider
//	[10] beyond the document: failed without an action
//	[11] beyond the document, which declares Undefined and has no row into it
//	[12] beyond the document: another process continues the action
//	[13] beyond the document: the provider does not answer, and the VM may exist
//	[14] beyond the document: the provider does not answer
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, thick border: final, grey: absent"
//	---
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
//	    s0 --> s8 : Fail by csp
//	    s2 --> s8 : Fail by csp
//	    s4 --> s8 : Fail by csp
//	    s5 --> s8 : Fail by csp
//	    s6 --> s8 : Fail by csp
//	    s0 --> s1 : Succeed by csp
//	    s4 --> s1 : Succeed by csp
//	    s5 --> s1 : Succeed by csp
//	    s2 --> s3 : Succeed by csp
//	    s6 --> s7 : Succeed by csp
//	    s1 --> s2 : Suspend by user
//	    s3 --> s4 : Resume by user
//	    s1 --> s5 : Reboot by user
//	    s1 --> s6 : Terminate by user
//	    s3 --> s6 : Terminate by user
//	    s8 --> s6 : Terminate by user, forced
//	    s0 --> s2 : Suspend by user, forced, supersedes
//	    s2 --> s2 : Suspend by user, forced, supersedes<br/>TakeOver by observer, supersedes
//	    s3 --> s2 : Suspend by user, forced, supersedes
//	    s4 --> s2 : Suspend by user, forced, supersedes
//	    s5 --> s2 : Suspend by user, forced, supersedes
//	    s6 --> s2 : Suspend by user, forced, supersedes
//	    s8 --> s2 : Suspend by user, forced, supersedes
//	    s9 --> s2 : Suspend by user, forced, supersedes
//	    s0 --> s4 : Resume by user, forced, supersedes
//	    s1 --> s4 : Resume by user, forced, supersedes
//	    s2 --> s4 : Resume by user, forced, supersedes
//	    s4 --> s4 : Resume by user, forced, supersedes<br/>TakeOver by observer, supersedes
//	    s5 --> s4 : Resume by user, forced, supersedes
//	    s6 --> s4 : Resume by user, forced, supersedes
//	    s8 --> s4 : Resume by user, forced, supersedes
//	    s9 --> s4 : Resume by user, forced, supersedes
//	    s0 --> s5 : Reboot by user, forced, supersedes
//	    s2 --> s5 : Reboot by user, forced, supersedes
//	    s3 --> s5 : Reboot by user, forced, supersedes
//	    s4 --> s5 : Reboot by user, forced, supersedes
//	    s5 --> s5 : Reboot by user, forced, supersedes<br/>TakeOver by observer, supersedes
//	    s6 --> s5 : Reboot by user, forced, supersedes
//	    s8 --> s5 : Reboot by user, forced, supersedes
//	    s9 --> s5 : Reboot by user, forced, supersedes
//	    s0 --> s6 : Terminate by user, forced, supersedes
//	    s2 --> s6 : Terminate by user, forced, supersedes
//	    s4 --> s6 : Terminate by user, forced, supersedes
//	    s5 --> s6 : Terminate by user, forced, supersedes
//	    s6 --> s6 : Terminate by user, forced, supersedes<br/>TakeOver by observer, supersedes
//	    s9 --> s6 : Terminate by user, forced, supersedes
//	    s8 --> s10 : Refine by user, forced
//	    s9 --> s10 : Refine by user, forced
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
//	    s0 --> s0 : TakeOver by observer, supersedes
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
