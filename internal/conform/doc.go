// Package conform compares the table of a machine with the table of a published
// document. The tests of the five systems use it.
//
//	conform.Check(t, ovc.VM.Table(), "testdata/vm.json", "testdata/vm.map.txt")
//
// Both tables become lists of lines, one line for every source, actor and target of
// a row:
//
//	initial VIRTUAL
//	state PAUSED is stable
//	state PAUSING leads to PAUSED
//	RUNNING --pause by user--> PAUSING
//	RUNNING --stuck by sweeper--> PAUSED [return; forced] if idle
//
// The document is a file of the form lifecycle-table/1. A map file names every
// difference between the two lists and its reason. [Check] reports:
//
//   - a difference that the map file does not name,
//   - an entry of the map file that matches nothing, and an entry without a reason,
//   - an addition without a Doc in the machine, and an addition that is neither
//     forced nor fired by the sweeper or an observer,
//   - a row of the sweeper without a timeout.
//
// Check does not compare durations, titles and texts. It compares the target of a
// transitional state only if the document names one.
//
// # The map file
//
// A paragraph of entries follows the text of its reason. Entries are indented. A
// line that starts with # is a comment.
//
//	The names of actors are in lower case.
//	    actor User = user
//
//	The document has no word for a lease that does not exist.
//	    state gone = ABSENT
//
//	One row that returns to the origin stands for a row with a guard.
//	    - ADDING_DISK --done by worker--> PAUSED if requested target is PAUSED
//	    + ADDING_DISK --done by worker--> PAUSED [return]
//
//	addition: self-healing, note 2 of the document
//	    + PAUSING --stuck by sweeper--> RUNNING [return]
//
// An actor, event or state entry renames a name of the document. A line with - is a
// line of the document, in the names of the document, that the machine lacks. A line
// with + is a line of the machine that the document lacks. A reason that starts with
// "addition:" introduces rows that go beyond the document.
package conform
