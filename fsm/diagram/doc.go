// Package diagram draws the table of a machine: as a Mermaid state diagram, as a
// Graphviz digraph, and as a table in Markdown or for a terminal.
//
//	fmt.Print(diagram.Mermaid(cranes.Table(), nil))
//
// [Mermaid] and [DOT] draw states and arrows. [Markdown] and [Text] list states and
// rows. Package diagramtest compares the documentation of a package with its machines.
//
// # How to read a picture
//
// Transitional states are dashed, failed states red, absent states grey. Final states
// have a double border, and a thick border in Mermaid. The black dot leads to the
// initial states. The current state, if there is one, is yellow. A legend explains the
// looks that a picture has: it is the title in Mermaid, and the label of the graph in DOT.
//
// The label of an arrow has a line for each of its rows. If several rows have the same
// actors, a last line names them for all. DOT has this line for a single row too, which
// keeps pictures narrow:
//
//		event by actors [guard] after 5m, origin A or B, forced, supersedes, return
//
//	  - The sources of a row of "any state" are all states except its target, the final
//	    and absent states, and the named exceptions.
//	  - "any actor" is every declared actor.
//	  - "after" is a timeout. fsm.Sweeper fires the row.
//	  - "origin" is a condition on the origin of the object.
//	  - A "forced" row needs a forced request. It is red in DOT.
//	  - "supersedes" starts a new operation in a transitional state.
//	  - A "return" has an arrow, dashed in DOT, to every origin of fsm.Table.Origins.
//	  - Rows that ignore an event are in the lists only.
//
// # Guarantees
//
//   - The same table and config give the same bytes. States, rows and arrows are in
//     order of declaration.
//   - The output is well formed and shows every name unchanged. Names are labels in
//     which every special character is escaped. A character that is not printable
//     shows as its number, such as <U+202E>, an empty name as <empty>.
//   - A list contains every row once. A picture contains a row for each of its sources,
//     and a return for each possible origin.
//   - A table with faults is drawn too. Undeclared states are dotted red. An index that
//     refers to nothing is not drawn, and reads "?" in the lists.
//   - All functions are pure and safe for concurrent use.
//
// # Limits
//
//   - The bytes may change from one version of this package to the next.
//   - The program that draws the picture determines the layout. Mermaid refuses sources
//     of more than 50,000 characters by default. Use DOT for such a table.
//   - Mermaid shows the escapes if its htmlLabels are off. Names of letters, digits,
//     spaces and single - _ . / inside are not escaped. The exception is the space in
//     "direction LR" and its like, which Mermaid reads as a statement.
//   - Name and title of the machine are not shown: write them above the picture.
//   - Each row is drawn alone. If an earlier row of the same event takes all objects of an
//     origin, the arrow of a return to that origin is there nevertheless.
//
// # Rejected
//
// Flowcharts in Mermaid have dashed arrows, but no initial state. An absent state as
// the start and end dot would hide its name.
//
// # Table of crane
//
// Generated from the machine; a test fails when it differs.
//
//	| State    | Kind            | Timeout  | Notes |
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
//	[2] the worker does not answer
//	[3] a report that came twice
//
// As a picture, in Mermaid:
//
//	---
//	title: "dashed: transitional, red: failed, thick border: final"
//	---
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
