// Package conform proves that a machine is the table of a published document.
//
// A [Document] holds the facts of the document: states with their kinds, and
// rows. A [Mapping] is a file that people review: it says which name of the
// document is which name of the machine, which row stands for a row of another
// form, and what was added. [Check] compares the machine with both, and fails on
// everything that is unmapped on either side:
//
//   - a state or row of the document that nothing represents,
//   - a state or row of the machine that represents nothing and is not listed,
//   - another kind, initial state, target, actor, guard, origin condition or
//     form,
//   - an entry of the mapping that matches nothing, or that changes something
//     and gives no reason,
//   - an addition by an actor of the document that is not forced, or one that
//     the machine does not explain in its Doc,
//   - a row by the sweeper that is no deadline, and a row where the document
//     forbids one.
//
// It does not compare durations, titles and Doc texts: documents seldom have
// them.
//
// Rows are compared one by one: a row of the machine with several sources,
// actors or possible origins counts as that many, see [Row].
//
// Check then changes the machine in every small way and fails if the comparison
// does not notice, so that a lax mapping is found too. [Walk] drives a machine
// through its whole table.
//
// # The mapping file
//
// A section begins in the first column with its word and a colon; the rest of
// that paragraph is the reason for every entry below it. Entries are indented.
// What begins with # is a comment.
//
//	actors: the document says who only where it matters
//	    api = user
//
//	events: the names of the events are those of the data, not of the document
//	    start pausing = pause
//
//	states: the document says that the object does not exist
//	    does-not-exist stable = does-not-exist absent
//
//	rows: the object returns to where it was
//	    ADDING_DISK --done by worker--> PAUSED if requested target is PAUSED
//	        = ADDING_DISK --done by worker--> PAUSED [return]
//
//	additions: self-healing, note 2 of the document
//	    PAUSING --stuck by sweeper--> origin
//
//	prose: the text lets a system be deleted at any point, the diagram does not
//	    pending --delete by user--> deleting [supersedes]
//
// In actors, events and states the document is on the left, and what is not
// mentioned has the same name and kind on both sides. A state of the machine
// that no state of the document is stands alone on the right:
//
//	states: why there is one more
//	    = waiting stable
//
// In rows, the row of the document is followed by what represents it in the
// machine; several lines with = are several rows. In additions and prose there
// are rows of the machine only, and the target "origin" stands for every target
// of a return row. Additions are by the actors sweeper or observer, or forced;
// prose is for what the document says outside its table, by any actor.
package conform
