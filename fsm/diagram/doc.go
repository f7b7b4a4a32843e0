// Package diagram draws a machine from the table that runs: as a Mermaid state
// diagram, as a Graphviz digraph, and as a table in Markdown or for a terminal.
//
//	fmt.Print(diagram.Mermaid(cranes.Table(), nil))
//
// [Mermaid] and [DOT] draw states and arrows; [Markdown] and [Text] list states
// and rows. Package diagramtest keeps what stands in a package's documentation
// equal to the machine.
//
// # How to read a picture
//
// Transitional states are dashed, failed ones red, final ones have a double
// border (in Mermaid, which has none, a thick one), absent ones are grey. The
// black dot leads to the states in which an object may begin.
//
// An arrow says, for each of its rows:
//
//	event by actors [guard] after 5m, origin A or B, forced, supersedes, return
//
// A row of "any state" has every state but the final, absent and named ones and
// its target as a source. "any actor" is every declared one. A time is a
// deadline, fired by [fsm.Sweeper] after that long in the source. "origin"
// asks where the object last rested. "forced" rows need a forced request and
// are red in DOT. "supersedes" begins a new operation in a transitional state.
// A "return" leads back to the origin: there is an arrow, dashed in DOT, to
// every state that [fsm.Table.Origins] names. Rows that lead the same way share
// an arrow and have a line each. Rows that ignore an event are in the tables,
// and in pictures if [Config] says so.
//
// # Guarantees
//
//   - The same table and config give the same bytes: states, rows and arrows
//     stand in order of declaration.
//   - Whatever the names are, the output is well formed and shows every name as
//     it is. States are called s0, s1, ... in the source of a picture; names are
//     texts with every character escaped that could mean something. Characters
//     that cannot be seen show as <U+XXXX>, an empty name as <empty>.
//   - Every row is listed once, and drawn for each of its sources unless it
//     ignores its event; a return is drawn for each origin possible there.
//   - A table with faults is drawn too. States that a document names and does
//     not declare are dotted red. In a table made by hand, an index that refers
//     to nothing is not drawn and reads "?" in the lists.
//   - All functions are pure and safe for concurrent use.
//
// # No guarantees
//
//   - The bytes may change from one version of this package to the next.
//   - The layout is up to what draws the picture. Mermaid's defaults refuse
//     sources of over 50,000 characters; use DOT, [Config.HideActors] or
//     [Config.CollapseAny] for such a table.
//   - Mermaid shows escapes as they are if its htmlLabels are turned off. Names
//     of letters, digits, spaces and single - _ . / inside are not escaped.
//   - Source, codes, sections and actions of an imported table are not shown.
//
// # Rejected
//
// Flowcharts in Mermaid would allow dashed arrows, but have no initial state,
// and most readers expect a state diagram. An absent state as the start and end
// dot would hide its name. A picture of a guard's code would be a second truth.
//
// # Table of crane
//
// Generated from the machine; a test fails when it differs.
//
//	| State    | Kind            | Deadline | Notes |
//	| -------- | --------------- | -------- | ----- |
//	| Idle     | stable, initial |          |       |
//	| Moving   | transitional    | 5m, Lost | [1]   |
//	| Broken   | failed          |          |       |
//	| Scrapped | final           |          |       |
//
//	| From                | Event   | Actor     | Guard        | To                 | Notes        |
//	| ------------------- | ------- | --------- | ------------ | ------------------ | ------------ |
//	| Idle                | Lift    | user      | light enough | Moving             |              |
//	| Moving              | Arrived | worker    |              | back to the origin |              |
//	| Moving              | Lost    | sweeper   |              | Broken             | after 5m [2] |
//	| Idle                | Arrived | worker    |              | ignored            | [3]          |
//	| Broken              | Repair  | user      |              | Idle               | forced       |
//	| any state but       | Scrap   | any actor |              | Scrapped           |              |
//	| Moving              |         |           |              |                    |              |
//
//	[1] the load is in the air
//	[2] nobody answers any more
//	[3] a report that came twice
//
// As a picture, in Mermaid:
//
//	stateDiagram-v2
//	    direction TB
//	    state "Idle" as s0
//	    state "Moving" as s1
//	    state "Broken" as s2
//	    state "Scrapped" as s3
//	    [*] --> s0
//	    s0 --> s1 : Lift by user [light enough]
//	    s1 --> s0 : Arrived by worker, return
//	    s1 --> s2 : Lost by sweeper after 5m
//	    s2 --> s0 : Repair by user, forced
//	    s0 --> s3 : Scrap by any actor
//	    s2 --> s3 : Scrap by any actor
//	    classDef transitional stroke-dasharray:5 4
//	    class s1 transitional
//	    classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
//	    class s2 failed
//	    classDef final stroke-width:4px
//	    class s3 final
package diagram
