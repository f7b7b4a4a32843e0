// Package evolve compares two versions of a table.
//
// # Evolution
//
// [Diff] compares two versions of a table and plays every object through both at
// once, as nodes of an old and a new binary would. The worst of the hazards is the
// verdict:
//
//	compatible  side by side as long as one likes, and back again
//	drain       once no object is in some states, and nobody fires what leads there
//	mapping     once names are translated between old and new
//	unsafe      an old or a new node would do what is wrong for the other
//
// What a drain takes away is unsafe where the state cannot be kept empty.
//
//	id               level         what is so
//	unknown-to-old   unsafe        a new node writes what an old one cannot read
//	unknown-to-new   drain         an old node writes what a new one cannot read
//	forbidden        unsafe        an old node does what the new table forbids
//	ignored          unsafe        an old node accepts and ignores what the new table forbids
//	two-results      unsafe        the same request ends in two ways
//	refused-by-old   note, unsafe  an old node refuses what the new table allows; unsafe with Strict
//	entry-forbidden  unsafe        an old node adds objects as the new table does not
//	deadline-action  unsafe        the sweepers do different things
//	deadline-added   drain         objects that an old node put there have no deadline
//	deadline-time    note          they do the same after different times
//	kind             unsafe        transitional, at rest or absent: they do not agree
//	undo             drain         failed for one, at rest for the other: what undo needs is kept by one of them
//	stranded         unsafe        one kind of node alone cannot bring the object to rest
//	renamed          mapping       two names for one thing
//	too-many-guards  unsafe        a cell differs, and has more guards than are compared one by one
//
// The same table twice gives an empty [Evolution]. Two versions judged one after
// the other say nothing about both at once: compare what will run side by side.
package evolve
