// Package history judges a history by the tables of its time.
//
// # Conformance
//
// [Conform] judges a history by the tables of its time: rows from a store, or JSON
// lines from anywhere ([ReadHistory]), of many objects in one feed. It takes one
// pass, and what it keeps grows with the objects that are alive at once.
//
//	id                      what is so
//	unreadable              a line that is not of the documented form
//	unknown-machine         a row of a machine of which there is no table
//	unknown-version         a row of a version of which there is no table
//	unknown-name            a state or an event that the table does not have
//	wrong-version           the step is of another version than the row is
//	illegal-step            no row of the table leads there on this event
//	wrong-actor             a row leads there, for somebody else
//	no-beginning            the first row of an object is in the middle of its life
//	created-twice           an object comes into being that is there
//	broken-chain            a row does not begin where the one before it ended
//	outcome-without-intent  work ends that was not begun, or of another operation than is under way
//	wrong-origin            where the object was at rest last is another state
//	skipped-sequence        a sequence number is missing
//	repeated-sequence       a sequence number comes again, or late
//	repeated-operation      an operation begins with the number of an earlier one
//	time-backwards          a row is of an earlier time than the one before it
package history
