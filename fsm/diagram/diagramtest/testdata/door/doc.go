// Package door is about doors.
//
// # Table of door
//
// Generated from the machine; a test fails when it differs.
//
//	| State  | Kind            |
//	| ------ | --------------- |
//	| Open   | stable          |
//	| Closed | stable          |
//
//	| From   | Event | Actor     | To     | Notes |
//	| ------ | ----- | --------- | ------ | ----- |
//	| Open   | close | any actor | Closed |       |
//	| Closed | open  | any actor | Open   | [1]   |
//
//	[1] the key fits
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "Open" as s0
//	    state "Closed" as s1
//	    [*] --> s0
//	    s0 --> s1 : close by any actor
//	    s1 --> s0 : open by any actor
package door
